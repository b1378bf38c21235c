"""How turns, and with them sessions, come to rest: all of it at once, or nothing."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from holdfast.core import delivery, effects, notes, segments, sessions
from holdfast.core.effects import Effect
from holdfast.core.events import EntryKind
from holdfast.core.turns import Cause, Mode, OnCrash, Policy, Resume, Turn, TurnEvent, TurnState
from holdfast.errors import IllegalMove, NotFound, Stale
from holdfast.ids import SessionId, TurnId
from tests.conformance.scenes import MINUTE, OWNER, Scene


async def test_a_finish_is_everything_at_once(scene: Scene) -> None:
    """M13, W5: state, last words, closing entry, deliveries and memory debt are one transaction."""
    turn = await scene.say(await scene.running(), "well, ")
    scene.now += MINUTE
    ending = scene.ending(turn, text="well, hi", drafts=(scene.text("hi"),), deliveries=scene.parts(turn, "well, hi"))
    finished, entries = await scene.store.settlement.finish(turn, ending)
    assert (finished.state, finished.node_id, finished.nth) == (TurnState.COMPLETED, None, 4)
    assert (finished.answered_at, finished.generation) == (scene.now, 1)
    assert await scene.store.turns.get(turn.id) == finished
    assert [(entry.kind, entry.nth) for entry in entries] == [(EntryKind.TEXT, 3), (EntryKind.TURN_COMPLETED, 4)]
    assert entries[-1].data == {"text": "well, hi"}
    assert await scene.store.journal.read(turn.session_id, after=3) == entries
    assert [each.state for each in await scene.store.deliveries.of_turn(turn.id)] == [delivery.DeliveryState.PENDING]
    (segment,) = await scene.store.segments.of_session(turn.session_id)
    assert (segment.id, segment.owner, segment.state) == (ending.segment_id, OWNER, segments.SegmentState.OPEN)
    session = await scene.store.sessions.get(turn.session_id)
    assert (session.generation, session.seq, session.updated_at) == (1, 5, scene.now)


async def test_a_finish_that_cannot_be_whole_leaves_nothing(scene: Scene) -> None:
    """W5: one delivery breaks a rule of the schema, so the turn is still running."""
    turn = await scene.running()
    (part,) = scene.parts(turn, "hi")
    before = await scene.snapshot()
    with pytest.raises(Stale):
        await scene.finish(turn, deliveries=(part, replace(part, part=0)))
    assert await scene.snapshot() == before
    await scene.finish(turn, deliveries=(part,))


@pytest.mark.parametrize("event", [TurnEvent.FINISH, TurnEvent.FAIL, TurnEvent.CANCEL])
async def test_a_repeated_finish_after_a_lost_answer_changes_nothing(scene: Scene, event: TurnEvent) -> None:
    """T3"""
    turn = await scene.running(channel="webhook", one_shot=True)
    ending = scene.ending(
        turn, event, cause="user" if event is TurnEvent.CANCEL else None, deliveries=scene.parts(turn, "x")
    )
    finished = await scene.store.settlement.finish(turn, ending)
    before = await scene.snapshot()
    assert await scene.store.settlement.finish(turn, ending) == finished
    assert await scene.snapshot() == before


async def test_a_finished_turn_cannot_end_in_another_way(scene: Scene) -> None:
    """T3: terminal is final."""
    turn = await scene.running()
    await scene.finish(turn)
    before = await scene.snapshot()
    with pytest.raises(Stale):
        await scene.finish(turn, event=TurnEvent.FAIL)
    with pytest.raises(Stale):
        await scene.finish(turn, drafts=(scene.text("one more thing"),))
    with pytest.raises(IllegalMove):
        await scene.store.settlement.cancel(turn.id, Cause.USER, scene.now)
    await scene.interrupt(turn)
    assert await scene.snapshot() == before


async def test_a_finish_needs_the_place_and_the_fence_of_the_holder(scene: Scene) -> None:
    """T4"""
    turn = await scene.running()
    later = await scene.say(turn, "more")
    before = await scene.snapshot()
    for stale in (turn, replace(later, fence=later.fence - 1), replace(later, nth=later.nth + 1)):
        with pytest.raises(Stale):
            await scene.finish(stale)
    assert await scene.snapshot() == before


async def test_a_failed_turn_says_why_and_records_no_debt(scene: Scene) -> None:
    """A1, M13"""
    turn = await scene.running()
    failed = await scene.finish(turn, event=TurnEvent.FAIL, error="the model refused", memory_owner=OWNER)
    assert (failed.state, failed.error, failed.generation) == (TurnState.FAILED, "the model refused", None)
    assert await scene.store.turns.get(turn.id) == failed
    assert (await scene.entries(turn.session_id))[-1].data == {"error": "the model refused"}
    assert await scene.store.segments.of_session(turn.session_id) == []


async def test_a_failed_turn_still_delivers_its_notice(scene: Scene) -> None:
    """A1: the person hears of the failure."""
    turn = await scene.running()
    await scene.finish(turn, event=TurnEvent.FAIL, deliveries=scene.parts(turn, "Failed: broken"))
    assert [each.text for each in await scene.send()] == ["Failed: broken"]


@pytest.mark.parametrize("event", [TurnEvent.FINISH, TurnEvent.FAIL, TurnEvent.CANCEL])
async def test_no_tool_call_is_left_running_behind_a_turn_that_ended(scene: Scene, event: TurnEvent) -> None:
    """X1: a worker that gives up in the middle of a call leaves its outcome unknown, not running."""
    turn, _ = await scene.use(await scene.running(), Effect.EFFECTFUL)
    await scene.finish(turn, event=event, cause="user" if event is TurnEvent.CANCEL else None)
    (call,) = await scene.store.journal.calls(turn.id)
    assert (call.state, call.starts) == (effects.CallState.UNKNOWN, 1)


@pytest.mark.parametrize(("remembers", "owner"), [(False, OWNER), (True, None)])
async def test_a_turn_that_is_not_to_be_remembered_records_no_debt(scene: Scene, remembers: bool, owner: str | None) -> None:
    """M1 (contract): only completed turns that are not ephemeral become committable."""
    finished = await scene.finish(await scene.running(remembers=remembers), memory_owner=owner)
    assert finished.generation is None
    assert await scene.store.segments.of_session(finished.session_id) == []


async def test_a_one_shot_session_ends_with_its_turn_however_that_ends(scene: Scene) -> None:
    """W4, S1"""
    for channel, event in product(("webhook", "cron", "api"), (TurnEvent.FINISH, TurnEvent.FAIL, TurnEvent.CANCEL)):
        turn = await scene.running(conversation=f"{channel}:{event}", channel=channel, one_shot=True)
        scene.now += MINUTE
        if event is TurnEvent.CANCEL:
            await scene.store.settlement.cancel(turn.id, Cause.USER, scene.now)
        else:
            await scene.finish(turn, event=event)
        session = await scene.store.sessions.get(turn.session_id)
        assert (session.state, session.end_reason) == (sessions.SessionState.ENDED, f"{channel}_complete")
        assert session.ended_at == scene.now


async def test_a_one_shot_session_owes_its_memory_at_once(scene: Scene) -> None:
    """M1, S1: its end is a boundary, and nothing else will ever seal it."""
    turn = await scene.finished(channel="cron", one_shot=True)
    (segment,) = await scene.store.segments.of_session(turn.session_id)
    assert segment.state is segments.SegmentState.SEALED


async def test_a_one_shot_turn_cancelled_before_it_started_ends_its_session_too(scene: Scene) -> None:
    """W4, S1"""
    receipt = await scene.accept(channel="webhook", one_shot=True)
    await scene.store.settlement.cancel(receipt.turn_id, Cause.USER, scene.now)
    assert (await scene.store.sessions.get(receipt.session_id)).end_reason == "webhook_complete"


async def test_a_second_message_for_a_one_shot_session_is_still_answered(scene: Scene) -> None:
    """A1: it came under the same key while the first ran, and the first ended the session."""
    first = await scene.running(channel="webhook", one_shot=True)
    second = await scene.accept(channel="webhook", one_shot=True)
    assert second.session_id == first.session_id
    await scene.finish(first)
    await scene.finish(await scene.claim_and_start(second.turn_id))
    session = await scene.store.sessions.get(first.session_id)
    assert (session.end_reason, session.generation) == ("webhook_complete", 2)
    debts = await scene.store.segments.of_session(first.session_id)
    assert [each.state for each in debts] == [segments.SegmentState.SEALED] * 2


async def test_a_conversation_stays_open_after_its_turn(scene: Scene) -> None:
    turn = await scene.finished()
    session = await scene.store.sessions.get(turn.session_id)
    assert (session.state, session.ended_at, session.end_reason) == (sessions.SessionState.OPEN, None, None)


@pytest.mark.parametrize("state", [TurnState.QUEUED, TurnState.RUNNING, TurnState.WAITING])
async def test_any_turn_in_flight_can_be_cancelled(scene: Scene, state: TurnState) -> None:
    """A1, J9: cancelling keeps what was said and adds the outcome."""
    turn = await scene.claimed()
    if state is not TurnState.QUEUED:
        turn = await scene.say(await scene.start(turn), "so far")
    if state is TurnState.WAITING:
        turn, _ = await scene.store.turns.park(turn, [scene.asked()], scene.question())
    cancelled = await scene.store.settlement.cancel(turn.id, Cause.USER, scene.now)
    assert (cancelled.state, cancelled.cause, cancelled.node_id) == (TurnState.CANCELLED, "user", None)
    assert await scene.store.turns.get(turn.id) == cancelled
    last = (await scene.entries(turn.session_id))[-1]
    assert (last.kind, last.data, last.attempt) == (EntryKind.TURN_CANCELLED, {"cause": "user"}, turn.attempt)
    said = [entry.data["text"] for entry in await scene.entries(turn.session_id) if entry.kind is EntryKind.TEXT]
    assert said == ([] if state is TurnState.QUEUED else ["so far"])


async def test_a_cancelled_turn_is_taken_from_its_worker(scene: Scene) -> None:
    """T4: the holder's next write changes nothing."""
    turn = await scene.running()
    await scene.store.settlement.cancel(turn.id, Cause.USER, scene.now)
    before = await scene.snapshot()
    for late in (scene.say(turn, "x"), scene.finish(turn), scene.store.turns.park(turn, [scene.asked()], scene.question())):
        with pytest.raises(Stale):
            await late
    await scene.interrupt(turn)
    assert await scene.snapshot() == before


