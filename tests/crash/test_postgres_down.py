"""PostgreSQL goes away in the middle of everything and comes back: what runs goes on, and nothing happens twice."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import re
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit

import asyncpg
import psutil
import pytest

from holdfast.agent.scripted import Pause, Say, ScriptedAgent, Think, UseTool
from holdfast.core.delivery import REPEAT_LABEL, DeliveryState
from holdfast.core.effects import Effect
from holdfast.core.events import EntryKind
from holdfast.core.intake import Inbound, Receipt
from holdfast.core.segments import SegmentState
from holdfast.core.transcript import Role, fold
from holdfast.core.turns import TurnState
from holdfast.engine.engine import Engine, Parts
from holdfast.engine.tuning import Tuning
from holdfast.errors import StoreDown, Unavailable
from holdfast.ids import new_node_id
from holdfast.memory.bindings import MemoryBindings
from holdfast.store.audit import audit
from holdfast.store.database import Run, Together, Transaction
from holdfast.store.pipeline import Pipeline
from holdfast.store.postgres import RECONNECT_WAIT_S, PostgresDatabase
from holdfast.store.store import Store
from holdfast.store.wire import Wire
from tests import scratch
from tests.blackbox.gateway import until as until_seen
from tests.crash.world import World, WorldCarrier, WorldMemory, message, opened, query, until
from tests.line import Line, lay
from tests.postgres import Server

SAID = ("one ", "two ", "three")
# A client that waits longer than this for a refusal would call it a hang.
PATIENCE_S = 8.0
LEASE_MS = 3_000
DEATHS = ("immediate", "killed")

Death = Literal["immediate", "killed"]

_names = itertools.count(1)
_DISMISS_ALL = """
    SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
     WHERE datname = current_database() AND pid <> pg_backend_pid()
"""

_CANCEL_WAITING = """
    SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()
"""

_LISTENING = """
    SELECT COUNT(*) FROM pg_stat_activity
     WHERE (query ILIKE 'LISTEN%' OR query = 'SELECT 1') AND datname = current_database()
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server of its own, because these tests take it down; a crash loses nothing that it has written to memory."""
    with Server(durable=True, parent=scratch.parent()) as server:
        yield server


@pytest.fixture
def url(server: Server) -> Iterator[str]:
    name = f"down_{next(_names)}"
    yield server.create_database(name)
    server.drop_database(name)


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection of somebody else's."""
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close(timeout=PATIENCE_S)


@asynccontextmanager
async def through_a_line(url: str) -> AsyncIterator[tuple[Line, str]]:
    """A line to the server that can be cut, and the address of the database at its near end."""
    parts = urlsplit(url)
    (folder,), (port,) = (parse_qs(parts.query)[name] for name in ("host", "port"))
    async with lay(lambda: asyncio.open_unix_connection(f"{folder}/.s.PGSQL.{port}")) as line:
        yield line, f"postgresql://{parts.username}@127.0.0.1:{line.port}{parts.path}"


def end(server: Server, death: Death) -> None:
    if death == "immediate":
        server.stop("immediate")
    else:
        server.kill()


class Gate:
    """A pure tool that waits for the test."""

    name = "gate"
    effect = Effect.PURE

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.open = asyncio.Event()

    async def run(self, args: object, key: str) -> str:
        self.reached.set()
        await self.open.wait()
        return "open"


@asynccontextmanager
async def running(store: Store, world: World, gate: Gate, beat_ms: int = 20) -> AsyncIterator[Engine]:
    """An engine that must live through the whole test."""
    lines = [
        Think("hm"),
        Say(SAID[0]),
        Pause(2),
        UseTool(gate),
        Say(SAID[1]),
        UseTool(world.tool(Effect.EFFECTFUL)),
        Say(SAID[2]),
    ]
    parts = Parts(
        store=store,
        agent=ScriptedAgent(lines),
        carriers={"world": WorldCarrier(world)},
        memory=MemoryBindings(WorldMemory(world)),
        tuning=Tuning(batch_ms=1, poll_ms=50, beat_ms=beat_ms, lease_ms=LEASE_MS),
    )
    engine = Engine(parts)
    task = asyncio.create_task(engine.run())
    try:
        yield engine
        assert not task.done(), task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def persevere(engine: Engine, inbound: Inbound) -> Receipt:
    """Ask like a client that repeats its request until it gets an answer."""
    while True:
        try:
            return await asyncio.wait_for(engine.inbox.accept(inbound), PATIENCE_S)
        except Unavailable:
            await asyncio.sleep(0.01)


