"""The indexer: what was said is indexed while the gateway runs, a little at a time."""

from __future__ import annotations

import asyncio

from holdfast.agent.scripted import Say, ScriptedAgent
from holdfast.engine.indexer import REST_TIMES, Indexer
from holdfast.engine.tuning import Tuning
from holdfast.errors import StoreDown
from holdfast.ids import new_session_id, new_turn_id
from holdfast.store.database import Run, Transaction
from holdfast.store.passages import STEP_MAX
from holdfast.store.store import Store
from tests.engine.world import ManualClock, Open, answered, message, opened, running_engine, until


def waiting() -> Transaction[int]:
    ((count,),) = yield Run("SELECT COUNT(*) FROM unsearched")
    return count


async def test_what_was_said_is_indexed_also_what_an_earlier_gateway_left(open_it: Open) -> None:
    """F1: a stop in between costs nothing."""
    agent, left = ScriptedAgent(lambda work: [Say("the heron answers")]), 2 * STEP_MAX
    async with opened(open_it) as store:
        for number in range(left):
            inbound = message("albatross", conversation=f"chat:{number}")
            await store.intake.accept(inbound, new_turn_id(number), new_session_id(number), number)
        assert await store.passages.index() == STEP_MAX
    async with opened(open_it) as store, running_engine(store, agent) as engine:
        await answered(engine, store, "where is the heron?", conversation="heron")
        await until(lambda: _is_done(store))
        hits = (await store.passages.find("local", "where heron")).hits
        assert [hit.text for hit in hits] == ["where is the heron?"]
        assert len((await store.passages.find("local", "alba", 2 * left)).hits) == left


async def _is_done(store: Store) -> bool:
    return await store.database.read(waiting) == 0


class SlowIndex:
    """An index whose steps take 40 ms each; the first one fails."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self.steps: list[int | StoreDown] = [StoreDown("not now"), STEP_MAX, 1, 0]

    async def index(self) -> int:
        step = self.steps.pop(0)
        if isinstance(step, StoreDown):
            raise step
        await self._clock.advance(40)
        return step


async def test_every_step_is_followed_by_a_longer_rest() -> None:
    """Turns come first: they wait for one small step at most, and for no two in a row."""
    clock, tuning = ManualClock(), Tuning()
    running = asyncio.create_task(Indexer(SlowIndex(clock), tuning, clock).run())
    for nap in range(1, 5):
        await clock.asleep(nap)
        await clock.advance(int(clock.naps[-1]) if nap < 4 else 0)
    running.cancel()
    assert clock.naps == [tuning.poll_ms, 40 * REST_TIMES, 40 * REST_TIMES, tuning.poll_ms]