async def test_a_cancelled_claim_does_not_start(scene: Scene) -> None:
    """T4"""
    turn = await scene.claimed()
    await scene.store.settlement.cancel(turn.id, Cause.USER, scene.now)
    with pytest.raises(Stale):
        await scene.start(turn)


async def test_a_second_cancel_is_refused(scene: Scene) -> None:
    """T3"""
    receipt = await scene.accept()
    await scene.store.settlement.cancel(receipt.turn_id, Cause.USER, scene.now)
    before = await scene.snapshot()
    with pytest.raises(IllegalMove):
        await scene.store.settlement.cancel(receipt.turn_id, Cause.USER, scene.now)
    with pytest.raises(NotFound):
        await scene.store.settlement.cancel(TurnId("nothing"), Cause.USER, scene.now)
    assert await scene.snapshot() == before


async def test_a_cancelled_turn_lets_the_next_one_run(scene: Scene) -> None:
    """T2"""
    first = await scene.running("one")
    middle = await scene.accept("two")
    last = await scene.accept("three")
    await scene.store.settlement.cancel(middle.turn_id, Cause.USER, scene.now)
    assert await scene.claim() == []
    await scene.store.settlement.cancel(first.id, Cause.USER, scene.now)
    await scene.claim_and_start(last.turn_id)


