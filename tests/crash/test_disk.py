"""The disks that betray must themselves be true: each is shown to find a fault that is there, and none that is not."""

from __future__ import annotations

import random
import shutil
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path

import apsw
import pytest

from tests.crash.disk import SECTOR, FaultyDisk, Kind, PowerLossDisk, everything, nothing, some

PAGE = 4096


class Cuts:
    """Cuts the power again and again during a workload, restarts from what is left, and notes what went wrong."""

    def __init__(self, disk: PowerLossDisk, folder: Path) -> None:
        self.acknowledged = 0
        self.count = 0
        self.losses: list[str] = []
        self.corruptions: list[str] = []
        self._disk = disk
        self._folder = folder
        self._rng = random.Random(7)

    def cut(self, event: str, filename: str = "") -> None:
        # What is durable does not change with a write, so the worst cut need not be drawn for each.
        for survivors in [nothing, everything, some(self._rng)][event == "write" :]:
            self.count += 1
            image = self._folder / str(self.count)
            acknowledged = self.acknowledged
            self._disk.image(image, survivors)
            where = f"image {self.count}, {event} {filename} after {acknowledged} commits"
            try:
                found = recover(image / "a.db")
            except (apsw.CorruptError, apsw.NotADBError, AssertionError) as damage:
                self.corruptions.append(f"{where}: {damage}")
            else:
                # The commits that were under way may be there or not, but whole.
                if not acknowledged <= found <= self.acknowledged + 1:
                    self.losses.append(f"{where}: {found} found")
            shutil.rmtree(image)


def cut_power_throughout(folder: Path, disk: PowerLossDisk, journal_mode: str, synchronous: str, commits: int) -> Cuts:
    cuts = Cuts(disk, folder / "images")
    disk.on_event = cuts.cut
    with open_journal(folder, disk, journal_mode, synchronous) as connection:
        for number in range(commits):
            commit(connection, number)
            cuts.acknowledged += 1
            cuts.cut("acknowledged")
            # A log that starts over in place and a log that starts over from nothing fail differently.
            if number == commits // 3:
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)
            if number == commits * 2 // 3:
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    cuts.cut("closed")
    return cuts


@contextmanager
def open_journal(
    folder: Path, disk: PowerLossDisk | FaultyDisk, journal_mode: str = "wal", synchronous: str = "full"
) -> Iterator[apsw.Connection]:
    with closing(apsw.Connection(str(folder / "a.db"), vfs=disk.name)) as connection:
        assert connection.pragma("journal_mode", journal_mode) == journal_mode
        connection.pragma("synchronous", synchronous)
        connection.pragma("wal_autocheckpoint", 0)
        connection.execute("CREATE TABLE IF NOT EXISTS entry (id INTEGER PRIMARY KEY, body BLOB)")
        yield connection


def commit(connection: apsw.Connection, number: int) -> None:
    connection.execute("INSERT INTO entry VALUES (?, ?)", (number, make_body(number)))


def fill(connection: apsw.Connection) -> None:
    for number in range(1000):
        commit(connection, number)


@cache
def make_body(number: int) -> bytes:
    # Some bodies share a page with others and some need pages of their own.
    return random.Random(number).randbytes(200 + number * 2711 % 5000)


def recover(path: Path) -> int:
    """Opens what is left as any program would after a restart, and counts the commits that it holds."""
    with closing(apsw.Connection(str(path))) as connection:
        # Nothing cuts the power of the restart, and the many images need not wait for the real disk.
        connection.execute("PRAGMA synchronous = OFF")
        assert connection.pragma("integrity_check") == "ok"
        if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'entry'").fetchall():
            return 0
        rows = connection.execute("SELECT id, body FROM entry ORDER BY id").fetchall()
    assert rows == [(number, make_body(number)) for number in range(len(rows))], "the commits have gaps"
    return len(rows)


def count_commits(connection: apsw.Connection) -> int:
    return len(connection.execute("SELECT id FROM entry").fetchall())


