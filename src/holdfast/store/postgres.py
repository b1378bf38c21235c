"""PostgreSQL: any number of nodes on one database; each commits what waits in it as one transaction."""

# asyncpg ships no complete types, so what it returns is checked where rows.py decodes it.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Generator, Sequence
from typing import Any, TypeVar

import asyncpg

from holdfast.errors import DiskFull, HoldfastError, Stale, StoreDown, StoreRefused, Unavailable
from holdfast.store.database import POSTGRES, Run, Topics, Wakes, Work, no_topics
from holdfast.store.pipeline import Connection, Pipeline, fetch

T = TypeVar("T")

BATCH_MAX = 128
QUEUE_MAX = 20_000
READERS = 4
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
CHANNEL = "holdfast"
# PostgreSQL refuses a longer notification.
NOTIFICATION_MAX_BYTES = 7_900

# A farewell of the server that arrives between two statements leaves the driver in a state that it calls internal.
_LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.CannotConnectNowError,
    OSError,
    TimeoutError,
)
_LOST_STATES = (
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.TransactionTimeoutError,
)
_AGAIN = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError)


class _Job:
    """One transaction on its way to the database."""

    __slots__ = ("future", "touches", "wakes", "work")

    def __init__(self, work: Work[Any], future: asyncio.Future[Any], wakes: Topics[Any], touches: Sequence[str]) -> None:
        self.work = work
        self.future = future
        self.wakes = wakes
        self.touches = touches


class PostgresDatabase:
    """The shared store."""

    dialect = POSTGRES
    exclusive = False

    def __init__(self, url: str, pool: asyncpg.Pool) -> None:
        self.wakes = Wakes()
        self._url = url
        self._pool = pool
        self._jobs: asyncio.Queue[_Job | None] = asyncio.Queue(QUEUE_MAX)
        self._connection: asyncpg.Connection | None = None
        self._closing = False
        self._hurried = True
        self._writer = asyncio.create_task(self._write_all(), name="postgres-writer")
        self._listener = asyncio.create_task(self._listen(), name="postgres-listener")

    @classmethod
    async def open(cls, url: str) -> PostgresDatabase:
        """Connect.  Raises `StoreDown` when nobody answers, `StoreRefused` when we are not let in."""
        try:
            pool = await asyncpg.create_pool(
                url,
                min_size=1,
                max_size=READERS,
                timeout=CONNECT_TIMEOUT_S,
                command_timeout=STATEMENT_TIMEOUT_S,
                server_settings={"default_transaction_read_only": "on"},
                reset=_leave_as_it_is,
            )
        except asyncpg.InvalidAuthorizationSpecificationError as error:
            raise StoreRefused(f"PostgreSQL does not let us in: {error}") from error
        except (*_LOST, *_LOST_STATES) as error:
            raise StoreDown(f"PostgreSQL does not answer: {error}") from error
        return cls(url, pool)

    async def write(
        self,
        work: Work[T],
        *,
        wakes: Topics[T] = no_topics,
        essential: bool = False,  # noqa: ARG002
        touches: Sequence[str] = (),
        heralds: Sequence[str] = (),  # noqa: ARG002
        heeds: Sequence[str] = (),  # noqa: ARG002
    ) -> T:
        # What waits is committed by several connections, and seen by others only then: there is nothing to herald.
        # PostgreSQL keeps its own reserve for a full disk: an essential write is like any other here.
        if self._writer.done() or self._closing:
            raise StoreDown("the store is closed")
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        try:
            self._jobs.put_nowait(_Job(work, future, wakes, touches))
        except asyncio.QueueFull:
            raise Unavailable("the store has more work waiting than it can take; try again in a moment") from None
        return await future

    @contextlib.asynccontextmanager
    async def unhurried(self) -> AsyncGenerator[None]:
        self._hurried = False
        await self._drop_connection()
        try:
            yield
        finally:
            self._hurried = True
            await self._drop_connection()

    async def _drop_connection(self) -> None:
        """Let the next write begin with a connection of its own."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close(timeout=CONNECT_TIMEOUT_S)

    async def read(self, work: Work[T]) -> T:
        with _stoppable():
            try:
                async with self._pool.acquire(timeout=CONNECT_TIMEOUT_S) as connection:
                    return await _read(connection, work)
            except (*_LOST, *_LOST_STATES) as error:
                raise StoreDown(f"PostgreSQL does not answer: {error}") from error

    async def close(self) -> None:
        self._closing = True
        await self._jobs.put(None)
        await self._writer
        self._listener.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._listener
        if self._connection:
            await self._connection.close(timeout=CONNECT_TIMEOUT_S)
        await self._pool.close()

    async def _write_all(self) -> None:
        running = True
        while running and (job := await self._jobs.get()) is not None:
            batch = [job]
            while len(batch) < BATCH_MAX and not self._jobs.empty():
                if (more := self._jobs.get_nowait()) is None:
                    running = False
                    break
                batch.append(more)
            await self._finish(batch)

    async def _finish(self, batch: list[_Job]) -> None:
        """Commit a batch as one transaction; where one job spoils it, each by itself."""
        try:
            results = await self._commit(batch)
        except (*_LOST, *_LOST_STATES) as error:
            # Whether a commit in flight took effect is not known: the same request again finds out.
            self._hang_up()
            _fail(batch, StoreDown(f"PostgreSQL does not answer: {error}"))
        except Exception as error:
            if len(batch) == 1 and not isinstance(error, _AGAIN):
                _fail(batch, _translate(error))
            else:
                await self._finish_alone(batch)
        else:
            self._answer(batch, results)

    def _answer(self, batch: list[_Job], results: list[Any]) -> None:
        for job, result in zip(batch, results, strict=True):
            if not job.future.done():
                job.future.set_result(result)
        self.wakes.wake(_topics(batch, results))

    async def _finish_alone(self, batch: list[_Job]) -> None:
        for job in batch:
            for retry in range(RETRIES_MAX):
                try:
                    results = await self._commit([job])
                except _AGAIN as error:
                    if retry == RETRIES_MAX - 1:
                        _fail([job], StoreDown(f"other nodes hold the same rows: {error}"))
                except (*_LOST, *_LOST_STATES) as error:
                    self._hang_up()
                    _fail([job], StoreDown(f"PostgreSQL does not answer: {error}"))
                    break
                except Exception as error:
                    _fail([job], _translate(error))
                    break
                else:
                    self._answer([job], results)
                    break

    def _hang_up(self) -> None:
        """Drop a connection that cannot be trusted any more, without a word to the far side."""
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None

    async def _commit(self, batch: list[_Job]) -> list[Any]:
        connection = self._connection
        if connection is None or connection.is_closed():
            connection = self._connection = await _connect(self._url, hurried=self._hurried)
        async with connection.transaction():
            pipeline, results = Pipeline(connection), list[Any]()
            for jobs in _side_by_side(batch):
                results += await pipeline.run([job.work() for job in jobs])
            await pipeline.write_added()
            for payload in _payloads(_topics(batch, results)):
                await connection.execute("SELECT pg_notify($1, $2)", CHANNEL, payload)
        return results

    async def _listen(self) -> None:
        """Pass other nodes' hints on, for as long as the database lets us hear them."""
        while True:
            with contextlib.suppress(*_LOST, *_LOST_STATES), _stoppable():
                connection = await _connect(self._url)
                try:
                    await connection.add_listener(CHANNEL, self._hear)
                    # What was said before anybody listened was not heard.
                    self.wakes.wake(("missed",))
                    await _closing(connection)
                finally:
                    await connection.close(timeout=CONNECT_TIMEOUT_S)
            await asyncio.sleep(RECONNECT_WAIT_S)

    def _hear(self, _connection: object, pid: int, _channel: str, payload: object) -> None:
        mine = self._connection is not None and pid == self._connection.get_server_pid()
        if not mine:
            self.wakes.wake(str(payload).split(","))