DECIDED = {
    Effect.PURE: effects.CallState.PLANNED,
    Effect.KEYED: effects.CallState.PLANNED,
    Effect.EFFECTFUL: effects.CallState.UNKNOWN,
}


@pytest.mark.parametrize("way", ["cancel", "interrupt"])
async def test_a_call_that_was_cut_off_is_decided_with_its_turn(scene: Scene, way: str) -> None:
    """X1: and one that had ended is not."""
    for effect, decided in DECIDED.items():
        turn, ended = await scene.use(await scene.running(conversation=effect), effect, effects.CallEvent.SUCCEED)
        turn, cut = await scene.use(turn, effect)
        if way == "cancel":
            await scene.store.settlement.cancel(turn.id, Cause.USER, scene.now)
        else:
            await scene.interrupt(turn)
        calls = {call.id: call.state for call in await scene.store.journal.calls(turn.id)}
        assert calls == {ended.id: effects.CallState.OK, cut.id: decided}


async def test_an_effectful_call_that_was_cut_off_never_starts_again(scene: Scene) -> None:
    """X1: its outcome is unknown, and the resumed turn cannot start it."""
    turn, call = await scene.use(await scene.running(mode=Mode.DETACHED), Effect.EFFECTFUL)
    await scene.interrupt(turn)
    again = await scene.claim_and_start(turn.id)
    planned = replace(call, state=effects.CallState.PLANNED)
    with pytest.raises(Stale):
        await scene.move(again, (planned, planned.on(effects.CallEvent.START)))
    (stored,) = await scene.store.journal.calls(turn.id)
    assert (stored.state, stored.starts) == (effects.CallState.UNKNOWN, 1)


