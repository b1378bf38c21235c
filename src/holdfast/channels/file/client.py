"""Appends lines to a file so that a line that was cut off damages no other, and reads them back."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from holdfast.errors import Unavailable


def append(path: Path, line: bytes) -> None:
    """Append a line and sync it.  Raises `Unavailable` if the file cannot be opened."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise Unavailable(f"cannot write {path.name}: {error.strerror}") from error
    try:
        # An earlier write may have been cut off in the middle of its line.
        os.write(file, b"" if _ends_whole(file) else b"\n")
        os.write(file, line)
        os.fsync(file)
    finally:
        os.close(file)


def lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file; none if it is missing."""
    try:
        with path.open("rb") as file:
            yield from file
    except FileNotFoundError:
        return


def _ends_whole(file: int) -> bool:
    size = os.fstat(file).st_size
    return not size or os.pread(file, 1, size - 1) == b"\n"
