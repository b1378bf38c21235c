"""The write-ahead log of SQLite, as far as it has to be told apart from what is none."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

from holdfast.store.files import log_of

_HEADER_BYTES = 32
_MAGIC = (0x377F0682, 0x377F0683)


def keep_unreadable_wal(database: Path) -> tuple[str, ...]:
    """Set aside a log that SQLite cannot read, before SQLite overwrites it; returns a description of the damage.

    SQLite takes a log whose header it cannot read for an empty one.  Commits that are only in it are lost to the store, so
    the file is kept for people to look at.
    """
    log = log_of(database)
    if not is_unreadable(log):
        return ()
    kept = log.with_name(f"{log.name}.unreadable")
    shutil.copyfile(log, kept)
    kept.chmod(0o600)
    return (f"the write-ahead log could not be read, so that what was written last may be missing; it is kept as {kept}",)


def is_unreadable(log: Path) -> bool:
    """Return whether there is a log that SQLite would take for an empty one."""
    try:
        with log.open("rb") as file:
            header = file.read(_HEADER_BYTES)
    except OSError:
        return False
    return bool(header) and not _is_readable(header)


def _is_readable(header: bytes) -> bool:
    if len(header) < _HEADER_BYTES or (magic := int.from_bytes(header[:4])) not in _MAGIC:
        return False
    order = ">" if magic & 1 else "<"
    first = second = 0
    for left, right in struct.iter_unpack(f"{order}II", header[:24]):
        first = (first + left + second) & 0xFFFFFFFF
        second = (second + right + first) & 0xFFFFFFFF
    return (first, second) == struct.unpack(">II", header[24:])