async def test_a_keyed_call_that_was_cut_off_starts_again_under_its_own_id(scene: Scene) -> None:
    """X1"""
    turn, call = await scene.use(await scene.running(mode=Mode.DETACHED), Effect.KEYED)
    await scene.interrupt(turn)
    again = await scene.claim_and_start(turn.id)
    (planned,) = await scene.store.journal.calls(turn.id)
    await scene.move(again, (planned, planned.on(effects.CallEvent.START)))
    (stored,) = await scene.store.journal.calls(turn.id)
    assert (stored.id, stored.state, stored.starts) == (call.id, effects.CallState.STARTED, 2)


AFTERMATH = [
    (Mode.CONVERSATION, Resume.ON_MESSAGE, TurnState.INTERRUPTED),
    (Mode.CONVERSATION, Resume.AUTO, TurnState.QUEUED),
    (Mode.DETACHED, Resume.ON_MESSAGE, TurnState.QUEUED),
    (Mode.DETACHED, Resume.AUTO, TurnState.QUEUED),
    (Mode.SYNCHRONOUS, Resume.ON_MESSAGE, TurnState.INTERRUPTED),
    (Mode.SYNCHRONOUS, Resume.AUTO, TurnState.INTERRUPTED),
]


async def test_what_follows_an_interruption_depends_on_who_waits(scene: Scene) -> None:
    """R10, A1"""
    for mode, resume, expected in AFTERMATH:
        turn = await scene.say(await scene.running(conversation=f"{mode}:{resume}", mode=mode), "so far")
        policy = Policy(resume=resume)
        cut = await scene.store.settlement.interrupt(scene.node, [turn.id], Cause.RESTART_TIMEOUT, policy, scene.now)
        continues = expected is TurnState.QUEUED
        assert (cut.continued, cut.rested) == (((turn.id,), ()) if continues else ((), (turn.id,)))
        assert cut.given_up == ()
        stored = await scene.store.turns.get(turn.id)
        assert (stored.state, stored.node_id, stored.fence > turn.fence) == (expected, None, True)
        last = (await scene.entries(turn.session_id))[-1]
        assert last.kind is EntryKind.TURN_INTERRUPTED
        assert last.data == {"cause": "restart_timeout", "continues": continues}
        session = await scene.store.sessions.get(turn.session_id)
        assert (session.state, session.strikes) == (sessions.SessionState.OPEN, 1)
        await scene.store.settlement.end_session(turn.session_id, "done with", scene.now)


@pytest.mark.parametrize("resume", Resume)
async def test_a_full_disk_never_uses_up_the_strikes_of_a_session(scene: Scene, resume: Resume) -> None:
    """R5, R8: it is a reason to be resumed, however often it comes; crashes before and after it count as ever."""
    turn = await scene.running(mode=Mode.DETACHED)
    causes = [Cause.DISK_FULL, Cause.DISK_FULL, Cause.CRASH, Cause.DISK_FULL, Cause.DISK_FULL, Cause.CRASH]
    for cause, strikes in zip(causes, (1, 1, 2, 2, 2, 3), strict=True):
        cut = await scene.store.settlement.interrupt(scene.node, [turn.id], cause, Policy(resume=resume), scene.now)
        session = await scene.store.sessions.get(turn.session_id)
        assert (session.strikes, cut.given_up) == (strikes, (turn.id,) if strikes == 3 else ())
        if not cut.given_up:
            turn = await scene.claim_and_start(turn.id)


