"""Turns from acceptance to the person they may wait for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.core.events import EntryKind
from holdfast.core.intake import QUEUE_MAX, Cursor
from holdfast.core.sessions import Source
from holdfast.core.turns import Cause, Mode, Resume, TurnEvent, TurnState
from holdfast.errors import IllegalMove, KeyReused, NotFound, QueueFull, Stale
from holdfast.ids import SessionId, TurnId, new_session_id, new_turn_id
from tests.conformance.scenes import MINUTE, QUESTION, START, Scene


async def test_an_accepted_message_is_a_queued_turn_with_its_entry(scene: Scene) -> None:
    """A1"""
    receipt = await scene.accept("hello", reply_to="telegram:1", delivers_later=False, remembers=False)
    turn = await scene.store.turns.get(receipt.turn_id)
    assert (turn.state, turn.ordinal, turn.attempt, turn.fence, turn.node_id) == (TurnState.QUEUED, 1, 0, 0, None)
    assert (turn.reply_to, turn.delivers_later, turn.remembers) == ("telegram:1", False, False)
    assert (receipt.state, receipt.duplicate, receipt.accepted_at) == (TurnState.QUEUED, False, START)
    (entry,) = await scene.entries(receipt.session_id)
    assert (entry.kind, entry.seq, entry.turn_id, entry.data) == (EntryKind.TURN_ACCEPTED, 1, turn.id, {"text": "hello"})


async def test_an_accepted_message_survives_a_restart(scene: Scene) -> None:
    """A2: what has its receipt is durable."""
    receipt = await scene.accept("hello", dedupe_key="k")
    await scene.reopen()
    assert await scene.state(receipt) is TurnState.QUEUED
    assert (await scene.accept("hello", dedupe_key="k")).turn_id == receipt.turn_id


async def test_a_message_opens_its_session_with_everything_its_channel_said(scene: Scene) -> None:
    """A7"""
    source = Source(chat_id="1", chat_name="Ada", chat_type="private", thread_id="7", user="ada")
    receipt = await scene.accept(source=source, owner="ada", conversation="chat:7")
    session = await scene.store.sessions.get(receipt.session_id)
    assert (session.key, session.channel, session.owner, session.source) == ("chat:7", "telegram", "ada", source)
    assert (session.seq, session.turns, session.generation, session.strikes) == (1, 1, 0, 0)


async def test_messages_of_one_key_join_one_session(scene: Scene) -> None:
    first, second = await scene.accept("one"), await scene.accept("two")
    other = await scene.accept("three", owner="somebody else")
    assert first.session_id == second.session_id != other.session_id
    turns = await scene.store.turns.list(first.session_id)
    assert [(turn.id, turn.ordinal) for turn in turns] == [(first.turn_id, 1), (second.turn_id, 2)]


async def test_the_capability_to_deliver_later_belongs_to_the_turn(scene: Scene) -> None:
    """A2 (contract): the same session carried by another channel has that channel's capability."""
    api = await scene.accept("one", channel="api", delivers_later=False, mode=Mode.SYNCHRONOUS)
    chat = await scene.accept("two", channel="telegram", delivers_later=True)
    assert api.session_id == chat.session_id
    turns = await scene.store.turns.list(api.session_id)
    assert [(turn.delivers_later, turn.mode) for turn in turns] == [(False, Mode.SYNCHRONOUS), (True, Mode.CONVERSATION)]


async def test_turns_are_listed_from_a_cursor(scene: Scene) -> None:
    receipts = [await scene.accept(str(number)) for number in range(5)]
    page = await scene.store.turns.list(receipts[0].session_id, after=1, limit=2)
    assert [turn.id for turn in page] == [receipts[1].turn_id, receipts[2].turn_id]


async def test_a_repeated_key_returns_the_first_receipt(scene: Scene) -> None:
    """A3: same key and body, same turn."""
    first = await scene.accept("hello", dedupe_key="telegram:5")
    scene.now += MINUTE
    again = await scene.accept("hello", dedupe_key="telegram:5")
    assert again == replace(first, duplicate=True)
    assert len(await scene.store.turns.list(first.session_id)) == 1


