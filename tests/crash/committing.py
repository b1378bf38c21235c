"""A gateway that is killed while a memory provider works for it.

`python -m tests.crash.committing URL HOME WAY MOMENT` completes one turn, has it committed in that way, and kills itself
with SIGKILL inside the provider, at the moment when it is asked or when it has taken the segment.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from holdfast.agent.scripted import Say, ScriptedAgent
from holdfast.core.intake import Inbound
from holdfast.core.segments import Segment, SpokenMessage
from holdfast.core.sessions import Session
from holdfast.core.turns import TurnState
from holdfast.engine.engine import Engine, Parts
from holdfast.engine.tuning import Tuning
from holdfast.memory.bindings import MemoryBindings
from holdfast.store.opening import open_store
from holdfast.store.store import Store
from tests.crash.world import World, WorldMemory, until

WAYS = ("background", "request", "shutdown")
MOMENTS = ("asked", "taken")


class DeadlyMemory(WorldMemory):
    """Takes what it is given, and kills whoever asks it at its moment."""

    def __init__(self, world: World, moment: str | None = None) -> None:
        super().__init__(world)
        self._moment = moment

    async def commit(self, session: Session, segment: Segment, messages: Sequence[SpokenMessage]) -> str:
        self._world.note("asked", id=segment.id, attempt=segment.attempt)
        self._die_at("asked")
        receipt = await super().commit(session, segment, messages)
        self._die_at("taken")
        return receipt

    def _die_at(self, moment: str) -> None:
        if moment == self._moment:
            os.kill(os.getpid(), signal.SIGKILL)


def make_engine(store: Store, world: World, moment: str | None = None) -> Engine:
    parts = Parts(
        store=store,
        agent=ScriptedAgent([Say("done")]),
        memory=MemoryBindings(DeadlyMemory(world, moment)),
        tuning=Tuning(batch_ms=1, poll_ms=50, beat_ms=50, lease_ms=300),
    )
    return Engine(parts)


async def main(url: str, home: Path, way: str, moment: str) -> None:
    store = await open_store(url, home)
    engine = make_engine(store, World(home / "world"), moment)
    running = asyncio.create_task(engine.run())
    await engine.recovered()
    receipt = await engine.inbox.accept(
        Inbound(conversation="chat:1", text="please", channel="chat", one_shot=way == "background")
    )

    async def completed() -> bool:
        return (await store.turns.get(receipt.turn_id)).state is TurnState.COMPLETED

    await until(store, completed, "the turn completed")
    match way:
        case "request":
            await engine.commit(receipt.session_id)
        case "shutdown":
            await engine.drain(10_000)
        case _:
            await running


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.argv[4]))
