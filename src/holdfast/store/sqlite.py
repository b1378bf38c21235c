"""SQLite: one owner process, one writer thread, and one fsync for everything that waits."""

# apsw's stubs name a type that Python 3.11 lacks, so what it returns is checked where rows.py decodes it.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import time
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any, TypeVar, Unpack

import apsw

from holdfast.core.damage import is_writable
from holdfast.errors import (
    Damaged,
    DiskFull,
    Fatal,
    NotFound,
    StoreBroken,
    StoreDamaged,
    StoreDown,
    StoreRefused,
    Unavailable,
)
from holdfast.store.database import (
    SQLITE,
    TOO_BUSY,
    Topics,
    Transaction,
    Wakes,
    Work,
    Writing,
    no_topics,
)
from holdfast.store.files import ballast_of, fresh_of, log_of, not_a_store, refuse_stump
from holdfast.store.home import Ballast, Ownership, make_home, refuse_network_filesystem
from holdfast.store.sqlite_execution import DAMAGE, drive, tell
from holdfast.store.sqlite_readers import Readers
from holdfast.store.wal import keep_unreadable_wal

T = TypeVar("T")

# The first SQLite in which a WAL that is reset under a reader cannot lose pages.
SQLITE_OLDEST = 3_051_003
BATCH_MAX = 256
QUEUE_MAX = 20_000
# Checkpoints are explicit, because SQLite keeps the errors of automatic ones to itself.
CHECKPOINT_PAGES = 1_000
BUSY_TIMEOUT_MS = 5_000
# Damage is seldom alone, and the first of it says enough.
DAMAGE_MAX = 10
# An inspection rests so long after each of so many steps of SQLite's, which take about as long.
INSPECTION_STEPS = 20_000
INSPECTION_REST_S = 0.005