async def test_a_repeated_key_tells_how_its_turn_stands(scene: Scene) -> None:
    """A3"""
    turn = await scene.finished("hello", dedupe_key="k")
    again = await scene.accept("hello", dedupe_key="k")
    assert (again.turn_id, again.state, again.duplicate) == (turn.id, TurnState.COMPLETED, True)


async def test_a_repeated_key_in_an_older_session_names_the_session_of_its_turn(scene: Scene) -> None:
    """A3: the receipt names the session that the turn joined, not the one it would have opened."""
    first = await scene.accept("one")
    second = await scene.accept("two", dedupe_key="k")
    await scene.store.settlement.end_session(first.session_id, "user", scene.now)
    third = await scene.accept("three")
    assert (await scene.accept("two", dedupe_key="k")).session_id == second.session_id != third.session_id


@pytest.mark.parametrize("changes", [{"text": "other"}, {"conversation": "chat:2"}])
async def test_a_key_with_another_body_is_refused_and_changes_nothing(scene: Scene, changes: dict[str, str]) -> None:
    """A3: other body, refused."""
    first = await scene.accept("hello", dedupe_key="k", cursor=Cursor(channel="telegram", position="1"))
    before = await scene.snapshot()
    with pytest.raises(KeyReused) as refused:
        await scene.accept(**{"text": "hello", **changes}, dedupe_key="k", cursor=Cursor(channel="telegram", position="2"))
    assert refused.value.turn_id == first.turn_id
    assert await scene.snapshot() == before


async def test_without_a_key_a_repeat_is_a_new_turn(scene: Scene) -> None:
    assert (await scene.accept("hello")).turn_id != (await scene.accept("hello")).turn_id


async def test_a_key_outlives_the_session_it_named(scene: Scene) -> None:
    """A3: a late repeat of a pruned delivery runs nothing again."""
    turn = await scene.finished("hello", dedupe_key="k", channel="webhook", one_shot=True, remembers=False)
    assert await scene.store.sessions.prune("webhook", scene.now) == 1
    again = await scene.accept("hello", dedupe_key="k", channel="webhook", one_shot=True)
    assert (again.turn_id, again.state, again.duplicate) == (turn.id, TurnState.COMPLETED, True)
    assert await scene.claim() == []


@pytest.mark.parametrize("bad", ["a\0b", "a\ud800b"])
async def test_text_that_is_no_text_is_accepted_from_any_field(scene: Scene, bad: str) -> None:
    """A2: whatever a channel hands in is made durable, not refused by one of the databases."""
    cursor = Cursor(channel="telegram", position=bad)
    fields = {"conversation": bad, "owner": bad, "dedupe_key": bad, "reply_to": bad, "source": Source(chat_name=bad)}
    first = await scene.accept(bad, **fields, cursor=cursor)
    again = await scene.accept(bad, **fields, cursor=cursor)
    assert again == replace(first, duplicate=True)
    found = await scene.store.sessions.find(bad, bad)
    assert found is not None
    assert found.id == first.session_id
    assert (await scene.entries(first.session_id))[0].data["text"] in ("a\ufffdb", "a?b")


async def test_a_flooded_session_refuses_more_and_nothing_of_it_stays(scene: Scene) -> None:
    """A2: a refused message leaves neither a turn nor a key nor a cursor."""
    for number in range(QUEUE_MAX):
        receipt = await scene.accept(str(number))
    before = await scene.snapshot()
    with pytest.raises(QueueFull):
        await scene.accept("too much", dedupe_key="k", cursor=Cursor(channel="telegram", position="101"))
    assert await scene.snapshot() == before
    await scene.accept("elsewhere", conversation="chat:2")
    await scene.store.settlement.cancel(receipt.turn_id, Cause.USER, scene.now)
    assert not (await scene.accept("too much", dedupe_key="k")).duplicate


async def test_a_cursor_moves_with_its_message(scene: Scene) -> None:
    """A2: a polled channel is never read past a message that is not durable."""
    assert await scene.store.intake.cursor("telegram") is None
    await scene.accept("one", dedupe_key="1", cursor=Cursor(channel="telegram", position="1"))
    assert await scene.store.intake.cursor("telegram") == "1"
    await scene.accept("two", dedupe_key="2", cursor=Cursor(channel="telegram", position="2"))
    assert await scene.store.intake.cursor("telegram") == "2"
    assert await scene.store.intake.cursor("discord") is None


