"""The world around a gateway that is going to crash: everything that reaches it is kept in one file, outside the store."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from holdfast.agent.scripted import FunctionTool
from holdfast.core.delivery import Delivery
from holdfast.core.effects import Effect
from holdfast.core.intake import Inbound
from holdfast.core.questions import Question
from holdfast.core.segments import Segment, SpokenMessage
from holdfast.core.sessions import Session
from holdfast.core.turns import Mode, Turn
from holdfast.errors import Unavailable
from holdfast.memory.provider import Provider
from holdfast.store.database import Database, Row, Run, Transaction
from holdfast.store.opening import open_store
from holdfast.store.retention import TABLES
from holdfast.store.store import Store

TARGET = "world:here"
DEADLINE_S = 20.0

Dump = dict[str, list[list[Any]]]


def message(name: object) -> Inbound:
    """Return a message that no one waits for, as a hook brings it."""
    return Inbound(
        conversation=f"hook:{name}",
        text="please",
        channel="webhook",
        dedupe_key=f"hook:{name}",
        mode=Mode.DETACHED,
        one_shot=True,
        reply_to=TARGET,
    )


class World:
    """What was done to it, line by line, in the order in which it was done, whoever did it and died of it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def note(self, kind: str, **facts: object) -> None:
        """Keep one line; it outlives the process that wrote it."""
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, json.dumps({"kind": kind, **facts}).encode() + b"\n")
            os.fsync(file)
        finally:
            os.close(file)

    def read(self, kind: str) -> list[dict[str, Any]]:
        """Return the lines of one kind."""
        return [line for line in self.lines() if line["kind"] == kind]

    def lines(self) -> list[dict[str, Any]]:
        """Return all lines in their order."""
        return [json.loads(line) for line in self._path.read_text().splitlines()] if self._path.exists() else []

    def tool(self, effect: Effect) -> FunctionTool:
        """Return a tool whose every run leaves a line with its key."""

        def run(_args: Mapping[str, object], key: str) -> str:
            self.note("tool", name=effect.value, key=key)
            return f"{effect.value} done"

        return FunctionTool(effect.value, effect, run)


class WorldCarrier:
    """Carries deliveries out into the world, in two parts."""

    dedupes = False
    in_line = False
    takes_files = False

    def __init__(self, world: World) -> None:
        self._world = world

    def check(self, target: str) -> None:
        """Everything can be taken into the world."""

    def split(self, text: str) -> Sequence[str]:
        middle = len(text) // 2
        return [text[:middle], text[middle:]]

    def ask(self, turn: Turn, question: Question, target: str, now_ms: int) -> Sequence[Delivery]:
        return ()

    async def send(self, sent: Delivery) -> str:
        self._world.note("sent", id=sent.id, turn_id=sent.turn_id, part=sent.part, text=sent.outgoing)
        return f"receipt {sent.part}"

    async def find(self, sent: Delivery) -> str | None:
        return None


class WorldMemory(Provider):
    """Commits memory out into the world."""

    def __init__(self, world: World) -> None:
        super().__init__("world")
        self._world = world

    async def commit(self, session: Session, segment: Segment, messages: Sequence[SpokenMessage]) -> str:
        said = [[message.turn_id, message.role.value, message.text] for message in messages]
        self._world.note("committed", id=segment.id, session=session.id, messages=said)
        return f"{len(said)} messages written down"


async def until(store: Store, reached: Callable[[], Awaitable[bool]], what: str, deadline_s: float = DEADLINE_S) -> None:
    """Return once `reached`; look at every hint of the store, and now and then without one.

    While the store does not answer, it is not reached.
    """
    hinted = asyncio.Event()
    deaf = store.wakes.listen(lambda _: hinted.set())
    try:
        async with asyncio.timeout(deadline_s):
            while not await _is(reached):
                try:
                    async with asyncio.timeout(0.05):
                        await hinted.wait()
                except TimeoutError:
                    continue
                hinted.clear()
    except TimeoutError:
        raise AssertionError(
            f"{what}: not within {deadline_s} s\n{json.dumps(await dump(store.database), indent=1)}"
        ) from None
    finally:
        deaf()


async def _is(reached: Callable[[], Awaitable[bool]]) -> bool:
    try:
        return await reached()
    except Unavailable:
        return False


async def dump(database: Database) -> Dump:
    """Return every row of every table but the nodes, which change with each start, and the index, which comes later."""
    return await database.read(_dump)


def _dump() -> Transaction[Dump]:
    tables: Dump = {}
    for table in sorted(set(TABLES) - {"nodes", "passages", "unsearched"}):
        found = yield Run(f"SELECT * FROM {table}")
        tables[table] = sorted((list(row) for row in found), key=repr)
    return tables


async def query(database: Database, sql: str, **params: str | int | None) -> list[Row]:
    """Read rows as they are."""

    def work() -> Transaction[list[Row]]:
        return (yield Run(sql, params))

    return await database.read(work)


@asynccontextmanager
async def opened(url: str, home: Path) -> AsyncIterator[Store]:
    """Open a store, and close it whatever happens."""
    store = await open_store(url, home)
    try:
        yield store
    finally:
        await store.close()
