"""Committing on demand: everything that is owed, once, oldest first, by its owner, and one commit at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from holdfast.config import Config, GatewayConfig, MemoryConfig
from holdfast.core.segments import NOTHING_SAID, WORDS_MAX, Segment, SegmentState, SpokenMessage
from holdfast.core.sessions import Session
from holdfast.core.turns import Cause, TurnState
from holdfast.engine import committer
from holdfast.errors import Unavailable
from holdfast.ids import SessionId
from holdfast.memory.bindings import MemoryBindings
from holdfast.store.store import Store
from tests.engine.debts import AGENT, WatchedMemory, segments_in
from tests.engine.players import in_state
from tests.engine.world import (
    FAST,
    START,
    Altered,
    Hang,
    LosingAnswer,
    Open,
    RecordingMemory,
    answered,
    message,
    opened,
    running_engine,
    until,
)

OLD, NEW = "memory:old", "memory:new"


class Watched:
    """A store that counts how often a node compares what it commits with what the ledger says."""

    def __init__(self, store: Store, **changes: Any) -> None:
        self.looks = 0
        self._held = store.segments.held
        self.store = Altered(store, segments=Altered(store.segments, held=self._look, **changes))

    async def _look(self, node_id: Any) -> Any:
        self.looks += 1
        return await self._held(node_id)

    async def looks_again(self, times: int) -> None:
        enough = self.looks + times
        await until(lambda: self.looks >= enough)


async def test_one_commit_takes_everything_and_the_next_has_nothing_to_do(open_it: Open) -> None:
    """M4: one call for all turns since the last boundary; with nothing new nobody is called."""
    memory = RecordingMemory()
    async with opened(open_it) as store, running_engine(store, AGENT, memory=memory) as engine:
        turn = await answered(engine, store, "one")
        await answered(engine, store, "two")
        assert await engine.commit(turn.session_id)
        (paid,) = await segments_in(store, turn.session_id, SegmentState.COMMITTED)
        assert (paid.receipt, paid.attempt, paid.error) == ("4 messages read", 1, None)
        assert paid.settled_at is not None
        assert memory.taken_of(turn.session_id) == ["one", "re: one", "two", "re: two"]
        assert not await engine.commit(turn.session_id)
        assert not await engine.commit(turn.session_id, wait=False)
        failed = await answered(engine, store, "please fail", conversation="another")
        assert not await engine.commit(failed.session_id)
        assert len(memory.given) == 1


@pytest.mark.parametrize("session_id", ["", "ses_nobody", "a\0b"])
async def test_a_session_that_is_not_there_owes_nothing(session_id: str, open_it: Open) -> None:
    """M12"""
    async with opened(open_it) as store, running_engine(store, AGENT, memory=RecordingMemory()) as engine:
        assert not await engine.commit(SessionId(session_id))
        assert not await store.segments.seal(SessionId(session_id), START)


async def test_without_memory_there_is_nothing_to_commit(open_it: Open) -> None:
    """M1 M12"""
    async with opened(open_it) as store, running_engine(store, AGENT) as engine:
        turn = await answered(engine, store, "one")
        assert engine.memory is None
        assert not await engine.commit(turn.session_id)
    async with opened(open_it) as store, running_engine(store, AGENT, memory=MemoryBindings(None)) as engine:
        turn = await answered(engine, store, "two")
        assert not await engine.commit(turn.session_id)
        assert await store.segments.of_session(turn.session_id) == []


async def test_a_failed_commit_is_false_and_the_next_boundary_tries_again_without_waiting(open_it: Open) -> None:
    """M6: the segment and its owner stay; how long the background would wait does not matter to whoever asks."""
    memory = RecordingMemory(ConnectionError("no route"))
    async with opened(open_it) as store, running_engine(store, AGENT, memory=memory) as engine:
        turn = await answered(engine, store, "one")
        assert not await engine.commit(turn.session_id)
        (owed,) = await store.segments.of_session(turn.session_id)
        assert (owed.state, owed.owner, owed.error, owed.receipt) == (SegmentState.SEALED, memory.owner, "no route", None)
        await answered(engine, store, "two")
        assert await engine.commit(turn.session_id)
        first, second = await segments_in(store, turn.session_id, SegmentState.COMMITTED, SegmentState.COMMITTED)
        assert (first.id, first.attempt, first.error) == (owed.id, 2, None)
        assert [segment.id for segment, _ in memory.given] == [owed.id, first.id, second.id]


async def test_a_turn_that_completes_during_a_commit_is_owed_afterwards_and_the_next_calls_again(open_it: Open) -> None:
    """M5: neither blocked nor erased, and not part of a commit that began before it."""
    hang = Hang()
    memory = RecordingMemory(hang)
    async with opened(open_it) as store, running_engine(store, AGENT, memory=memory) as engine:
        turn = await answered(engine, store, "one")
        committing = asyncio.create_task(engine.commit(turn.session_id))
        await until(lambda: memory.given)
        await answered(engine, store, "two")
        hang.release()
        assert await committing
        await segments_in(store, turn.session_id, SegmentState.COMMITTED, SegmentState.OPEN)
        assert memory.taken_of(turn.session_id) == ["one", "re: one"]
        assert await engine.commit(turn.session_id)
        assert memory.taken_of(turn.session_id) == ["one", "re: one", "two", "re: two"]


async def test_of_overlapping_commits_one_works_at_a_time_and_only_who_wants_to_waits(open_it: Open) -> None:
    """M7: a second call pays what came after the first; one that finds nothing left has paid nothing."""
    hang = Hang()
    memory = WatchedMemory(hang)
    async with opened(open_it) as store, running_engine(store, AGENT, memory=memory) as engine:
        turn = await answered(engine, store, "one")
        first = asyncio.create_task(engine.commit(turn.session_id))
        await until(lambda: memory.given)
        idle = asyncio.create_task(engine.commit(turn.session_id))
        assert not await engine.commit(turn.session_id, wait=False)
        await answered(engine, store, "two")
        assert not await engine.commit(turn.session_id, wait=False), "in flight, though there is something newer"
        later = [asyncio.create_task(engine.commit(turn.session_id)) for _ in range(5)]
        await segments_in(store, turn.session_id, SegmentState.COMMITTING, SegmentState.SEALED)
        assert len(memory.given) == 1
        assert not any(task.done() for task in (first, idle, *later))
        hang.release()
        assert await first
        assert not await idle
        assert sorted(await asyncio.gather(*later)) == [False] * 4 + [True]
        await segments_in(store, turn.session_id, SegmentState.COMMITTED, SegmentState.COMMITTED)
        assert (memory.at_once, len(memory.given)) == (1, 2)


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
async def test_a_commit_on_another_node_is_waited_for_too(open_it: Open) -> None:
    """M7: the ledger serialises them, whoever works on it."""
    hang = Hang()
    here, there = RecordingMemory(), RecordingMemory(hang)
    async with opened(open_it) as store, opened(open_it) as other, running_engine(store, AGENT, memory=there) as far:
        turn = await answered(far, store, "one")
        async with running_engine(other, AGENT, memory=here, config=Config(gateway=GatewayConfig(max_running=0))) as near:
            committing = asyncio.create_task(far.commit(turn.session_id))
            await until(lambda: there.given)
            assert not await near.commit(turn.session_id, wait=False)
            await answered(far, store, "two")
            waiting = asyncio.create_task(near.commit(turn.session_id))
            await segments_in(store, turn.session_id, SegmentState.COMMITTING, SegmentState.SEALED)
            assert not waiting.done()
            hang.release()
            assert await committing
            assert await waiting
            await segments_in(store, turn.session_id, SegmentState.COMMITTED, SegmentState.COMMITTED)
        assert len(there.given) + len(here.given) == 2
        assert here.taken_of(turn.session_id) == ["two", "re: two"]


async def test_whoever_stops_waiting_does_not_stop_the_commit(open_it: Open) -> None:
    """M6 M10: it is ours for as long as the provider works, and nobody makes it a second time."""
    hang = Hang()
    memory = RecordingMemory(hang)
    async with opened(open_it) as store:
        watched = Watched(store)
        async with running_engine(watched.store, AGENT, memory=memory, tuning=replace(FAST, beat_ms=5)) as engine:
            turn = await answered(engine, store, "one")
            asking = asyncio.create_task(engine.commit(turn.session_id))
            await until(lambda: memory.given)
            asking.cancel()
            await watched.looks_again(4)
            await segments_in(store, turn.session_id, SegmentState.COMMITTING)
            hang.release()
            await segments_in(store, turn.session_id, SegmentState.COMMITTED)
        assert len(memory.given) == 1


async def test_a_claim_whose_answer_was_lost_is_given_back_and_made_again(open_it: Open) -> None:
    """M6: whoever asked is told that the store was away; while the node lives nothing stays half done."""
    memory = RecordingMemory()
    async with opened(open_it) as store:
        lossy = Altered(store, segments=Altered(store.segments, claim_one=LosingAnswer(store.segments.claim_one)))
        async with running_engine(lossy, AGENT, memory=memory, tuning=replace(FAST, beat_ms=5)) as engine:
            turn = await answered(engine, store, "one")
            with pytest.raises(Unavailable):
                await engine.commit(turn.session_id)
            assert memory.given == []
            await segments_in(store, turn.session_id, SegmentState.SEALED)
            assert await engine.commit(turn.session_id)
        assert len(memory.given) == 1


async def test_a_commit_that_was_recorded_without_an_answer_was_a_success(open_it: Open) -> None:
    """M4 M6: the ledger says so, and the provider is not called again."""
    memory = RecordingMemory()
    async with opened(open_it) as store:
        lossy = Altered(store, segments=Altered(store.segments, settle=LosingAnswer(store.segments.settle)))
        async with running_engine(lossy, AGENT, memory=memory) as engine:
            turn = await answered(engine, store, "one")
            assert await engine.commit(turn.session_id)
            assert not await engine.commit(turn.session_id)
        assert len(memory.given) == 1


class StubbornMemory(RecordingMemory):
    """Does not stop when it is told to."""

    async def commit(self, session: Session, segment: Segment, messages: Sequence[SpokenMessage]) -> str:
        self.given.append((segment, list(messages)))
        if len(self.given) > 1:
            return "at last"
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                continue


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (asyncio.CancelledError(), "CancelledError"),
        (SystemExit("I leave"), "I leave"),
        (GeneratorExit(), "GeneratorExit"),
        (ExceptionGroup("two things", [ValueError("a"), ValueError("b")]), "two things (2 sub-exceptions)"),
        (Exception("x" * 2_000), "x" * WORDS_MAX),
        (Unavailable("come back later"), "come back later"),
    ],
)
async def test_whatever_a_provider_raises_is_a_failed_commit(answer: BaseException, error: str, open_it: Open) -> None:
    """M6 M10: it takes nothing else down, and the next attempt succeeds."""
    memory = RecordingMemory(answer)
    async with opened(open_it) as store, running_engine(store, AGENT, memory=memory) as engine:
        turn = await answered(engine, store, "one")
        assert not await engine.commit(turn.session_id)
        (owed,) = await store.segments.of_session(turn.session_id)
        assert (owed.state, owed.error) == (SegmentState.SEALED, error)
        assert await engine.commit(turn.session_id)


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("answer", "receipt"),
    [(42, ""), (b"done", ""), ([], "2 messages read"), (" y" * 999, "y y"), ("\x1b[2Jdone,\n\u202e well", "[2Jdone, well")],
)
async def test_whatever_a_provider_returns_is_a_success(answer: object, receipt: str, open_it: Open) -> None:
    """M6: only an exception is a failure; what it has to say is kept as far as it is words, and not too many."""
    memory = RecordingMemory(answer)
    async with opened(open_it) as store, running_engine(store, AGENT, memory=memory) as engine:
        turn = await answered(engine, store, "one")
        assert await engine.commit(turn.session_id)
        (paid,) = await store.segments.of_session(turn.session_id)
        assert (paid.receipt or "").startswith(receipt)
        assert len(paid.receipt or "") <= WORDS_MAX


async def test_a_provider_that_does_not_stop_is_not_waited_for(open_it: Open) -> None:
    """M6 M10: the time is up even for one that ignores it."""
    memory = StubbornMemory()
    config = Config(memory=MemoryConfig(commit_timeout=0.03))
    async with (
        opened(open_it) as store,
        running_engine(store, AGENT, memory=memory, config=config) as engine,
    ):
        turn = await answered(engine, store, "one")
        assert not await engine.commit(turn.session_id)
        (owed,) = await store.segments.of_session(turn.session_id)
        assert owed.error == committer.TOO_LATE
        assert await engine.commit(turn.session_id)
        for task in asyncio.all_tasks():
            if task.get_name() == f"commit {owed.id}":
                # It would outlive the test, too.
                task.get_coro().close()  # type: ignore[union-attr]


async def test_what_was_undone_is_not_told_to_anybody(open_it: Open) -> None:
    """M1: the debt is settled, because nothing is left of it."""
    memory = RecordingMemory()
    async with opened(open_it) as store, running_engine(store, AGENT, memory=memory) as engine:
        turn = await answered(engine, store, "one")
        await store.settlement.undo(turn.session_id, START)
        assert await engine.commit(turn.session_id)
        (paid,) = await store.segments.of_session(turn.session_id)
        assert (paid.state, paid.receipt) == (SegmentState.COMMITTED, NOTHING_SAID)
        assert memory.given == []


async def test_a_session_that_is_deleted_during_its_commit_takes_its_debt_along(open_it: Open) -> None:
    """M12: nothing is left to settle, and everybody else is paid as before."""
    hang = Hang()
    memory = RecordingMemory(hang)
    async with opened(open_it) as store, running_engine(store, AGENT, memory=memory) as engine:
        turn = await answered(engine, store, "one")
        committing = asyncio.create_task(engine.commit(turn.session_id))
        await until(lambda: memory.given)
        await store.sessions.delete(turn.session_id, START)
        hang.release()
        assert not await committing
        other = await answered(engine, store, "two", conversation="another")
        assert await engine.commit(other.session_id)


def bound(new: RecordingMemory, *earlier: RecordingMemory) -> MemoryBindings:
    """Return bindings to a provider that know some earlier ones."""
    return MemoryBindings(new, lambda owner: next((each for each in earlier if each.owner == owner), None))


async def test_a_provider_that_is_replaced_between_two_turns_is_paid_first_and_its_own_only(open_it: Open) -> None:
    """M3: registered on a running engine or passed to the next, whoever comes later gets what came later."""
    old, new = WatchedMemory(owner=OLD), WatchedMemory(owner=NEW)
    async with opened(open_it) as store:
        bindings = bound(old)
        async with running_engine(store, AGENT, memory=bindings) as engine:
            turn = await answered(engine, store, "one")
            bindings.current, bindings._earlier = new, lambda owner: old if owner == OLD else None
            await answered(engine, store, "two")
            assert await engine.commit(turn.session_id)
        assert old.taken_of(turn.session_id) == ["one", "re: one"]
        assert new.taken_of(turn.session_id) == ["two", "re: two"]
        async with running_engine(store, AGENT, memory=bound(new, old)) as engine:
            await answered(engine, store, "three")
        async with running_engine(store, AGENT, memory=bound(old, new)) as engine:
            await answered(engine, store, "four")
            assert await engine.commit(turn.session_id)
        assert new.taken_of(turn.session_id)[2:] == ["three", "re: three"]
        assert old.taken_of(turn.session_id)[2:] == ["four", "re: four"]
        owners = [segment.owner for segment in await store.segments.of_session(turn.session_id)]
        assert owners == [OLD, NEW, NEW, OLD]


async def test_while_the_older_owner_fails_the_newer_one_waits_for_it(open_it: Open) -> None:
    """M3 M6: the oldest debt goes first, however often it is tried."""
    old, new = RecordingMemory(*[ConnectionError("gone")] * 99, owner=OLD), RecordingMemory(owner=NEW)
    async with opened(open_it) as store:
        async with running_engine(store, AGENT, memory=old) as engine:
            turn = await answered(engine, store, "one")
        async with running_engine(store, AGENT, memory=bound(new, old)) as engine:
            await answered(engine, store, "two")
            assert not await engine.commit(turn.session_id)
            assert not await engine.commit(turn.session_id)
            assert new.given == []
            old.recover()
            assert await engine.commit(turn.session_id)
        assert len(old.taken) == len(new.given) == 1
        assert len(old.given) > 2


async def test_what_is_owed_to_somebody_who_is_gone_stays_with_them_until_they_return(open_it: Open) -> None:
    """M3: parked, shown as sealed, never given to another; a later segment of the session waits behind it."""
    old, new = RecordingMemory(owner=OLD), RecordingMemory(owner=NEW)
    async with opened(open_it) as store:
        async with running_engine(store, AGENT, memory=old) as engine:
            turn = await answered(engine, store, "one")
            lost = await answered(engine, store, "secret", conversation="another")
        async with running_engine(store, AGENT, memory=new) as engine:
            await answered(engine, store, "two")
            await answered(engine, store, "open", conversation="another")
            for session_id in (turn.session_id, lost.session_id):
                assert not await engine.commit(session_id)
                await segments_in(store, session_id, SegmentState.SEALED, SegmentState.SEALED)
            assert engine.memory is not None
            assert engine.memory.of(OLD) is None
            parked, _ = await store.segments.of_session(lost.session_id)
            await store.segments.waive(parked.id, START)
            assert await engine.commit(lost.session_id)
            await segments_in(store, lost.session_id, SegmentState.WAIVED, SegmentState.COMMITTED)
        assert new.given_of(turn.session_id) == []
        assert new.taken_of(lost.session_id) == ["open", "re: open"]
        async with running_engine(store, AGENT, memory=bound(new, old)) as engine:
            assert await engine.commit(turn.session_id)
            await segments_in(store, turn.session_id, SegmentState.COMMITTED, SegmentState.COMMITTED)
        assert old.taken_of(turn.session_id) == ["one", "re: one"]
        assert new.taken_of(turn.session_id) == ["two", "re: two"]


async def test_an_owner_that_hangs_keeps_no_other_from_being_paid(open_it: Open) -> None:
    """M10: each has its own share of the background."""
    hang = Hang()
    old, new = RecordingMemory(*[hang] * 9, owner=OLD), RecordingMemory(owner=NEW)
    async with opened(open_it) as store:
        async with running_engine(store, AGENT, memory=RecordingMemory(*[ValueError()] * 9, owner=OLD)) as engine:
            for number in range(3):
                await answered(engine, store, conversation=f"old {number}")
        tuning = replace(FAST, commits_max=2)
        async with running_engine(store, AGENT, memory=bound(new, old), tuning=tuning) as engine:
            await store.segments.seal_idle(2**60, START)
            await until(lambda: len(old.given) == 2)
            turns = [await answered(engine, store, conversation=f"hook {n}", one_shot=True) for n in range(6)]
            for turn in turns:
                await segments_in(store, turn.session_id, SegmentState.COMMITTED)
            assert (len(old.given), len(old.taken)) == (2, 0)
            hang.release()
            await until(lambda: len(old.taken) == 3)


async def test_what_cannot_be_paid_is_not_looked_at_again_and_again(open_it: Open) -> None:
    """M10: a provider that fails and one that is gone cost a look when something happens, and no more."""
    old, new = RecordingMemory(owner=OLD), RecordingMemory(*[ConnectionError("no route")] * 99, owner=NEW)
    async with opened(open_it) as store:
        async with running_engine(store, AGENT, memory=old) as engine:
            parked = [await answered(engine, store, conversation=f"old {n}") for n in range(3)]
        looks: list[int] = []

        async def owners_due(now_ms: int) -> Any:
            looks.append(now_ms)
            return await store.segments.owners_due(now_ms)

        watched = Watched(store, owners_due=owners_due)
        tuning = replace(FAST, poll_ms=600_000, beat_ms=5)
        async with running_engine(watched.store, AGENT, memory=new, tuning=tuning) as engine:
            await store.segments.seal_all([turn.session_id for turn in parked], START)
            turns = [await answered(engine, store, conversation=f"hook {n}", one_shot=True) for n in range(5)]
            for turn in turns:
                await until(lambda turn=turn: _has_failed(store, turn.session_id))
            await watched.looks_again(20)
        # Each turn ends, is claimed, fails and is settled: a hint or two for each.
        assert len(looks) < 40
        assert old.given == []


async def _has_failed(store: Store, session_id: SessionId) -> bool:
    return any(segment.error for segment in await store.segments.of_session(session_id))


async def test_a_cancelled_turn_owes_nothing_even_if_its_answer_was_ready(open_it: Open) -> None:
    """M13: the transcript is saved, then the cancellation is checked, and only a completion is owed."""
    memory = RecordingMemory()
    async with opened(open_it) as store:

        async def finish(turn: Any, ending: Any) -> Any:
            await store.settlement.cancel(turn.id, Cause.USER, START)
            return await store.settlement.finish(turn, ending)

        racing = Altered(store, settlement=Altered(store.settlement, finish=finish))
        async with running_engine(racing, AGENT, memory=memory) as engine:
            turn = await answered(engine, store, "one")
            assert turn.state == "cancelled"
            assert any(entry.data.get("text") == "re: one" for entry in await store.journal.read(turn.session_id))
            assert await store.segments.of_session(turn.session_id) == []
            assert not await engine.commit(turn.session_id)


async def test_an_interrupted_turn_owes_nothing_until_it_has_completed(open_it: Open) -> None:
    """M13 M1: what a drain cut off is not remembered."""
    memory = RecordingMemory()
    async with opened(open_it) as store:
        async with running_engine(store, AGENT, memory=memory) as engine:
            receipt = await engine.inbox.accept(message("please wait"))
            await in_state(store, receipt, TurnState.RUNNING)
            assert await engine.drain(0) == 1
        assert (await store.turns.get(receipt.turn_id)).state == "interrupted"
        assert await store.segments.of_session(receipt.session_id) == []
    assert memory.given == []