async def is_over(store: Store, receipt: Receipt) -> bool:
    turn = await store.turns.get(receipt.turn_id)
    deliveries = await store.deliveries.of_turn(turn.id)
    segments = await store.segments.of_session(turn.session_id)
    return (
        turn.state is TurnState.COMPLETED
        and all(each.state is DeliveryState.DELIVERED for each in deliveries)
        and all(each.state is SegmentState.COMMITTED for each in segments)
    )


async def check(store: Store, world: World, receipt: Receipt) -> None:
    """Require that the turn was answered exactly once, in one attempt."""
    entries = await store.journal.read(receipt.session_id)
    assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
    assert "".join(item.text for item in fold(entries) if item.role is Role.ASSISTANT) == "".join(SAID)
    assert [entry.data for entry in entries if entry.kind is EntryKind.TURN_COMPLETED] == [{"text": "".join(SAID)}]
    assert (await store.turns.get(receipt.turn_id)).attempt == 1
    assert [line["name"] for line in world.read("tool") if line["key"].startswith(receipt.turn_id)] == ["effectful"]
    calls = {call.name: call.state for call in await store.journal.calls(receipt.turn_id)}
    assert calls == {"gate": "ok", "effectful": "ok"}
    for each in await store.deliveries.of_turn(receipt.turn_id):
        texts = [line["text"] for line in world.read("sent") if line["id"] == each.id]
        assert texts in ([each.text], [f"{REPEAT_LABEL} {each.text}"], [each.text, f"{REPEAT_LABEL} {each.text}"])
    (segment,) = await store.segments.of_session(receipt.session_id)
    assert segment.id in {line["id"] for line in world.read("committed")}


