"""A cache of text files, which are read again only when they have changed."""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from holdfast.agent.toolbox import shortened
from holdfast.agent.tools.workspace import Workspace
from holdfast.errors import Rejected

# The cache is cleared at this many files.
CACHED_MAX = 500
# A character takes four bytes at most.
_BYTES_PER_CHAR = 4
# Non-blocking, because it may be a pipe without a writer.
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


class TextFiles:
    """Reads and caches files.  It blocks on the disk: call it from a thread."""

    def __init__(self) -> None:
        self._cached: dict[tuple[Path, int, Path | None], tuple[tuple[int, ...], str]] = {}

    def read(self, path: Path, chars_max: int, inside: Path | None = None) -> str:
        """Return a file's text, shortened if it is too long; empty if it does not exist or lies outside `inside`."""
        key = (path, chars_max, inside)
        try:
            known = self._cached.get(key)
            if known is None or known[0] != _version(path.stat()):
                with _opened(path, inside) as file:
                    found = os.fstat(file)
                    if not stat.S_ISREG(found.st_mode):
                        return ""
                    with os.fdopen(file, "rb", closefd=False) as opened:
                        raw = opened.read(chars_max * _BYTES_PER_CHAR)
                known = _version(found), shortened(raw.decode("utf-8", "replace"), chars_max)
                if len(self._cached) >= CACHED_MAX:
                    self._cached.clear()
                self._cached[key] = known
        except (OSError, Rejected):
            # It is missing, not readable, outside the folder, or was just removed.
            return ""
        return known[1]


def _version(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size


@contextmanager
def _opened(path: Path, inside: Path | None) -> Generator[int]:
    """Open a file; with `inside`, without following a link out of that folder."""
    if inside is None:
        file = os.open(path, _READ)
    else:
        workspace = Workspace(inside)
        place = workspace.resolve(str(path))
        with workspace.folder(place.parent) as folder:
            file = os.open(place.name, _READ | os.O_NOFOLLOW, dir_fd=folder)
    try:
        yield file
    finally:
        os.close(file)


def entries(parent: Path) -> list[Path]:
    """Return the entries of a folder, sorted; empty if it does not exist."""
    try:
        return sorted(parent.iterdir())
    except OSError:
        return []
