"""The services of this process, over a real engine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.app.services import ServiceParts
from holdfast.clock import SystemClock
from holdfast.core.intake import Inbound
from holdfast.core.segments import SegmentState
from holdfast.core.sessions import SessionState, Source
from holdfast.core.turns import Mode, Turn, TurnState
from holdfast.engine.engine import Engine
from holdfast.errors import Rejected
from holdfast.ids import SessionId
from holdfast.operations.caller import Caller
from holdfast.operations.lifecycle import Lifecycle
from holdfast.operations.services import Services
from holdfast.operations.sessions import PRUNING_MS, Opening, Pruning
from holdfast.ports import Assignment, Stage
from holdfast.store.removal import HIDE_MAX
from holdfast.store.store import Store
from tests.engine.debts import segments_in
from tests.engine.world import TARGET, Open, RecordingCarrier, RecordingMemory, answered, opened, running_engine, until


class Echo:
    """An agent that repeats what it is told."""

    async def run(self, work: Assignment, stage: Stage) -> str:
        return f"heard {work.message}"


def services_of(store: Store, engine: Engine, owner: str = "local") -> Services:
    clock = SystemClock()
    parts = ServiceParts(store=store, engine=engine, lifecycle=Lifecycle(clock, home="", store=""), clock=clock)
    return parts.services(Caller(owner=owner))


async def test_a_retry_is_for_the_same_reader_and_never_a_command(open_it: Open) -> None:
    """A2: what belongs to the turn is copied from the first one, and a payload that reads "/stop" stops nothing."""
    async with opened(open_it) as store:
        carrier = RecordingCarrier()
        async with running_engine(store, Echo(), carriers={"chat": carrier}) as engine:
            source = Source(chat_id="webhook:alerts:1", chat_type="webhook", user="webhook:alerts")
            first = await answered(
                engine,
                store,
                "/stop",
                channel="webhook",
                conversation="webhook:alerts:1",
                mode=Mode.DETACHED,
                source=source,
                reply_to=TARGET,
                delivers_later=False,
                remembers=False,
            )
            again = await services_of(store, engine).turns.retry(first.id)
            assert again.id != first.id

            async def look() -> Turn | None:
                turn = await store.turns.get(again.id)
                return turn if turn.state is TurnState.COMPLETED else None

            second = await until(look)
            kept = ("mode", "reply_to", "delivers_later", "remembers")
            assert [getattr(second, each) for each in kept] == [getattr(first, each) for each in kept]
            assert (await store.sessions.get(second.session_id)).source == source
            assert await store.turns.asked(second.id) == "/stop"


async def test_a_key_cannot_look_like_an_id(open_it: Open) -> None:
    async with opened(open_it) as store, running_engine(store, Echo()) as engine:
        services = services_of(store, engine)
        with pytest.raises(Rejected, match="cannot begin with 'ses_'"):
            await services.sessions.open(Opening(key="ses_mine"))
        assert (await services.sessions.list()).items == []


async def test_naming_the_session_that_is_left_is_a_boundary_for_it(open_it: Open) -> None:
    """M11"""
    memory = RecordingMemory()
    async with opened(open_it) as store, running_engine(store, Echo(), memory=memory) as engine:
        turn = await answered(engine, store, "remember me")
        fresh = await services_of(store, engine).sessions.open(Opening(previous_session_id=turn.session_id))
        assert fresh.id != turn.session_id
        await segments_in(store, turn.session_id, SegmentState.COMMITTED)
        assert memory.taken_of(turn.session_id) == ["remember me", "heard remember me"]


@pytest.mark.parametrize("previous", ["", "ses_nobody", "a\0b", None])
async def test_naming_a_session_that_is_not_there_is_no_boundary(previous: SessionId | None, open_it: Open) -> None:
    """M12: the new one is opened all the same."""
    memory = RecordingMemory()
    async with opened(open_it) as store, running_engine(store, Echo(), memory=memory) as engine:
        turn = await answered(engine, store, "remember me")
        assert (await services_of(store, engine).sessions.open(Opening(previous_session_id=previous))).id
        await segments_in(store, turn.session_id, SegmentState.OPEN)


async def test_naming_somebody_elses_session_is_no_boundary_for_it(open_it: Open) -> None:
    """M12: nor is anybody told that it is there."""
    memory = RecordingMemory()
    async with opened(open_it) as store, running_engine(store, Echo(), memory=memory) as engine:
        turn = await answered(engine, store, "remember me", owner="alice")
        assert (await services_of(store, engine, owner="bob").sessions.open(Opening(previous_session_id=turn.session_id))).id
        await segments_in(store, turn.session_id, SegmentState.OPEN)
        assert memory.given == []


class Hasty(SystemClock):
    """A clock by which every request has taken too long when somebody looks."""

    def __init__(self) -> None:
        super().__init__()
        self._looks = 0

    def monotonic_ms(self) -> int:
        self._looks += 1
        return self._looks * 10 * PRUNING_MS


async def test_a_prune_that_takes_long_is_done_in_several_requests(open_it: Open) -> None:
    """W6: no request lasts so long that its client gives up, and all of them together delete every session once."""
    async with opened(open_it) as store, running_engine(store, Echo()) as engine:
        for number in range(HIDE_MAX + 5):
            key = f"webhook:{number}"
            await engine.inbox.accept(
                Inbound(conversation=key, text="hi", channel="webhook", mode=Mode.DETACHED, one_shot=True, remembers=False)
            )

        async def all_over() -> bool:
            return len(await store.sessions.list("local", limit=1_000, state=SessionState.ENDED)) == HIDE_MAX + 5

        await until(all_over)
        sessions = replace(services_of(store, engine).sessions, clock=Hasty())
        steps = [await sessions.prune(Pruning(channel="webhook"))]
        while steps[-1].more:
            steps.append(await sessions.prune(Pruning(channel="webhook")))
        assert len(steps) > 2
        assert sum(step.pruned for step in steps) == HIDE_MAX + 5
        assert await store.sessions.list("local") == []
