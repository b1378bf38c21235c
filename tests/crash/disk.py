"""Disks that betray SQLite on command.

Both disks are SQLite file systems ("VFS") over the ordinary one, so a connection is put on one of them by name alone:
`apsw.Connection(path, vfs=disk.name)`.  A disk lives as long as Python holds it, so a test must keep it in a variable.

- `PowerLossDisk` remembers what no sync has yet made durable, and draws what a power cut would leave behind.
- `FaultyDisk` fails syncs and reads, and runs full.  It may stand on a `PowerLossDisk`:
  `FaultyDisk("faulty", base="powerloss")`.
"""

# ruff: noqa: N802 - SQLite has given these methods their names.

from __future__ import annotations

import math
import random
import threading
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

import apsw

SECTOR = 512
BLANK = bytes(SECTOR)
# Neither zeros nor any page SQLite would write, so that no check can take it for content.
WRECK = b"\xdb" * SECTOR

Name = str | apsw.URIFilename | None
Kind = Literal["db", "wal", "journal"]
Event = Literal["write", "truncate", "sync", "delete"]
T = TypeVar("T")

Survivors = Callable[[int], bool]
"""Says of an operation that no sync covered whether it reached the platter.

It is asked once for every sector, file size and directory entry that the operation changed: when it answers
differently for the same operation, that operation is torn.
"""


def nothing(operation: int) -> bool:
    """The power cut that takes all it may take."""
    return False


def everything(operation: int) -> bool:
    """The power cut that the drive's cache outlived."""
    return True


def some(rng: random.Random) -> Survivors:
    """The power cut that loses some operations, keeps some, and tears the rest sector by sector."""
    # An even mix alone would almost never show one loss among many survivors, nor the reverse.
    weights = rng.choice(((8, 1, 1), (1, 1, 8), (1, 1, 1), (0, 1, 0)))
    odds: dict[int, float] = {}

    def reached(operation: int) -> bool:
        if operation not in odds:
            odds[operation] = rng.choices((0.0, 0.5, 1.0), weights)[0]
        return rng.random() < odds[operation]

    return reached


@dataclass
class Cell(Generic[T]):
    """One value on the disk that changes as a whole, with the values it took since it was last durable."""

    durable: T
    pending: list[tuple[int, T]] = field(default_factory=list)

    @property
    def current(self) -> T:
        return self.pending[-1][1] if self.pending else self.durable

    def change(self, operation: int, value: T) -> None:
        self.pending.append((operation, value))

    def settle(self, operation: int) -> None:
        """Makes durable what had changed up to the operation; a change made while a sync ran is not covered by it."""
        while self.pending and self.pending[0][0] <= operation:
            self.durable = self.pending.pop(0)[1]

    def outlive(self, reached: Survivors) -> T:
        return next((value for operation, value in reversed(self.pending) if reached(operation)), self.durable)


