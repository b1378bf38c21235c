"""SQLite: one owner process, one writer thread, and one fsync for everything that waits."""

# apsw's stubs name a type that Python 3.11 lacks, so what it returns is checked where rows.py decodes it.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import apsw

from holdfast.errors import DiskFull, Fatal, NotFound, Stale, StoreBroken, StoreDown, StoreRefused, Unavailable
from holdfast.store.database import SQLITE, Run, Statement, Topics, Transaction, Wakes, Work, no_topics, storable
from holdfast.store.home import Ballast, Ownership, make_home, refuse_network_filesystem

T = TypeVar("T")

# The first SQLite in which a WAL that is reset under a reader cannot lose pages.
SQLITE_OLDEST = 3_051_003
BATCH_MAX = 256
QUEUE_MAX = 20_000
READERS = 2
# Checkpoints are explicit, because SQLite keeps the errors of automatic ones to itself.
CHECKPOINT_PAGES = 1_000

_SETTINGS = """
    PRAGMA foreign_keys = ON;
    PRAGMA trusted_schema = OFF;
    PRAGMA temp_store = MEMORY;
    PRAGMA cache_size = -16384;
"""
_WRITER_SETTINGS = """
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA journal_size_limit = 67108864;
"""


class _Job:
    """One transaction on its way through the writer thread."""

    __slots__ = ("essential", "future", "heeds", "outcome", "wakes", "work")

    def __init__(
        self, work: Work[Any], future: asyncio.Future[Any], wakes: Topics[Any], essential: bool, heeds: Sequence[str]
    ) -> None:
        self.work = work
        self.future = future
        self.wakes = wakes
        self.essential = essential
        self.heeds = heeds
        self.outcome: object = None  # The result, or the exception that refused it.


class _Look:
    """One reading transaction on its way through a reader thread."""

    __slots__ = ("future", "work")

    def __init__(self, work: Work[Any], future: asyncio.Future[Any]) -> None:
        self.work = work
        self.future = future


