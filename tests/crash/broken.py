"""A small gateway on a disk whose syncs begin to fail: it must end by itself, and not with success.

`python -m tests.crash.broken HOME AFTER KIND` accepts messages until it dies, and prints what it acknowledged.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
from pathlib import Path

from holdfast.agent.scripted import Say, ScriptedAgent
from holdfast.clock import SystemClock
from holdfast.core.intake import Inbound
from holdfast.engine.engine import Engine, Parts
from holdfast.store import sqlite
from holdfast.store.migrations import migrate
from holdfast.store.opening import store_path
from holdfast.store.store import Store
from tests.crash.disk import FaultyDisk


async def main(home: Path, after: int, kind: str) -> None:
    disk = FaultyDisk("faulty")
    sqlite.CHECKPOINT_PAGES = 20
    database = await sqlite.SqliteDatabase.open(store_path(home), vfs=disk.name)
    await migrate(database, SystemClock().now_ms())
    engine = Engine(Parts(store=Store(database), agent=ScriptedAgent([Say("hello")])))
    await accept(engine, 0)
    disk.fail_syncs(after=after, times=1, kinds=(kind,))
    async with asyncio.TaskGroup() as group:
        group.create_task(engine.run())
        for number in itertools.count(1):
            await accept(engine, number)


async def accept(engine: Engine, number: int) -> None:
    receipt = await engine.inbox.accept(Inbound(conversation=f"chat:{number}", text=f"{number}", channel="chat"))
    print(receipt.turn_id, flush=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
