"""PostgreSQL: any number of nodes on one database.

A node has a few connections that write and a few that read.  Each that is free takes what waits, and runs it as one
transaction of the database; what touches the same things waits until the one before it is done.
"""

# asyncpg ships no complete types, so what it returns is checked where rows.py decodes it.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any, TypeVar, Unpack

import asyncpg

from holdfast.errors import DiskFull, HoldfastError, Stale, StoreDown, StoreRefused, Unavailable, Unconfirmed
from holdfast.store import locks
from holdfast.store.database import POSTGRES, TOO_BUSY, Lock, Name, Topics, Wakes, Work, Writing, declared, no_topics
from holdfast.store.pipeline import USELESS, Pipeline, Spoiled, query
from holdfast.store.wire import Query, Wire

T = TypeVar("T")

BATCH_MAX = 128
QUEUE_MAX = 20_000
WRITERS = 4
READERS = 4
# Reads that share a snapshot wait for each other's rows.
READS_MAX = 16
CONNECT_TIMEOUT_S = 5
STATEMENT_TIMEOUT_S = 30
# A node that stands still in the middle of a transaction must not keep its locks from those who take over.
TRANSACTION_IDLE_MAX_S = 5
# That limit sleeps between the parts of a statement; this one never does, and is far beyond what any of ours takes.
TRANSACTION_MAX_S = 10
# The first PostgreSQL that knows a limit for the whole transaction.
TRANSACTION_LIMIT_SINCE = 17
RETRIES_MAX = 5
RECONNECT_WAIT_S = 0.5
LISTENER_CHECK_S = 30
CLOSE_MAX_S = 2
# The last hint to other nodes may be lost, as any may.
HINT_MAX_S = 0.5
CHANNEL = "holdfast"
# PostgreSQL refuses a longer notification.
NOTIFICATION_MAX_BYTES = 7_900

_BEGIN: Query = ("BEGIN", ())
_BEGIN_READING: Query = ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", ())
_ROLLBACK: Query = ("ROLLBACK", ())
_NOTIFY = f"SELECT pg_notify('{CHANNEL}', $1)"
_READING = {"default_transaction_read_only": "on"}
_WRITING = {"idle_in_transaction_session_timeout": f"{TRANSACTION_IDLE_MAX_S * 1000:.0f}"}
# A hint may be lost, so none is waited for; and one that is written down would hold up every other commit.
_TELLING = {"synchronous_commit": "off"}

# The server is away, or has no room or no leave for us now: the same may work in a moment.  A farewell that arrives
# between two statements leaves the driver in a state that it calls internal.
_OUTAGE = (
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    TimeoutError,
    # Whole classes of PostgreSQL's errors: 08, 53 and 57.  A statement that an administrator cancels is one of them.
    asyncpg.PostgresConnectionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.OperatorInterventionError,
    # 28 and 3D: a password, a role or a database that is changed while we run may let us in again a moment later.
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    # Two of 25: a transaction that stood still for too long.
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.TransactionTimeoutError,
    *USELESS,
)
_AGAIN = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError)


class _Job:
    """One transaction on its way to the database."""

    __slots__ = ("alone", "future", "touches", "wakes", "work")

    def __init__(self, work: Work[Any], wakes: Topics[Any], lock: Lock) -> None:
        self.work = work
        self.wakes = wakes
        self.touches = sorted(lock.names)
        self.alone = locks.is_alone(lock)
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def succeed(self, result: Any) -> None:
        if not self.future.done():
            self.future.set_result(result)

    def fail(self, error: Exception) -> None:
        if not self.future.done():
            self.future.set_exception(error)


