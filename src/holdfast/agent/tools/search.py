"""The `search_files` tool: searches the workspace by content or by name."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from holdfast.agent.tools.port import CallContext, StructTool, Tool
from holdfast.agent.tools.workspace import UPLOADS, Workspace, is_binary, translating_errors
from holdfast.core.effects import Effect
from holdfast.errors import Rejected
from holdfast.offload.function import offloadable
from holdfast.offload.pool import Pool

RESULTS_MAX = 500
FILES_MAX = 50_000
# Beyond these limits, the results so far are returned with a note.
SEARCH_MAX_S = 10.0
SEARCH_MAX_BYTES = 500_000_000
FILE_MAX_BYTES = 5_000_000
# Only the beginning of a longer line is matched.
LINE_MAX_CHARS = 1_000
SHOWN_MAX_CHARS = 300
PATTERN_MAX_CHARS = 500
DEPTH_MAX = 50
IGNORE_LINES_MAX = 500
# Folders of generated or downloaded files.
SKIPPED = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", ".tox", ".mypy_cache", ".ruff_cache"})
# A search checks its deadline between lines; it is killed this long after the deadline.
GRACE_S = 1.0


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
        Literal["content", "names"], msgspec.Meta(description="FileSearch in what files contain, or in their names.")
    ] = "content"
    limit: Annotated[int, msgspec.Meta(ge=1, le=RESULTS_MAX, description="How many results to return at most.")] = 100


class FileSearchRequest(msgspec.Struct):
    """A search in a folder, and how many seconds it may take."""

    root: str
    args: SearchFiles
    search_max_s: float


def search_tool(workspace: Workspace, pool: Pool, search_max_s: float = SEARCH_MAX_S) -> Tool:
    """Return the tool that searches files."""

    async def find(args: SearchFiles, context: CallContext) -> str:
        request = FileSearchRequest(root=str(workspace.root), args=args, search_max_s=search_max_s)
        try:
            return await pool.run(search_files, request, search_max_s + GRACE_S, user=context.session.id)
        except TimeoutError:
            raise Rejected(f"the search took longer than {search_max_s:g} s; make the pattern simpler") from None

    return StructTool(
        name="search_files",
        description="FileSearch the files of the workspace: lines that match a regular expression (mode content), or files "
        "by name (mode names). Skips binary files, .git, dependencies, what .gitignore names, and what people handed in, "
        f"unless path is {UPLOADS} or lies below it.",
        args=SearchFiles,
        effect=Effect.PURE,
        action=find,
        reads_private=lambda args: workspace.is_handed_in(args.path),
    )


@dataclass(slots=True, kw_only=True)
class _Effort:
    """The cost of a search so far, and the reason if it was cut short."""

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


@offloadable
def search_files(request: FileSearchRequest) -> str:
    """Search, and return the result for the model.  Raises `Rejected` and `NotFound`."""
    search = FileSearch(Workspace(Path(request.root)), request.search_max_s)
    return translating_errors(lambda: search.result(request.args))


class FileSearch:
    """A search of a workspace."""

    def __init__(self, workspace: Workspace, search_max_s: float) -> None:
        self._workspace = workspace
        self._search_max_s = search_max_s

    def result(self, args: SearchFiles) -> str:
        """Run the search, and return its result for the model."""
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
        """Yield every file below a path, with the descriptor of its folder."""
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
    """Yield the files below an open folder, through descriptors only, so that no link is followed."""
    with os.scandir(folder) as entries:
        here = sorted(entries, key=lambda entry: entry.name)
    before = len(effort.ignored)
    effort.ignored += _ignores(folder, prefix) if any(entry.name == ".gitignore" for entry in here) else []
    for entry in here:
        name = f"{prefix}{entry.name}"
        if effort.is_spent:
            break
        is_folder = entry.is_dir(follow_symlinks=False)
        # Uploads are private: only a search whose path names their folder reads them, so that it counts as private reading.
        if name == UPLOADS or _is_ignored(name, is_folder=is_folder, rules=effort.ignored):
            continue
        if is_folder and entry.name not in SKIPPED and depth < DEPTH_MAX:
            try:
                inner = os.open(entry.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            except OSError:
                # It is gone, replaced or not accessible: the search goes on without it.
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
    """Return the simple rules of a .gitignore: names, and paths relative to the workspace, without exceptions."""
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
    """Return the matching lines of one file."""
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
    """Return the content of a file; None if it cannot be read or is too large."""
    try:
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return None
    with os.fdopen(file, "rb") as opened:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode) or found.st_size > FILE_MAX_BYTES:
            return None
        return opened.read(FILE_MAX_BYTES)


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise Rejected(
            f"{pattern!r} is not a regular expression: {error}; escape characters that are meant literally"
        ) from error


def _told(found: list[str], args: SearchFiles, effort: _Effort) -> str:
    cut = f"[stopped: {effort.cut}]" if effort.cut else ""
    if not found:
        where = f" among files that match {args.glob!r}" if args.glob else ""
        nothing = f"Nothing matches {args.pattern!r} in {args.path!r}{where}; {effort.files} files were looked at."
        return f"{nothing} {cut}".strip()
    return "\n".join([*found, cut] if cut else found)