@contextlib.contextmanager
def _stoppable() -> Generator[None]:
    """Let a stop be a stop, also where the driver, which could not take its question back in time, calls it a time-out."""
    task = asyncio.current_task()
    before = task.cancelling() if task else 0
    try:
        yield
    except Exception as error:
        if task and task.cancelling() > before:
            raise asyncio.CancelledError from error
        raise


async def _leave_as_it_is(_connection: object) -> None:
    """A reader changes nothing of its session, so nothing of it has to be undone between two reads."""


async def _connect(url: str, *, hurried: bool = True) -> asyncpg.Connection:
    if not hurried:
        return await asyncpg.connect(url, timeout=CONNECT_TIMEOUT_S)
    connection = await asyncpg.connect(
        url,
        timeout=CONNECT_TIMEOUT_S,
        command_timeout=STATEMENT_TIMEOUT_S,
        server_settings={"idle_in_transaction_session_timeout": f"{TRANSACTION_IDLE_MAX_S * 1000:.0f}"},
    )
    try:
        if connection.get_server_version().major >= TRANSACTION_LIMIT_SINCE:
            await connection.execute(f"SET transaction_timeout = {TRANSACTION_MAX_S * 1000:.0f}")
    except BaseException:
        connection.terminate()
        raise
    return connection


async def _closing(connection: asyncpg.Connection) -> None:
    """Return when the connection is gone."""
    closed = asyncio.Event()

    def close(_: object) -> None:
        closed.set()

    connection.add_termination_listener(close)
    if not connection.is_closed():
        await closed.wait()


def _side_by_side(batch: Sequence[_Job]) -> list[list[_Job]]:
    """Cut a batch into runs of jobs that touch nothing in common, in their order."""
    runs: list[list[_Job]] = []
    touched: set[str] = set()
    for job in batch:
        if job.touches and touched and touched.isdisjoint(job.touches):
            runs[-1].append(job)
        else:
            runs.append([job])
            touched = set()
        touched.update(job.touches)
    return runs


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


def _fail(batch: Sequence[_Job], error: Exception) -> None:
    for job in batch:
        if not job.future.done():
            job.future.set_exception(error)


def _translate(error: Exception) -> Exception:
    if isinstance(error, HoldfastError):
        return error
    if isinstance(error, asyncpg.IntegrityConstraintViolationError):
        return Stale(f"the store refused a write that breaks its rules: {error}")
    if isinstance(error, asyncpg.DiskFullError):
        return DiskFull("the database's disk is full: free some space; everything accepted so far is safe")
    return error


async def _read(connection: Connection, work: Work[T]) -> T:
    """Run a read.  One statement sees one snapshot by itself; only where more follow is it begun again in a transaction."""
    transaction = work()
    try:
        statement = next(transaction)
        if isinstance(statement, Run):
            transaction.send(await fetch(connection, statement.sql, statement.params))
    except StopIteration as done:
        return done.value
    transaction.close()
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        (result,) = await Pipeline(connection).run([work()])
        return result
