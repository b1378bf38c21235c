"""Searching the workspace, by what files contain or what they are called."""

from __future__ import annotations

import asyncio
import os
import re
import stat
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from holdfast.agent.tools.port import Site, StructTool, Tool
from holdfast.agent.tools.workspace import Workspace, in_thread, is_binary
from holdfast.core.effects import Effect
from holdfast.errors import HoldfastError, Rejected, Unavailable

RESULTS_MAX = 500
FILES_MAX = 50_000
# Beyond these, what was found so far is returned with a note.
SEARCH_MAX_S = 10.0
SEARCH_MAX_BYTES = 500_000_000
FILE_MAX_BYTES = 5_000_000
# An expression is only tried on so much of a line: what takes exponentially long on more would take the machine.
LINE_MAX_CHARS = 1_000
SHOWN_MAX_CHARS = 300
PATTERN_MAX_CHARS = 500
DEPTH_MAX = 50
REFUSED = 2
IGNORE_LINES_MAX = 500
# Folders that hold what nobody wrote.
SKIPPED = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", ".tox", ".mypy_cache", ".ruff_cache"})
# With so few repetitions, and none of a group, a line is soon looked through.
REPETITIONS_MAX = 2
# What another process needs on top, to begin and to end.
GRACE_S = 5.0
_REPETITION = re.compile(r"[*+?{]")
_REPEATED_GROUP = re.compile(r"\)\s*[*+?{]")


class SearchFiles(msgspec.Struct):
    """What to look for."""

    pattern: Annotated[
        str,
        msgspec.Meta(
            min_length=1,
            max_length=PATTERN_MAX_CHARS,
            description="A regular expression for mode content; for mode names a glob such as *.py, or a part of the name.",
        ),
    ]
    path: Annotated[str, msgspec.Meta(description="The folder or file to search, relative to the workspace.")] = "."
    glob: Annotated[str, msgspec.Meta(description="Only files whose name or path matches this, such as *.py.")] = ""
    mode: Annotated[
        Literal["content", "names"], msgspec.Meta(description="Search in what files contain, or in their names.")
    ] = "content"
    limit: Annotated[int, msgspec.Meta(ge=1, le=RESULTS_MAX, description="How many results to return at most.")] = 100


class _Job(msgspec.Struct):
    """A search that is made in a process of its own."""

    root: str
    args: SearchFiles
    search_max_s: float


def search_tool(workspace: Workspace) -> Tool:
    """Return the tool that searches files."""
    search = Search(workspace)
    return StructTool(
        name="search_files",
        description="Search the files of the workspace: lines that match a regular expression (mode content), or files "
        "by name (mode names). Skips binary files, .git, dependencies, and what .gitignore names.",
        args=SearchFiles,
        effect=Effect.PURE,
        action=search.find,
    )


@dataclass(slots=True, kw_only=True)
class _Effort:
    """What a search has cost, and why it ended before its end."""

    deadline: float
    files: int = 0
    bytes: int = 0
    cut: str = ""
    ignored: list[str] = field(default_factory=list[str])

    @property
    def is_spent(self) -> bool:
        if self.files > FILES_MAX:
            self.cut = f"more than {FILES_MAX} files"
        elif self.bytes > SEARCH_MAX_BYTES:
            self.cut = f"more than {SEARCH_MAX_BYTES} bytes"
        elif time.monotonic() > self.deadline:
            self.cut = f"more than {SEARCH_MAX_S:.0f} s"
        return bool(self.cut)


class Search:
    """Searches, off the loop."""

    def __init__(self, workspace: Workspace, search_max_s: float = SEARCH_MAX_S, grace_s: float = GRACE_S) -> None:
        self._workspace = workspace
        self._search_max_s = search_max_s
        self._grace_s = grace_s

    async def find(self, args: SearchFiles, _site: Site) -> str:
        if args.mode == "names" or _is_quick(args.pattern):
            return await in_thread(lambda: self.result(args))
        _compiled(args.pattern)
        # No thread can be stopped while an expression is at work, and none else would run meanwhile.
        return await self._elsewhere(args)

    async def _elsewhere(self, args: SearchFiles) -> str:
        """Search in a process of its own, which is ended when its time is up."""
        job = msgspec.json.encode(_Job(root=str(self._workspace.root), args=args, search_max_s=self._search_max_s))
        # Nothing of the workspace can stand in the way of the program itself.
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-m", "holdfast.agent.tools.search"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={},
        )
        try:
            async with asyncio.timeout(self._search_max_s + self._grace_s):
                said, _ = await child.communicate(job)
        except TimeoutError:
            raise Rejected(f"the expression takes longer than {self._search_max_s:.0f} s; write a simpler one") from None
        finally:
            if child.returncode is None:
                child.kill()
                await child.wait()
        if child.returncode == REFUSED:
            raise Rejected(said.decode("utf-8", "replace"))
        if child.returncode != 0:
            raise Unavailable(f"the search ended with status {child.returncode}; try again, or write a simpler expression")
        return said.decode("utf-8", "replace")

    def result(self, args: SearchFiles) -> str:
        """Search, here and now."""
        expression = _compiled(args.pattern) if args.mode == "content" else None
        start = self._workspace.resolve(args.path)
        effort = _Effort(deadline=time.monotonic() + self._search_max_s)
        found: list[str] = []
        for path, file in self._files(start, effort):
            shown = self._workspace.shown(path)
            if args.glob and not _matches(shown, args.glob):
                continue
            if expression is None:
                found += [shown] if _matches(shown, args.pattern) or args.pattern in path.name else []
            else:
                found += _lines(file, shown, expression, effort, args.limit - len(found))
            if len(found) >= args.limit:
                effort.cut = effort.cut or f"{args.limit} results; narrow the search, or raise the limit"
                break
        return _told(found, args, effort)

    def _files(self, start: Path, effort: _Effort) -> Iterator[tuple[Path, int]]:
        """Yield every file below a place, with a folder's descriptor to open it from."""
        if start != self._workspace.root:
            with self._workspace.folder(start.parent) as folder:
                mode = os.stat(start.name, dir_fd=folder, follow_symlinks=False).st_mode
                if stat.S_ISREG(mode):
                    yield start, folder
                    return
                if not stat.S_ISDIR(mode):
                    raise Rejected(f"{self._workspace.shown(start)!r} is neither a folder nor an ordinary file")
        for parent in reversed([start, *start.parents][1:] if start != self._workspace.root else []):
            if parent.is_relative_to(self._workspace.root):
                with self._workspace.folder(parent) as folder:
                    effort.ignored += _ignores(folder, self._prefix(parent))
        with self._workspace.folder(start) as folder:
            for name, inner in _walk(folder, self._prefix(start), effort, 0):
                yield self._workspace.root / name, inner

    def _prefix(self, folder: Path) -> str:
        return "" if folder == self._workspace.root else f"{self._workspace.shown(folder)}/"


