"""Shutdown is a boundary: what is in flight ends, what is owed is paid as far as there is time, and the rest survives."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from holdfast.clock import SystemClock
from holdfast.config import Config, GatewayConfig, MemoryConfig
from holdfast.core.segments import Segment, SegmentState, SpokenMessage
from holdfast.core.sessions import Session
from holdfast.core.turns import TurnState
from holdfast.errors import Unavailable
from holdfast.memory.bindings import MemoryBindings
from holdfast.store.database import Run, Transaction
from holdfast.store.store import Store
from tests.engine.debts import AGENT, WatchedMemory, segments_in
from tests.engine.world import (
    FAST,
    START,
    Altered,
    Hang,
    Open,
    RecordingMemory,
    answered,
    message,
    opened,
    running_engine,
    until,
)

PATIENT_MS = 15_000
HURRIED_MS = 100
MANY = 300


async def test_a_drain_waits_for_a_commit_in_flight_and_then_pays_what_is_newer(open_it: Open) -> None:
    """M8 M7: one after the other, and everything."""
    hang = Hang()
    memory = WatchedMemory(hang)
    async with opened(open_it) as store, running_engine(store, AGENT, memory=memory) as engine:
        turn = await answered(engine, store, "one")
        committing = asyncio.create_task(engine.commit(turn.session_id))
        await until(lambda: memory.given)
        await answered(engine, store, "two")
        other = await answered(engine, store, "three", conversation="another")
        draining = asyncio.create_task(engine.drain(PATIENT_MS))
        await segments_in(store, other.session_id, SegmentState.COMMITTED)
        await segments_in(store, turn.session_id, SegmentState.COMMITTING, SegmentState.SEALED)
        assert not draining.done()
        hang.release()
        assert await draining == 0
        assert await committing
        assert memory.taken_of(turn.session_id) == ["one", "re: one", "two", "re: two"]
        assert memory.at_once == 1
        assert [each.state for each in await store.segments.of_session(turn.session_id)] == [SegmentState.COMMITTED] * 2


async def test_the_end_of_a_command_is_no_boundary_though_it_waits_for_what_is_in_flight(open_it: Open) -> None:
    """M8 M10: whoever sits at a prompt does not wait for the extraction of a conversation that goes on."""
    hang = Hang()
    memory = WatchedMemory(hang)
    async with opened(open_it) as store, running_engine(store, AGENT, memory=memory) as engine:
        turn = await answered(engine, store, "one")
        committing = asyncio.create_task(engine.commit(turn.session_id))
        await until(lambda: memory.given)
        await answered(engine, store, "two")
        draining = asyncio.create_task(engine.drain(PATIENT_MS, is_boundary=False))
        await asyncio.sleep(0)
        hang.release()
        assert await draining == 0
        assert await committing
        await segments_in(store, turn.session_id, SegmentState.COMMITTED, SegmentState.OPEN)


async def test_a_drain_tries_once_more_what_has_failed_before(open_it: Open) -> None:
    """M6 M8: it is a boundary like any other, and one that fails again is not tried a third time."""
    memory = RecordingMemory(*[ConnectionError("no route")] * 99)
    async with opened(open_it) as store, running_engine(store, AGENT, memory=memory) as engine:
        turn = await answered(engine, store, "one")
        assert not await engine.commit(turn.session_id)
        await engine.drain(PATIENT_MS)
        (owed,) = await store.segments.of_session(turn.session_id)
        assert (owed.state, owed.attempt, len(memory.given)) == (SegmentState.SEALED, 2, 2)


class Passing(SystemClock):
    """A clock on which time passes when it is told to, beside its own."""

    passed_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.passed_ms


class Refusing(RecordingMemory):
    """Takes nothing, and a minute for that."""

    def __init__(self, clock: Passing) -> None:
        super().__init__(*[ConnectionError("no route")] * 99)
        self._clock = clock

    async def commit(self, session: Session, segment: Segment, messages: Sequence[SpokenMessage]) -> str:
        self._clock.passed_ms += 60_000
        return await super().commit(session, segment, messages)


async def test_a_drain_does_not_try_again_what_falls_due_while_it_lasts(open_it: Open) -> None:
    """M6 M8: a provider that is gone is asked once for each conversation, and holds up nobody who stops."""
    clock, tuning = Passing(), replace(FAST, drain_commits_max=1)
    parts: dict[str, Any] = {"memory": Refusing(clock), "clock": clock, "tuning": tuning}
    async with opened(open_it) as store, running_engine(store, AGENT, **parts) as engine:
        turns = [await answered(engine, store, conversation=f"chat:{number}") for number in range(3)]
        began = time.monotonic()
        await engine.drain(PATIENT_MS)
        assert time.monotonic() - began < PATIENT_MS / 2_000
        for turn in turns:
            (owed,) = await store.segments.of_session(turn.session_id)
            assert (owed.state, owed.attempt) == (SegmentState.SEALED, 1)


async def test_in_a_drain_a_provider_that_hangs_keeps_no_other_from_being_paid(open_it: Open) -> None:
    """M8: as at all other times, however many conversations owe something to the one that hangs."""
    old, new = RecordingMemory(*[Hang() for _ in range(9)], owner="memory:old"), RecordingMemory(owner="memory:new")
    parts: dict[str, Any] = {
        "tuning": replace(FAST, drain_commits_max=1),
        "memory": MemoryBindings(new, {old.owner: old}.get),
    }
    async with opened(open_it) as store:
        async with running_engine(store, AGENT, memory=old) as engine:
            owing = await answered(engine, store, "one")
        async with running_engine(store, AGENT, **parts) as engine:
            await answered(engine, store, "two")
            other = await answered(engine, store, "three", conversation="another")
            draining = asyncio.create_task(engine.drain(PATIENT_MS))
            await segments_in(store, other.session_id, SegmentState.COMMITTED)
            await segments_in(store, owing.session_id, SegmentState.COMMITTING, SegmentState.SEALED)
            draining.cancel()


async def test_a_drain_whose_store_goes_away_says_so_and_is_over(open_it: Open) -> None:
    """M8: what it cannot look for is paid after the next start."""

    async def owners_due(_now_ms: int) -> list[str]:
        raise Unavailable("the store is gone")

    memory = RecordingMemory()
    async with opened(open_it) as store:
        broken = Altered(store, segments=Altered(store.segments, owners_due=owners_due))
        async with running_engine(broken, AGENT, memory=memory) as engine:
            turn = await answered(engine, store, "one")
            assert await engine.drain(PATIENT_MS) == 0
            await segments_in(store, turn.session_id, SegmentState.COMMITTED)


async def test_a_provider_that_hangs_does_not_hold_a_shutdown_beyond_its_time(open_it: Open) -> None:
    """M8 M6: then nothing more is begun, and the next start pays under the same id."""
    memory, after = RecordingMemory(*[Hang() for _ in range(9)]), RecordingMemory()
    async with opened(open_it) as store:
        async with running_engine(store, AGENT, memory=memory) as engine:
            turns = [await answered(engine, store, conversation=f"chat:{number}") for number in range(3)]
            asking = [asyncio.create_task(engine.commit(turns[0].session_id)) for _ in range(2)]
            await until(lambda: memory.given)
            began = time.monotonic()
            await engine.drain(HURRIED_MS)
            # Whoever still waits is told that it is not paid.
            async with asyncio.timeout(1):
                assert await asyncio.gather(*asking) == [False, False]
            assert time.monotonic() - began < 5
            states = [(await store.segments.of_session(turn.session_id))[0].state for turn in turns]
            assert states == [SegmentState.COMMITTING] * 3
            given = len(memory.given)
            await store.segments.seal_all([turn.session_id for turn in turns], START)
            assert not await engine.commit(turns[0].session_id)
            assert len(memory.given) == given == 3
        async with running_engine(store, AGENT, memory=after):
            for turn in turns:
                await segments_in(store, turn.session_id, SegmentState.COMMITTED)
        assert {segment.id for segment, _ in after.given} == {segment.id for segment, _ in memory.given}


async def test_after_a_drain_nothing_is_claimed_any_more(open_it: Open) -> None:
    """M8: what falls due then is for the next start."""
    memory = RecordingMemory()
    async with opened(open_it) as store:
        async with running_engine(store, AGENT, memory=memory) as engine:
            turn = await answered(engine, store, "one")
            await engine.drain(0)
            await segments_in(store, turn.session_id, SegmentState.SEALED)
            assert not await engine.commit(turn.session_id)
            assert not await engine.commit(turn.session_id, wait=False)
            (owed,) = await store.segments.of_session(turn.session_id)
            assert (owed.state, owed.attempt) == (SegmentState.SEALED, 0), "a shutdown that has no time begins nothing"
        async with running_engine(store, AGENT, memory=memory):
            await segments_in(store, turn.session_id, SegmentState.COMMITTED)


async def test_a_store_that_is_away_does_not_hold_a_shutdown_either(open_it: Open) -> None:
    """M8: what it keeps it still has after the next start."""

    async def away(*_: Any, **__: Any) -> Any:
        raise Unavailable("the store is away")

    memory = RecordingMemory()
    async with opened(open_it) as store:
        gone = {"seal_all": away, "close_off": away, "owners_due": away}
        async with running_engine(Altered(store, segments=Altered(store.segments, **gone)), AGENT, memory=memory) as engine:
            turn = await answered(engine, store, "one")
            assert await engine.drain(PATIENT_MS) == 0
        await segments_in(store, turn.session_id, SegmentState.OPEN)


async def test_a_drain_pays_what_was_due_besides_to_each_owner_beside_the_others(open_it: Open) -> None:
    """M8 M3: also what sessions owe that are not at hand."""
    memory = RecordingMemory()
    async with opened(open_it) as store:
        async with running_engine(store, AGENT, memory=RecordingMemory(*[ValueError()] * 99)) as engine:
            turns = [await answered(engine, store, conversation=f"chat:{number}") for number in range(5)]
        # No background is fast enough for this one.
        tuning = replace(FAST, commits_max=0)
        async with running_engine(store, AGENT, memory=memory, tuning=tuning) as engine:
            await store.segments.seal_all([turn.session_id for turn in turns], START)
            await engine.drain(PATIENT_MS)
        for turn in turns:
            await segments_in(store, turn.session_id, SegmentState.COMMITTED)


async def test_the_last_node_also_closes_off_what_one_that_was_killed_left_open(open_it: Open) -> None:
    """M8: at its end and not at its start, for a conversation may go on."""
    memory = RecordingMemory()
    async with opened(open_it) as store:
        async with running_engine(store, AGENT, memory=memory) as engine:
            turn = await answered(engine, store, "one")
        async with running_engine(store, AGENT, memory=memory) as engine:
            other = await answered(engine, store, "two", conversation="another")
            await segments_in(store, turn.session_id, SegmentState.OPEN)
            await engine.drain(PATIENT_MS)
        await segments_in(store, turn.session_id, SegmentState.COMMITTED)
        assert memory.taken_of(turn.session_id) == ["one", "re: one"]
        assert memory.taken_of(other.session_id) == ["two", "re: two"]


async def test_a_session_that_is_not_at_hand_and_has_more_to_do_is_left_open(open_it: Open) -> None:
    """M8: what waits for the next start goes on in the same segment."""
    memory = RecordingMemory()
    async with opened(open_it) as store:
        async with running_engine(store, AGENT, memory=memory) as engine:
            turn = await answered(engine, store, "one")
        config = Config(gateway=GatewayConfig(max_running=0))
        async with running_engine(store, AGENT, memory=memory, config=config) as engine:
            await engine.inbox.accept(message("two"))
            await engine.drain(PATIENT_MS)
            await segments_in(store, turn.session_id, SegmentState.OPEN)


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
async def test_a_node_that_is_not_the_last_leaves_alone_what_another_may_have_at_hand(open_it: Open) -> None:
    """M8"""
    memory = RecordingMemory()
    async with opened(open_it) as store, running_engine(store, AGENT, memory=memory) as other:
        turn = await answered(other, store, "one")
        async with running_engine(store, AGENT, memory=memory) as engine:
            await engine.drain(PATIENT_MS)
        await segments_in(store, turn.session_id, SegmentState.OPEN)
        await other.drain(PATIENT_MS)
        await segments_in(store, turn.session_id, SegmentState.COMMITTED)


@pytest.mark.parametrize("patience_ms", [0, PATIENT_MS])
async def test_a_drain_that_owes_nothing_says_nothing(
    open_it: Open, patience_ms: int, caplog: pytest.LogCaptureFixture
) -> None:
    """M8: also where it has no time at all."""
    async with opened(open_it) as store, running_engine(store, AGENT, memory=RecordingMemory()) as engine:
        turn = await answered(engine, store, "one")
        assert await engine.commit(turn.session_id)
        assert await engine.drain(patience_ms) == 0
    assert "owed" not in caplog.text


async def _count(store: Store, state: SegmentState) -> int:
    def work() -> Transaction[int]:
        return (yield Run("SELECT COUNT(*) FROM segments WHERE state = :state", {"state": state.value}))[0][0]

    return await store.database.read(work)


@pytest.mark.timeout(60)
async def test_many_sessions_are_drained_well_within_the_deadline(open_it: Open) -> None:
    """M8"""
    memory = RecordingMemory()
    async with opened(open_it) as store:
        async with running_engine(
            store, AGENT, memory=memory, config=Config(memory=MemoryConfig(live_sessions=MANY))
        ) as engine:
            texts = [message(f"{number}", conversation=f"chat:{number}") for number in range(MANY)]
            await asyncio.gather(*map(engine.inbox.accept, texts))

            async def all_completed() -> bool:
                return (await store.turns.tally()).get(TurnState.COMPLETED) == MANY

            await until(all_completed)
            assert len(engine.live.sessions) == await _count(store, SegmentState.OPEN) == MANY
            began = time.monotonic()
            assert await engine.drain(30_000) == 0
            assert time.monotonic() - began < 20
        assert await _count(store, SegmentState.COMMITTED) == len(memory.taken) == MANY
