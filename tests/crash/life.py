"""Whole lives of a gateway, each in a process of its own, each cut short on command.

`python -m tests.crash.life` is a warm process, which forks one life for every line of its input.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import signal
from collections.abc import Coroutine
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from holdfast.agent.scripted import Ask, Pause, Say, ScriptedAgent, Think, UseTool
from holdfast.clock import SystemClock
from holdfast.core.delivery import SETTLED as DELIVERY_SETTLED
from holdfast.core.effects import Effect
from holdfast.core.intake import Inbound
from holdfast.core.journal import EntryRecord
from holdfast.core.segments import SegmentState
from holdfast.core.transcript import fold
from holdfast.core.turns import SETTLED, Mode, Turn, TurnState
from holdfast.engine.engine import Engine, Parts
from holdfast.engine.tuning import Tuning
from holdfast.ids import SessionId, TurnId
from holdfast.memory.bindings import MemoryBindings
from holdfast.store import sqlite
from holdfast.store.audit import audit
from holdfast.store.migrations import migrate
from holdfast.store.opening import store_path
from holdfast.store.store import Store
from tests.crash.forking import serve
from tests.crash.world import TARGET, World, WorldCarrier, WorldMemory, dump, until

T = TypeVar("T")
Case = Literal["birth", "detached", "conversation", "question", "chat"]
When = Literal["before", "after"]

CASES: tuple[Case, ...] = ("detached", "conversation", "question")
# A child that is stuck ends by itself, and is noticed.

# With its own words in every line, any loss, repeat or change of order shows in the whole.
SAID = ("one ", "two ", "three ", "four")
THOUGHT = ("hm, ", "well")
FOLLOW_UP = "and now?"
FOLLOW_UP_SAID = "here it is"
ANSWER = "blue "


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """What one life is to be: without `nth` it ends by itself, with it it is killed beside that point.

    A birth makes the store and does nothing with it.
    """

    home: str
    case: Case = "detached"
    nth: int | None = None
    when: When = "before"


class Fuse:
    """Counts points in the life of the store, and kills its own process beside one of them.

    Before: every write is a point. After: every commit and checkpoint. Behind a write within a transaction nothing
    happens until the next write, so a kill there is the kill before that one; behind a commit the world goes on.
    """

    def __init__(self, nth: int | None, when: When) -> None:
        self.points = 0
        self._nth = nth
        self._when = when

    @contextlib.contextmanager
    def point(self, *, lasts: bool = False) -> Any:
        self.points += lasts or self._when == "before"
        here = self.points == self._nth and (lasts or self._when == "before")
        if here and self._when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        yield
        if here:
            os.kill(os.getpid(), signal.SIGKILL)


# What neither changes a page nor makes one durable is no point of its own.
_NO_POINTS = ("BEGIN", "SAVEPOINT", "RELEASE", "PRAGMA")


class FusedConnection:
    """A connection of the writer; every statement, commit and checkpoint is a point."""

    def __init__(self, connection: Any, fuse: Fuse) -> None:
        self._connection = connection
        self._fuse = fuse

    def execute(self, sql: str, *params: Any) -> Any:
        if sql.lstrip().startswith(_NO_POINTS):
            return self._connection.execute(sql, *params)
        with self._fuse.point(lasts=sql == "COMMIT"):
            return self._connection.execute(sql, *params)

    def executemany(self, sql: str, params: Any) -> Any:
        with self._fuse.point():
            return self._connection.executemany(sql, params)

    def wal_checkpoint(self, **options: Any) -> Any:
        with self._fuse.point(lasts=True):
            return self._connection.wal_checkpoint(**options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


class FusedDatabase(sqlite.SqliteDatabase):
    """The real store with a fuse in the connection that writes."""

    def __init__(self, path: Path, fuse: Fuse) -> None:
        self._fuse = fuse
        super().__init__(path)

    def _own(self) -> None:
        super()._own()
        # The writer thread waits for its first work, which cannot come before this is done.
        self._connection = FusedConnection(self._connection, self._fuse)  # type: ignore[assignment]


def message(case: Case) -> Inbound:
    """Return the message that opens a life; each life sends it again, as a sender does that got no answer."""
    if case == "conversation":
        return Inbound(conversation="chat:1", text="please", channel="chat", dedupe_key="chat:first", reply_to=TARGET)
    return Inbound(
        conversation="hook:1",
        text="please",
        channel="webhook",
        dedupe_key="hook:first",
        mode=Mode.DETACHED,
        one_shot=True,
        reply_to=TARGET,
    )


def follow_up(number: int) -> Inbound:
    return Inbound(conversation="chat:1", text=FOLLOW_UP, channel="chat", dedupe_key=f"chat:{number}", reply_to=TARGET)


def agent(case: Case, world: World) -> ScriptedAgent:
    pure, keyed, effectful = (world.tool(effect) for effect in (Effect.PURE, Effect.KEYED, Effect.EFFECTFUL))
    lines = [
        Think(THOUGHT[0]),
        Say(SAID[0]),
        Pause(2),
        UseTool(pure),
        Say(SAID[1]),
        UseTool(keyed),
        Think(THOUGHT[1]),
        Pause(2),
        *([Ask("which?")] if case == "question" else []),
        Say(SAID[2]),
        UseTool(effectful),
        Say(SAID[3]),
    ]
    return ScriptedAgent(lambda work: [Say(FOLLOW_UP_SAID)] if work.message.endswith(FOLLOW_UP) else lines)


async def live(life: Life) -> None:
    """Live the whole life of a turn, whatever an earlier life has left of it; one that nobody kills is lived once more."""
    await live_once(life, Fuse(life.nth, life.when))
    if life.nth is None:
        await live_once(life, Fuse(None, "before"))


async def live_once(life: Life, fuse: Fuse) -> None:
    home = Path(life.home)
    world = World(home / "world")
    database = FusedDatabase(store_path(home), fuse)
    await migrate(database, SystemClock().now_ms())
    store = Store(database)
    say("left", json.dumps(await audit(database)))
    if life.case == "birth":
        await store.close()
        return
    parts = Parts(
        store=store,
        agent=agent(life.case, world),
        carriers={"world": WorldCarrier(world)},
        memory=MemoryBindings(WorldMemory(world)),
        tuning=Tuning(batch_ms=1, poll_ms=500),
    )
    engine = Engine(parts)
    session_id = await lived(engine, converse(engine, store, life.case))
    report = {**await describe(store, session_id), "points": fuse.points}
    await store.close()
    say("report", msgspec.json.encode(report).decode())


async def lived(engine: Engine, work: Coroutine[Any, Any, T]) -> T:
    """Run a gateway until the work beside it is done, and return what came of that."""
    running, working = asyncio.create_task(engine.run()), asyncio.create_task(work)
    await asyncio.wait((running, working), return_when=asyncio.FIRST_COMPLETED)
    if running.done():
        await running
    result = await working
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    return result


async def describe(store: Store, session_id: SessionId) -> dict[str, Any]:
    """Return everything that is left of a session, and every row of the store."""
    turns = await store.turns.list(session_id)
    entries = await store.journal.read(session_id)
    calls = [call for turn in turns for call in await store.journal.calls(turn.id)]
    return {
        "session": asdict(await store.sessions.get(session_id)),
        "turns": [asdict(turn) for turn in turns],
        "entries": [asdict(EntryRecord.of(entry)) for entry in entries],
        "transcript": [asdict(item) for item in fold(entries)],
        "calls": {call.name: asdict(call) for call in calls},
        "deliveries": [asdict(each) for turn in turns for each in await store.deliveries.of_turn(turn.id)],
        "segments": [asdict(each) for each in await store.segments.of_session(session_id)],
        "audit": await audit(store.database),
        "rows": await dump(store.database),
    }


async def converse(engine: Engine, store: Store, case: Case) -> SessionId:
    turn = await ask(engine, store, message(case))
    if case == "conversation":
        for number in itertools.count(1):
            if turn.state is not TurnState.INTERRUPTED:
                break
            turn = await ask(engine, store, follow_up(number))
        # A boundary, at which a conversation's memory falls due.
        await store.segments.seal(turn.session_id, SystemClock().now_ms())
    await until(store, lambda: at_rest(store, turn.session_id), "everything at rest")
    return turn.session_id


async def ask(engine: Engine, store: Store, inbound: Inbound) -> Turn:
    receipt = await engine.inbox.accept(inbound)
    say("accepted", receipt.turn_id)
    showing = asyncio.create_task(show(engine, receipt.session_id))
    await until(store, lambda: settled(engine, store, receipt.turn_id), f"{inbound.text} settled")
    showing.cancel()
    return await store.turns.get(receipt.turn_id)


async def show(engine: Engine, session_id: SessionId) -> None:
    async for entry in engine.feed.follow(session_id):
        say("shown", json.dumps([entry.seq, entry.kind, entry.data]))


async def settled(engine: Engine, store: Store, turn_id: TurnId) -> bool:
    turn = await store.turns.get(turn_id)
    if turn.state is TurnState.WAITING:
        (question,) = [e for e in await store.journal.read_turn(turn_id) if e.kind == "approval.asked"]
        await engine.answer(turn_id, str(question.data["question_id"]), ANSWER)
        say("answered", turn_id)
    return turn.state in SETTLED


async def at_rest(store: Store, session_id: SessionId) -> bool:
    turns = await store.turns.list(session_id)
    deliveries = [each for turn in turns for each in await store.deliveries.of_turn(turn.id)]
    segments = await store.segments.of_session(session_id)
    return all(each.state in DELIVERY_SETTLED and (each.state != "unknown" or each.repeats) for each in deliveries) and all(
        each.state is SegmentState.COMMITTED for each in segments
    )


def say(*words: str) -> None:
    os.write(1, (" ".join(words) + "\n").encode())


if __name__ == "__main__":
    serve(Life, live)
