"""Questions: opened by the park of a turn, closed by whatever ends the wait, and what an answer grants for longer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.core import effects, questions
from holdfast.core.effects import Effect
from holdfast.core.events import EntryKind
from holdfast.core.intake import Busy
from holdfast.core.questions import About, AskedQuestion, Question
from holdfast.core.turns import Cause, Turn, TurnState
from holdfast.errors import IllegalMove, Rejected, Stale
from holdfast.ids import SessionId, TurnId
from holdfast.store import cancellation, turns
from holdfast.store.database import POSTGRES
from tests.conformance.scenes import MINUTE, QUESTION, Scene, on_postgres
from tests.conformance.test_concurrency import race

OWNER = "local"
AWAITING = effects.CallState.AWAITING_APPROVAL


async def only(scene: Scene, turn: Turn) -> AskedQuestion:
    (asked,) = await scene.store.questions.of_turn(turn.id)
    return asked


async def test_a_parked_turn_has_its_question_in_full(scene: Scene) -> None:
    """Q1: whoever shows it to a person needs nothing else."""
    question = Question(
        id="call_1",
        text="Run it?",
        about=About.APPROVAL,
        choices=("once", "deny"),
        fingerprint="print",
        expires_at=scene.now + MINUTE,
        detail={"command": "rm -r build", "workdir": "/work", "count": 2},
    )
    turn = await scene.park(await scene.running(owner="ann"), question=question)
    asked = AskedQuestion(question=question, turn_id=turn.id, session_id=turn.session_id, owner="ann", asked_at=scene.now)
    assert await scene.store.questions.open("ann") == [asked]
    assert await scene.store.questions.of_turn(turn.id) == [asked]
    assert await scene.store.questions.open(OWNER) == []


async def test_an_answer_closes_its_question(scene: Scene) -> None:
    """Q1"""
    turn = await scene.parked()
    scene.now += MINUTE
    await scene.answer(turn, "go ahead")
    asked = await only(scene, turn)
    assert (asked.answer, asked.answered_at) == ("go ahead", scene.now)
    assert await scene.store.questions.open(OWNER) == []


async def test_a_turn_may_ask_one_question_after_the_other(scene: Scene) -> None:
    """Q1"""
    turn = await scene.parked()
    await scene.answer(turn)
    scene.now += MINUTE
    again = await scene.park(await scene.claim_and_start(turn.id), question=scene.question(id="second"))
    found = await scene.store.questions.of_turn(turn.id)
    assert [(asked.question.id, asked.answer) for asked in found] == [(QUESTION, "yes"), ("second", None)]
    await scene.answer(again, question="second")


async def test_the_same_question_is_not_asked_twice(scene: Scene) -> None:
    """Q1: its first answer stands."""
    turn = await scene.parked()
    await scene.answer(turn)
    running = await scene.claim_and_start(turn.id)
    before = await scene.snapshot()
    with pytest.raises(Stale):
        await scene.park(running)
    assert await scene.snapshot() == before


async def test_only_the_open_question_takes_an_answer(scene: Scene) -> None:
    """Q1: an answer to an earlier question cannot approve what is asked now."""
    turn = await scene.parked()
    await scene.answer(turn)
    turn = await scene.park(await scene.claim_and_start(turn.id), question=scene.approval(id="second"))
    before = await scene.snapshot()
    for other in (QUESTION, "third", ""):
        with pytest.raises(IllegalMove, match="second"):
            await scene.answer(turn, "always", question=other)
    assert await scene.snapshot() == before


async def test_a_question_that_has_expired_takes_no_answer_but_that(scene: Scene) -> None:
    """Q1: the last moment is one too late, and time moves the turn on all the same."""
    turn = await scene.park(await scene.running(), question=scene.approval(expires_at=scene.now + MINUTE))
    assert await scene.store.questions.expired(scene.now + MINUTE - 1) == []
    scene.now += MINUTE
    (expired,) = await scene.store.questions.expired(scene.now)
    assert expired.turn_id == turn.id
    before = await scene.snapshot()
    for late in ("once", "always", "deny"):
        with pytest.raises(IllegalMove, match="expired"):
            await scene.answer(turn, late)
    assert await scene.snapshot() == before
    assert (await scene.answer(turn, questions.EXPIRED)).state is TurnState.QUEUED
    assert await scene.store.questions.expired(scene.now) == []
    assert await scene.store.questions.grants(OWNER) == []


async def test_what_never_expires_is_never_found_expired(scene: Scene) -> None:
    await scene.parked()
    assert await scene.store.questions.expired(scene.now + 10**12) == []


@pytest.mark.parametrize("way", ["cancel", "end", "suspend", "supersede"])
async def test_a_turn_that_is_cancelled_leaves_no_question_open(scene: Scene, way: str) -> None:
    """Q1: nobody is asked for what will not be done."""
    turn = await scene.park(await scene.running(), question=scene.approval())
    scene.now += MINUTE
    match way:
        case "cancel":
            await scene.store.settlement.cancel(turn.id, Cause.USER, scene.now)
        case "end":
            await scene.store.settlement.end_session(turn.session_id, "user", scene.now)
        case "suspend":
            await scene.store.settlement.suspend_session(turn.session_id, scene.now)
        case _:
            await scene.accept("instead", busy=Busy.INTERRUPT)
    asked = await only(scene, turn)
    assert (asked.answer, asked.answered_at) == (questions.CANCELLED, scene.now)
    assert await scene.store.questions.grants(OWNER) == []
    with pytest.raises(IllegalMove):
        await scene.answer(turn, "always")


async def test_the_question_of_a_deleted_session_is_gone_with_it(scene: Scene) -> None:
    turn = await scene.parked()
    assert await scene.store.sessions.delete(turn.session_id, scene.now)
    assert await scene.store.questions.of_turn(turn.id) == []


@pytest.mark.parametrize(("said", "where"), [("session", "here"), ("Always!", "everywhere"), ("once", None), ("no", None)])
async def test_an_approval_is_granted_for_as_long_as_the_answer_says(scene: Scene, said: str, where: str | None) -> None:
    """Q2"""
    turn = await scene.park(await scene.running(), question=scene.approval())
    await scene.answer(turn, said)
    granted = scene.store.questions.is_granted
    assert await granted(OWNER, turn.session_id, "print") is (where is not None)
    assert await granted(OWNER, SessionId("another"), "print") is (where == "everywhere")
    assert not await granted("somebody", turn.session_id, "print")
    assert not await granted(OWNER, turn.session_id, "another print")


@pytest.mark.parametrize(
    "question", [{"about": About.ANSWER}, {"about": About.BUDGET}, {"fingerprint": ""}], ids=["plain", "budget", "unbound"]
)
async def test_only_an_approval_of_one_exact_action_is_granted(scene: Scene, question: dict[str, str]) -> None:
    """Q2: "always" to anything else allows nothing."""
    turn = await scene.park(await scene.running(), question=replace(scene.approval(), **question))
    await scene.answer(turn, "always")
    assert await scene.store.questions.grants(OWNER) == []


async def test_a_grant_is_listed_and_taken_back(scene: Scene) -> None:
    """Q2"""
    turn = await scene.park(await scene.running(), question=scene.approval())
    await scene.answer(turn, "session")
    scene.now += MINUTE
    await scene.park(await scene.claim_and_start(turn.id), question=scene.approval(id="second"))
    await scene.answer(turn, "always", question="second")
    found = await scene.store.questions.grants(OWNER)
    assert [(grant.session_id, grant.text) for grant in found] == [(turn.session_id, "may I?"), (None, "may I?")]
    assert not await scene.store.questions.revoke("somebody", "print")
    assert await scene.store.questions.revoke(OWNER, "print")
    assert not await scene.store.questions.revoke(OWNER, "print")
    assert not await scene.store.questions.is_granted(OWNER, turn.session_id, "print")


async def test_what_is_granted_twice_is_granted_once(scene: Scene) -> None:
    """Q2"""
    for conversation in ("chat:1", "chat:2"):
        turn = await scene.park(await scene.running(conversation=conversation), question=scene.approval())
        await scene.answer(turn, "always")
    assert len(await scene.store.questions.grants(OWNER)) == 1


async def test_what_is_granted_in_a_session_goes_with_it(scene: Scene) -> None:
    """Q2, W7"""
    for conversation, said in (("chat:1", "session"), ("chat:2", "always")):
        turn = await scene.park(await scene.running(conversation=conversation), question=scene.approval())
        await scene.answer(turn, said)
        await scene.store.sessions.delete(turn.session_id, scene.now)
    (left,) = await scene.store.questions.grants(OWNER)
    assert left.session_id is None


async def test_open_questions_come_oldest_first_and_in_pages(scene: Scene) -> None:
    parked: list[Turn] = []
    for number in range(5):
        parked.append(await scene.parked(conversation=f"chat:{number}"))
        scene.now += number % 2
    await scene.parked(conversation="elsewhere", owner="somebody")
    pages: list[TurnId] = []
    after = None
    while page := await scene.store.questions.open(OWNER, after=after, limit=2):
        pages += [asked.turn_id for asked in page]
        after = (page[-1].asked_at, page[-1].turn_id)
    assert sorted(pages) == sorted(turn.id for turn in parked)
    assert [asked.turn_id for asked in await scene.store.questions.open(OWNER)] == pages
    (one,) = await scene.store.questions.open(OWNER, parked[3].session_id)
    assert one.turn_id == parked[3].id
    assert await scene.store.questions.open("somebody", parked[3].session_id) == []


async def test_a_turn_is_parked_with_the_calls_that_wait(scene: Scene) -> None:
    """X1: what was asked about, and what waits beside it, is there after a restart, and nothing of it has started."""
    running = await scene.running()
    asks, waits = scene.call(running, Effect.EFFECTFUL), scene.call(running)
    moves = [(asks, asks.on(effects.CallEvent.ASK)), (waits, waits)]
    turn, _ = await scene.store.turns.park(running, [scene.asked()], scene.approval(), moves)
    calls = {call.id: (call.state, call.starts) for call in await scene.store.journal.calls(turn.id)}
    assert calls == {asks.id: (AWAITING, 0), waits.id: (effects.CallState.PLANNED, 0)}
    await scene.reopen()
    scene.node = await scene.joined()
    await scene.answer(turn, "once")
    again = await scene.claim_and_start(turn.id)
    asked, planned = await scene.store.journal.calls(turn.id)
    again = await scene.move(
        again, (asked, asked.on(effects.CallEvent.START)), (planned, planned.on(effects.CallEvent.START))
    )
    assert {call.starts for call in await scene.store.journal.calls(turn.id)} == {1}
    await scene.finish(again)


async def test_calls_that_wait_survive_a_park_untouched(scene: Scene) -> None:
    """X1: only what had started is decided."""
    running = await scene.running()
    waits, planned = scene.call(running, Effect.EFFECTFUL), scene.call(running, Effect.EFFECTFUL)
    asked = waits.on(effects.CallEvent.ASK)
    running = await scene.move(running, (waits, asked), (planned, planned))
    running, started = await scene.use(running, Effect.EFFECTFUL)
    turn, entries = await scene.store.turns.park(running, [scene.asked()], scene.approval(), [(asked, asked)])
    states = {call.id: call.state for call in await scene.store.journal.calls(turn.id)}
    assert states == {waits.id: AWAITING, planned.id: effects.CallState.PLANNED, started.id: effects.CallState.UNKNOWN}
    assert [entry.kind for entry in entries] == [EntryKind.APPROVAL_ASKED]


async def test_a_repeated_park_asks_once(scene: Scene) -> None:
    """Q1, X1: its answer was lost, and it is given again."""
    running = await scene.running()
    call = scene.call(running, Effect.EFFECTFUL)
    asking = ([scene.text("well"), scene.asked()], scene.approval(), [(call, call.on(effects.CallEvent.ASK))])
    parked = await scene.store.turns.park(running, *asking)
    before = await scene.snapshot()
    assert await scene.store.turns.park(running, *asking) == parked
    assert await scene.snapshot() == before


async def test_a_park_whose_calls_have_moved_changes_nothing(scene: Scene) -> None:
    """T4, X1"""
    running, started = await scene.use(await scene.running(), Effect.EFFECTFUL, effects.CallEvent.SUCCEED)
    old = replace(started, state=effects.CallState.PLANNED)
    before = await scene.snapshot()
    with pytest.raises(Stale):
        await scene.store.turns.park(running, [scene.asked()], scene.approval(), [(old, old.on(effects.CallEvent.ASK))])
    assert await scene.snapshot() == before


@on_postgres
async def test_an_answer_that_comes_while_the_turn_is_cancelled_grants_nothing(scene: Scene) -> None:
    """Q1, Q2"""
    turn = await scene.park(await scene.running(), question=scene.approval())
    _, error = await race(
        scene,
        lambda: cancellation.cancel(POSTGRES, turn.id, Cause.USER, scene.now),
        lambda: scene.answer(turn, "always"),
    )
    assert isinstance(error, Stale | IllegalMove)
    assert await scene.store.questions.grants(OWNER) == []


@on_postgres
async def test_a_cancel_that_comes_while_the_turn_is_answered_leaves_the_answer(scene: Scene) -> None:
    """Q1"""
    turn = await scene.parked()
    given, at = scene.reply("yes")
    await race(
        scene,
        lambda: turns._answer(turn.id, given, at),
        lambda: scene.store.settlement.cancel(turn.id, Cause.USER, scene.now),
    )
    assert await scene.state(turn) is TurnState.CANCELLED
    assert (await only(scene, turn)).answer == "yes"


async def test_an_answer_allows_no_more_than_was_offered(scene: Scene) -> None:
    """Q2: what could be another thing tomorrow is not granted for always, however it is asked for."""
    turn = await scene.park(await scene.running(), question=scene.approval(choices=questions.PASSING_CHOICES))
    before = await scene.snapshot()
    for more in ("always", "forever."):
        with pytest.raises(Rejected, match="not offered"):
            await scene.answer(turn, more)
    assert await scene.snapshot() == before
    await scene.answer(turn, "session")
    (grant,) = await scene.store.questions.grants(OWNER)
    assert grant.session_id == turn.session_id


async def test_a_question_about_several_things_grants_each_of_them(scene: Scene) -> None:
    """Q2: two hosts that were asked about together are approved one by one."""
    turn = await scene.park(await scene.running(), question=scene.approval(fingerprint="one two"))
    await scene.answer(turn, "session")
    granted = [await scene.store.questions.is_granted(OWNER, turn.session_id, each) for each in ("one", "two", "three")]
    assert granted == [True, True, False]
    assert not await scene.store.questions.is_granted(OWNER, turn.session_id, "one two")