async def test_a_cursor_moves_past_a_repeat(scene: Scene) -> None:
    """A3: the same message under a later position must not be offered for ever."""
    await scene.accept("one", dedupe_key="1", cursor=Cursor(channel="telegram", position="1"))
    await scene.accept("one", dedupe_key="1", cursor=Cursor(channel="telegram", position="9"))
    assert await scene.store.intake.cursor("telegram") == "9"


async def test_a_claimed_turn_stays_queued_until_it_starts(scene: Scene) -> None:
    turn = await scene.claimed()
    assert (turn.state, turn.fence, turn.node_id, turn.attempt) == (TurnState.QUEUED, 1, scene.node, 0)
    assert await scene.store.turns.get(turn.id) == turn
    assert await scene.store.turns.held(scene.node) == [turn]


async def test_a_claimed_turn_is_not_claimed_again(scene: Scene) -> None:
    """T1"""
    await scene.claimed()
    assert await scene.claim() == []


async def test_claims_take_the_oldest_of_each_session_up_to_the_limit(scene: Scene) -> None:
    """T2"""
    expected = []
    for number in range(4):
        scene.now = START + number
        expected.append((await scene.accept("first", conversation=f"chat:{number}")).turn_id)
        await scene.accept("second", conversation=f"chat:{number}")
    assert [turn.id for turn in await scene.claim(limit=3)] == expected[:3]
    assert [turn.id for turn in await scene.claim(limit=3)] == expected[3:]
    assert await scene.claim(limit=3) == []


async def test_turns_of_a_session_run_one_after_the_other_in_acceptance_order(scene: Scene) -> None:
    """T1, T2"""
    receipts = [await scene.accept(str(number)) for number in range(3)]
    ran = []
    for _ in receipts:
        (turn,) = await scene.claim()
        assert await scene.claim() == []
        running = await scene.start(turn)
        assert await scene.claim() == []
        await scene.finish(running)
        ran.append(turn.id)
    assert ran == [receipt.turn_id for receipt in receipts]


async def test_acceptance_order_does_not_depend_on_the_clock(scene: Scene) -> None:
    """T2, C1: the clock jumped back between two messages."""
    first = await scene.accept("one")
    scene.now -= 1_000 * MINUTE
    await scene.accept("two")
    assert [turn.id for turn in await scene.claim()] == [first.turn_id]


async def test_an_interrupted_turn_that_goes_on_stays_ahead_of_those_that_queue(scene: Scene) -> None:
    """T2: a resumed turn runs before the later ones of its session."""
    first = await scene.running("one")
    second = await scene.accept("two")
    await scene.interrupt(first, resume=Resume.AUTO)
    again = await scene.claim_and_start(first.id)
    assert await scene.claim() == []
    await scene.finish(again)
    await scene.claim_and_start(second.turn_id)


async def test_a_turn_that_rests_interrupted_lets_the_next_one_run(scene: Scene) -> None:
    """R5: the message that queues behind an interrupted turn is the next message."""
    first = await scene.running("one")
    second = await scene.accept("two")
    await scene.interrupt(first, resume=Resume.ON_MESSAGE)
    await scene.claim_and_start(second.turn_id)


async def test_a_released_turn_can_be_claimed_again(scene: Scene) -> None:
    turn = await scene.claimed()
    await scene.store.turns.release(turn)
    (again,) = await scene.claim()
    assert (again.id, again.fence > turn.fence, again.attempt) == (turn.id, True, 0)


async def test_a_release_with_an_old_fence_changes_nothing(scene: Scene) -> None:
    """T4"""
    turn = await scene.claimed()
    await scene.store.turns.release(turn)
    await scene.claim()
    before = await scene.snapshot()
    await scene.store.turns.release(turn)
    assert await scene.snapshot() == before


async def test_a_running_turn_is_not_released(scene: Scene) -> None:
    turn = await scene.claimed()
    await scene.start(turn)
    await scene.store.turns.release(turn)
    assert await scene.state(turn) is TurnState.RUNNING


