"""The files of the workspace that a command names.  An approval is bound to their content.

Without a sandbox, these files determine what a command does.  A name that only the shell can compute is not found here, so a
command with a quote, a variable, a substitution or a change of folder is approved for once at most.
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
import shlex
import stat
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path, PurePosixPath

from holdfast.agent.tools.workspace import Workspace
from holdfast.errors import Rejected

NAMES_MAX = 1_000
FILES_MAX = 1_000
FOLDERS_MAX = 20
# Globs match at most this many paths, with the folders on the way.
MATCHES_MAX = 20_000
# A larger file is identified by its size and times.
HASHED_MAX_BYTES = 1_000_000
_TOO_MANY = f"the command names more than {NAMES_MAX} things; write it to a script, and run that"
_TOO_MANY_FOLDERS = f"the command may look into more than {FOLDERS_MAX} folders; write it to a script, and run that"

_PIECE = re.compile(r"[^\s'\"`;|&<>(){}=:,$\\]+")
_QUOTES = re.compile(r"['\"\\]")
# Syntax that computes or hides a name, so that only the shell or the program knows it.
_ONLY_THE_SHELL_KNOWS = re.compile(r"[^\w\s./,:+%@=*?\[\]&|;<>-]|<<|[*?\]][^\s/]*/|\b(?:eval|xargs|cd|pushd)\b")
# `env -C a`, also as `-Ca`, `-iC a`, `-S-Ca` or `--ch=a`: names are then relative to another folder.
_CHANGES_FOLDER = re.compile(r"-[a-z0-9]*C|--c(?:h(?:d(?:ir?)?)?)?\b")


def is_plain(command: str) -> bool:
    """Return whether every file that a command names can be found by its name."""
    return not _ONLY_THE_SHELL_KNOWS.search(command) and not _CHANGES_FOLDER.search(command)


def digests(command: str, workdir: Path, workspace: Workspace, path: str = "") -> Mapping[str, str]:
    """Return the digests of the files that a command names, by their paths in the workspace.  It blocks on the disk.

    `path` is the search path of programs.  Raises `Rejected` if there are too many files.
    """
    names = _names(command)
    if len(names) > NAMES_MAX:
        raise Rejected(_TOO_MANY)
    folders = dict.fromkeys((*_folders(names, workdir, workspace), *_programs(path, workspace)))
    found: dict[str, str] = {}
    matches = 0
    for folder, name in product(folders, names):
        for number, each in enumerate(_matching(folder, name)):
            matches += number > 0
            key = _key(each, workspace)
            if key not in found and (digest := _digest(each, workspace)):
                found[key] = digest
            if len(found) > FILES_MAX or matches > MATCHES_MAX:
                raise Rejected(_TOO_MANY)
    return found


def _names(command: str) -> list[str]:
    words = [*_PIECE.findall(command), *_PIECE.findall(_QUOTES.sub("", command))]
    try:
        words += shlex.split(command)
    except ValueError:
        # The shell rejects it as well, or continues reading.
        words += command.split()
    return [*dict.fromkeys(word for word in words if "\0" not in word and len(word) < os.pathconf("/", "PC_PATH_MAX"))]


def _folders(names: list[str], workdir: Path, workspace: Workspace) -> list[Path]:
    """Return the folders that names may be relative to: the working folder, and folders that are named, recursively."""
    folders = [workdir]
    places = {workdir.resolve()}
    # The list grows while it is walked, because a command can change the folder more than once.
    for folder, name in ((folder, name) for folder in folders for name in names):
        place = _place(folder / name, workspace)
        if place is None or place in places:
            continue
        places.add(place)
        folders.append(folder / name)
        if len(folders) > FOLDERS_MAX:
            raise Rejected(_TOO_MANY_FOLDERS)
    return folders


def _place(path: Path, workspace: Workspace) -> Path | None:
    """Return the resolved path of a folder of the workspace; None for everything else."""
    try:
        place = path.resolve()
        return place if place.is_dir() and place.is_relative_to(workspace.root) else None
    except (OSError, RuntimeError):
        return None


def _programs(path: str, workspace: Workspace) -> Iterator[Path]:
    yield from (Path(each) for each in path.split(os.pathsep) if each and _is_inside(Path(each), workspace))


def _matching(folder: Path, name: str) -> Iterator[Path]:
    """Yield the paths that a name can mean in a folder: first literally, then the matches of its globs, part by part."""
    yield folder / name
    found = [folder] if glob.has_magic(name) else []
    for part in PurePosixPath(name).parts:
        before, found = found, list[Path]()
        for each in (path for here in before for path in _matching_part(here, part)):
            found.append(each)
            yield each


def _matching_part(folder: Path, part: str) -> Iterator[Path]:
    if glob.has_magic(part):
        # `glob` follows links as the shell does; `Path.glob` does not.
        yield from (folder / each for each in glob.iglob(part, root_dir=folder, include_hidden=True))  # noqa: PTH207
    else:
        yield folder / part


def _is_inside(path: Path, workspace: Workspace) -> bool:
    try:
        return path.resolve().is_relative_to(workspace.root)
    except (OSError, RuntimeError):
        return False


def _key(path: Path, workspace: Workspace) -> str:
    """Return a path relative to the workspace.  A path with `..` is resolved, because a link may come before it."""
    try:
        return os.path.relpath(path.resolve() if ".." in path.parts else path, workspace.root)
    except (OSError, RuntimeError):
        return str(path)


def _digest(path: Path, workspace: Workspace) -> str:
    """Return the digest of a file of the workspace; empty if it is not a file or lies elsewhere."""
    try:
        place = path.resolve()
        if not path.is_relative_to(workspace.root) and not place.is_relative_to(workspace.root):
            return ""
        found = place.stat()
        if not stat.S_ISREG(found.st_mode):
            return ""
        if not place.is_relative_to(workspace.root) or found.st_size > HASHED_MAX_BYTES:
            # A link in the workspace can be changed to point elsewhere.
            return f"{place} {found.st_size} {found.st_ctime_ns} {found.st_ino}"
        return hashlib.sha256(place.read_bytes()).hexdigest()
    except (OSError, RuntimeError, ValueError):
        return ""
