"""Files of the workspace that a command names: an approval is bound to what they contain.

Without a sandbox a command is whatever these files say.  A name that only the shell can work out is not found here, so a
command with a quote, a variable or a substitution is approved once at most.
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
import shlex
import stat
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from holdfast.agent.tools.workspace import Workspace
from holdfast.errors import Rejected

NAMES_MAX = 1_000
FILES_MAX = 1_000
FOLDERS_MAX = 20
# What is larger goes by its size and its times.
HASHED_MAX_BYTES = 1_000_000
_TOO_MANY = f"the command names more than {NAMES_MAX} things; write it to a script, and run that"

_PIECE = re.compile(r"[^\s'\"`;|&<>(){}=:,$\\]+")
_QUOTES = re.compile(r"['\"\\]")
# What a name can be made of, or hidden behind, so that only the shell or the program knows it in the end.
_ONLY_THE_SHELL_KNOWS = re.compile(r"[^\w\s./,:+%@=*?\[\]&|;<>-]|<<|[*?\]][^\s/]*/|\b(?:eval|xargs|cd|pushd)\b")


def is_plain(command: str) -> bool:
    """Return whether every file that a command names can be found by its name."""
    return not _ONLY_THE_SHELL_KNOWS.search(command)


def digests(command: str, workdir: Path, workspace: Workspace, path: str = "") -> Mapping[str, str]:
    """Return the digests of the files that a command names, by their paths from the workspace on.  It waits for the disk.

    `path` is where programs are looked for.  Raises `Rejected` where there are too many to look at.
    """
    names = _names(command)
    if len(names) > NAMES_MAX:
        raise Rejected(_TOO_MANY)
    folders = dict.fromkeys((workdir, *_programs(path, workspace)))
    for name in names:
        if len(folders) < FOLDERS_MAX and (folder := workdir / name).is_dir() and _is_inside(folder, workspace):
            folders[folder] = None
    found: dict[str, str] = {}
    for each in (path for folder in folders for name in names for path in _matching(folder, name)):
        if digest := _digest(each, workspace):
            found[os.path.relpath(each, workspace.root)] = digest
        if len(found) > FILES_MAX:
            raise Rejected(_TOO_MANY)
    return found


def _names(command: str) -> list[str]:
    words = [*_PIECE.findall(command), *_PIECE.findall(_QUOTES.sub("", command))]
    try:
        words += shlex.split(command)
    except ValueError:
        # The shell will not understand it either, or reads more of it than we do.
        words += command.split()
    return [*dict.fromkeys(word for word in words if "\0" not in word and len(word) < os.pathconf("/", "PC_PATH_MAX"))]


def _programs(path: str, workspace: Workspace) -> Iterator[Path]:
    yield from (Path(each) for each in path.split(os.pathsep) if each and _is_inside(Path(each), workspace))


def _matching(folder: Path, name: str) -> Iterator[Path]:
    if glob.has_magic(name) and not glob.has_magic(name.rpartition("/")[0]):
        # As the shell does it, and not as `Path` does: that follows other links.
        found = glob.iglob(name, root_dir=folder, include_hidden=True)  # noqa: PTH207
        yield from (folder / each for each in islice(found, FILES_MAX + 1))
    yield folder / name


def _is_inside(path: Path, workspace: Workspace) -> bool:
    try:
        return path.resolve().is_relative_to(workspace.root)
    except (OSError, RuntimeError):
        return False


def _digest(path: Path, workspace: Workspace) -> str:
    """Return what a file of the workspace contains; nothing for what is no file, or lies elsewhere."""
    try:
        place = path.resolve()
        if not path.is_relative_to(workspace.root) and not place.is_relative_to(workspace.root):
            return ""
        found = place.stat()
        if not stat.S_ISREG(found.st_mode):
            return ""
        if not place.is_relative_to(workspace.root) or found.st_size > HASHED_MAX_BYTES:
            # A link in the workspace can be turned to something else.
            return f"{place} {found.st_size} {found.st_ctime_ns} {found.st_ino}"
        return hashlib.sha256(place.read_bytes()).hexdigest()
    except (OSError, RuntimeError, ValueError):
        return ""