async def test_a_start_is_journalled_before_anyone_knows_of_it(scene: Scene) -> None:
    claimed = await scene.claimed()
    scene.now += MINUTE
    turn, entries = await scene.store.turns.start(claimed, scene.now)
    assert (turn.state, turn.attempt, turn.nth, turn.started_at) == (TurnState.RUNNING, 1, 1, scene.now)
    assert await scene.store.turns.get(turn.id) == turn
    assert [(entry.kind, entry.attempt, entry.nth, entry.seq) for entry in entries] == [(EntryKind.TURN_STARTED, 1, 1, 2)]
    assert await scene.store.journal.read(turn.session_id, after=1) == entries


async def test_a_repeated_start_after_a_lost_answer_is_the_same_start(scene: Scene) -> None:
    claimed = await scene.claimed()
    started = await scene.store.turns.start(claimed, scene.now)
    before = await scene.snapshot()
    scene.now += MINUTE
    assert await scene.store.turns.start(claimed, scene.now) == started
    assert await scene.snapshot() == before
    await scene.say(started[0], "on we go")
    with pytest.raises(Stale):
        await scene.start(claimed)


async def test_an_unclaimed_turn_does_not_start(scene: Scene) -> None:
    receipt = await scene.accept()
    with pytest.raises(Stale):
        await scene.start(await scene.store.turns.get(receipt.turn_id))


async def test_a_start_with_an_old_fence_is_refused(scene: Scene) -> None:
    """T4"""
    turn = await scene.claimed()
    await scene.store.turns.release(turn)
    await scene.claim()
    before = await scene.snapshot()
    with pytest.raises(Stale):
        await scene.start(turn)
    assert await scene.snapshot() == before


async def test_every_attempt_numbers_its_own_entries(scene: Scene) -> None:
    """J2: a resumed turn starts at its first entry again, and goes on."""
    first = await scene.say(await scene.running(), "a", "b", "c")
    await scene.interrupt(first, resume=Resume.AUTO)
    scene.now += MINUTE
    second = await scene.claim_and_start(first.id)
    assert (second.attempt, second.nth, second.started_at) == (2, 1, first.started_at)
    assert await scene.store.turns.get(second.id) == second
    finished = await scene.finish(await scene.say(second, "d"))
    assert await scene.store.turns.get(finished.id) == finished
    placed = [(entry.attempt, entry.nth) for entry in await scene.store.journal.read_turn(first.id)]
    assert placed == [(0, None), (1, 1), (1, 2), (1, 3), (1, 4), (1, None), (2, 1), (2, 2), (2, 3)]


async def test_a_parked_turn_waits_and_is_nobodys(scene: Scene) -> None:
    running = await scene.say(await scene.running(), "let me ask")
    turn, entries = await scene.store.turns.park(running, [scene.asked()], scene.question())
    assert (turn.state, turn.node_id, turn.nth) == (TurnState.WAITING, None, 3)
    assert await scene.store.turns.get(turn.id) == turn
    assert [(entry.kind, entry.nth) for entry in entries] == [(EntryKind.APPROVAL_ASKED, 3)]
    assert await scene.claim() == []
    assert await scene.store.turns.held(scene.node) == []


async def test_a_repeated_park_after_a_lost_answer_is_the_same_park(scene: Scene) -> None:
    running = await scene.running()
    parked = await scene.store.turns.park(running, [scene.text("well"), scene.asked()], scene.question())
    before = await scene.snapshot()
    assert await scene.store.turns.park(running, [scene.text("well"), scene.asked()], scene.question()) == parked
    assert await scene.snapshot() == before
    await scene.store.turns.answer(running.id, *scene.reply())
    with pytest.raises(Stale):
        await scene.store.turns.park(running, [scene.text("well"), scene.asked()], scene.question())


async def test_a_waiting_turn_keeps_its_place_before_later_ones(scene: Scene) -> None:
    """T1, T2: what waits for a person is live."""
    turn = await scene.parked("one")
    later = await scene.accept("two")
    assert await scene.claim() == []
    await scene.store.turns.answer(turn.id, *scene.reply())
    again = await scene.claim_and_start(turn.id)
    await scene.finish(again)
    await scene.claim_and_start(later.turn_id)