@contextmanager
def open_file(disk: PowerLossDisk, path: Path, kind: int = apsw.SQLITE_OPEN_MAIN_DB) -> Iterator[apsw.VFSFile]:
    file = disk.xOpen(str(path), [kind | apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE, 0])
    yield file
    file.xClose()


def draw(disk: PowerLossDisk, filename: str) -> list[bytes | None]:
    """Draws what random power cuts leave of one file, where None is a file that is not there."""
    rng = random.Random(3)
    return [disk.draw(some(rng)).get(filename) for _ in range(200)]


@pytest.mark.parametrize(("powersafe_overwrite", "commits"), [(True, 60), (False, 12)])
def test_a_full_sync_loses_nothing_at_any_power_cut(tmp_path: Path, powersafe_overwrite: bool, commits: int) -> None:
    disk = PowerLossDisk("powerloss", powersafe_overwrite=powersafe_overwrite)
    cuts = cut_power_throughout(tmp_path, disk, "wal", "full", commits)
    assert cuts.count > 15 * commits
    assert cuts.losses == []
    assert cuts.corruptions == []


def test_a_normal_sync_loses_acknowledged_commits_but_corrupts_nothing(tmp_path: Path) -> None:
    cuts = cut_power_throughout(tmp_path, PowerLossDisk("powerloss"), "wal", "normal", commits=12)
    assert cuts.losses
    assert cuts.corruptions == []


def test_no_sync_at_all_loses_and_corrupts(tmp_path: Path) -> None:
    cuts = cut_power_throughout(tmp_path, PowerLossDisk("powerloss"), "wal", "off", commits=12)
    assert cuts.losses
    assert cuts.corruptions


def test_a_rollback_journal_whose_deletion_is_not_synced_takes_its_commit_back(tmp_path: Path) -> None:
    cuts = cut_power_throughout(tmp_path, PowerLossDisk("powerloss"), "delete", "full", commits=8)
    assert cuts.losses
    assert cuts.corruptions == []


def test_a_rollback_journal_whose_deletion_is_synced_loses_nothing(tmp_path: Path) -> None:
    cuts = cut_power_throughout(tmp_path, PowerLossDisk("powerloss"), "delete", "extra", commits=8)
    assert cuts.losses == []
    assert cuts.corruptions == []


def test_an_unsynced_write_is_torn_at_sectors_and_nowhere_else(tmp_path: Path) -> None:
    disk = PowerLossDisk("powerloss")
    (tmp_path / "a.db").write_bytes(b"o" * PAGE)
    with open_file(disk, tmp_path / "a.db") as file:
        file.xWrite(b"n" * PAGE, 0)
        left = draw(disk, "a.db")
    assert {b"o" * PAGE, b"n" * PAGE} < set(left)
    for data in left:
        assert data is not None
        assert {data[start : start + SECTOR] for start in range(0, PAGE, SECTOR)} <= {b"o" * SECTOR, b"n" * SECTOR}


def test_a_later_write_of_a_sector_brings_the_earlier_one_along(tmp_path: Path) -> None:
    disk = PowerLossDisk("powerloss")
    (tmp_path / "a.db").write_bytes(b"ooo")
    with open_file(disk, tmp_path / "a.db") as file:
        file.xWrite(b"1", 0)
        file.xWrite(b"2", 2)
        assert set(draw(disk, "a.db")) == {b"ooo", b"1oo", b"1o2"}


def test_a_partial_write_wrecks_its_sector_only_on_a_disk_that_does_not_promise_otherwise(tmp_path: Path) -> None:
    disk = PowerLossDisk("powerloss", powersafe_overwrite=False)
    (tmp_path / "a.db").write_bytes(b"o" * PAGE)
    with open_file(disk, tmp_path / "a.db") as file:
        assert not file.xDeviceCharacteristics() & apsw.SQLITE_IOCAP_POWERSAFE_OVERWRITE
        file.xWrite(b"n", SECTOR)
        left = draw(disk, "a.db")
    assert any(data is not None and data[2 * SECTOR - 1 : 2 * SECTOR] != b"o" for data in left)
    assert {data and data[:SECTOR] for data in left} == {b"o" * SECTOR}


