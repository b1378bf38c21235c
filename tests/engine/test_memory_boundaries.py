"""Every boundary of a conversation closes off what it owes, and the owner is called for it without anybody asking."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from holdfast.config import Config, MemoryConfig, SessionsConfig
from holdfast.core.segments import SegmentState
from holdfast.core.sessions import STRIKES_MAX
from holdfast.core.turns import Turn
from holdfast.engine.engine import Engine
from holdfast.store.store import Store
from tests.engine.debts import AGENT, HOUR_MS, segments_in
from tests.engine.world import (
    START,
    ManualClock,
    Open,
    RecordingMemory,
    answered,
    message,
    opened,
    running_engine,
    until,
)

DAY_MS = 24 * HOUR_MS
NEVER_MS = 1_000 * DAY_MS
# So that only the boundary itself closes anything off.
CALM = Config(memory=MemoryConfig(idle_minutes=NEVER_MS / 60_000))
IDLE = replace(CALM, sessions=SessionsConfig(reset="idle", idle_minutes=DAY_MS / 60_000))
DAILY = replace(CALM, sessions=SessionsConfig(reset="daily"))
Boundary = Callable[[Engine, Store, ManualClock, Turn], Awaitable[object]]


async def new(engine: Engine, _store: Store, _clock: ManualClock, _turn: Turn) -> None:
    receipt = await engine.inbox.accept(message("/new"))
    assert (receipt.reply or "").endswith("; this one is handed to memory.")


async def stop(engine: Engine, _store: Store, _clock: ManualClock, _turn: Turn) -> None:
    await engine.inbox.accept(message("/stop"))


async def end(_engine: Engine, store: Store, _clock: ManualClock, turn: Turn) -> None:
    await store.settlement.end_session(turn.session_id, "operator", START)


async def suspend(_engine: Engine, store: Store, _clock: ManualClock, turn: Turn) -> None:
    await store.settlement.suspend_session(turn.session_id, START)


async def come_back_after_days(engine: Engine, store: Store, clock: ManualClock, turn: Turn) -> None:
    await clock.advance(2 * DAY_MS)
    assert (await answered(engine, store, "again")).session_id != turn.session_id


async def expire(_engine: Engine, store: Store, clock: ManualClock, turn: Turn) -> None:
    session = await store.sessions.get(turn.session_id)
    assert await store.sessions.expire(session.channel, clock.now_ms()) == 1


async def strike_out(engine: Engine, store: Store, _clock: ManualClock, turn: Turn) -> None:
    for _ in range(STRIKES_MAX):
        assert (await answered(engine, store, "please crash")).session_id == turn.session_id


@pytest.mark.parametrize(
    ("boundary", "config"),
    [
        (new, CALM),
        (stop, CALM),
        (end, CALM),
        (suspend, CALM),
        (come_back_after_days, IDLE),
        (come_back_after_days, DAILY),
        (expire, CALM),
        (strike_out, CALM),
    ],
    ids=["new", "stop", "end", "suspend", "idle", "daily", "expiry", "strikes"],
)
async def test_every_boundary_is_one_for_memory(boundary: Boundary, config: Config, open_it: Open) -> None:
    """M1 M4: until then nothing is committed, and then everything, with one call."""
    memory, clock = RecordingMemory(), ManualClock()
    async with (
        opened(open_it) as store,
        running_engine(store, AGENT, memory=memory, config=config, clock=clock) as engine,
    ):
        turn = await answered(engine, store, "one")
        await answered(engine, store, "two")
        await segments_in(store, turn.session_id, SegmentState.OPEN)
        assert memory.given == []
        await boundary(engine, store, clock, turn)
        await until(lambda: memory.given_of(turn.session_id))
        await segments_in(store, turn.session_id, SegmentState.COMMITTED)
        assert memory.taken_of(turn.session_id) == ["one", "re: one", "two", "re: two"]
        assert len(memory.given_of(turn.session_id)) == 1


async def test_a_conversation_that_was_left_alone_is_over_for_memory_though_it_goes_on(open_it: Open) -> None:
    """M1 M5: also what a node that is gone has left open is paid some day; whoever is at something is not idle."""
    memory, clock = RecordingMemory(), ManualClock()
    config = Config(memory=MemoryConfig(idle_minutes=HOUR_MS / 60_000))
    async with opened(open_it) as store:
        async with running_engine(store, AGENT, memory=memory, config=config, clock=clock) as engine:
            left = await answered(engine, store, "one")
            await segments_in(store, left.session_id, SegmentState.OPEN)
        async with running_engine(store, AGENT, memory=memory, config=config, clock=clock) as engine:
            busy = await answered(engine, store, "two", conversation="busy")
            await engine.inbox.accept(message("please wait", conversation="busy"))
            await until(lambda: engine.running)
            for _ in range(3):
                await clock.advance(HOUR_MS)
            await segments_in(store, left.session_id, SegmentState.COMMITTED)
            await segments_in(store, busy.session_id, SegmentState.OPEN)
            again = await answered(engine, store, "three")
            assert again.session_id == left.session_id
            await segments_in(store, left.session_id, SegmentState.COMMITTED, SegmentState.OPEN)
        assert memory.taken_of(left.session_id) == ["one", "re: one"]


async def test_a_clock_that_jumps_keeps_no_debt_from_being_paid(open_it: Open) -> None:
    """M6 C1: what was put off under a clock that ran ahead is not put off for years."""
    memory, clock = RecordingMemory(ConnectionError("no route")), ManualClock(START + 365 * DAY_MS)
    async with opened(open_it) as store:
        async with running_engine(store, AGENT, memory=memory, clock=clock) as engine:
            turn = await answered(engine, store, "one")
            assert not await engine.commit(turn.session_id)
            (owed,) = await store.segments.of_session(turn.session_id)
            assert owed.due_at > START + 365 * DAY_MS
        async with running_engine(store, AGENT, memory=memory, clock=ManualClock()):
            await segments_in(store, turn.session_id, SegmentState.COMMITTED)


async def test_a_deleted_conversation_takes_its_debt_along(open_it: Open) -> None:
    """M4: whoever deletes it wants nothing of it remembered."""
    memory = RecordingMemory()
    async with opened(open_it) as store, running_engine(store, AGENT, memory=memory) as engine:
        turn = await answered(engine, store, "one")
        await store.sessions.delete(turn.session_id, START)
        other = await answered(engine, store, "two", conversation="another", one_shot=True)
        await segments_in(store, other.session_id, SegmentState.COMMITTED)
        assert memory.given_of(turn.session_id) == []
        assert await store.segments.of_session(turn.session_id) == []