async def test_a_parked_turn_costs_nothing_across_a_restart(scene: Scene) -> None:
    """P1: what waits is not interrupted by any recovery."""
    turn = await scene.parked()
    await scene.reopen()
    scene.node = await scene.joined()
    assert (await scene.sweep()).total == 0
    answered = await scene.store.turns.answer(turn.id, *scene.reply())
    assert answered.state is TurnState.QUEUED
    assert await scene.store.turns.get(turn.id) == answered


async def test_an_answer_is_journalled_and_queues_the_turn(scene: Scene) -> None:
    turn = await scene.parked()
    answered = await scene.store.turns.answer(turn.id, *scene.reply("go ahead"))
    assert (answered.state, answered.fence > turn.fence) == (TurnState.QUEUED, True)
    last = (await scene.entries(turn.session_id))[-1]
    assert (last.kind, last.data, last.nth) == (
        EntryKind.APPROVAL_ANSWERED,
        {"text": "go ahead", "question_id": QUESTION},
        None,
    )
    resumed = await scene.claim_and_start(turn.id)
    assert (resumed.attempt, resumed.nth) == (2, 1)
    await scene.finish(await scene.say(resumed, "done"))


async def test_only_a_waiting_turn_takes_an_answer(scene: Scene) -> None:
    queued = await scene.claimed(conversation="a")
    running = await scene.running(conversation="b")
    completed = await scene.finished(conversation="c")
    cancelled = await scene.store.settlement.cancel((await scene.running(conversation="d")).id, Cause.USER, scene.now)
    before = await scene.snapshot()
    for turn in (queued, running, completed, cancelled):
        with pytest.raises(IllegalMove):
            await scene.store.turns.answer(turn.id, *scene.reply())
    assert await scene.snapshot() == before


async def test_a_second_answer_is_refused(scene: Scene) -> None:
    turn = await scene.parked()
    await scene.store.turns.answer(turn.id, *scene.reply())
    with pytest.raises(IllegalMove):
        await scene.store.turns.answer(turn.id, *scene.reply("no"))


async def test_a_park_with_an_old_fence_or_place_is_refused(scene: Scene) -> None:
    """T4"""
    turn = await scene.running()
    await scene.say(turn, "already further on")
    before = await scene.snapshot()
    with pytest.raises(Stale):
        await scene.store.turns.park(turn, [scene.asked()], scene.question())
    with pytest.raises(Stale):
        await scene.store.turns.park(replace(turn, nth=2, fence=turn.fence - 1), [scene.asked()], scene.question())
    assert await scene.snapshot() == before


async def test_an_unknown_turn_is_not_found(scene: Scene) -> None:
    with pytest.raises(NotFound):
        await scene.store.turns.get(TurnId("nothing"))
    with pytest.raises(NotFound):
        await scene.store.turns.answer(TurnId("nothing"), *scene.reply())
    assert await scene.store.turns.list(SessionId("nothing")) == []
    assert await scene.store.turns.delivered_at(TurnId("nothing")) is None


async def test_the_tally_conserves_what_was_accepted(scene: Scene) -> None:
    """CONSERVATION"""
    assert await scene.store.turns.tally() == {}
    await scene.finished(conversation="a")
    await scene.finished(conversation="a")
    await scene.store.settlement.cancel((await scene.accept(conversation="a")).turn_id, Cause.USER, scene.now)
    await scene.interrupted(conversation="b")
    await scene.parked(conversation="c")
    await scene.finish(await scene.running(conversation="d"), event=TurnEvent.FAIL)
    await scene.running(conversation="e")
    await scene.accept(conversation="f")
    await scene.accept(conversation="f")
    tally = await scene.store.turns.tally()
    assert tally == {
        TurnState.COMPLETED: 2,
        TurnState.CANCELLED: 1,
        TurnState.INTERRUPTED: 1,
        TurnState.WAITING: 1,
        TurnState.FAILED: 1,
        TurnState.RUNNING: 1,
        TurnState.QUEUED: 2,
    }


async def test_a_synchronous_request_goes_on_under_the_same_key(scene: Scene) -> None:
    """R10: its client came back."""
    request = {"text": "hello", "dedupe_key": "k", "mode": Mode.SYNCHRONOUS, "channel": "api"}
    turn = await scene.interrupted(**request)
    assert await scene.claim() == []
    again = await scene.accept(**request)
    assert (again.turn_id, again.state, again.duplicate) == (turn.id, TurnState.QUEUED, True)
    resumed = await scene.claim_and_start(turn.id)
    assert (resumed.attempt, resumed.cause) == (2, None)
    await scene.finish(await scene.say(resumed, "here I am"))
    assert (await scene.accept(**request)).state is TurnState.COMPLETED