def test_unsynced_growth_may_be_missing_or_blank(tmp_path: Path) -> None:
    disk = PowerLossDisk("powerloss")
    (tmp_path / "a.db").write_bytes(b"o" * SECTOR)
    with open_file(disk, tmp_path / "a.db") as file:
        file.xWrite(b"n" * SECTOR, SECTOR)
        left = draw(disk, "a.db")
    assert set(left) == {b"o" * SECTOR, b"o" * SECTOR + b"n" * SECTOR, b"o" * SECTOR + bytes(SECTOR)}


def test_an_unsynced_truncation_happened_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    disk = PowerLossDisk("powerloss")
    (tmp_path / "a.db").write_bytes(b"o" * PAGE)
    with open_file(disk, tmp_path / "a.db") as file:
        file.xTruncate(SECTOR + 1)
        assert set(draw(disk, "a.db")) == {b"o" * PAGE, b"o" * (SECTOR + 1)}
        file.xSync(apsw.SQLITE_SYNC_NORMAL)
        assert set(draw(disk, "a.db")) == {b"o" * (SECTOR + 1)}


def test_a_file_is_there_for_good_only_when_a_journal_has_synced_the_folder(tmp_path: Path) -> None:
    disk = PowerLossDisk("powerloss")
    with (
        open_file(disk, tmp_path / "a.db") as database,
        open_file(disk, tmp_path / "a.db-wal", apsw.SQLITE_OPEN_WAL) as log,
    ):
        database.xWrite(b"n", 0)
        assert set(draw(disk, "a.db")) == {None, b"", b"\0", b"n"}
        database.xSync(apsw.SQLITE_SYNC_NORMAL)
        assert set(draw(disk, "a.db")) == {None, b"n"}
        log.xSync(apsw.SQLITE_SYNC_NORMAL)
        assert set(draw(disk, "a.db")) == {b"n"}


@pytest.mark.parametrize(("syncdir", "left"), [(False, {b"old", None}), (True, {None})])
def test_a_deleted_file_may_come_back_until_its_folder_is_synced(
    tmp_path: Path, syncdir: bool, left: set[bytes | None]
) -> None:
    disk = PowerLossDisk("powerloss")
    (tmp_path / "a.db").write_bytes(b"old")
    with open_file(disk, tmp_path / "a.db"):
        disk.xDelete(str(tmp_path / "a.db"), syncdir)
    assert set(draw(disk, "a.db")) == left


def test_the_power_can_be_cut_in_the_middle_of_a_sync(tmp_path: Path) -> None:
    disk = PowerLossDisk("powerloss")
    (tmp_path / "a.db").write_bytes(b"old")
    during: dict[str, dict[str, bytes]] = {}
    disk.on_event = lambda event, filename: during.update({event: disk.draw(nothing)})
    with open_file(disk, tmp_path / "a.db") as file:
        file.xWrite(b"new", 0)
        file.xSync(apsw.SQLITE_SYNC_NORMAL)
    assert during["sync"] == {"a.db": b"old"}
    assert disk.draw(nothing) == {"a.db": b"new"}