class _Line:
    """A queue of jobs for a few connections.  Jobs that touch the same things keep their order."""

    def __init__(self, places: int, batch_max: int, connect: Callable[[], Any], serve: Callable[..., Any]) -> None:
        self.wires: list[Wire | None] = [None] * places
        self._free = list(range(places))
        self._batch_max = batch_max
        self._connect = connect
        self._serve = serve
        self._waiting: deque[_Job] = deque()
        self._touched: set[Name] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._due = False

    def put(self, job: _Job) -> None:
        if len(self._waiting) >= QUEUE_MAX:
            raise Unavailable(TOO_BUSY)
        self._waiting.append(job)
        if not self._due:
            # Jobs that arrive in this round of the loop share its commit.
            self._due = True
            asyncio.get_running_loop().call_soon(self._fill)

    async def drain(self) -> None:
        """Return once no job waits or runs."""
        while self._tasks or self._waiting:
            await (asyncio.wait(self._tasks) if self._tasks else asyncio.sleep(0))

    async def abandon(self) -> None:
        """Fail the jobs that wait, and cancel those that run."""
        while self._waiting:
            self._waiting.popleft().fail(StoreDown("the store is closed"))
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def drop(self) -> None:
        """Let the next job begin with a connection of its own."""
        for place in self._free:
            wire, self.wires[place] = self.wires[place], None
            if wire is not None:
                wire.close()

    def _fill(self) -> None:
        self._due = False
        while self._free and (batch := self._choose()):
            # The place that was used last, whose connection is there already.
            task = asyncio.create_task(self._run(self._free.pop(), batch), name="postgres")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _choose(self) -> list[_Job]:
        """Take the oldest jobs out of the line that may run now, and share a commit."""
        batch: list[_Job] = []
        passed: list[_Job] = []
        blocked = set(self._touched)
        while self._waiting and len(batch) < self._batch_max and len(passed) < BATCH_MAX:
            job = self._waiting.popleft()
            names = set(job.touches)
            if not blocked.isdisjoint(names) or (batch and (job.alone or batch[0].alone)):
                passed.append(job)
            else:
                batch.append(job)
                self._touched |= names
            blocked |= names
        self._waiting.extendleft(reversed(passed))
        # In one order on all nodes, so that none waits for a new key or session of another that waits for it.
        return sorted(batch, key=lambda job: tuple(job.touches))

    async def _run(self, place: int, batch: list[_Job]) -> None:
        wire = self.wires[place]
        try:
            if wire is None or wire.closed:
                wire = self.wires[place] = await self._connect()
            await self._serve(wire, batch)
        except Exception as error:
            if wire:
                # It may stand in the middle of a transaction, which the next batch would commit with its own.
                wire.hang_up()
            _fail(batch, _translate(error))
        except BaseException:
            _fail(batch, StoreDown("the store is closed"))
            raise
        finally:
            self._touched.difference_update(name for job in batch for name in job.touches)
            self._free.append(place)
            self._fill()


