"""Builders for the conformance suite: a store with one node in it, and turns in every state."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any, TypeVar

import asyncpg
import pytest

from holdfast.core import delivery, effects, segments
from holdfast.core.delivery import Delivery
from holdfast.core.effects import Call, Effect
from holdfast.core.ending import Ending
from holdfast.core.events import ApprovalAnswered, EntryKind
from holdfast.core.facts import Memory
from holdfast.core.intake import Image, Inbound, Receipt
from holdfast.core.journal import DraftEntry, Entry
from holdfast.core.processes import Process
from holdfast.core.questions import About, Question
from holdfast.core.recovery import Swept
from holdfast.core.segments import Segment
from holdfast.core.turns import Cause, Policy, Resume, Turn, TurnEvent, TurnState
from holdfast.ids import (
    CallId,
    NodeId,
    SessionId,
    TurnId,
    new_delivery_id,
    new_memory_id,
    new_node_id,
    new_process_id,
    new_segment_id,
    new_session_id,
    new_turn_id,
)
from holdfast.store import locks
from holdfast.store.audit import audit
from holdfast.store.database import Params, Row, Run, Transaction, Work
from holdfast.store.retention import TABLES
from holdfast.store.store import Store
from tests.claims import claim
from tests.watched import watched

T = TypeVar("T")

START = 1_700_000_000_000
MINUTE = 60_000
OWNER = "memory:main"
TARGET = "telegram:1"
QUESTION = "question"
PICTURE = Image(media_type="image/png", data=b"\x89PNG\x00\xff")

on_sqlite = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
on_postgres = pytest.mark.parametrize("store_url", ["postgres"], indirect=True)


class Scene:
    """One store with one living node.  `now` is wall time, and moves only when a test moves it."""

    def __init__(self, open_it: Callable[[], Awaitable[Store]], url: str) -> None:
        self.url = url
        self.now = START
        self.store: Store
        self.node: NodeId
        self._open_it = open_it
        self._stores = AsyncExitStack()
        self._calls = itertools.count(1)

    @property
    def postgres(self) -> bool:
        return self.url != "sqlite"

    async def play(self, test: Callable[[], Awaitable[None]]) -> None:
        """Run a test on the opened store, and after it the audit, which nobody can forget."""
        async with self._stores:
            self.store = await self.another_store()
            self.node = await self.joined()
            await test()
            assert await audit(self.store.database) == []

    async def another_store(self) -> Store:
        """Open the same database once more, as another process would."""
        store = await self._open_it()
        if not self.postgres:
            store = await watched(store)
        self._stores.push_async_callback(store.close)
        return store

    async def reopen(self) -> None:
        """Close the store and open it again; what was not durable is gone."""
        await self._stores.aclose()
        self.store = await self.another_store()

    async def joined(self, store: Store | None = None) -> NodeId:
        node = new_node_id(self.now)
        await (store or self.store).nodes.join(node, self.now)
        return node

    def message(self, text: str = "hello", **changes: Any) -> Inbound:
        return Inbound(**{"conversation": "chat:1", "text": text, "channel": "telegram", **changes})

    async def accept(self, text: str = "hello", *, by: Store | None = None, **changes: Any) -> Receipt:
        ids = (new_turn_id(self.now), new_session_id(self.now))
        return await (by or self.store).intake.accept(self.message(text, **changes), *ids, self.now)

    async def claim(self, limit: int = 10, node: NodeId | None = None, *, by: Store | None = None) -> list[Turn]:
        return await claim(by or self.store, node or self.node, limit)

    async def claimed(self, text: str = "hello", **changes: Any) -> Turn:
        """Accept a message and claim its turn."""
        receipt = await self.accept(text, **changes)
        (turn,) = [turn for turn in await self.claim() if turn.id == receipt.turn_id]
        return turn

    async def start(self, turn: Turn) -> Turn:
        return (await self.store.turns.start(turn, self.now))[0]

    async def running(self, text: str = "hello", **changes: Any) -> Turn:
        """Accept a message and start its turn."""
        return await self.start(await self.claimed(text, **changes))

    async def claim_and_start(self, turn_id: TurnId, node: NodeId | None = None) -> Turn:
        """Start the one turn that is claimable, which must be this one."""
        (turn,) = await self.claim(node=node)
        assert turn.id == turn_id
        return await self.start(turn)

    async def say(self, turn: Turn, *texts: str) -> Turn:
        return (await self.store.journal.append(turn, [self.text(text) for text in texts]))[0]

    async def parked(self, text: str = "hello", **changes: Any) -> Turn:
        """Accept a message, start its turn, and let it ask a question."""
        return await self.park(await self.running(text, **changes))

    async def park(self, turn: Turn, *drafts: DraftEntry, question: Question | None = None) -> Turn:
        """Let a running turn ask a question."""
        question = question or self.question()
        parked, _ = await self.store.turns.park(turn, [*drafts, self.asked(question.id)], question)
        return parked

    async def answer(self, turn: Turn, text: str = "yes", question: str = QUESTION) -> Turn:
        return await self.store.turns.answer(turn.id, *self.reply(text, question))

    async def finish(self, turn: Turn, **changes: Any) -> Turn:
        return (await self.store.settlement.finish(turn, self.ending(turn, **changes)))[0]

    async def finished(self, text: str = "hello", answer: str = "hi", **changes: Any) -> Turn:
        """Accept a message and answer it."""
        return await self.finish(await self.running(text, **changes), text=answer)

    async def sent_for(self, *parts: str, due_at: int | None = None, **changes: Any) -> list[Delivery]:
        """Finish a turn whose answer leaves in these parts."""
        turn = await self.running(**changes)
        await self.finish(turn, deliveries=self.parts(turn, *parts, due_at=due_at))
        return await self.store.deliveries.of_turn(turn.id)

    async def sealed(self, turns: int = 1, **changes: Any) -> Segment:
        """Finish turns and seal the segment they share."""
        for _ in range(turns):
            turn = await self.finished(**changes)
        await self.store.segments.seal(turn.session_id, self.now)
        return (await self.store.segments.of_session(turn.session_id))[-1]

    async def interrupt(
        self,
        *turns: Turn,
        resume: Resume = Resume.ON_MESSAGE,
        cause: Cause = Cause.CRASH,
        chats: frozenset[str] = frozenset(),
    ) -> None:
        node, policy = turns[0].node_id, Policy(resume=resume, chats=chats)
        assert node
        await self.store.settlement.interrupt(node, [turn.id for turn in turns], cause, policy, self.now)

    async def interrupted(self, text: str = "hello", **changes: Any) -> Turn:
        turn = await self.running(text, **changes)
        await self.interrupt(turn)
        return await self.store.turns.get(turn.id)

    async def sweep(self, resume: Resume = Resume.ON_MESSAGE, dedupes: Collection[str] = ()) -> Swept:
        return await self.store.nodes.sweep(Cause.CRASH, Policy(resume=resume), self.now, dedupes=dedupes)

    async def state(self, turn: Turn | Receipt | TurnId) -> TurnState:
        turn_id = turn if isinstance(turn, str) else turn.id if isinstance(turn, Turn) else turn.turn_id
        return (await self.store.turns.get(turn_id)).state

    async def entries(self, session_id: SessionId) -> list[Entry]:
        return await self.store.journal.read(session_id)

    async def kinds(self, session_id: SessionId) -> list[EntryKind]:
        return [entry.kind for entry in await self.entries(session_id)]

    def draft(self, kind: EntryKind, **data: object) -> DraftEntry:
        return DraftEntry.read(kind=kind, at=self.now, data=data)

    def text(self, text: str) -> DraftEntry:
        return self.draft(EntryKind.TEXT, text=text)

    def question(self, **changes: Any) -> Question:
        return Question(**{"id": QUESTION, "text": "may I?", **changes})

    def approval(self, fingerprint: str = "print", **changes: Any) -> Question:
        return self.question(about=About.APPROVAL, fingerprint=fingerprint, **changes)

    def process(self, turn: Turn, **changes: Any) -> Process:
        facts: dict[str, Any] = {
            "id": new_process_id(self.now),
            "session_id": turn.session_id,
            "turn_id": turn.id,
            "owner": "local",
            "home": "/home/holdfast",
            "command": "make",
            "workdir": "/work",
            "started_at": self.now,
        }
        return Process(**{**facts, **changes})

    def fact(self, text: str = "likes tea", **changes: Any) -> Memory:
        facts = {"id": new_memory_id(self.now), "created_at": self.now, "updated_at": self.now}
        return Memory(**{**facts, "owner": "local", "text": text, **changes})

    def usage(self, tokens: int = 10, **changes: int | str) -> DraftEntry:
        data = {"model": "small", "input_tokens": tokens, "output_tokens": 5, "cached_tokens": 1, "cost_micros": 7}
        return self.draft(EntryKind.USAGE, **{**data, **changes})

    def asked(self, question: str = QUESTION) -> DraftEntry:
        return self.draft(EntryKind.APPROVAL_ASKED, text="may I?", question_id=question)

    def reply(self, text: str = "yes", question: str = QUESTION) -> tuple[ApprovalAnswered, int]:
        return ApprovalAnswered(question_id=question, text=text), self.now

    def call(self, turn: Turn, effect: Effect = Effect.PURE, **changes: Any) -> Call:
        """Plan a tool call."""
        name = CallId(f"call_{next(self._calls)}")
        return replace(Call(id=name, turn_id=turn.id, session_id=turn.session_id, name="look", effect=effect), **changes)

    async def move(self, turn: Turn, *moves: tuple[Call, Call]) -> Turn:
        """Append one entry with tool-call moves."""
        return (await self.store.journal.append(turn, [self.draft(EntryKind.NOTE, text="moved")], moves))[0]

    async def use(self, turn: Turn, effect: Effect = Effect.PURE, *events: effects.CallEvent) -> tuple[Turn, Call]:
        """Start a tool call, and lead it through further events."""
        call = self.call(turn, effect)
        for event in (effects.CallEvent.START, *events):
            turn = await self.move(turn, (call, after := call.on(event)))
            call = after
        return turn, call

    def ending(self, turn: Turn, event: TurnEvent = TurnEvent.FINISH, **changes: Any) -> Ending:
        facts = {"text": "hi", "memory_owner": OWNER} if event is TurnEvent.FINISH else {"error": "broken"}
        return Ending(**{"event": event, "at": self.now, "segment_id": new_segment_id(self.now), **facts, **changes})

    def parts(self, turn: Turn, *texts: str, target: str = TARGET, due_at: int | None = None) -> tuple[Delivery, ...]:
        return tuple(
            Delivery(
                id=new_delivery_id(self.now),
                turn_id=turn.id,
                session_id=turn.session_id,
                target=target,
                part=number,
                text=text,
                created_at=self.now,
                due_at=self.now if due_at is None else due_at,
            )
            for number, text in enumerate(texts, 1)
        )

    async def send(self, limit: int = 10, node: NodeId | None = None, in_line: Collection[str] = ()) -> list[Delivery]:
        for account in in_line:
            await self.store.channels.claim(account, "telegram", node or self.node)
        return await self.store.deliveries.claim(node or self.node, self.now, limit, in_line)

    async def settle(self, sent: Delivery, event: delivery.DeliveryEvent, **changes: Any) -> Delivery:
        return await self.store.deliveries.settle(sent, event, self.now, **changes)

    async def commit(self, segment: Segment, event: segments.SegmentEvent = segments.SegmentEvent.SUCCEED) -> Segment:
        """Claim a segment and record how its commit ended."""
        taken = await self.store.segments.claim_one(self.node, segment.session_id, segment.owner)
        assert taken
        return await self.store.segments.settle(taken, event, self.now)

    async def sql(self, sql: str, **params: str | int | None) -> list[Row]:
        """Run one statement past every rule of the program, so that only the schema can refuse it."""
        return await self.store.database.write(lambda: _one(sql, params))

    async def snapshot(self) -> dict[str, list[str]]:
        """Return all rows of all tables, for tests of what changes nothing."""
        tables = [table for table in TABLES if table != "passages"]
        return await self.store.database.read(lambda: _all(tables))


def _one(sql: str, params: Params) -> Transaction[list[Row]]:
    yield locks.UNNAMED
    return (yield Run(sql, params))


def _all(tables: Sequence[str]) -> Transaction[dict[str, list[str]]]:
    found: dict[str, list[str]] = {}
    for table in tables:
        rows = yield Run(f"SELECT * FROM {table}")
        found[table] = sorted(repr(tuple(row)) for row in rows)
    return found


class Gate:
    """Holds transactions of any node back right before their commit, so that a race has one certain order."""

    _LOCK = 42

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection

    def pause(self, work: Work[T]) -> Work[T]:
        """Return work for `Database.write` that does everything but commit until the gate opens."""

        def paused() -> Transaction[T]:
            result = yield from work()
            yield Run(f"SELECT pg_advisory_xact_lock_shared({self._LOCK})")
            return result

        return paused

    async def waiting(self, count: int) -> None:
        """Return once this many transactions wait, for the gate or for one another."""
        async with asyncio.timeout(10):
            while await self._connection.fetchval("SELECT COUNT(*) FROM pg_locks WHERE NOT granted") < count:
                pass

    async def open(self) -> None:
        await self._connection.execute(f"SELECT pg_advisory_unlock({self._LOCK})")

    async def close(self) -> None:
        await self._connection.execute(f"SELECT pg_advisory_lock({self._LOCK})")


@asynccontextmanager
async def closed_gate(url: str) -> AsyncIterator[Gate]:
    connection = await asyncpg.connect(url)
    gate = Gate(connection)
    try:
        await gate.close()
        yield gate
    finally:
        with contextlib.suppress(asyncpg.PostgresError):
            await gate.open()
        await connection.close()