class SqliteDatabase:
    """The embedded store.  `vfs` names another SQLite file layer, which is how tests cut the power."""

    dialect = SQLITE
    exclusive = True

    def __init__(self, path: Path, *, vfs: str | None = None, readers_only: bool = False) -> None:
        self.wakes = Wakes()
        self._path = path
        self._vfs = vfs
        self._loop = asyncio.get_running_loop()
        self._broken: Fatal | None = None
        self._looks: queue.SimpleQueue[_Look | None] = queue.SimpleQueue()
        self._readers: list[threading.Thread] = []
        self._closed = False
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._ownership: Ownership | None = None
        self._writer: threading.Thread | None = None
        if not readers_only:
            self._own()

    @classmethod
    async def open(cls, path: Path, *, vfs: str | None = None) -> SqliteDatabase:
        """Open for writing.  Raises `Owned` when another process has it, `StoreRefused` when the file is not ours."""
        _refuse_folder(path)
        return cls(path, vfs=vfs)

    @classmethod
    async def open_readonly(cls, path: Path) -> SqliteDatabase:
        """Open beside the owner, for looking only."""
        if not path.exists():
            raise NotFound(f"there is no store at {path} yet; `holdfast ask hello` makes one")
        _refuse_folder(path)
        return cls(path, readers_only=True)

    def _own(self) -> None:
        if apsw.SQLITE_VERSION_NUMBER < SQLITE_OLDEST:
            raise StoreRefused(f"SQLite {apsw.sqlite_lib_version()} can lose pages; install apsw 3.51.3 or newer")
        make_home(self._path.parent)
        refuse_network_filesystem(self._path.parent)
        self._ownership = Ownership(self._path.with_suffix(".lock"))
        try:
            self._connection = self._connect(apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
            _refuse_foreign(self._connection, self._path)
            self._path.chmod(0o600)
            # Without its rows being fetched, a script stops at the first statement that has one.
            self._connection.execute(_WRITER_SETTINGS).fetchall()
        except BaseException:
            self._ownership.release()
            raise
        self._files = (self._path, self._path.with_name(self._path.name + "-wal"))
        self._identities: dict[Path, tuple[int, int]] = {}
        self._wal_pages = 0
        # Our hook takes the place of the automatic checkpoint.
        self._connection.set_wal_hook(self._count_pages)
        self._ballast = Ballast(self._path.with_suffix(".ballast"))
        self._ballast.restore()
        self._writer = threading.Thread(target=self._write_all, name="holdfast-writer", daemon=True)
        self._writer.start()

    def _connect(self, flags: int) -> apsw.Connection:
        try:
            connection = apsw.Connection(str(self._path), flags=flags, vfs=self._vfs, statementcachesize=256)
            connection.set_busy_timeout(5_000)
            # Without it SQLite plans many a statement anew for each set of values, which costs more than running it.
            connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
            connection.execute(_SETTINGS).fetchall()
        except apsw.NotADBError as error:
            raise StoreRefused(f"{self._path} is not a Holdfast store; move it away or choose another --home") from error
        return connection

    async def write(
        self,
        work: Work[T],
        *,
        wakes: Topics[T] = no_topics,
        essential: bool = False,
        touches: Sequence[str] = (),  # noqa: ARG002
        heralds: Sequence[str] = (),
        heeds: Sequence[str] = (),
    ) -> T:
        # Within one process no transaction can get in another's way, whatever they touch.
        if self._broken:
            raise self._broken
        if self._writer is None:
            raise StoreDown("the store is closed, or open for reading only")
        if self._jobs.qsize() > QUEUE_MAX:
            raise Unavailable("the store has more work waiting than it can take; try again in a moment")
        future: asyncio.Future[T] = self._loop.create_future()
        job = _Job(work, future, wakes, essential, heeds)
        if heralds:
            # Whoever is woken now comes in the same round of the loop, right behind it.
            self._loop.call_soon(self._jobs.put, job)
            self.wakes.wake(heralds)
        else:
            self._jobs.put(job)
        return await future

    @contextlib.asynccontextmanager
    async def unhurried(self) -> AsyncGenerator[None]:
        # Nothing limits a write here, and no other process can write.
        yield

    async def read(self, work: Work[T]) -> T:
        if self._closed:
            raise StoreDown("the store is closed")
        if len(self._readers) < READERS:
            self._readers.append(threading.Thread(target=self._read_all, name="holdfast-reader", daemon=True))
            self._readers[-1].start()
        future: asyncio.Future[T] = self._loop.create_future()
        self._looks.put(_Look(work, future))
        return await future

    async def close(self) -> None:
        if self._writer:
            writer, self._writer = self._writer, None
            # What was heralded a moment ago is in line only after this round of the loop.
            await asyncio.sleep(0)
            self._jobs.put(None)
            await self._loop.run_in_executor(None, writer.join)
        self._closed = True
        for _ in self._readers:
            self._looks.put(None)
        for reader in self._readers:
            await self._loop.run_in_executor(None, reader.join)
        if self._ownership:
            if self._broken is None:
                self._connection.close()
            self._ownership.release()
            self._ownership = None

    def _read_all(self) -> None:
        connection: apsw.Connection | None = None
        while (look := self._looks.get()) is not None:
            try:
                connection = connection or self._connect_reader()
                outcome: object = _read(connection, look.work)
            except Exception as error:
                outcome = error
            with contextlib.suppress(RuntimeError):  # The loop is gone, and with it everyone who waited.
                self._loop.call_soon_threadsafe(_tell, look.future, outcome)
        if connection is not None:
            connection.close()

    def _connect_reader(self) -> apsw.Connection:
        connection = self._connect(apsw.SQLITE_OPEN_READONLY)
        # A reader that outlives the writer must not checkpoint when it closes.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        return connection

    def _write_all(self) -> None:
        while (job := self._jobs.get()) is not None:
            batch = [job]
            with contextlib.suppress(queue.Empty):
                while len(batch) < BATCH_MAX and (more := self._jobs.get_nowait()) is not None:
                    batch.append(more)
                if len(batch) < BATCH_MAX:
                    # The request to stop came among the work: finish the work first.
                    self._jobs.put(None)
            self._finish(batch)

    def _finish(self, batch: list[_Job]) -> None:
        try:
            if self._broken is None:
                self._commit_with_room(batch)
        except Exception as error:
            self._break(error)
        if self._broken is not None:
            for job in batch:
                job.outcome = self._broken
        with contextlib.suppress(RuntimeError):  # The loop is gone, and with it everyone who waited.
            self._loop.call_soon_threadsafe(self._answer, batch)
        self._checkpoint()

    def _count_pages(self, _connection: apsw.Connection, _database: str, pages: int) -> int:
        self._wal_pages = pages
        return apsw.SQLITE_OK

    def _checkpoint(self) -> None:
        """Move a long WAL into the database, after those who waited for its commits have their answers."""
        if self._broken is not None or self._wal_pages < CHECKPOINT_PAGES:
            return
        try:
            self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except apsw.FullError:
            return  # The WAL keeps everything until there is room.
        except apsw.Error as error:
            self._break(error)

    def _commit_with_room(self, batch: list[_Job]) -> None:
        essential = [job for job in batch if job.essential]
        if not self._ballast.restore():
            # The room that the ballast gave back belongs to the turns in flight.
            _refuse(batch, essential)
            batch = essential
        try:
            self._commit(batch)
        except apsw.FullError:
            self._roll_back()
            self._ballast.release()
            _refuse(batch, essential)
            self._commit_from_ballast(essential)

    def _commit_from_ballast(self, essential: list[_Job]) -> None:
        try:
            self._commit(essential)
        except apsw.FullError:
            # A full disk is not a broken one: whoever ends a turn tries again until there is room.
            self._roll_back()
            _refuse(essential, [])

    def _commit(self, batch: list[_Job]) -> None:
        execute = self._connection.execute
        if not batch:
            return
        execute("BEGIN IMMEDIATE")
        for job in batch:
            execute("SAVEPOINT job")
            try:
                job.outcome = _drive(self._connection, job.work())
            except (apsw.FullError, apsw.IOError, apsw.CorruptError):
                raise
            except Exception as error:
                execute("ROLLBACK TO job")
                job.outcome = error
            execute("RELEASE job")
        execute("COMMIT")
        self._refuse_moved_files()

    def _refuse_moved_files(self) -> None:
        for path in self._files:
            try:
                stat = path.stat()
            except FileNotFoundError:
                raise StoreBroken(f"{path} was removed while the gateway runs; stop, and check the disk") from None
            identity = (stat.st_dev, stat.st_ino)
            if self._identities.setdefault(path, identity) != identity:
                raise StoreBroken(f"{path} was replaced while the gateway runs; stop, and check the disk")

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _break(self, error: Exception) -> None:
        # After a failed fsync the kernel may have dropped the pages: trying again would only look like success.
        self._broken = (
            error if isinstance(error, Fatal) else StoreBroken(f"the disk failed ({error}); nothing more is written")
        )
        self._connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)

    def _answer(self, batch: list[_Job]) -> None:
        topics: set[str] = set()
        for job in batch:
            if not isinstance(job.outcome, Exception):
                topics.update(job.wakes(job.outcome))
                topics.difference_update(job.heeds)
            _tell(job.future, job.outcome)
        self.wakes.wake(tuple(topics))