class Content:
    """The bytes of one file, apart from its name: a file deleted but not yet forgotten by the disk keeps them."""

    def __init__(self, data: bytes = b"") -> None:
        self._size = Cell(len(data))
        # Always whole sectors, blank beyond the size.
        self._durable = bytearray(data.ljust(count_sectors(len(data)) * SECTOR, b"\0"))
        self._unsettled: dict[int, Cell[bytes]] = {}
        self._truncations: set[int] = set()

    def write(self, operation: int, data: bytes, offset: int, wrecking: bool) -> None:
        end = offset + len(data)
        for index in range(offset // SECTOR, count_sectors(end)):
            start = index * SECTOR
            first, last = max(offset, start), min(end, start + SECTOR)
            sector = self._open_sector(index)
            before = sector.current
            if wrecking and last - first < SECTOR:
                sector.change(operation, WRECK)
            after = before[: first - start] + data[first - offset : last - offset] + before[last - start :]
            sector.change(operation, after)
        self._size.change(operation, max(self._size.current, end))

    def truncate(self, operation: int, size: int) -> None:
        for index in range(size // SECTOR, count_sectors(self._size.current)):
            sector = self._open_sector(index)
            sector.change(operation, sector.current[: max(0, size - index * SECTOR)].ljust(SECTOR, b"\0"))
        self._size.change(operation, size)
        self._truncations.add(operation)

    def settle(self, operation: int) -> None:
        self._size.settle(operation)
        for index, sector in list(self._unsettled.items()):
            sector.settle(operation)
            put_sector(self._durable, index, sector.durable)
            if not sector.pending:
                del self._unsettled[index]
        self._truncations = {truncation for truncation in self._truncations if truncation > operation}

    def outlive(self, reached: Survivors) -> bytes:
        # A truncation blanks many sectors here but is one change of metadata there, and never torn.
        truncated = {operation: reached(operation) for operation in sorted(self._truncations)}

        def survives(operation: int) -> bool:
            return truncated[operation] if operation in truncated else reached(operation)

        data = self._durable.copy()
        for index, sector in self._unsettled.items():
            put_sector(data, index, sector.outlive(survives))
        size = self._size.outlive(survives)
        return bytes(data[:size].ljust(size, b"\0"))

    def _open_sector(self, index: int) -> Cell[bytes]:
        if index not in self._unsettled:
            durable = bytes(self._durable[index * SECTOR : (index + 1) * SECTOR])
            self._unsettled[index] = Cell(durable or BLANK)
        return self._unsettled[index]


class PowerLossDisk(apsw.VFS):
    """A disk whose power can be cut at any moment, any number of times, without disturbing those who use it.

    All databases on one disk must be in one folder.  Files already there when first opened count as durable, and so
    does the folder itself.  `on_event` is called before each operation takes effect, in the thread that does it; an
    image drawn from a "sync" event shows a power cut in the middle of that sync.

    A disk that is not `powersafe_overwrite` does not claim to be, and may wreck a whole sector when the power goes
    while it writes a part of it.  Otherwise it claims what the ordinary disk claims.
    """

    def __init__(self, name: str, base: str = "", *, powersafe_overwrite: bool = True) -> None:
        super().__init__(name, base)
        self.name = name
        self.base = base
        self.powersafe_overwrite = powersafe_overwrite
        self.on_event: Callable[[Event, str], None] | None = None
        self.lock = threading.RLock()
        self.operation = 0
        self._entries: dict[str, Cell[Content | None]] = {}

    def draw(self, survivors: Survivors) -> dict[str, bytes]:
        """Tells what a power cut at this moment may leave of each file, by file name.

        The shared memory file is never among them: SQLite itself throws it away when it starts.
        """
        with self.lock:
            entries = {name: entry.outlive(survivors) for name, entry in self._entries.items()}
            return {name: content.outlive(survivors) for name, content in entries.items() if content is not None}

    def image(self, folder: Path, survivors: Survivors) -> None:
        """Writes what a power cut may leave into a folder, which must not exist yet lest an older log stay in it."""
        folder.mkdir(parents=True)
        for name, data in self.draw(survivors).items():
            (folder / name).write_bytes(data)

    def xOpen(self, name: Name, flags: list[int]) -> apsw.VFSFile:
        if name is None:
            return super().xOpen(name, flags)
        # The name is read at once, because SQLite's own object for it dies when the file is open.
        path = Path(name.filename() if isinstance(name, apsw.URIFilename) else name)
        with self.lock:
            existed = path.exists()
            file = PowerLossFile(self, path.name, name, flags)
            entry = self._entries.setdefault(path.name, Cell(None))
            if not existed:
                entry.change(self.count_operation(), file.content)
            elif entry.current is not None:
                file.content = entry.current
            else:
                # The bytes come through SQLite's own handle: closing another one would drop its POSIX locks.
                file.content = Content(file.xRead(file.xFileSize(), 0) if file.xFileSize() else b"")
                self._entries[path.name] = Cell(file.content)
        return file

    def xDelete(self, filename: str, syncdir: bool) -> None:
        name = Path(filename).name
        self.announce("delete", name)
        with self.lock:
            super().xDelete(filename, syncdir)
            if name in self._entries:
                self._entries[name].change(self.count_operation(), None)
            if syncdir:
                self.settle_entries(self.operation)

    def announce(self, event: Event, filename: str) -> None:
        if self.on_event is not None:
            self.on_event(event, filename)

    def count_operation(self) -> int:
        self.operation += 1
        return self.operation

    def settle_entries(self, operation: int) -> None:
        for entry in self._entries.values():
            entry.settle(operation)


class PowerLossFile(apsw.VFSFile):
    def __init__(self, disk: PowerLossDisk, filename: str, name: Name, flags: list[int]) -> None:
        super().__init__(disk.base, name, flags)
        self.content = Content()
        self._disk = disk
        self._filename = filename
        # SQLite's unix file system syncs the folder with the first sync of a journal or log that it may have created,
        # and at no other time: the database file owes its durable name to its first journal.
        self._syncs_folder = bool(flags[0] & apsw.SQLITE_OPEN_CREATE) and find_kind(flags) != "db"

    def xWrite(self, data: Any, offset: int) -> None:
        self._disk.announce("write", self._filename)
        super().xWrite(data, offset)
        with self._disk.lock:
            wrecking = not self._disk.powersafe_overwrite
            self.content.write(self._disk.count_operation(), bytes(data), offset, wrecking)

    def xTruncate(self, newsize: int) -> None:
        self._disk.announce("truncate", self._filename)
        super().xTruncate(newsize)
        with self._disk.lock:
            self.content.truncate(self._disk.count_operation(), newsize)

    def xSync(self, flags: int) -> None:
        self._disk.announce("sync", self._filename)
        covered = self._disk.operation
        super().xSync(flags)
        with self._disk.lock:
            self.content.settle(covered)
            if self._syncs_folder:
                self._disk.settle_entries(covered)
                self._syncs_folder = False

    def xDeviceCharacteristics(self) -> int:
        claims = super().xDeviceCharacteristics()
        return claims if self._disk.powersafe_overwrite else claims & ~apsw.SQLITE_IOCAP_POWERSAFE_OVERWRITE


class FaultyDisk(apsw.VFS):
    """A disk whose syncs or reads fail, or whose space ends, from when it is told so until it is healed.

    It is louder than a real one: apsw raises what happened here even where SQLite goes on as if nothing had, which it
    does when the checkpoint fails that it makes by itself after a commit.  On a real disk nobody hears of that.
    """

    def __init__(self, name: str, base: str = "") -> None:
        super().__init__(name, base)
        self.name = name
        self.base = base
        self._lock = threading.Lock()
        self._kinds: Collection[Kind] = ()
        self._passing = 0
        self._failing = 0.0
        self._quota: tuple[Path, int] | None = None
        self.unreadable = False

    def heal(self) -> None:
        """Ends all faults."""
        with self._lock:
            self.unreadable = False
            self._kinds = ()
            self._quota = None

    def fail_syncs(
        self, *, after: int = 0, times: int | None = None, kinds: Collection[Kind] = ("db", "wal", "journal")
    ) -> None:
        """Lets `after` syncs of such files pass, then fails as many as `times` says, or all."""
        with self._lock:
            self._kinds = kinds
            self._passing = after
            self._failing = math.inf if times is None else times

    def fail_reads(self) -> None:
        """Fails every read of a page, as a drive does whose sectors have gone bad."""
        with self._lock:
            self.unreadable = True

    def limit(self, folder: Path, quota: int) -> None:
        """Makes the folder a disk of so many bytes, which every file below it takes from, whoever wrote it."""
        with self._lock:
            self._quota = (folder, quota)

    def xOpen(self, name: Name, flags: list[int]) -> apsw.VFSFile:
        # Temporary files have no name, hold nothing that must last, and lie outside the folder.
        return super().xOpen(name, flags) if name is None else FaultyFile(self, name, flags)

    def refuse_sync(self, kind: Kind) -> bool:
        with self._lock:
            if kind not in self._kinds:
                return False
            if self._passing > 0:
                self._passing -= 1
                return False
            self._failing -= 1
            return self._failing >= 0

    def find_room(self) -> float:
        """Tells how many bytes the files may grow by."""
        with self._lock:
            return math.inf if self._quota is None else self._quota[1] - measure(self._quota[0])


class FaultyFile(apsw.VFSFile):
    def __init__(self, disk: FaultyDisk, name: Name, flags: list[int]) -> None:
        super().__init__(disk.base, name, flags)
        self._disk = disk
        self._kind: Kind = find_kind(flags)

    def xSync(self, flags: int) -> None:
        if self._disk.refuse_sync(self._kind):
            raise apsw.exception_for(apsw.SQLITE_IOERR_FSYNC)
        super().xSync(flags)

    def xRead(self, amount: int, offset: int) -> bytes:
        if self._disk.unreadable:
            raise apsw.exception_for(apsw.SQLITE_IOERR_READ)
        return super().xRead(amount, offset)

    def xWrite(self, data: Any, offset: int) -> None:
        end = self.xFileSize() + max(0, self._disk.find_room())
        if offset + len(data) <= end:
            super().xWrite(data, offset)
            return
        # A full disk takes what still fits before it refuses, and SQLite must cope with the stump.
        if end > offset:
            super().xWrite(bytes(data)[: int(end) - offset], offset)
        raise apsw.exception_for(apsw.SQLITE_FULL)


def find_kind(flags: list[int]) -> Kind:
    if flags[0] & apsw.SQLITE_OPEN_WAL:
        return "wal"
    if flags[0] & (apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_SUPER_JOURNAL):
        return "journal"
    return "db"


def count_sectors(size: int) -> int:
    return (size + SECTOR - 1) // SECTOR


def put_sector(data: bytearray, index: int, sector: bytes) -> None:
    start = index * SECTOR
    data.extend(bytes(max(0, start - len(data))))
    data[start : start + SECTOR] = sector


def measure(folder: Path) -> int:
    size = 0
    for path in folder.rglob("*"):
        # Journals come and go while the folder is read.
        with suppress(FileNotFoundError):
            size += path.stat().st_size if path.is_file() else 0
    return size