def test_a_writer_and_a_reader_share_the_log_while_a_third_thread_cuts_the_power(tmp_path: Path) -> None:
    disk = PowerLossDisk("powerloss")
    cuts = Cuts(disk, tmp_path / "images")
    seen: list[int] = []
    finished = threading.Event()

    def read() -> None:
        with closing(apsw.Connection(str(tmp_path / "a.db"), vfs=disk.name, flags=apsw.SQLITE_OPEN_READONLY)) as connection:
            while not finished.is_set():
                seen.append(count_commits(connection))
            seen.append(count_commits(connection))

    def cut() -> None:
        while not finished.is_set():
            cuts.cut("another thread")

    with open_journal(tmp_path, disk) as connection:
        threads = [threading.Thread(target=read), threading.Thread(target=cut)]
        for thread in threads:
            thread.start()
        for number in range(100):
            commit(connection, number)
            cuts.acknowledged += 1
            if number % 40 == 39:
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        finished.set()
        for thread in threads:
            thread.join()
        assert (tmp_path / "a.db-shm").exists()
        disk.image(tmp_path / "last", everything)
    assert sorted(path.name for path in (tmp_path / "last").iterdir()) == ["a.db", "a.db-wal"]
    assert recover(tmp_path / "last" / "a.db") == 100
    assert seen == sorted(seen)
    assert seen[-1] == 100
    assert cuts.losses == []
    assert cuts.corruptions == []


def test_a_failed_sync_surfaces_as_an_io_error_that_names_the_sync(tmp_path: Path) -> None:
    disk = FaultyDisk("faulty")
    with open_journal(tmp_path, disk) as connection:
        commit(connection, 0)
        disk.fail_syncs()
        with pytest.raises(apsw.IOError) as failure:
            commit(connection, 1)
        assert failure.value.extendedresult == apsw.SQLITE_IOERR_FSYNC
        disk.heal()
        commit(connection, 1)
    assert recover(tmp_path / "a.db") == 2


def test_a_single_sync_may_fail_after_others_passed(tmp_path: Path) -> None:
    disk = FaultyDisk("faulty")
    with open_journal(tmp_path, disk) as connection:
        commit(connection, 0)
        disk.fail_syncs(after=2, times=1)
        commit(connection, 1)
        commit(connection, 2)
        with pytest.raises(apsw.IOError):
            commit(connection, 3)
        commit(connection, 3)
        commit(connection, 4)
    assert recover(tmp_path / "a.db") == 5


@pytest.mark.parametrize(("kind", "failing"), [("wal", "commit"), ("db", "checkpoint")])
def test_syncs_fail_only_for_the_chosen_kind_of_file(tmp_path: Path, kind: Kind, failing: str) -> None:
    disk = FaultyDisk("faulty")
    failed: list[str] = []
    with open_journal(tmp_path, disk) as connection:
        commit(connection, 0)
        disk.fail_syncs(times=1, kinds=[kind])
        try:
            commit(connection, 1)
        except apsw.IOError:
            failed.append("commit")
        try:
            connection.wal_checkpoint()
        except apsw.IOError:
            failed.append("checkpoint")
    assert failed == [failing]


def test_a_commit_whose_sync_failed_may_be_there_after_the_restart_or_not(tmp_path: Path) -> None:
    lossy = PowerLossDisk("powerloss")
    disk = FaultyDisk("faulty", base=lossy.name)
    with open_journal(tmp_path, disk) as connection:
        commit(connection, 0)
        disk.fail_syncs(times=1)
        with pytest.raises(apsw.IOError):
            commit(connection, 1)
        lossy.image(tmp_path / "least", nothing)
        lossy.image(tmp_path / "most", everything)
    assert recover(tmp_path / "least" / "a.db") == 1
    assert recover(tmp_path / "most" / "a.db") == 2


def test_a_full_disk_refuses_a_commit_until_something_else_gives_way(tmp_path: Path) -> None:
    disk = FaultyDisk("faulty")
    ballast = tmp_path / "ballast"
    ballast.write_bytes(bytes(1_000_000))
    with open_journal(tmp_path, disk) as connection:
        disk.limit(tmp_path, 1_200_000)
        with pytest.raises(apsw.FullError):
            fill(connection)
        refused = count_commits(connection)
        assert refused > 0
        assert sum(path.stat().st_size for path in tmp_path.iterdir()) == 1_200_000
        with pytest.raises(apsw.FullError):
            commit(connection, refused)
        ballast.unlink()
        commit(connection, refused)
    assert recover(tmp_path / "a.db") == refused + 1