def _tell(future: asyncio.Future[Any], outcome: object) -> None:
    if future.done():
        return  # Whoever asked has been cancelled.
    if isinstance(outcome, Exception):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)


def _read(connection: apsw.Connection, work: Work[T]) -> T:
    connection.execute("BEGIN")
    try:
        return _drive(connection, work())
    finally:
        connection.execute("ROLLBACK")


def _refuse_folder(path: Path) -> None:
    if path.is_dir():
        raise StoreRefused(f"{path} is a folder; the store would be a file of that name")


def _refuse(batch: list[_Job], essential: list[_Job]) -> None:
    for job in batch:
        if job not in essential:
            job.outcome = DiskFull("the disk is full: free some space; everything accepted so far is safe")


def _drive(connection: apsw.Connection, transaction: Transaction[T]) -> T:
    """Run a transaction's statements one after the other until it returns."""
    try:
        statement = next(transaction)
        while True:
            statement = transaction.send(_run(connection, statement))
    except StopIteration as done:
        return done.value
    except apsw.ConstraintError as error:
        raise Stale(f"the store refused a write that breaks its rules: {error}") from error


def _run(connection: apsw.Connection, statement: Statement) -> list[tuple[Any, ...]]:
    if isinstance(statement, Run):
        return connection.execute(statement.sql, storable(statement.params)).fetchall()
    connection.executemany(statement.sql, [storable(params) for params in statement.params])
    return []


def _refuse_foreign(connection: apsw.Connection, path: Path) -> None:
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    if tables and "schema_versions" not in tables:
        # What is not ours is not ours to tidy up either: its WAL stays as it is.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.close()
        raise StoreRefused(f"{path} is another program's database; move it away or choose another --home")
