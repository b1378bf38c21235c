"""Text files that are read again and again, but only when they have changed."""

from __future__ import annotations

from pathlib import Path

from holdfast.agent.toolbox import shortened

# Nobody keeps more than this to read to a model at every turn.
CACHED_MAX = 500
# A character takes four bytes at most.
_BYTES_PER_CHAR = 4


class TextFiles:
    """Reads, and remembers what did not change.  It waits for the disk: call it from a thread."""

    def __init__(self) -> None:
        self._cached: dict[tuple[Path, int, Path | None], tuple[tuple[int, ...], str]] = {}

    def read(self, path: Path, chars_max: int, inside: Path | None = None) -> str:
        """Return a file's text, shortened where it is too long; nothing where there is none, or it lies elsewhere."""
        key = (path, chars_max, inside)
        try:
            stat = path.stat()
            version = (stat.st_dev, stat.st_ino, stat.st_mtime_ns, stat.st_size)
            known = self._cached.get(key)
            if known is None or known[0] != version:
                if inside is not None and not path.resolve().is_relative_to(inside.resolve()):
                    return ""
                with path.open("rb") as file:
                    raw = file.read(chars_max * _BYTES_PER_CHAR)
                known = version, shortened(raw.decode("utf-8", "replace"), chars_max)
                if len(self._cached) >= CACHED_MAX:
                    self._cached.clear()
                self._cached[key] = known
        except OSError:
            # Not there, not ours to read, or gone meanwhile: there is nothing to read.
            return ""
        return known[1]


def entries(parent: Path) -> list[Path]:
    """Return what is in a folder, by name; nothing where there is none."""
    try:
        return sorted(parent.iterdir())
    except OSError:
        return []