@pytest.mark.parametrize("death", DEATHS)
async def test_a_running_turn_outlives_its_database(server: Server, url: str, tmp_path: Path, death: Death) -> None:
    """A1 A2 J1 T4: the agent is in the middle of its answer; who asks meanwhile is refused at once, not kept waiting.

    Two nodes live through it: while nobody could beat, nobody's silence means anything.
    """
    world, gate = World(tmp_path / "world"), Gate()
    async with (
        opened(url, tmp_path) as other,
        opened(url, tmp_path) as store,
        running(other, world, gate, beat_ms=LEASE_MS // 2),
        running(store, world, gate) as engine,
    ):
        receipt = await engine.inbox.accept(message("first"))
        await asyncio.wait_for(gate.reached.wait(), PATIENCE_S)
        await asyncio.to_thread(end, server, death)
        gate.open.set()
        for number in range(3):
            with pytest.raises(Unavailable):
                await asyncio.wait_for(engine.inbox.accept(message(f"refused {number}")), PATIENCE_S)
            with pytest.raises(StoreDown):
                await asyncio.wait_for(store.turns.get(receipt.turn_id), PATIENCE_S)
        # Longer than a lease.
        await asyncio.sleep(1.2 * LEASE_MS / 1000)
        await asyncio.to_thread(server.start)
        await until(store, lambda: is_over(store, receipt), "completed")
        again = await engine.inbox.accept(message("first"))
        assert (again.turn_id, again.duplicate, again.state) == (receipt.turn_id, True, TurnState.COMPLETED)
        await check(store, world, receipt)
        assert [line["text"] for line in world.read("sent")] == [
            each.text for each in await store.deliveries.of_turn(receipt.turn_id)
        ]
        assert await audit(store.database) == []
        assert await query(store.database, "SELECT COUNT(*) FROM nodes WHERE state = 'alive'") == [(2,)]


@pytest.mark.parametrize("death", DEATHS)
async def test_whoever_repeats_a_request_gets_one_turn_however_often_the_database_dies(
    server: Server, url: str, tmp_path: Path, death: Death
) -> None:
    """A1 A2 A3: many clients ask at the same time; a commit whose answer was lost is found by the same request again."""
    world, gate = World(tmp_path / "world"), Gate()
    gate.open.set()
    receipts: dict[str, Receipt] = {}
    async with opened(url, tmp_path) as store, running(store, world, gate) as engine:

        async def ask(client: int) -> None:
            for number in range(15):
                receipts[name] = await persevere(engine, message(name := f"{client}:{number}"))

        async with asyncio.timeout(60), asyncio.TaskGroup() as clients:
            for client in range(4):
                clients.create_task(ask(client))
            for answered in (10, 25, 40):
                await until(store, lambda count=answered: at_least(receipts, count), f"{answered} answered")
                await asyncio.to_thread(end, server, death)
                await asyncio.to_thread(server.start)
        for receipt in receipts.values():
            await until(store, lambda each=receipt: is_over(store, each), "completed", 60)
            await check(store, world, receipt)
        rows = await query(store.database, "SELECT id FROM turns")
        assert sorted(turn_id for (turn_id,) in rows) == sorted(receipt.turn_id for receipt in receipts.values())
        assert await audit(store.database) == []


async def at_least(receipts: dict[str, Receipt], count: int) -> bool:
    return len(receipts) >= count


class ForgetfulDatabase(PostgresDatabase):
    """The real store, on a line that breaks after one of its commits: it took effect, and nobody was told."""

    left: float = float("inf")

    async def _commit(self, wire: Wire, batch: Sequence[Any], *, careful: bool) -> list[Any]:
        results = await super()._commit(wire, batch, careful=careful)
        # Beats and sweeps come by the clock, and belong to no turn.
        if all("Nodes." in job.work.__qualname__ for job in batch):
            return results
        self.left -= 1
        if self.left == 0:
            raise ConnectionResetError("the line broke")
        return results


async def test_no_lost_answer_loses_or_repeats_anything(server: Server, url: str, tmp_path: Path) -> None:
    """A1 A3 J2 T4 X1: the answer to each commit in the life of a turn is lost once."""
    world, gate = World(tmp_path / "world"), Gate()
    gate.open.set()
    async with opened(url, tmp_path):
        pass  # The schema is made.
    database = await ForgetfulDatabase.open(url)
    assert isinstance(database, ForgetfulDatabase)
    store = Store(database)
    try:
        async with running(store, world, gate) as engine:
            await engine.recovered()
            for nth in itertools.count(1):
                database.left = nth
                receipt = await persevere(engine, message(f"{nth}"))
                await until(store, lambda each=receipt: is_over(store, each), f"completed without answer {nth}")
                await check(store, world, receipt)
                if database.left > 0:
                    break
            assert await audit(store.database) == []
        assert nth > 12
    finally:
        await store.close()


async def test_an_ambiguous_commit_repeated_gives_the_same_receipt(url: str, tmp_path: Path) -> None:
    """A2 A3: the first request took effect, its client heard of a failure, and its second request finds the first."""
    async with opened(url, tmp_path):
        pass
    database = await ForgetfulDatabase.open(url)
    assert isinstance(database, ForgetfulDatabase)
    store = Store(database)
    try:
        engine = Engine(Parts(store=store, agent=ScriptedAgent([])))
        database.left = 1
        with pytest.raises(StoreDown):
            await engine.inbox.accept(message("only"))
        receipt = await engine.inbox.accept(message("only"))
        assert receipt.duplicate
        assert await query(database, "SELECT id FROM turns") == [(receipt.turn_id,)]
        assert await audit(database) == []
    finally:
        await store.close()


@pytest.mark.parametrize("steps", range(6))
async def test_a_farewell_that_arrives_between_two_statements_is_an_outage_like_any_other(
    server: Server, url: str, tmp_path: Path, steps: int
) -> None:
    """A2: the server has ended this connection, and the driver knows that only by half when the next write comes."""
    async with opened(url, tmp_path) as store:
        node = new_node_id(0)
        await store.nodes.join(node, 0)
        database = store.database
        assert isinstance(database, PostgresDatabase)
        (writer,) = [wire for wire in database._writers.wires if wire]
        dismiss(url, writer.pid)
        for _ in range(steps):
            await asyncio.sleep(0)
        try:
            await store.nodes.beat(node)
        except StoreDown:
            await store.nodes.beat(node)


def dismiss(url: str, pid: int) -> None:
    """End a connection of ours, while our own loop stands still and cannot see it."""

    async def terminate() -> None:
        other = await asyncpg.connect(url)
        await other.execute("SELECT pg_terminate_backend($1, 5000)", pid)
        await other.close()

    with ThreadPoolExecutor() as threads:
        threads.submit(asyncio.run, terminate()).result()


async def test_a_read_that_is_stopped_while_the_database_hangs_stops(server: Server, url: str) -> None:
    """The driver calls it a time-out when it cannot take its question back; who heard only that would go on for ever."""
    database = await PostgresDatabase.open(url)

    async def read_for_ever() -> None:
        while True:
            with contextlib.suppress(StoreDown):
                await database.read(look)

    def look() -> Transaction[object]:
        return (yield Run("SELECT pg_sleep(:seconds)", {"seconds": 60}))

    reading = asyncio.create_task(read_for_ever())
    await asyncio.sleep(0.3)
    assert server.pid is not None
    postmaster = psutil.Process(server.pid)
    try:
        postmaster.suspend()
        reading.cancel()
        await asyncio.wait((reading,), timeout=2 * PATIENCE_S)
        assert reading.cancelled()
    finally:
        postmaster.resume()
        await database.close()


async def test_a_server_that_has_become_a_copy_is_an_outage_like_any_other(url: str, tmp_path: Path) -> None:
    """A1: behind the same address another server writes now, and only a new connection finds it."""
    async with connected(url) as admin, opened(url, tmp_path) as store:
        node = new_node_id(0)
        await store.nodes.join(node, 0)
        name = await admin.fetchval("SELECT current_database()")
        await admin.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        await admin.execute(_DISMISS_ALL)
        with pytest.raises(StoreDown):
            await store.nodes.beat(node)
        with pytest.raises(StoreDown, match="read-only"):
            await store.nodes.beat(node)
        await admin.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
        await store.nodes.beat(node)


async def test_a_server_that_does_not_let_us_in_for_a_while_is_an_outage_like_any_other(url: str, tmp_path: Path) -> None:
    """A1: whoever changes a password or a role does it in two steps; hints are heard again afterwards, too."""
    async with connected(url) as admin:
        await admin.execute("DROP ROLE IF EXISTS guest")
        await admin.execute("CREATE ROLE guest LOGIN SUPERUSER")
    async with connected(url) as admin, opened(re.sub(r"//\w+@", "//guest@", url), tmp_path) as store:
        node = new_node_id(0)
        await store.nodes.join(node, 0)
        await admin.execute("ALTER ROLE guest NOLOGIN")
        await admin.execute(_DISMISS_ALL)
        for _ in range(2):
            with pytest.raises(StoreDown):
                await store.nodes.beat(node)
        await asyncio.sleep(2 * RECONNECT_WAIT_S)
        missed = asyncio.Event()
        store.wakes.listen(lambda topic: missed.set() if topic == "missed" else None)
        await admin.execute("ALTER ROLE guest LOGIN")
        await store.nodes.beat(node)
        async with asyncio.timeout(PATIENCE_S):
            await missed.wait()


async def test_a_statement_that_an_administrator_cancels_is_an_outage_like_any_other(url: str, tmp_path: Path) -> None:
    """A1: whoever waits for it is told to try again, and the next one works."""
    async with connected(url) as admin, connected(url) as other, opened(url, tmp_path) as store:
        node = new_node_id(0)
        await store.nodes.join(node, 0)
        async with other.transaction():
            await other.execute("LOCK TABLE nodes")
            beat = asyncio.create_task(store.nodes.beat(node))
            await until_seen(lambda: admin.fetchval(_CANCEL_WAITING), "the statement is cancelled")
            with pytest.raises(StoreDown, match="cancel"):
                await beat
        await store.nodes.beat(node)


async def test_a_listener_behind_a_router_that_forgot_it_listens_again(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R6: the connection looks open for ever, and nothing comes through it."""
    monkeypatch.setattr("holdfast.store.postgres.LISTENER_CHECK_S", 0.2)
    monkeypatch.setattr("holdfast.store.postgres.CONNECT_TIMEOUT_S", 1)
    async with connected(url) as admin, through_a_line(url) as (line, there), opened(there, tmp_path) as store:
        await until_seen(lambda: admin.fetchval(_LISTENING), "somebody listens")
        async with asyncio.timeout(PATIENCE_S):
            missed = asyncio.Event()
            store.wakes.listen(lambda topic: missed.set() if topic == "missed" else None)
            line.cut()
            line.replace()
            await missed.wait()


async def test_a_store_whose_database_is_silent_closes_soon(url: str) -> None:
    """R8: else a restart would wait for it until the watchdog kills the gateway, and nobody starts it again."""

    def write() -> Transaction[None]:
        yield Run("SELECT 1")

    async with through_a_line(url) as (line, there):
        database = await PostgresDatabase.open(there)
        await database.write(write)
        line.cut()
        writing = asyncio.create_task(database.write(write))
        await asyncio.sleep(0.1)
        began = time.monotonic()
        await database.close()
        assert time.monotonic() - began < PATIENCE_S / 2
        with pytest.raises(StoreDown):
            await writing


async def test_a_commit_that_was_a_rollback_is_not_taken_for_one(url: str) -> None:
    """A1: PostgreSQL takes a COMMIT behind an error, and rolls back."""
    wire = Wire(await asyncpg.connect(url))
    with pytest.raises(asyncpg.DivisionByZeroError):
        await wire.run([("BEGIN", ()), ("SELECT 1 / 0", ())], PATIENCE_S)
    with pytest.raises(asyncpg.InternalClientError, match="ROLLBACK"):
        await Pipeline(wire, []).commit()
    wire.close()


async def test_a_transaction_that_goes_on_behind_its_end_is_refused(url: str) -> None:
    """A1: its last statements travel with the commit, so what it would still write could not be part of it."""

    def writes_on() -> Transaction[None]:
        yield Together([Run("SELECT 1")], last=True)
        yield Run("SELECT 2")

    database = await PostgresDatabase.open(url)
    try:
        with pytest.raises(AssertionError, match="SELECT 2"):
            await database.write(writes_on)
    finally:
        await database.close()
