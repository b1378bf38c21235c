"""Text files that are read again and again, but only when they have changed."""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from holdfast.agent.toolbox import shortened
from holdfast.agent.tools.workspace import Workspace
from holdfast.errors import Rejected

# Nobody keeps more than this to read to a model at every turn.
CACHED_MAX = 500
# A character takes four bytes at most.
_BYTES_PER_CHAR = 4
# Without waiting, should it be a pipe that nobody writes to.
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


class TextFiles:
    """Reads, and remembers what did not change.  It waits for the disk: call it from a thread."""

    def __init__(self) -> None:
        self._cached: dict[tuple[Path, int, Path | None], tuple[tuple[int, ...], str]] = {}

    def read(self, path: Path, chars_max: int, inside: Path | None = None) -> str:
        """Return a file's text, shortened where it is too long; nothing where there is none, or it lies elsewhere."""
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
            # Not there, not ours to read, led elsewhere, or gone meanwhile: there is nothing to read.
            return ""
        return known[1]


def _version(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size


@contextmanager
def _opened(path: Path, inside: Path | None) -> Generator[int]:
    """Hold a file open; with `inside`, one that no link can have led out of that folder, however fast it was put there."""
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
    """Return what is in a folder, by name; nothing where there is none."""
    try:
        return sorted(parent.iterdir())
    except OSError:
        return []
