"""A node that stands still in the middle of its work, and goes on when everybody has given it up.

`python -m tests.crash.zombie URL WORLD MOMENT BEAT_MS LOCKS_MAX_S` stops itself with SIGSTOP at that moment; the database
lets it keep its locks so long.  It exits with 0 when its work came to its end, and with 3 when it is told that it is lost.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from holdfast.agent.scripted import FunctionTool, Pause, Say, ScriptedAgent, Think, UseTool
from holdfast.core.delivery import Delivery
from holdfast.core.effects import Effect
from holdfast.core.segments import Segment, SpokenMessage
from holdfast.core.sessions import Session
from holdfast.engine.engine import Engine, Parts
from holdfast.engine.tuning import Tuning
from holdfast.errors import NodeLost
from holdfast.memory.bindings import MemoryBindings
from holdfast.store import postgres
from holdfast.store.database import Add, Lock, Run, RunMany, Statement, Together, Transaction, Work
from holdfast.store.store import Store
from holdfast.store.wire import Wire
from tests.crash.world import World, WorldCarrier, WorldMemory

T = TypeVar("T")

SAID = ("one ", "two ", "three")
LOST = 3

# Where it stops: before or after a statement that contains these words, or inside what the name says.
STATEMENTS: Mapping[str, tuple[str, str]] = {
    "claimed": ("before", "SET state = 'running', attempt"),
    "starting": ("after", "SET state = 'running', attempt"),
    "appending": ("after", "SET nth = nth + :count"),
    "numbering": ("after", "UPDATE sessions SET seq = seq + :count WHERE"),
    "finishing": ("after", "answered_at = :now"),
    "closing": ("after", "INSERT INTO deliveries"),
    "sent": ("before", "receipt = :receipt"),
    "committed": ("before", "UPDATE segments SET state = :state"),
}
MOMENTS = (*STATEMENTS, "parsed", "talking", "touching", "touched", "sending", "committing")


class Stop:
    """Stops the process, once, when it comes to its moment."""

    def __init__(self, moment: str) -> None:
        self._moment = moment
        self._when, self._words = STATEMENTS.get(moment, ("", ""))
        self._skip = {"sent": 1, "committed": 1}.get(moment, 0)
        self._armed = True

    @property
    def is_between_statements(self) -> bool:
        return self._armed and self._moment in STATEMENTS

    def at(self, moment: str) -> None:
        if self._armed and moment == self._moment:
            self._armed = False
            os.kill(os.getpid(), signal.SIGSTOP)

    def beside(self, when: str, statement: Statement | Lock) -> None:
        if when != self._when or not any(self._words in each.sql for each in parts(statement)):
            return
        # The first move of a delivery or segment takes it, and the second settles it.
        if self._skip:
            self._skip -= 1
        else:
            self.at(self._moment)


def parts(statement: Statement | Lock) -> Sequence[Run | RunMany | Add]:
    if isinstance(statement, Lock):
        return []
    return statement.statements if isinstance(statement, Together) else [statement]


class HalfWay:
    """A transport that stops the process while a statement is half sent; what stood before it is executed by then."""

    _HALF = b"generation = generation + $"

    def __init__(self, transport: asyncio.Transport, stop: Stop) -> None:
        self._transport = transport
        self._stop = stop

    def write(self, data: bytes) -> None:
        half = data.find(self._HALF)
        if half >= 0:
            self._transport.write(data[:half])
            self._stop.at("parsed")
            data = data[half:]
        self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class StoppedDatabase(postgres.PostgresDatabase):
    """The real store; between two of its statements the process may stand still, with its locks held."""

    stop: Stop

    async def write(self, work: Work[T], **options: Any) -> T:
        return await super().write(lambda: self._watched(work()), **options)

    async def _commit(self, wire: Wire, batch: Sequence[Any], *, careful: bool) -> list[Any]:
        if not isinstance(wire._transport, HalfWay):
            wire._transport = HalfWay(wire._transport, self.stop)  # type: ignore[assignment]
        # Else the commit would travel with the last statement, and nothing be held behind it.
        return await super()._commit(wire, batch, careful=careful or self.stop.is_between_statements)

    def _watched(self, transaction: Transaction[T]) -> Transaction[T]:
        try:
            statement = next(transaction)
            while True:
                self.stop.beside("before", statement)
                rows = yield statement
                self.stop.beside("after", statement)
                statement = transaction.send(rows)
        except StopIteration as done:
            return done.value


class StoppedCarrier(WorldCarrier):
    def __init__(self, world: World, stop: Stop) -> None:
        super().__init__(world)
        self._stop = stop

    async def send(self, sent: Delivery) -> str:
        self._stop.at("sending")
        return await super().send(sent)


class StoppedMemory(WorldMemory):
    def __init__(self, world: World, stop: Stop) -> None:
        super().__init__(world)
        self._stop = stop

    async def commit(self, session: Session, segment: Segment, messages: Sequence[SpokenMessage]) -> str:
        self._stop.at("committing")
        return await super().commit(session, segment, messages)


def script(world: World, stop: Stop) -> ScriptedAgent:
    """Return the agent of all nodes; what only a doomed one does, only a doomed one is asked to."""

    def touch(_args: Mapping[str, object], key: str) -> str:
        stop.at("touching")
        world.note("tool", name="effectful", key=key)
        stop.at("touched")
        return "touched"

    def talk(_args: Mapping[str, object], key: str) -> str:
        stop.at("talking")
        return "talked"

    talking = FunctionTool("pure", Effect.PURE, talk)
    touching = FunctionTool("effectful", Effect.EFFECTFUL, touch)
    return ScriptedAgent(
        [Think("hm"), Say(SAID[0]), Pause(2), UseTool(talking), Say(SAID[1]), Pause(2), UseTool(touching), Say(SAID[2])]
    )


def make_engine(store: Store, world: World, stop: Stop, beat_ms: int, lease_ms: int) -> Engine:
    parts = Parts(
        store=store,
        agent=script(world, stop),
        carriers={"world": StoppedCarrier(world, stop)},
        memory=MemoryBindings(StoppedMemory(world, stop)),
        tuning=Tuning(batch_ms=1, poll_ms=50, beat_ms=beat_ms, lease_ms=lease_ms),
    )
    return Engine(parts)


async def main(url: str, world: World, stop: Stop, beat_ms: int) -> None:
    database = await StoppedDatabase.open(url)
    assert isinstance(database, StoppedDatabase)
    database.stop = stop
    await make_engine(Store(database), world, stop, beat_ms, lease_ms=60_000).run()


if __name__ == "__main__":
    postgres.TRANSACTION_MAX_S = float(sys.argv[5])
    postgres.TRANSACTION_IDLE_MAX_S = postgres.TRANSACTION_MAX_S / 3
    try:
        asyncio.run(main(sys.argv[1], World(Path(sys.argv[2])), Stop(sys.argv[3]), int(sys.argv[4])))
    except NodeLost:
        sys.exit(LOST)