# Without those of the full-text search, which are made by SQLite itself.
_TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'passages%' AND name NOT LIKE 'sqlite%'"

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

    def __init__(self, work: Work[Any], future: asyncio.Future[Any], how: Writing[Any]) -> None:
        self.work = work
        self.future = future
        self.wakes: Topics[Any] = how.get("wakes", no_topics)
        self.essential = how.get("essential", False)
        self.heeds = how.get("heeds", ())
        self.outcome: object = None  # The result, or the exception that refused it.


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
        self._damage: tuple[str, ...] = ()
        self._readers = Readers(self._connect_reader, self._suspect)
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
        refuse_stump(path)
        return cls(path, vfs=vfs)

    @classmethod
    async def open_readonly(cls, path: Path) -> SqliteDatabase:
        """Open beside the owner, for looking only."""
        refuse_stump(path)
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
            # Of a compaction that was killed; it may be as large as the store.
            fresh_of(self._path).unlink(missing_ok=True)
            self._damage = keep_unreadable_wal(self._path)
            self._connection = self._connect(apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
            _refuse_foreign(self._connection, self._path)
            self._path.chmod(0o600)
            _look_at_the_ends(self._connection)
            if self._connection.execute("PRAGMA page_count").fetchall() == [(0,)]:
                # A file can give pages back only if it is told before its first one is written.
                self._connection.execute("PRAGMA auto_vacuum = INCREMENTAL").fetchall()
            # Without its rows being fetched, a script stops at the first statement that has one.
            self._connection.execute(_WRITER_SETTINGS).fetchall()
        except DAMAGE as error:
            self._ownership.release()
            raise StoreDamaged(self._path, error) from error
        except BaseException:
            self._ownership.release()
            raise
        self._files = (self._path, log_of(self._path))
        self._identities: dict[Path, tuple[int, int]] = {}
        self._wal_pages = 0
        self._truncates = False
        # Our hook takes the place of the automatic checkpoint.
        self._connection.set_wal_hook(self._count_pages)
        self._ballast = Ballast(ballast_of(self._path))
        self._ballast.restore()
        self._writer = threading.Thread(target=self._write_all, name="holdfast-writer", daemon=True)
        self._writer.start()

    def _connect(self, flags: int) -> apsw.Connection:
        try:
            connection = apsw.Connection(str(self._path), flags=flags, vfs=self._vfs, statementcachesize=256)
            connection.set_busy_timeout(BUSY_TIMEOUT_MS)
            # Without it SQLite plans many a statement anew for each set of values, which costs more than running it.
            connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
            connection.execute(_SETTINGS).fetchall()
        except apsw.NotADBError as error:
            raise not_a_store(self._path) from error
        return connection

    async def write(self, work: Work[T], **how: Unpack[Writing[T]]) -> T:
        if self._broken:
            raise self._broken
        if not is_writable(self._damage):
            raise Damaged("; ".join(self._damage))
        if self._writer is None:
            raise StoreDown("the store is closed, or open for reading only")
        if self._jobs.qsize() > QUEUE_MAX:
            raise Unavailable(TOO_BUSY)
        future: asyncio.Future[T] = self._loop.create_future()
        job = _Job(work, future, how)
        if heralds := how.get("heralds"):
            # Work that is woken now is queued in the same round of the loop, and shares the commit.
            self._loop.call_soon(self._jobs.put, job)
            self.wakes.wake(heralds)
        else:
            self._jobs.put(job)
        return await future

    @contextlib.asynccontextmanager
    async def unhurried(self) -> AsyncGenerator[None]:
        # Nothing limits a write here, and no other process can write.
        yield

    @property
    def damage(self) -> Sequence[str]:
        return self._damage

    async def inspect(self) -> Sequence[str]:
        found = await asyncio.to_thread(self._inspect)
        # Damage that a statement met stays known, even if the inspection does not find it.
        self._damage = tuple(dict.fromkeys((*self._damage, *found)))[:DAMAGE_MAX]
        return self._damage

    def _inspect(self) -> list[str]:
        """Read the whole file on a separate connection, slowly enough that other work is not delayed."""
        found: list[str] = []
        connection: apsw.Connection | None = None
        try:
            connection = self._connect_reader()
            connection.set_progress_handler(self._rest, INSPECTION_STEPS)
            for (line,) in connection.execute(f"PRAGMA quick_check({DAMAGE_MAX})"):
                found.extend(str(line).splitlines())
        except apsw.InterruptError:
            return []
        except (*DAMAGE, Fatal) as error:
            found.append(str(error))
        finally:
            if connection is not None:
                connection.close()
        return [line for line in found if line != "ok"]

    def _rest(self) -> bool:
        """Pause for a moment; True once the store is closed, which ends the inspection."""
        time.sleep(INSPECTION_REST_S)
        return self._closed

    def _suspect(self, error: Exception) -> Damaged:
        """Remember damage, and wake the inspector to look at the whole store."""
        if not self._damage:
            self._damage = (str(error),)
        with contextlib.suppress(RuntimeError):  # The loop is gone, and with it everyone who would look.
            self._loop.call_soon_threadsafe(self.wakes.wake, ("damage",))
        return Damaged(error)

    async def tidy(self) -> None:
        self._truncates = True
        # A checkpoint follows the commit of the first of these, and is over before the second.
        for _ in range(2):
            await self.write(_nothing)

    async def read(self, work: Work[T]) -> T:
        if self._closed:
            raise StoreDown("the store is closed")
        return await self._readers.read(work)

    async def close(self) -> None:
        if self._writer:
            writer, self._writer = self._writer, None
            # What was heralded a moment ago is in line only after this round of the loop.
            await asyncio.sleep(0)
            self._jobs.put(None)
            await self._loop.run_in_executor(None, writer.join)
        self._closed = True
        await self._readers.close()
        if self._ownership:
            if self._broken is None:
                self._connection.close()
            self._ownership.release()
            self._ownership = None

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
        except apsw.CorruptError as error:
            # Not of one job but of the commit of all, or of the room on the disk.
            self._roll_back()
            for job in batch:
                job.outcome = self._suspect(error)
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
        if self._broken is not None or not (self._truncates or self._wal_pages >= CHECKPOINT_PAGES):
            return
        try:
            self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            if self._truncates:
                self._truncate()
        except apsw.FullError:
            return  # The WAL keeps everything until there is room.
        except apsw.CorruptError as error:
            self._suspect(error)
        except apsw.Error as error:
            self._break(error)

    def _truncate(self) -> None:
        """Empty the WAL, unless a reader uses it: that is not waited for."""
        self._truncates = False
        self._connection.set_busy_timeout(0)
        try:
            with contextlib.suppress(apsw.BusyError):
                self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        finally:
            self._connection.set_busy_timeout(BUSY_TIMEOUT_MS)

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
        except apsw.NoMemError:
            self._roll_back()
            for job in batch:
                job.outcome = Unavailable("the store has no memory left for this; try again in a moment")

    def _commit_from_ballast(self, essential: list[_Job]) -> None:
        try:
            self._commit(essential)
        except apsw.FullError:
            # A full disk is not a broken one: the worker that ends a turn tries again until there is room.
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
                job.outcome = drive(self._connection, job.work())
            except (apsw.FullError, apsw.IOError, apsw.NoMemError):
                # SQLite may have rolled the whole transaction back by then.
                raise
            except (apsw.CorruptError, UnicodeDecodeError) as error:
                # This job fails; the rows of the other jobs are on other pages.
                execute("ROLLBACK TO job")
                job.outcome = self._suspect(error)
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
            tell(job.future, job.outcome)
        self.wakes.wake(tuple(topics))


def _nothing() -> Transaction[None]:
    return
    yield


def _refuse_folder(path: Path) -> None:
    if path.is_dir():
        raise StoreRefused(f"{path} is a folder; the store would be a file of that name")


def _refuse(batch: list[_Job], essential: list[_Job]) -> None:
    for job in batch:
        if job not in essential:
            job.outcome = DiskFull("the disk is full: free some space; everything accepted so far is safe")


def _look_at_the_ends(connection: apsw.Connection) -> None:
    """Read the end of every table: if that is damaged, no row can be added, and the store cannot be used."""
    for (name,) in connection.execute(_TABLES).fetchall():
        connection.execute(f'SELECT 1 FROM "{name}" ORDER BY rowid DESC LIMIT 1').fetchall()


def _refuse_foreign(connection: apsw.Connection, path: Path) -> None:
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    if tables and "schema_versions" not in tables:
        # What is not ours is not ours to tidy up either: its WAL stays as it is.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.close()
        raise StoreRefused(f"{path} is another program's database; move it away or choose another --home")
