"""Files of the workspace: read, written and edited, and never anything outside of it."""

from __future__ import annotations

import os
import stat
from pathlib import Path, PurePosixPath

from holdfast.errors import Rejected

# As many as the kernel itself follows.
LINKS_MAX = 40
PATH_MAX_CHARS = 4096


class Workspace:
    """The one folder that an agent works in."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        # The same folder, as whoever configured it spells it.
        self._spellings = {self.root.parts, Path(os.path.abspath(root)).parts}  # noqa: PTH100 - Path has no lexical form.

    def resolve(self, text: str) -> Path:
        """Return the place inside the workspace that a path means, with no link left in it.

        The place need not exist.  Raises `Rejected` where the path leads outside.
        """
        if "\0" in text:
            raise Rejected("a path cannot contain a NUL character")
        if len(text) > PATH_MAX_CHARS:
            raise Rejected(f"a path has at most {PATH_MAX_CHARS} characters")
        waiting = [*reversed(self._inside(text, text))]
        found: list[str] = []
        links = 0
        while waiting:
            part = waiting.pop()
            if part == "..":
                if not found:
                    raise self._outside(text)
                found.pop()
                continue
            here = self.root.joinpath(*found, part)
            if not _is_link(here):
                found.append(part)
                continue
            links += 1
            if links > LINKS_MAX:
                raise Rejected(f"{text!r} goes through more than {LINKS_MAX} symbolic links")
            target = str(here.readlink())
            if PurePosixPath(target).is_absolute():
                found.clear()
            waiting += reversed(self._inside(target, text))
        return self.root.joinpath(*found)

    def shown(self, path: Path) -> str:
        """Return a path as a model should read it: relative to the workspace."""
        return path.relative_to(self.root).as_posix()

    def _inside(self, path: str, text: str) -> list[str]:
        """Return the components of a path, counted from the workspace; `text` is what was asked for."""
        if path == "~" or path.startswith("~/"):
            raise self._outside(text)
        pure = PurePosixPath(path)
        if not pure.is_absolute():
            return [*pure.parts]
        for spelling in self._spellings:
            if pure.parts[: len(spelling)] == spelling:
                return [*pure.parts[len(spelling) :]]
        raise self._outside(text)

    def _outside(self, text: str) -> Rejected:
        return Rejected(f"{text!r} is outside the workspace; use a path inside {self.root}, relative to it")


def _is_link(path: Path) -> bool:
    try:
        return stat.S_ISLNK(path.lstat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise Rejected(f"{path.name!r} cannot be looked at: {error.strerror}") from error
