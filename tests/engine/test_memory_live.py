"""The live cache: a conversation that is let go is paid, then what is held for it is closed, once, then it is forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from holdfast.agent.scripted import ScriptedAgent
from holdfast.config import Config, MemoryConfig
from holdfast.core.segments import Segment, SegmentState, SpokenMessage
from holdfast.core.sessions import Session
from holdfast.engine import evictor, live
from holdfast.engine.engine import Engine
from holdfast.errors import Unavailable
from holdfast.ids import SessionId
from holdfast.memory.bindings import MemoryBindings
from holdfast.store.store import Store
from tests.engine.debts import AGENT, script, segments_in
from tests.engine.world import (
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

TWO = Config(memory=MemoryConfig(live_sessions=2))


class Diary:
    """What happened to each session, in order."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, SessionId]] = []

    def of(self, session_id: SessionId) -> list[str]:
        return [what for what, whose in self.lines if whose == session_id]


class DiaryMemory(RecordingMemory):
    def __init__(self, diary: Diary, *answers: object, owner: str = "memory:main") -> None:
        super().__init__(*answers, owner=owner)
        self._diary = diary

    async def commit(self, session: Session, segment: Segment, messages: Sequence[SpokenMessage]) -> str:
        self._diary.lines.append(("asked", session.id))
        receipt = await super().commit(session, segment, messages)
        self._diary.lines.append(("paid", session.id))
        return receipt


class DiaryAgent(ScriptedAgent):
    """Closes what it holds for a session as it is told: at once, never, or with an error."""

    def __init__(self, diary: Diary, *answers: Exception | Hang) -> None:
        super().__init__(script)
        self._diary = diary
        self._answers = list(answers)

    async def release(self, session_id: SessionId) -> None:
        self._diary.lines.append(("closed", session_id))
        match self._answers.pop(0) if self._answers else None:
            case Exception() as error:
                raise error
            case Hang() as hang:
                await hang.wait()
            case _:
                pass


async def talk(engine: Engine, store: Store, *names: str) -> list[SessionId]:
    """Have one turn in each of these conversations, one after the other."""
    return [(await answered(engine, store, "hello", conversation=name)).session_id for name in names]


async def test_the_session_used_longest_ago_is_paid_then_closed_once_then_forgotten(open_it: Open) -> None:
    """M9: in this order, and nobody else's."""
    diary = Diary()
    memory = DiaryMemory(diary)
    async with (
        opened(open_it) as store,
        running_engine(store, DiaryAgent(diary), memory=memory, config=TWO) as engine,
    ):
        a, b = await talk(engine, store, "a", "b")
        await talk(engine, store, "a")
        (c,) = await talk(engine, store, "c")
        await until(lambda: engine.live.sessions == (a, c))
        assert diary.lines == [("asked", b), ("paid", b), ("closed", b)]
        await segments_in(store, b, SegmentState.COMMITTED)
        for session_id in (a, c):
            await segments_in(store, session_id, SegmentState.OPEN)
        # Whoever returns is read anew, owes anew, and is closed anew.
        assert await talk(engine, store, "b") == [b]
        await until(lambda: engine.live.sessions == (c, b))
        assert diary.of(a) == ["asked", "paid", "closed"]
        await segments_in(store, b, SegmentState.COMMITTED, SegmentState.OPEN)


async def test_a_commit_in_flight_is_waited_for_and_what_is_newer_is_paid_before_anything_is_closed(open_it: Open) -> None:
    """M9 M7"""
    diary, hang = Diary(), Hang()
    memory = DiaryMemory(diary, hang)
    async with (
        opened(open_it) as store,
        running_engine(store, DiaryAgent(diary), memory=memory, config=TWO) as engine,
    ):
        (a,) = await talk(engine, store, "a")
        committing = asyncio.create_task(engine.commit(a))
        await until(lambda: memory.given)
        await talk(engine, store, "a")
        b, c = await talk(engine, store, "b", "c")
        await segments_in(store, a, SegmentState.COMMITTING, SegmentState.SEALED)
        assert engine.live.sessions == (a, b, c)
        assert diary.of(a) == ["asked"]
        hang.release()
        await until(lambda: engine.live.sessions == (b, c))
        assert await committing
        assert diary.of(a) == ["asked", "paid", "asked", "paid", "closed"]
        await segments_in(store, a, SegmentState.COMMITTED, SegmentState.COMMITTED)