async def test_with_suspend_a_crash_suspends_a_session_unless_it_was_resume_pending(scene: Scene) -> None:
    """R9, R7: what was cut off stays readable, and the next message gets a new session that says why."""
    policy = Policy(on_crash=OnCrash.SUSPEND)
    pending = await scene.interrupted("cut by a drain", conversation="pending")
    fresh = await scene.running(conversation="fresh")
    again = await scene.running("again", conversation="pending")
    cut = await scene.store.settlement.interrupt(scene.node, [fresh.id, again.id], Cause.CRASH, policy, scene.now)
    assert (cut.suspended, cut.rested) == ((fresh.id,), (again.id,))
    assert (await scene.store.sessions.get(fresh.session_id)).state is sessions.SessionState.SUSPENDED
    assert await scene.store.sessions.resume_cause(fresh.session_id) is None
    assert await scene.store.sessions.resume_cause(pending.session_id) == "crash"
    successor = await scene.store.sessions.get((await scene.accept(conversation="fresh")).session_id)
    assert successor.id != fresh.session_id
    assert (successor.auto_reset_reason, successor.parent_id) == ("suspended", fresh.session_id)


async def test_an_interrupted_conversation_is_resume_pending_until_its_next_message(scene: Scene) -> None:
    """R5"""
    turn = await scene.running()
    assert await scene.store.sessions.resume_cause(turn.session_id) is None
    await scene.interrupt(turn, cause=Cause.SHUTDOWN_TIMEOUT)
    for _ in range(2):
        assert await scene.store.sessions.resume_cause(turn.session_id) == "shutdown_timeout"
    assert (await scene.accept("go on")).session_id == turn.session_id


async def test_only_running_turns_of_the_node_are_interrupted(scene: Scene) -> None:
    """R4: neither what is finished, nor what is only claimed, nor what another node runs, nor what nobody named."""
    finished = await scene.finished(conversation="a")
    claimed = await scene.claimed(conversation="b")
    parked = await scene.parked(conversation="c")
    unnamed = await scene.running(conversation="d")
    other = await scene.running(conversation="e")
    before = await scene.snapshot()
    ids = [finished.id, claimed.id, parked.id, TurnId("nothing")]
    cut = await scene.store.settlement.interrupt(scene.node, ids, Cause.CRASH, Policy(resume=Resume.AUTO), scene.now)
    assert len(cut) == 0
    stranger = scene.node[:-1] + "!"
    await scene.interrupt(replace(other, node_id=stranger), replace(unnamed, node_id=stranger))
    assert await scene.snapshot() == before


async def test_many_turns_are_interrupted_at_once(scene: Scene) -> None:
    """R4, T2"""
    modes = [Mode.CONVERSATION, Mode.DETACHED, Mode.SYNCHRONOUS] * 2
    turns = [await scene.running(conversation=f"chat:{number}", mode=mode) for number, mode in enumerate(modes)]
    ids = [turn.id for turn in turns]
    cut = await scene.store.settlement.interrupt(scene.node, ids, Cause.CRASH, Policy(resume=Resume.ON_MESSAGE), scene.now)
    assert (set(cut.continued), cut.given_up) == ({ids[1], ids[4]}, ())
    assert set(cut.rested) == {ids[0], ids[2], ids[3], ids[5]}
    assert {turn.id for turn in await scene.claim()} == {ids[1], ids[4]}


async def test_an_interruption_twice_is_one(scene: Scene) -> None:
    """P1"""
    turn = await scene.running()
    await scene.interrupt(turn)
    before = await scene.snapshot()
    await scene.interrupt(turn)
    assert await scene.snapshot() == before


async def strike(scene: Scene, turn: Turn) -> None:
    await scene.interrupt(turn, resume=Resume.AUTO)


async def test_three_strikes_suspend(scene: Scene) -> None:
    """S2, R8, A1: what queued behind the stuck turn did nothing wrong, and is answered."""
    turn = await scene.running("one")
    queued = await scene.accept("two")
    await strike(scene, turn)
    await strike(scene, await scene.claim_and_start(turn.id))
    third = await scene.claim_and_start(turn.id)
    cut = await scene.store.settlement.interrupt(scene.node, [third.id], Cause.CRASH, Policy(resume=Resume.AUTO), scene.now)
    assert cut.given_up == (turn.id,)
    session = await scene.store.sessions.get(turn.session_id)
    assert (session.state, session.strikes) == (sessions.SessionState.SUSPENDED, 3)
    assert await scene.state(turn) is TurnState.INTERRUPTED
    assert (await scene.store.turns.get(turn.id)).error == notes.GIVEN_UP
    assert (await scene.entries(turn.session_id))[-1].data["error"] == notes.GIVEN_UP
    assert await scene.state(queued) is TurnState.QUEUED
    await scene.finish(await scene.claim_and_start(queued.turn_id))
    assert (await scene.store.sessions.get(turn.session_id)).state is sessions.SessionState.SUSPENDED


