"""Those who act around an engine: agents that obey, tools that remember, people who watch, and stores that answer late."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from holdfast.clock import Clock
from holdfast.core.effects import Call, Effect
from holdfast.core.events import EntryKind
from holdfast.core.intake import Receipt
from holdfast.core.journal import DraftEntry, Entry
from holdfast.core.turns import Turn, TurnState
from holdfast.engine.engine import Engine
from holdfast.errors import DiskFull, Unavailable
from holdfast.ids import SessionId
from holdfast.ports import Agent, Assignment, Stage
from holdfast.store.journal import JournalStore
from holdfast.store.store import Store
from tests.engine.world import DEADLINE_S, until

T = TypeVar("T")


class Puppet:
    """An agent that does one thing at a time, when the test says so.  `work` is every assignment it was begun with."""

    def __init__(self) -> None:
        self.work: list[Assignment] = []
        self._orders: asyncio.Queue[tuple[Callable[[Stage], Awaitable[Any]] | None, str, asyncio.Future[Any]]]
        self._orders = asyncio.Queue()

    async def run(self, work: Assignment, stage: Stage) -> str:
        self.work.append(work)
        while True:
            order, text, done = await self._orders.get()
            if order is None:
                done.set_result(None)
                return text
            done.set_result(await order(stage))

    async def do(self, order: Callable[[Stage], Awaitable[T]]) -> T:
        """Have something done, and return what came of it."""
        return await self._put(order)

    async def say(self, text: str) -> None:
        await self._put(lambda stage: stage.say(text))

    async def think(self, text: str) -> None:
        await self._put(lambda stage: stage.think(text))

    async def finish(self, text: str = "done") -> None:
        await self._put(None, text)

    def order(self, order: Callable[[Stage], Awaitable[Any]]) -> None:
        """Have something done that may never come to an end."""
        self._orders.put_nowait((order, "", asyncio.get_running_loop().create_future()))

    async def _put(self, order: Callable[[Stage], Awaitable[Any]] | None, text: str = "") -> Any:
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._orders.put_nowait((order, text, done))
        async with asyncio.timeout(DEADLINE_S):
            return await done


@dataclass
class Witness:
    """Lets another agent work, and remembers what it was asked to do."""

    agent: Agent
    work: list[Assignment] = field(default_factory=list)

    async def run(self, work: Assignment, stage: Stage) -> str:
        self.work.append(work)
        return await self.agent.run(work, stage)

    @property
    def messages(self) -> list[str]:
        return [work.message for work in self.work]


@dataclass
class HeldTool:
    """A tool that remembers the keys it ran with, and stays in the middle of its effect until it is let go."""

    effect: Effect
    name: str = "tool"
    keys: list[str] = field(default_factory=list)
    may_end: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, args: Mapping[str, object], key: str) -> str:
        self.keys.append(key)
        await self.may_end.wait()
        return f"result {len(self.keys)}"

    def let_go(self) -> HeldTool:
        self.may_end.set()
        return self


class Follower:
    """Somebody who watches a session from a cursor; with a clock as their pace, at one entry per millisecond of it."""

    def __init__(self, engine: Engine, session_id: SessionId, after: int = 0, pace: Clock | None = None) -> None:
        self.seen: list[Entry] = []
        self._stream = engine.feed.follow(session_id, after)
        self._pace = pace
        self._task = asyncio.create_task(self._follow())

    async def _follow(self) -> None:
        async for entry in self._stream:
            self.seen.append(entry)
            if self._pace:
                await self._pace.sleep_ms(1)

    async def until(self, kind: EntryKind, count: int = 1) -> list[Entry]:
        """Return what was seen, once so many entries of a kind were."""
        return await until(lambda: self.seen if sum(entry.kind is kind for entry in self.seen) >= count else None)

    async def leave(self) -> list[Entry]:
        """Stop watching, and return what was seen."""
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        await self._stream.aclose()
        return self.seen


class ReluctantJournal(JournalStore):
    """A journal whose appends wait for permission; the next ones can fail, before they are written or only afterwards."""

    def __init__(self, store: Any) -> None:
        super().__init__(store.database)
        self.asked = 0
        self.failures_before: list[Unavailable] = []
        self.failures_after: list[Unavailable] = []
        self.may_write = asyncio.Event()
        self.may_write.set()

    async def append(
        self, turn: Turn, drafts: Sequence[DraftEntry], moves: Sequence[tuple[Call, Call]] = (), *, essential: bool = False
    ) -> tuple[Turn, list[Entry]]:
        self.asked += 1
        await self.may_write.wait()
        if self.failures_before:
            raise self.failures_before.pop(0)
        appended = await super().append(turn, drafts, moves, essential=essential)
        if self.failures_after:
            raise self.failures_after.pop(0)
        return appended


class FullJournal(JournalStore):
    """A journal on a disk that has `room`, or for what is essential only, or not even for that."""

    def __init__(self, store: Any, room: Literal["any", "essential", "none"] = "any") -> None:
        super().__init__(store.database)
        self.room = room
        self.refused = 0
        # What it refuses is told as this.
        self.refusal: type[Unavailable] = DiskFull

    async def append(
        self, turn: Turn, drafts: Sequence[DraftEntry], moves: Sequence[tuple[Call, Call]] = (), *, essential: bool = False
    ) -> tuple[Turn, list[Entry]]:
        if self.room == "none" or (self.room == "essential" and not essential):
            self.refused += 1
            raise self.refusal("no room")
        return await super().append(turn, drafts, moves, essential=essential)


async def in_state(store: Store, receipt: Receipt, *states: TurnState) -> Turn:
    """Return a turn once it is in one of these states."""

    async def look() -> Turn | None:
        turn = await store.turns.get(receipt.turn_id)
        return turn if turn.state in states else None

    return await until(look)


async def journal_of(store: Store, session_id: SessionId) -> list[Entry]:
    """Return the whole journal of a session."""
    entries: list[Entry] = []
    while page := await store.journal.read(session_id, entries[-1].seq if entries else 0):
        entries += page
    return entries


async def text_of(store: Store, receipt: Receipt) -> str:
    """Return the text that the journal holds of a turn."""
    entries = await store.journal.read_turn(receipt.turn_id)
    return "".join(str(entry.data["text"]) for entry in entries if entry.kind is EntryKind.TEXT)


async def kinds_of(store: Store, receipt: Receipt) -> list[EntryKind]:
    return [entry.kind for entry in await store.journal.read_turn(receipt.turn_id)]
