"""Compacting: the file of an embedded store is written anew, without what is free in it, while no gateway runs."""

# apsw's stubs name a type that Python 3.11 lacks.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import os
import shutil
from pathlib import Path

import apsw

from holdfast.errors import DiskFull, NotFound, StoreDamaged, Unavailable
from holdfast.store.files import fresh_of, log_of, refuse_stump, size_of
from holdfast.store.home import Ownership
from holdfast.store.wal import is_unreadable


def compact(path: Path) -> tuple[int, int]:
    """Write a store anew, so that from now on it gives space back by itself; returns its bytes before and after.

    Killed at any moment, it leaves the old file or the new one.  Raises `Owned` while a gateway has it.
    """
    refuse_stump(path)
    if not path.exists():
        raise NotFound(f"there is no store at {path} yet")
    ownership = Ownership(path.with_suffix(".lock"))
    try:
        if is_unreadable(log_of(path)):
            # SQLite would delete it.
            raise StoreDamaged(path, "its write-ahead log cannot be read")
        before = size_of(path) + size_of(log_of(path))
        if shutil.disk_usage(path.parent).free < before:
            raise _no_room(path, before)
        _replace(path, _copied(path, before))
        return before, path.stat().st_size
    finally:
        fresh_of(path).unlink(missing_ok=True)
        ownership.release()


def _no_room(path: Path, needed: int) -> DiskFull:
    return DiskFull(f"compacting {path} needs {needed} bytes of free space beside it; nothing was changed")


def _copied(path: Path, needed: int) -> Path:
    """Return a copy of a store without its free pages.  The store itself has all its commits in its file then."""
    fresh = fresh_of(path)
    fresh.unlink(missing_ok=True)
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL").fetchall()
        connection.execute("VACUUM INTO ?", (str(fresh),)).fetchall()
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except apsw.BusyError as error:
        raise Unavailable(f"another command reads {path}; try again when it has ended") from error
    except apsw.FullError as error:
        raise _no_room(path, needed) from error
    except (apsw.CorruptError, apsw.NotADBError, apsw.IOError) as error:
        raise StoreDamaged(path, error) from error
    finally:
        connection.close()
    return fresh


def _replace(path: Path, fresh: Path) -> None:
    if log_of(path).exists():
        # Its frames would be taken for those of the new file.
        raise Unavailable(f"another command reads {path}; try again when it has ended")
    fresh.chmod(0o600)
    _sync(fresh)
    fresh.replace(path)
    _sync(path.parent)


def _sync(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