async def test_a_one_shot_synchronous_request_goes_on_in_its_ended_session(scene: Scene) -> None:
    """R10, S1: the session ended when its client was gone, and stays ended when the client is served after all."""
    request = {"text": "hello", "dedupe_key": "k", "mode": Mode.SYNCHRONOUS, "channel": "api", "one_shot": True}
    turn = await scene.interrupted(**request)
    assert (await scene.store.sessions.get(turn.session_id)).end_reason == "api_complete"
    assert (await scene.accept(**request)).state is TurnState.QUEUED
    await scene.finish(await scene.claim_and_start(turn.id))
    session = await scene.store.sessions.get(turn.session_id)
    assert (session.end_reason, session.generation) == ("api_complete", 1)
    (segment,) = await scene.store.segments.of_session(turn.session_id)
    assert segment.state == "sealed"


@pytest.mark.parametrize("mode", [Mode.CONVERSATION, Mode.DETACHED])
async def test_only_a_synchronous_request_is_resumed_by_its_key(scene: Scene, mode: Mode) -> None:
    turn = await scene.running("hello", dedupe_key="k", mode=mode)
    for _ in range(3):
        await scene.interrupt(turn)
        if await scene.state(turn) is TurnState.INTERRUPTED:
            break
        turn = await scene.claim_and_start(turn.id)
    assert (await scene.accept("hello", dedupe_key="k", mode=mode)).state is TurnState.INTERRUPTED
    assert await scene.claim() == []


async def test_a_synchronous_request_that_others_followed_is_not_resumed(scene: Scene) -> None:
    """T2: going back would run turns out of order."""
    request = {"text": "hello", "dedupe_key": "k", "mode": Mode.SYNCHRONOUS}
    turn = await scene.interrupted(**request)
    later = await scene.accept("meanwhile")
    assert (await scene.accept(**request)).state is TurnState.INTERRUPTED
    await scene.claim_and_start(later.turn_id)
    assert await scene.state(turn) is TurnState.INTERRUPTED


@pytest.mark.parametrize("one_shot", [False, True])
async def test_three_strikes_are_final_for_a_synchronous_request_too(scene: Scene, one_shot: bool) -> None:
    """S2, A1: a request that crashes every gateway is not resumed for ever, nor queued where nothing may run."""
    request = {"text": "hello", "dedupe_key": "k", "mode": Mode.SYNCHRONOUS, "channel": "api", "one_shot": one_shot}
    turn = await scene.interrupted(**request)
    for _ in range(2):
        assert (await scene.accept(**request)).state is TurnState.QUEUED
        await scene.interrupt(await scene.claim_and_start(turn.id))
    assert (await scene.accept(**request)).state is TurnState.INTERRUPTED
    assert await scene.claim() == []


async def test_a_synchronous_request_of_an_ended_conversation_is_not_resumed(scene: Scene) -> None:
    """A1: nothing is queued in a session that is over."""
    request = {"text": "hello", "dedupe_key": "k", "mode": Mode.SYNCHRONOUS}
    turn = await scene.interrupted(**request)
    await scene.store.settlement.end_session(turn.session_id, "user", scene.now)
    assert (await scene.accept(**request)).state is TurnState.INTERRUPTED
    assert await scene.claim() == []


async def test_a_one_shot_session_has_one_turn(scene: Scene) -> None:
    """W2: what could be told apart is; the same key again is a session of its own once the first has ended."""
    first = await scene.finished(conversation="webhook:push:1", channel="webhook", one_shot=True)
    second = await scene.accept(conversation="webhook:push:1", channel="webhook", one_shot=True)
    assert first.session_id != second.session_id


async def test_the_ids_offered_are_used_for_what_is_new(scene: Scene) -> None:
    turn_id, session_id = new_turn_id(scene.now), new_session_id(scene.now)
    receipt = await scene.store.intake.accept(scene.message(), turn_id, session_id, scene.now)
    assert (receipt.turn_id, receipt.session_id) == (turn_id, session_id)