async def test_strikes_of_several_turns_add_up(scene: Scene) -> None:
    """R8: three interrupted turns in a row, each followed by the next message."""
    for number in range(3):
        turn = await scene.interrupted(str(number))
    assert (await scene.store.sessions.get(turn.session_id)).state is sessions.SessionState.SUSPENDED
    assert await scene.store.sessions.resume_cause(turn.session_id) is None


async def test_a_completed_turn_wipes_the_strikes(scene: Scene) -> None:
    """R8"""
    for _ in range(2):
        await scene.interrupted()
    turn = await scene.finished()
    assert (await scene.store.sessions.get(turn.session_id)).strikes == 0
    for _ in range(2):
        await scene.interrupted()
    assert (await scene.store.sessions.get(turn.session_id)).state is sessions.SessionState.OPEN


@pytest.mark.parametrize("event", [TurnEvent.FAIL, TurnEvent.CANCEL])
async def test_only_a_completed_turn_wipes_the_strikes(scene: Scene, event: TurnEvent) -> None:
    """R8"""
    await scene.interrupted()
    turn = await scene.running()
    await scene.finish(turn, event=event, cause="user" if event is TurnEvent.CANCEL else None)
    assert (await scene.store.sessions.get(turn.session_id)).strikes == 1


@pytest.mark.parametrize("mode", [Mode.DETACHED, Mode.SYNCHRONOUS])
async def test_a_one_shot_session_ends_when_its_turn_is_given_up(scene: Scene, mode: Mode) -> None:
    """S1, W4: there is no next message that could wait for it, so it never stays suspended."""
    turn = await scene.running(channel="webhook", one_shot=True, mode=mode)
    for _ in range(3):
        await scene.interrupt(turn)
        if await scene.state(turn) is TurnState.INTERRUPTED:
            break
        turn = await scene.claim_and_start(turn.id)
    session = await scene.store.sessions.get(turn.session_id)
    assert (session.state, session.end_reason) == (sessions.SessionState.ENDED, "webhook_complete")
    assert await scene.store.sessions.prune("webhook", scene.now) == 1


async def test_a_one_shot_session_stays_open_while_its_turn_goes_on(scene: Scene) -> None:
    """S1"""
    turn = await scene.running(channel="webhook", one_shot=True, mode=Mode.DETACHED)
    await scene.interrupt(turn)
    assert (await scene.store.sessions.get(turn.session_id)).state is sessions.SessionState.OPEN
    await scene.finish(await scene.claim_and_start(turn.id))
    assert (await scene.store.sessions.get(turn.session_id)).end_reason == "webhook_complete"


async def test_the_message_after_a_suspension_gets_a_new_session_that_says_so(scene: Scene) -> None:
    """R7"""
    turn = await scene.finished()
    await scene.store.settlement.suspend_session(turn.session_id, scene.now)
    assert await scene.store.sessions.find("local", "chat:1") is None
    scene.now += MINUTE
    receipt = await scene.accept("still there?")
    session = await scene.store.sessions.get(receipt.session_id)
    assert (session.auto_reset_reason, session.parent_id) == ("suspended", turn.session_id)
    scene.now += MINUTE
    await scene.store.settlement.end_session(session.id, "user", scene.now)
    third = await scene.store.sessions.get((await scene.accept("and now?")).session_id)
    assert (third.auto_reset_reason, third.parent_id) == (None, None)


@pytest.mark.parametrize("jump", [-MINUTE, 0])
async def test_a_suspension_is_remembered_whatever_the_clock_does(scene: Scene, jump: int) -> None:
    """R7, C1: the suspended session is younger than the ended one, though its id may not look so."""
    for _ in range(8):
        first = await scene.finished()
        await scene.store.settlement.end_session(first.session_id, "user", scene.now)
        scene.now += jump
        second = await scene.finished()
        assert (await scene.store.sessions.get(second.session_id)).auto_reset_reason is None
        await scene.store.settlement.suspend_session(second.session_id, scene.now)
        third = await scene.accept()
        session = await scene.store.sessions.get(third.session_id)
        assert (session.auto_reset_reason, session.parent_id) == ("suspended", second.session_id)
        await scene.store.settlement.end_session(third.session_id, "user", scene.now)