def _walk(folder: int, prefix: str, effort: _Effort, depth: int) -> Iterator[tuple[str, int]]:
    """Yield the files below an open folder, by descriptors all the way down: no link is ever followed."""
    with os.scandir(folder) as entries:
        here = sorted(entries, key=lambda entry: entry.name)
    before = len(effort.ignored)
    effort.ignored += _ignores(folder, prefix) if any(entry.name == ".gitignore" for entry in here) else []
    for entry in here:
        name = f"{prefix}{entry.name}"
        if effort.is_spent:
            break
        is_folder = entry.is_dir(follow_symlinks=False)
        if _is_ignored(name, is_folder=is_folder, rules=effort.ignored):
            continue
        if is_folder and entry.name not in SKIPPED and depth < DEPTH_MAX:
            try:
                inner = os.open(entry.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            except OSError:
                # Gone, replaced, or not for us: the search goes on without it.
                continue
            try:
                yield from _walk(inner, f"{name}/", effort, depth + 1)
            finally:
                os.close(inner)
        elif entry.is_file(follow_symlinks=False):
            effort.files += 1
            yield name, folder
    del effort.ignored[before:]


def _ignores(folder: int, prefix: str) -> list[str]:
    """Return the simple rules of a .gitignore: names anywhere, paths from the workspace on, but no exceptions."""
    content = _content(".gitignore", folder) or b""
    lines = [line.strip() for line in content.decode("utf-8", "replace").splitlines()]
    rules = [line for line in lines if line and line[0] not in "#!"][:IGNORE_LINES_MAX]
    return [f"/{prefix}{rule.lstrip('/')}" if "/" in rule.rstrip("/") else rule for rule in rules]


def _is_ignored(name: str, *, is_folder: bool, rules: list[str]) -> bool:
    last = name.rpartition("/")[2]
    for rule in rules:
        if rule.endswith("/") and not is_folder:
            continue
        bare = rule.rstrip("/")
        if fnmatchcase(f"/{name}" if bare.startswith("/") else last, bare):
            return True
    return False


def _matches(shown: str, pattern: str) -> bool:
    return (
        fnmatchcase(shown, pattern)
        or fnmatchcase(shown.rpartition("/")[2], pattern)
        or fnmatchcase(f"/{shown}", f"*/{pattern}")
    )


def _lines(folder: int, shown: str, expression: re.Pattern[str], effort: _Effort, room: int) -> list[str]:
    """Return the lines of one file that match."""
    content = _content(shown.rpartition("/")[2], folder)
    if content is None or is_binary(content):
        return []
    effort.bytes += len(content)
    found: list[str] = []
    for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), 1):
        if expression.search(line[:LINE_MAX_CHARS]):
            found.append(f"{shown}:{number}: {line.strip()[:SHOWN_MAX_CHARS]}")
            if len(found) >= room:
                break
        if effort.is_spent:
            break
    return found


def _content(name: str, folder: int) -> bytes | None:
    """Return what a file contains; None where it cannot be read, or is too large."""
    try:
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return None
    with os.fdopen(file, "rb") as opened:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode) or found.st_size > FILE_MAX_BYTES:
            return None
        return opened.read(FILE_MAX_BYTES)


def _is_quick(pattern: str) -> bool:
    return len(_REPETITION.findall(pattern)) <= REPETITIONS_MAX and not _REPEATED_GROUP.search(pattern)


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise Rejected(
            f"{pattern!r} is no regular expression: {error}; escape characters that are meant as they are"
        ) from error


def _told(found: list[str], args: SearchFiles, effort: _Effort) -> str:
    cut = f"[stopped: {effort.cut}]" if effort.cut else ""
    if not found:
        where = f" among files that match {args.glob!r}" if args.glob else ""
        nothing = f"Nothing matches {args.pattern!r} in {args.path!r}{where}; {effort.files} files were looked at."
        return f"{nothing} {cut}".strip()
    return "\n".join([*found, cut] if cut else found)


def main() -> int:
    """Make the search that stands in the input."""
    job = msgspec.json.decode(sys.stdin.buffer.read(), type=_Job)
    search = Search(Workspace(Path(job.root)), job.search_max_s)
    try:
        said, status = asyncio.run(in_thread(lambda: search.result(job.args))), 0
    except HoldfastError as error:
        said, status = str(error), REFUSED
    sys.stdout.buffer.write(said.encode("utf-8", "replace"))
    return status


if __name__ == "__main__":
    sys.exit(main())