async def test_a_session_that_is_used_again_meanwhile_is_not_closed(open_it: Open) -> None:
    """M9: whoever is back stays, and owes what it has said since."""
    diary, hang = Diary(), Hang()
    memory = DiaryMemory(diary, hang)
    async with (
        opened(open_it) as store,
        running_engine(store, DiaryAgent(diary), memory=memory, config=TWO) as engine,
    ):
        a, b, c = await talk(engine, store, "a", "b", "c")
        await until(lambda: diary.of(a) == ["asked"])
        await talk(engine, store, "a")
        hang.release()
        await until(lambda: engine.live.sessions == (c, a))
        assert diary.of(a) == ["asked", "paid"]
        assert diary.of(b) == ["asked", "paid", "closed"]
        await segments_in(store, a, SegmentState.COMMITTED, SegmentState.OPEN)


async def test_a_session_whose_turn_runs_is_not_let_go_however_long_ago_it_began(open_it: Open) -> None:
    """M9"""
    diary = Diary()
    async with (
        opened(open_it) as store,
        running_engine(store, DiaryAgent(diary), memory=DiaryMemory(diary), config=TWO) as engine,
    ):
        receipt = await engine.inbox.accept(message("please wait", conversation="busy"))
        await until(lambda: engine.live.sessions)
        _, _, c = await talk(engine, store, "a", "b", "c")
        await until(lambda: engine.live.sessions == (receipt.session_id, c))
        assert diary.of(receipt.session_id) == []
        await engine.cancel(receipt.turn_id)
        (d,) = await talk(engine, store, "d")
        await until(lambda: engine.live.sessions == (c, d))
        assert diary.of(receipt.session_id) == ["closed"], "there was nothing to pay"


@pytest.mark.parametrize("hangs", [False, True])
async def test_a_provider_that_cannot_be_paid_keeps_nobody_here(hangs: bool, open_it: Open) -> None:
    """M9 M6: the debt is in the ledger."""
    diary = Diary()
    memory = DiaryMemory(diary, Hang() if hangs else ConnectionError("no route"))
    config = Config(memory=MemoryConfig(live_sessions=2, commit_timeout=0.03))
    async with (
        opened(open_it) as store,
        running_engine(store, DiaryAgent(diary), memory=memory, config=config) as engine,
    ):
        a, b, c = await talk(engine, store, "a", "b", "c")
        await until(lambda: engine.live.sessions == (b, c))
        assert diary.of(a) == ["asked", "closed"]
        (owed,) = await store.segments.of_session(a)
        assert (owed.state, owed.owner) == (SegmentState.SEALED, memory.owner)
        assert owed.error


