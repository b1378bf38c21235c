"""A wall clock that jumps by hours, in both directions, in the middle of everything."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from holdfast.agent.scripted import Pause, Say, ScriptedAgent, UseTool
from holdfast.clock import SystemClock
from holdfast.core.delivery import Delivery, DeliveryState
from holdfast.core.effects import Effect
from holdfast.core.intake import Receipt
from holdfast.core.segments import SegmentState
from holdfast.core.transcript import Role, fold
from holdfast.core.turns import TurnState
from holdfast.engine.engine import Engine, Parts
from holdfast.engine.tuning import Tuning
from holdfast.errors import Unavailable
from holdfast.memory.bindings import MemoryBindings
from holdfast.store.audit import audit
from holdfast.store.store import Store
from tests.crash.world import World, WorldCarrier, WorldMemory, message, query, until

HOUR_MS = 3_600_000
SAID = ("one ", "two ", "three")
MESSAGES = 12


class JumpingClock(SystemClock):
    """Wall time jumps whenever it is asked for; monotonic time does not, because no clock setting can move it."""

    def __init__(self, seed: int) -> None:
        self.offset_ms = 0
        self.jumping = True
        self._rng = random.Random(seed)

    def now_ms(self) -> int:
        if self.jumping:
            self.offset_ms = self._rng.randint(-5, 5) * HOUR_MS
        return super().now_ms() + self.offset_ms

    def settle(self, hours: int) -> None:
        """Jump once more, and stay there."""
        self.jumping = False
        self.offset_ms = hours * HOUR_MS


class FlakyCarrier(WorldCarrier):
    """Refuses every first part once, so that it waits for its second try."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._refused: set[str] = set()

    async def send(self, sent: Delivery) -> str:
        if sent.part == 1 and sent.id not in self._refused:
            self._refused.add(sent.id)
            raise Unavailable("not now")
        return await super().send(sent)


@asynccontextmanager
async def running(store: Store, world: World, clock: JumpingClock) -> AsyncIterator[Engine]:
    parts = Parts(
        store=store,
        agent=ScriptedAgent(
            [Say(SAID[0]), Pause(150), UseTool(world.tool(Effect.EFFECTFUL)), Say(SAID[1]), Pause(150), Say(SAID[2])]
        ),
        carriers={"world": FlakyCarrier(world)},
        memory=MemoryBindings(WorldMemory(world)),
        tuning=Tuning(batch_ms=1, poll_ms=20, beat_ms=20, lease_ms=3_000),
        clock=clock,
    )
    engine = Engine(parts)
    task = asyncio.create_task(engine.run())
    try:
        yield engine
        assert not task.done(), task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("hours", [-5, 5])
async def test_jumps_of_the_wall_clock_expire_no_lease_and_lose_nothing(
    open_it: Callable[[], Awaitable[Store]], store_url: str, tmp_path: Path, hours: int
) -> None:
    """C1 A1 D1 M2: no node is given up while it lives, every turn needs one attempt, and everything leaves in the end."""
    world, clock = World(tmp_path / "world"), JumpingClock(hours)
    async with AsyncExitStack() as stack:
        stores = [await open_it() for _ in range(1 if store_url == "sqlite" else 2)]
        for store in stores:
            stack.push_async_callback(store.close)
        engines = [await stack.enter_async_context(running(store, world, clock)) for store in stores]
        receipts = [await engines[n % len(engines)].inbox.accept(message(n)) for n in range(MESSAGES)]
        await until(stores[0], lambda: all_are(stores[0], receipts, TurnState.COMPLETED), "completed while the clock jumps")
        clock.settle(hours)
        await until(stores[0], lambda: everything_left(stores[0]), "delivered and remembered once the clock stands")
        for receipt in receipts:
            entries = await stores[0].journal.read(receipt.session_id)
            assert "".join(item.text for item in fold(entries) if item.role is Role.ASSISTANT) == "".join(SAID)
            assert (await stores[0].turns.get(receipt.turn_id)).attempt == 1
        assert len(world.read("tool")) == MESSAGES
        assert len(world.read("sent")) == 2 * MESSAGES
        alive = await query(stores[0].database, "SELECT state FROM nodes")
        assert alive == [("alive",)] * len(engines)
        assert await audit(stores[0].database) == []


async def all_are(store: Store, receipts: list[Receipt], state: TurnState) -> bool:
    return {(await store.turns.get(receipt.turn_id)).state for receipt in receipts} == {state}


async def everything_left(store: Store) -> bool:
    deliveries = await query(store.database, "SELECT DISTINCT state FROM deliveries")
    segments = await query(store.database, "SELECT DISTINCT state FROM segments")
    return (deliveries, segments) == ([(DeliveryState.DELIVERED,)], [(SegmentState.COMMITTED,)])