async def test_the_message_after_an_end_gets_a_plain_new_session(scene: Scene) -> None:
    turn = await scene.finished()
    await scene.store.settlement.end_session(turn.session_id, "user", scene.now)
    receipt = await scene.accept()
    assert receipt.session_id != turn.session_id
    assert (await scene.store.sessions.get(receipt.session_id)).auto_reset_reason is None


@pytest.mark.parametrize("way", ["end", "suspend"])
async def test_leaving_a_session_settles_everything_in_it(scene: Scene, way: str) -> None:
    """A1: running, queued: each gets its visible outcome; the memory is sealed."""
    await scene.finished("done")
    running, _ = await scene.use(await scene.say(await scene.running("one"), "so far"), Effect.EFFECTFUL)
    queued = [await scene.accept("two"), await scene.accept("three")]
    if way == "end":
        await scene.store.settlement.end_session(running.session_id, "user", scene.now)
    else:
        await scene.store.settlement.suspend_session(running.session_id, scene.now)
    cause = "session_ended" if way == "end" else "session_suspended"
    for turn_id in (running.id, *(each.turn_id for each in queued)):
        turn = await scene.store.turns.get(turn_id)
        assert (turn.state, turn.cause) == (TurnState.CANCELLED, cause)
    (call,) = await scene.store.journal.calls(running.id)
    assert call.state is effects.CallState.UNKNOWN
    (segment,) = await scene.store.segments.of_session(running.session_id)
    assert segment.state is segments.SegmentState.SEALED
    kinds = await scene.kinds(running.session_id)
    assert kinds[-3:] == [EntryKind.TURN_CANCELLED] * 3


async def test_leaving_a_session_cancels_what_waits_for_a_person(scene: Scene) -> None:
    """A1"""
    turn = await scene.parked()
    await scene.store.settlement.suspend_session(turn.session_id, scene.now)
    assert await scene.state(turn) is TurnState.CANCELLED
    with pytest.raises(IllegalMove):
        await scene.store.turns.answer(turn.id, *scene.reply())


async def test_the_first_end_reason_wins(scene: Scene) -> None:
    """W4"""
    turn = await scene.finished(channel="webhook", one_shot=True)
    before = await scene.snapshot()
    scene.now += MINUTE
    await scene.store.settlement.end_session(turn.session_id, "operator", scene.now)
    await scene.store.settlement.suspend_session(turn.session_id, scene.now)
    assert await scene.snapshot() == before
    other = await scene.running(conversation="chat:2", channel="webhook", one_shot=True)
    await scene.store.settlement.end_session(other.session_id, "operator", scene.now)
    await scene.store.settlement.end_session(other.session_id, "somebody", scene.now)
    assert (await scene.store.sessions.get(other.session_id)).end_reason == "operator"


async def test_a_suspended_session_can_still_end(scene: Scene) -> None:
    turn = await scene.finished()
    await scene.store.settlement.suspend_session(turn.session_id, scene.now)
    await scene.store.settlement.end_session(turn.session_id, "user", scene.now)
    session = await scene.store.sessions.get(turn.session_id)
    assert (session.state, session.end_reason) == (sessions.SessionState.ENDED, "user")


async def test_a_suspended_one_shot_session_ends(scene: Scene) -> None:
    """S1: no next message will ever follow, and a session that does not end is never pruned."""
    turn = await scene.running(channel="webhook", one_shot=True)
    await scene.store.settlement.suspend_session(turn.session_id, scene.now)
    session = await scene.store.sessions.get(turn.session_id)
    assert (session.state, session.end_reason) == (sessions.SessionState.ENDED, "webhook_complete")
    assert await scene.store.sessions.prune("webhook", scene.now) == 1


async def test_suspending_wins_over_resume_pending(scene: Scene) -> None:
    """R7"""
    turn = await scene.interrupted()
    await scene.store.settlement.suspend_session(turn.session_id, scene.now)
    assert await scene.store.sessions.resume_cause(turn.session_id) is None


async def test_leaving_an_unknown_session_changes_nothing(scene: Scene) -> None:
    """R12, M12"""
    before = await scene.snapshot()
    await scene.store.settlement.end_session(SessionId("nothing"), "user", scene.now)
    await scene.store.settlement.suspend_session(SessionId(""), scene.now)
    assert await scene.snapshot() == before