class PostgresDatabase:
    """The shared store."""

    dialect = POSTGRES
    exclusive = False

    def __init__(self, url: str, first: Wire) -> None:
        self.wakes = Wakes()
        self._url = url
        self._closing = False
        self._hurried = True
        self._writers = _Line(WRITERS, BATCH_MAX, self._connect_writer, self._write_all)
        self._readers = _Line(READERS, READS_MAX, lambda: _connect(url, _READING), self._read_all)
        self._readers.wires[-1] = first
        self._told: dict[str, None] = {}
        self._telling: asyncio.Task[None] | None = None
        self._teller: Wire | None = None
        self._listener = asyncio.create_task(self._listen(), name="postgres-listener")

    @classmethod
    async def open(cls, url: str) -> PostgresDatabase:
        """Connect.  Raises `StoreDown` when the server does not answer, `StoreRefused` when it does not let us in."""
        try:
            first = await _connect(url, _READING)
        except asyncpg.InvalidAuthorizationSpecificationError as error:
            raise StoreRefused(f"PostgreSQL does not let us in: {error}") from error
        except _OUTAGE as error:
            raise StoreDown(f"PostgreSQL does not answer: {error}") from error
        return cls(url, first)

    async def write(self, work: Work[T], **how: Unpack[Writing[T]]) -> T:
        # Several connections commit, so work that is woken early cannot share the commit: heralds and heeds are ignored.
        # PostgreSQL keeps its own reserve for a full disk: an essential write is like any other here.
        return await self._put(self._writers, _Job(work, how.get("wakes", no_topics), declared(work)))

    async def read(self, work: Work[T]) -> T:
        # Any name will do, so that it shares a snapshot with the other reads that wait.
        return await self._put(self._readers, _Job(work, no_topics, Lock([("read", str(id(work)))])))

    async def _put(self, line: _Line, job: _Job) -> Any:
        if self._closing:
            raise StoreDown("the store is closed")
        line.put(job)
        return await job.future

    @contextlib.asynccontextmanager
    async def unhurried(self) -> AsyncGenerator[None]:
        self._hurried = False
        self._writers.drop()
        try:
            yield
        finally:
            self._hurried = True
            self._writers.drop()

    @property
    def damage(self) -> Sequence[str]:
        # PostgreSQL checks its pages by itself, and so do its own tools.
        return ()

    async def inspect(self) -> Sequence[str]:
        return ()

    async def tidy(self) -> None:
        # PostgreSQL looks after its own files.
        return

    async def close(self) -> None:
        self._closing = True
        # What is under way is finished, unless the database is silent: a gateway that is to restart must not wait for it.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_MAX_S):
                await self._writers.drain()
        await self._writers.abandon()
        await self._readers.abandon()
        if self._telling:
            await asyncio.wait([self._telling], timeout=HINT_MAX_S)
        for task in (self._listener, self._telling):
            if task:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        for wire in (*self._writers.wires, *self._readers.wires, self._teller):
            if wire:
                wire.close()

    async def _connect_writer(self) -> Wire:
        return await (_connect(self._url, _WRITING, limited=True) if self._hurried else _connect(self._url))

    async def _write_all(self, wire: Wire, batch: Sequence[_Job]) -> None:
        """Commit a batch as one transaction; one that spoils it is left out, and the others are done again."""
        left, retries, careful = list(batch), 0, False
        while left:
            try:
                results = await self._commit(wire, left, careful=careful)
            except Spoiled as spoiled:
                wire.send([_ROLLBACK])
                if isinstance(spoiled.error, _AGAIN) and retries < RETRIES_MAX:
                    retries += 1
                elif isinstance(spoiled.error, asyncpg.DivisionByZeroError) and not careful:
                    # What one of them needed was not there, and so it may be for many: all are told, one statement after
                    # the other.
                    careful = True
                else:
                    self._leave_out(left.pop(spoiled.number or 0), spoiled.error)
            else:
                for job, result in zip(left, results, strict=True):
                    job.succeed(result)
                self._wake(_topics(left, results))
                return

    async def _commit(self, wire: Wire, batch: Sequence[_Job], *, careful: bool) -> list[Any]:
        names = [name for job in batch for name in job.touches]
        begin = [_BEGIN, *(query(each.sql, each.params) for each in locks.in_front(names))]
        pipeline = Pipeline(wire, begin, careful=careful, timeout_s=STATEMENT_TIMEOUT_S if self._hurried else None)
        try:
            results = await pipeline.run([job.work() for job in batch])
            await pipeline.commit()
        except _OUTAGE as error:
            if pipeline.committing and not isinstance(error, USELESS):
                # Whether it took effect is not known: the same request again finds out.
                raise Unconfirmed(f"PostgreSQL was lost while it committed: {error}") from error
            raise
        return results

    def _leave_out(self, job: _Job, error: Exception) -> None:
        if isinstance(error, _AGAIN):
            job.fail(StoreDown(f"other nodes hold the same rows: {error}"))
        else:
            job.fail(_translate(error))

    async def _read_all(self, wire: Wire, batch: Sequence[_Job]) -> None:
        """Run reads on one snapshot, and answer before it is closed."""
        left = list(batch)
        while left:
            pipeline = Pipeline(wire, [_BEGIN_READING], timeout_s=STATEMENT_TIMEOUT_S)
            try:
                results = await pipeline.run([job.work() for job in left])
            except Spoiled as spoiled:
                wire.send([_ROLLBACK])
                left.pop(spoiled.number or 0).fail(_translate(spoiled.error))
            else:
                wire.send([_ROLLBACK])
                for job, result in zip(left, results, strict=True):
                    job.succeed(result)
                return

    def _wake(self, topics: Sequence[str]) -> None:
        self.wakes.wake(topics)
        self._told.update(dict.fromkeys(topics))
        if self._told and self._telling is None:
            self._telling = asyncio.create_task(self._tell(), name="postgres-teller")

    async def _tell(self) -> None:
        """Pass our hints on to the other nodes: behind the commit, since a commit that notifies is waited for by all."""
        try:
            with contextlib.suppress(*_OUTAGE):
                while self._told:
                    if self._teller is None or self._teller.closed:
                        self._teller = await _connect(self._url, _TELLING)
                    payloads = _payloads(tuple(self._told))
                    self._told.clear()
                    await self._teller.run([(_NOTIFY, [payload]) for payload in payloads], STATEMENT_TIMEOUT_S)
        finally:
            self._told.clear()
            self._telling = None

    async def _listen(self) -> None:
        """Pass other nodes' hints on, for as long as the database lets us hear them."""
        while True:
            with contextlib.suppress(*_OUTAGE):
                connection = await asyncpg.connect(self._url, timeout=CONNECT_TIMEOUT_S)
                try:
                    async with asyncio.timeout(CONNECT_TIMEOUT_S):
                        await connection.add_listener(CHANNEL, self._hear)
                    # Notifications from before this connection listened were missed.
                    self.wakes.wake(("missed",))
                    await _closing(connection)
                finally:
                    connection.terminate()
            await asyncio.sleep(RECONNECT_WAIT_S)

    def _hear(self, _connection: object, pid: int, _channel: str, payload: object) -> None:
        if self._teller is None or pid != self._teller.pid:
            self.wakes.wake(str(payload).split(","))


