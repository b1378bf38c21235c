"""The files of an embedded store, looked at before SQLite opens them: what it would take for new, it writes over."""

from __future__ import annotations

from pathlib import Path

from holdfast.errors import StoreDamaged, StoreRefused

# Of the file itself, before its first page has anything else.
HEADER_BYTES = 100
_MAGIC = b"SQLite format 3\0"


def log_of(database: Path) -> Path:
    """Return where the write-ahead log of a database is."""
    return database.with_name(f"{database.name}-wal")


def ballast_of(database: Path) -> Path:
    """Return where the room is kept that new work never gets."""
    return database.with_suffix(".ballast")


def fresh_of(database: Path) -> Path:
    """Return where a database is written anew before it takes the place of the old one."""
    return database.with_name(f"{database.name}.compact")


def size_of(path: Path) -> int:
    """Return how many bytes a file has; one that is not there has none."""
    return path.stat().st_size if path.exists() else 0


def refuse_stump(path: Path) -> None:
    """Refuse what is too short to be a store: SQLite would take a very short file for new, and write over it."""
    if path.is_dir():
        return
    if size_of(path) == 0:
        _refuse_remains(path)
    beginning = path.read_bytes() if 0 < size_of(path) < HEADER_BYTES else b""
    if beginning and _MAGIC.startswith(beginning[: len(_MAGIC)]):
        raise StoreDamaged(path, f"it has {len(beginning)} bytes")
    if beginning:
        raise not_a_store(path)


def _refuse_remains(path: Path) -> None:
    """Refuse a file that is empty or gone if there was more of it: beside such a file SQLite deletes the log."""
    found = "it is empty" if path.exists() else "it is missing"
    if size_of(log_of(path)):
        raise StoreDamaged(path, f"{found}, and its write-ahead log is not")
    # Both are made only after the first page was written.  If the file itself was removed, a new store is wanted.
    if path.exists() and ballast_of(path).exists():
        raise StoreDamaged(path, found)


def not_a_store(path: Path) -> StoreRefused:
    return StoreRefused(
        f"{path} is not a Holdfast store, or its beginning is damaged; "
        "restore the last backup, move it away or choose another --home"
    )