@pytest.mark.parametrize("hangs", [False, True])
async def test_what_cannot_be_closed_is_forgotten_all_the_same(
    hangs: bool, open_it: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """M9: it is tried exactly once."""
    monkeypatch.setattr(evictor, "RELEASE_MAX_S", 0.03)
    diary = Diary()
    agent = DiaryAgent(diary, Hang() if hangs else RuntimeError("stuck"))
    async with (
        opened(open_it) as store,
        running_engine(store, agent, memory=DiaryMemory(diary), config=TWO) as engine,
    ):
        a, b, c = await talk(engine, store, "a", "b", "c")
        await until(lambda: engine.live.sessions == (b, c))
        assert diary.of(a) == ["asked", "paid", "closed"]


async def test_a_turn_that_begins_while_its_session_is_being_closed_keeps_its_handle(open_it: Open) -> None:
    """M9: what was closed was closed once; what begins then is held, and let go later."""
    diary, hang = Diary(), Hang()
    async with (
        opened(open_it) as store,
        running_engine(store, DiaryAgent(diary, hang), memory=DiaryMemory(diary), config=TWO) as engine,
    ):
        a, _, c = await talk(engine, store, "a", "b", "c")
        await until(lambda: diary.of(a) == ["asked", "paid", "closed"])
        await talk(engine, store, "a")
        hang.release()
        await until(lambda: engine.live.sessions == (c, a))
        assert diary.of(a) == ["asked", "paid", "closed"]


async def test_a_session_of_one_turn_never_enters(open_it: Open) -> None:
    """M9 S1: it ends by itself."""
    async with opened(open_it) as store, running_engine(store, AGENT, memory=RecordingMemory()) as engine:
        await answered(engine, store, "deploy", conversation="hook:1", one_shot=True)
        assert engine.live.sessions == ()


async def test_the_cache_stays_bounded_while_nobody_can_be_paid(open_it: Open) -> None:
    """M9 M10: beyond that bound a session only closes off what it owes, and leaves the rest to the background."""
    diary, hang = Diary(), Hang()
    memory = DiaryMemory(diary, *[hang] * 99)
    async with (
        opened(open_it) as store,
        running_engine(store, DiaryAgent(diary), memory=memory, config=TWO) as engine,
    ):
        sessions = await talk(engine, store, *map(str, range(12)))
        await until(lambda: len(engine.live.sessions) <= live.PRESSED * TWO.memory.live_sessions)
        closed = [session_id for what, session_id in diary.lines if what == "closed"]
        assert len(closed) == len(set(closed)) >= 12 - live.PRESSED * TWO.memory.live_sessions
        hang.release()
        await until(lambda: len(engine.live.sessions) == TWO.memory.live_sessions)
        for session_id in sessions[: -TWO.memory.live_sessions]:
            await segments_in(store, session_id, SegmentState.COMMITTED)
            assert diary.of(session_id).count("closed") == 1


async def test_while_the_store_is_away_nobody_is_let_go(open_it: Open) -> None:
    """M9: nobody is closed before their debt is closed off."""
    diary = Diary()
    async with opened(open_it) as store:
        failures = [Unavailable("the store is away")] * 3

        async def close_off(*args: Any) -> Any:
            if failures:
                raise failures.pop()
            return await store.segments.close_off(*args)

        shaky = Altered(store, segments=Altered(store.segments, close_off=close_off))
        async with running_engine(shaky, DiaryAgent(diary), memory=DiaryMemory(diary), config=TWO) as engine:
            a, b, c = await talk(engine, store, "a", "b", "c")
            await until(lambda: engine.live.sessions == (b, c))
        assert failures == []
        assert diary.of(a) == ["asked", "paid", "closed"]


async def test_what_is_said_after_an_eviction_is_never_the_old_owners(open_it: Open) -> None:
    """M9 M3: without a new owner it is owed to nobody, with one to that one."""
    diary = Diary()
    old, new = DiaryMemory(diary, owner="memory:old"), DiaryMemory(diary, owner="memory:new")
    bindings = MemoryBindings(old)
    async with (
        opened(open_it) as store,
        running_engine(store, DiaryAgent(diary), memory=bindings, config=TWO) as engine,
    ):
        a, b, c = await talk(engine, store, "a", "b", "c")
        await until(lambda: engine.live.sessions == (b, c))
        bindings.current = None
        await talk(engine, store, "a")
        assert not await engine.commit(a)
        bindings.current = new
        await talk(engine, store, "a")
        assert await engine.commit(a)
        assert len(old.given_of(a)) == len(new.given_of(a)) == 1
        owners = [each.owner for each in await segments_in(store, a, SegmentState.COMMITTED, SegmentState.COMMITTED)]
        assert owners == ["memory:old", "memory:new"]


async def test_a_drain_and_an_eviction_do_not_pay_twice(open_it: Open) -> None:
    """M8 M9"""
    diary, hang = Diary(), Hang()
    memory = DiaryMemory(diary, hang)
    async with (
        opened(open_it) as store,
        running_engine(store, DiaryAgent(diary), memory=memory, config=TWO) as engine,
    ):
        sessions = await talk(engine, store, "a", "b", "c")
        await until(lambda: memory.given)
        draining = asyncio.create_task(engine.drain(15_000))
        await segments_in(store, sessions[1], SegmentState.COMMITTED)
        hang.release()
        await draining
        for session_id in sessions:
            await segments_in(store, session_id, SegmentState.COMMITTED)
        assert len(memory.given) == 3
        assert await store.segments.seal_all(sessions, START) == 0
