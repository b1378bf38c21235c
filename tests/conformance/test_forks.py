"""Forks, undoing and deleting: what a user may do to a conversation as a whole."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.core import effects
from holdfast.core.effects import Effect
from holdfast.core.events import EntryKind
from holdfast.core.intake import Busy
from holdfast.core.sessions import Session
from holdfast.core.transcript import fold
from holdfast.core.turns import Cause, Mode, TurnState
from holdfast.errors import IllegalMove, NotFound
from holdfast.ids import SessionId, TurnId, new_session_id
from tests.conformance.scenes import Scene


def copy_of(scene: Scene) -> Session:
    id_ = new_session_id(scene.now)
    at = scene.now
    return Session(id=id_, key=f"fork:{id_}", channel="web", owner="local", one_shot=False, created_at=at, updated_at=at)


async def shown(scene: Scene, session_id: SessionId) -> list[tuple[str, str]]:
    return [(item.role.value, item.text) for item in fold(await scene.entries(session_id))]


async def test_a_fork_shows_what_the_original_shows_and_goes_its_own_way(scene: Scene) -> None:
    first = await scene.finish(await scene.say(await scene.running("one"), "hi"))
    await scene.finished("two")
    fork = await scene.store.sessions.fork(first.session_id, copy_of(scene))
    assert await shown(scene, fork.id) == await shown(scene, first.session_id)
    assert fork.parent_id == first.session_id
    assert await scene.store.sessions.get(fork.id) == fork
    receipt = await scene.accept("three", conversation=fork.key)
    assert receipt.session_id == fork.id
    await scene.store.sessions.delete(first.session_id, scene.now)
    assert len(await shown(scene, fork.id)) == 4


async def test_a_fork_may_end_at_any_turn(scene: Scene) -> None:
    first = await scene.finished("one")
    await scene.finished("two")
    fork = await scene.store.sessions.fork(first.session_id, copy_of(scene), through=first.id)
    assert [text for role, text in await shown(scene, fork.id) if role == "user"] == ["one"]


async def test_a_fork_may_end_before_any_turn_so_that_its_message_can_be_sent_anew(scene: Scene) -> None:
    first, second = await scene.finished("one"), await scene.finished("two")
    for before, said in ((second, ["one"]), (first, [])):
        fork = await scene.store.sessions.fork(first.session_id, copy_of(scene), before=before.id)
        assert [text for role, text in await shown(scene, fork.id) if role == "user"] == said
        assert (fork.turns, fork.seq) == (len(said), len(await scene.entries(fork.id)))
        # It goes on, and can be forked again.
        again = await scene.finished("two, better said", conversation=fork.key)
        assert again.session_id == fork.id
        third = await scene.store.sessions.fork(fork.id, copy_of(scene), before=again.id)
        assert await shown(scene, third.id) == [("user", text) for text in said]
        with pytest.raises(NotFound):
            await scene.store.sessions.fork(fork.id, copy_of(scene), before=second.id)


async def test_before_a_message_that_joined_another_is_before_that_one(scene: Scene) -> None:
    await scene.finished("one")
    host = await scene.running("two")
    joining = await scene.accept("three", busy=Busy.STEER)
    host, _ = await scene.store.steering.heed(host, scene.now)
    await scene.finish(host)
    fork = await scene.store.sessions.fork(host.session_id, copy_of(scene), before=joining.turn_id)
    assert [text for role, text in await shown(scene, fork.id) if role == "user"] == ["one"]


async def test_a_fork_leaves_out_what_is_in_flight_and_keeps_markers(scene: Scene) -> None:
    """A1, J2: nothing in the copy waits for anybody."""
    await scene.interrupted("one")
    joined = await scene.running("two")
    await scene.accept("three", busy=Busy.STEER)
    joined, _ = await scene.store.steering.heed(joined, scene.now)
    await scene.finish(joined)
    running = await scene.running("four")
    fork = await scene.store.sessions.fork(running.session_id, copy_of(scene))
    roles = [role for role, _ in await shown(scene, fork.id)]
    assert roles == ["user", "marker", "user", "user"]
    assert await scene.store.sessions.resume_cause(fork.id) is None
    assert await scene.claim() == []


async def test_a_fork_owes_no_memory(scene: Scene) -> None:
    """M1: the original owes it already."""
    first = await scene.finished("one")
    fork = await scene.store.sessions.fork(first.session_id, copy_of(scene))
    assert await scene.store.segments.of_session(fork.id) == []
    assert fork.generation == 0


async def test_a_fork_repeats_no_effect_of_the_original(scene: Scene) -> None:
    """X1, R10: what was done in the world was done for the copy too, also when the copy goes on."""
    turn = await scene.running(mode=Mode.DETACHED)
    turn, sent = await scene.use(turn, Effect.EFFECTFUL)
    turn = await scene.move(turn, (sent, replace(sent.on(effects.CallEvent.SUCCEED), result="sent")))
    turn, _ = await scene.use(turn, Effect.KEYED)
    for _ in range(3):
        await scene.interrupt(turn)
        for again in await scene.claim():
            turn = await scene.start(again)
    fork = await scene.store.sessions.fork(turn.session_id, copy_of(scene))
    (copied,) = await scene.store.turns.list(fork.id)
    calls = {call.effect: call for call in await scene.store.journal.calls(copied.id)}
    assert calls[Effect.EFFECTFUL].state is effects.CallState.OK
    assert calls[Effect.EFFECTFUL].result == "sent"
    assert calls[Effect.KEYED].state is effects.CallState.UNKNOWN, "its key would be another one here"


async def test_a_fork_names_its_own_turns(scene: Scene) -> None:
    host = await scene.running("one")
    await scene.accept("two", busy=Busy.STEER)
    host, _ = await scene.store.steering.heed(host, scene.now)
    await scene.finish(host)
    running = await scene.running("three")
    await scene.accept("four", busy=Busy.STEER)
    await scene.store.steering.heed(running, scene.now)
    fork = await scene.store.sessions.fork(host.session_id, copy_of(scene))
    mine = {turn.id for turn in await scene.store.turns.list(fork.id)}
    assert len(mine) == 2, "what joined a turn in flight is left out with it"
    named = [entry.data.get("joined") or entry.data.get("turn_id") for entry in await scene.entries(fork.id)]
    assert {each for each in named if each} == mine
    assert [text for role, text in await shown(scene, fork.id) if role == "user"] == ["one", "two"]


async def test_nothing_cannot_be_forked(scene: Scene) -> None:
    """R12"""
    with pytest.raises(NotFound):
        await scene.store.sessions.fork(SessionId("nothing"), copy_of(scene))
    turn = await scene.finished()
    with pytest.raises(NotFound):
        await scene.store.sessions.fork(turn.session_id, copy_of(scene), through=TurnId("nothing"))


async def test_undoing_leaves_the_last_exchange_out_and_deletes_nothing(scene: Scene) -> None:
    first = await scene.finished("one")
    second = await scene.finished("two")
    undone = await scene.store.settlement.undo(first.session_id, scene.now)
    assert undone
    assert undone.id == second.id
    assert [text for role, text in await shown(scene, first.session_id) if role == "user"] == ["one"]
    assert (await scene.kinds(first.session_id)).count(EntryKind.TURN_ACCEPTED) == 2
    assert (await scene.store.settlement.undo(first.session_id, scene.now) or second).id == first.id
    assert await scene.store.settlement.undo(first.session_id, scene.now) is None


async def test_what_is_in_flight_is_stopped_before_it_is_undone(scene: Scene) -> None:
    turn = await scene.running("one")
    with pytest.raises(IllegalMove):
        await scene.store.settlement.undo(turn.session_id, scene.now)


async def test_a_deleted_session_leaves_nothing(scene: Scene) -> None:
    turn = await scene.running("one")
    assert await scene.store.sessions.delete(turn.session_id, scene.now)
    assert not await scene.store.sessions.delete(turn.session_id, scene.now)
    with pytest.raises(NotFound):
        await scene.store.turns.get(turn.id)


async def test_an_interrupted_turn_goes_on_when_somebody_asks(scene: Scene) -> None:
    """R10"""
    turn = await scene.interrupted("one")
    resumed = await scene.store.turns.resume(turn.id, scene.now)
    assert (resumed.state, resumed.cause) == (TurnState.QUEUED, None)
    with pytest.raises(IllegalMove):
        await scene.store.turns.resume(turn.id, scene.now)
    await scene.finish(await scene.claim_and_start(turn.id))


async def test_a_turn_that_others_followed_does_not_go_on(scene: Scene) -> None:
    """T2"""
    turn = await scene.interrupted("one")
    await scene.finished("two")
    with pytest.raises(IllegalMove):
        await scene.store.turns.resume(turn.id, scene.now)
    assert await scene.state(turn) is TurnState.INTERRUPTED


async def test_a_look_at_what_waits(scene: Scene) -> None:
    await scene.interrupted("one", conversation="a")
    await scene.parked("two", conversation="b")
    await scene.accept("three", conversation="c")
    standing = await scene.store.sessions.standing()
    assert (standing.queued, standing.waiting, standing.resumable) == (1, 1, 1)


async def test_a_fork_begins_its_context_where_the_original_does(scene: Scene) -> None:
    """J2: its entries are numbered anew, and what is in flight is left out."""
    first = await scene.finished("one")
    second = await scene.running("two")
    waiting = await scene.accept("three")
    after = (await scene.entries(first.session_id))[-1].seq
    summary = scene.draft(EntryKind.CONTEXT_COMPACTED, text="so far", through=first.id, after=after)
    second, _ = await scene.store.journal.append(second, [summary])
    await scene.finish(second)
    fork = await scene.store.sessions.fork(first.session_id, copy_of(scene))
    entries = await scene.entries(fork.id)
    copied = await scene.store.turns.list(fork.id)
    begins = (await scene.store.journal.brief(copied[0])).after
    (compacted,) = [entry for entry in entries if entry.kind is EntryKind.CONTEXT_COMPACTED]
    assert compacted.data["through"] == copied[0].id
    assert waiting.turn_id not in {entry.turn_id for entry in entries}
    kept = [entry for entry in await scene.entries(first.session_id) if entry.seq <= after]
    assert begins == len([entry for entry in kept if entry.turn_id != waiting.turn_id])


async def test_a_call_that_never_started_is_no_mystery_in_a_fork(scene: Scene) -> None:
    """X1: nobody approved it, so it is known what became of it: nothing."""
    running = await scene.running()
    call = scene.call(running, Effect.EFFECTFUL)
    moves = [(call, call.on(effects.CallEvent.ASK))]
    turn, _ = await scene.store.turns.park(running, [scene.asked()], scene.approval(), moves)
    await scene.store.settlement.cancel(turn.id, Cause.USER, scene.now)
    fork = await scene.store.sessions.fork(turn.session_id, copy_of(scene))
    (copied,) = await scene.store.turns.list(fork.id)
    (same,) = await scene.store.journal.calls(copied.id)
    assert (same.state, same.starts) == (effects.CallState.AWAITING_APPROVAL, 0)