async def _connect(url: str, settings: Mapping[str, str] | None = None, *, limited: bool = False) -> Wire:
    connection = await asyncpg.connect(url, timeout=CONNECT_TIMEOUT_S, server_settings=dict(settings or {}))
    try:
        if limited and connection.get_server_version().major >= TRANSACTION_LIMIT_SINCE:
            await connection.execute(f"SET transaction_timeout = {TRANSACTION_MAX_S * 1000:.0f}")
        return Wire(connection)
    except BaseException:
        connection.terminate()
        raise


async def _closing(connection: asyncpg.Connection) -> None:
    """Return when the connection is gone."""
    closed = asyncio.Event()

    def close(_: object) -> None:
        closed.set()

    connection.add_termination_listener(close)
    while not connection.is_closed():
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LISTENER_CHECK_S):
                await closed.wait()
                return
        # A router on the way may silently drop a connection that is idle.
        await connection.execute("SELECT 1", timeout=CONNECT_TIMEOUT_S)


def _fail(batch: Sequence[_Job], error: Exception) -> None:
    for job in batch:
        job.fail(error)


def _topics(batch: Sequence[_Job], results: Sequence[Any]) -> tuple[str, ...]:
    return tuple({topic for job, result in zip(batch, results, strict=True) for topic in job.wakes(result)})


def _payloads(topics: Sequence[str]) -> list[str]:
    payloads: list[str] = []
    for topic in topics:
        if payloads and len(payloads[-1]) + len(topic) < NOTIFICATION_MAX_BYTES:
            payloads[-1] += f",{topic}"
        else:
            payloads.append(topic)
    return payloads


def _translate(error: Exception) -> Exception:
    if isinstance(error, HoldfastError):
        return error
    if isinstance(error, asyncpg.IntegrityConstraintViolationError):
        return Stale(f"the store refused a write that breaks its rules: {error}")
    if isinstance(error, asyncpg.DiskFullError):
        return DiskFull("the database's disk is full: free some space; everything accepted so far is safe")
    if isinstance(error, _OUTAGE):
        return StoreDown(f"PostgreSQL does not answer: {error}")
    return error
