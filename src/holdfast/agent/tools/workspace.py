"""The workspace: resolves paths inside it, and opens files without following links that lead outside."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TypeVar

from holdfast.errors import DiskFull, NotFound, Rejected, Unavailable

Result = TypeVar("Result")

# The folder of uploaded files.
UPLOADS = "uploads"

# The kernel's own limit.
LINKS_MAX = 40
PATH_MAX_CHARS = 4_096
SNIFFED_BYTES = 8_192


class Workspace:
    """The folder that an agent works in."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        # Also as it is spelled in the configuration, before links are resolved.
        self._spellings = {self.root.parts, Path(os.path.abspath(root)).parts}  # noqa: PTH100 - Path has no lexical form.

    def resolve(self, text: str) -> Path:
        """Return the absolute path inside the workspace that a path means, with all links resolved.

        It need not exist.  Raises `Rejected` if the path leads outside.
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
            target = _link(here)
            if target is None:
                found.append(part)
                continue
            links += 1
            if links > LINKS_MAX:
                raise Rejected(f"{text!r} goes through more than {LINKS_MAX} symbolic links")
            if PurePosixPath(target).is_absolute():
                found.clear()
            waiting += reversed(self._inside(target, text))
        return self.root.joinpath(*found)

    def is_handed_in(self, text: str) -> bool:
        """Return whether a path names an upload, literally or through links.  Raises `Rejected` if it leads outside."""
        as_written = Path(os.path.normpath(self.root / text))
        return any(path.is_relative_to(self.root / UPLOADS) for path in (as_written, self.resolve(text)))

    def shown(self, path: Path) -> str:
        """Return a path relative to the workspace, for the model."""
        return path.relative_to(self.root).as_posix()

    @contextmanager
    def folder(self, path: Path, *, make: bool = False) -> Generator[int]:
        """Open a folder of the workspace; no rename or link can move its descriptor elsewhere."""
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        held = os.open(self.root, flags)
        try:
            for part in path.relative_to(self.root).parts:
                if make:
                    _make_folder(part, held)
                inner = os.open(part, flags, dir_fd=held)
                os.close(held)
                held = inner
            yield held
        finally:
            os.close(held)

    def _inside(self, path: str, text: str) -> list[str]:
        """Return the components of a path relative to the workspace; `text` is the original path, for errors."""
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


def _link(path: Path) -> str | None:
    """Return the target of a link; None if it is not a link."""
    try:
        return str(path.readlink())
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ENOENT, errno.ENOTDIR):
            return None
        raise Rejected(f"{path.name!r} cannot be looked at: {error.strerror}") from error


def _make_folder(name: str, folder: int) -> None:
    try:
        os.mkdir(name, dir_fd=folder)
    except FileExistsError:
        return


async def in_thread(work: Callable[[], Result]) -> Result:
    """Run file operations in a thread, with `OSError` translated."""
    return await asyncio.to_thread(translating_errors, work)


def translating_errors(work: Callable[[], Result]) -> Result:
    """Run file operations with `OSError` translated."""
    try:
        return work()
    except OSError as error:
        raise _translated(error) from error


def _translated(error: OSError) -> NotFound | Rejected | Unavailable:
    name = error.filename if isinstance(error.filename, str) else "it"
    match error.errno:
        case errno.ENOENT:
            return NotFound(f"{name!r} does not exist in the workspace; use search_files with mode names to see what does")
        case errno.ELOOP:
            return Rejected(f"{name!r} is a symbolic link that was changed meanwhile; try again")
        case errno.ENOTDIR:
            return Rejected(f"{name!r} is no folder, or a symbolic link that was changed meanwhile")
        case errno.ENOSPC | errno.EDQUOT:
            return DiskFull(f"{name!r} could not be written: the disk is full")
        case errno.ENAMETOOLONG:
            return Rejected(f"{name!r} is too long for a name")
        case _:
            return Rejected(f"{name!r}: {error.strerror}")


def is_binary(content: bytes) -> bool:
    """Return whether the beginning of a file is binary."""
    marked = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    return not marked and b"\0" in content[:SNIFFED_BYTES]
