"""The tools that read, write and edit files of the workspace, and no files outside it."""

from __future__ import annotations

import heapq
import os
import secrets
import stat
from pathlib import Path
from typing import Annotated

import msgspec

from holdfast.agent.tools.edits import Replacement, difference
from holdfast.agent.tools.port import CallContext, StructTool, Tool
from holdfast.agent.tools.search import search_tool
from holdfast.agent.tools.workspace import Workspace, in_thread, is_binary, translating_errors
from holdfast.core.effects import Effect
from holdfast.errors import Rejected
from holdfast.offload.function import offloadable
from holdfast.offload.pool import Pool

__all__ = ["Workspace", "file_tools"]

# A model does not read a larger file in one piece.
FILE_MAX_BYTES = 10_000_000
READ_LESS = "use search_files, or head and tail in the terminal"
READ_LINES_MAX = 2_000
READ_MAX_CHARS = 40_000
READ_MAX_S = 10.0
LINE_MAX_CHARS = 2_000
WRITE_MAX_BYTES = 5_000_000
NEAR_MAX = 3
# The limits of a search for lines that are similar to a text that was not found.
NEAR_MAX_LINES = 5_000
NEAR_MAX_CHARS = 200
NEAR_MIN = 0.5
TEMPORARY = ".holdfast-"
_FOLDER = "{!r} is a folder; use search_files with mode names to see what is in it"
_IMAGES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".ico", ".tiff", ".heic")


class ReadFile(msgspec.Struct):
    """What to read."""

    path: Annotated[str, msgspec.Meta(description="The file, relative to the workspace.")]
    offset: Annotated[int, msgspec.Meta(ge=1, description="The first line to read, counted from 1.")] = 1
    limit: Annotated[int, msgspec.Meta(ge=1, le=READ_LINES_MAX, description="How many lines to read.")] = READ_LINES_MAX


class WriteFile(msgspec.Struct):
    """What to write."""

    path: Annotated[str, msgspec.Meta(description="The file, relative to the workspace. Folders are made as needed.")]
    content: Annotated[str, msgspec.Meta(description="Everything that the file shall contain.")]


class EditFile(msgspec.Struct):
    """What to change."""

    path: Annotated[str, msgspec.Meta(description="The file, relative to the workspace.")]
    old: Annotated[str, msgspec.Meta(min_length=1, description="The text to replace, exactly as it stands in the file.")]
    new: Annotated[str, msgspec.Meta(description="The text to put in its place.")]
    replace_all: Annotated[bool, msgspec.Meta(description="Replace every occurrence, not just the only one.")] = False


def file_tools(workspace: Workspace, pool: Pool) -> list[Tool]:
    """Return the tools that work on files."""
    files = Files(workspace, pool)
    return [
        StructTool(
            name="read_file",
            description="Read a text file of the workspace. Lines are shown with their numbers, which are not part of it.",
            args=ReadFile,
            effect=Effect.PURE,
            action=files.read,
            reads_private=lambda args: workspace.is_handed_in(args.path),
        ),
        StructTool(
            name="write_file",
            description="Write a file of the workspace, replacing all that it contained before.",
            args=WriteFile,
            # The same content again is the same file.
            effect=Effect.KEYED,
            action=files.write,
            reads_private=False,
        ),
        StructTool(
            name="edit_file",
            description="Replace a piece of text in a file of the workspace. The text must stand there exactly once, "
            "unless replace_all is set. Read the file first.",
            args=EditFile,
            # A repeated edit could match its own result.
            effect=Effect.EFFECTFUL,
            action=files.edit,
            reads_private=False,
        ),
        search_tool(workspace, pool),
    ]


class Files:
    """Works on files outside the event loop."""

    def __init__(self, workspace: Workspace, pool: Pool) -> None:
        self._workspace = workspace
        self._pool = pool

    async def read(self, args: ReadFile, context: CallContext) -> str:
        request = ReadRequest(root=str(self._workspace.root), args=args)
        try:
            return await self._pool.run(read_file, request, READ_MAX_S, user=context.session.id)
        except TimeoutError:
            raise Rejected(f"reading {args.path!r} took longer than {READ_MAX_S:g} s; read less of it at once") from None

    async def write(self, args: WriteFile, _context: CallContext) -> str:
        return await in_thread(lambda: self._write(args))

    async def edit(self, args: EditFile, _context: CallContext) -> str:
        return await in_thread(lambda: self._edit(args))

    def _write(self, args: WriteFile) -> str:
        content = _encoded(args.content)
        path = self._workspace.resolve(args.path)
        if path == self._workspace.root:
            raise Rejected(f"{args.path!r} is the workspace itself; name a file in it")
        self._refuse_git(path)
        existed = self._replace(path, content, make=True)
        return f"{'Overwrote' if existed else 'Created'} {self._workspace.shown(path)} ({len(content)} bytes)."

    def _edit(self, args: EditFile) -> str:
        if args.old == args.new:
            raise Rejected("old and new are the same: there is nothing to change")
        path = self._workspace.resolve(args.path)
        self._refuse_git(path)
        content = content_of(self._workspace, path, args.path)
        try:
            # Decoded exactly, with line ends: the unchanged part must stay the same byte by byte.
            text = content.decode("utf-8")
        except UnicodeDecodeError as error:
            raise Rejected(f"{args.path!r} is not UTF-8 text; only such files can be edited") from error
        old, new = args.old, args.new
        if old not in text and "\r\n" in text and "\r\n" not in old:
            old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
        found = text.count(old)
        if found == 0:
            raise Rejected(_missing(args, text))
        if found > 1 and not args.replace_all:
            lines = ", ".join(str(text.count("\n", 0, at) + 1) for at in _places(text, old)[:NEAR_MAX])
            raise Rejected(
                f"old stands {found} times in {args.path!r} (first at line {lines}); "
                "add lines around it until it is unique, or set replace_all"
            )
        changed = text.replace(old, new)
        self._replace(path, _encoded(changed), make=False)
        times = f" ({found} times)" if found > 1 else ""
        shown = difference(Replacement(text=text, old=old, new=new, name=self._workspace.shown(path)))
        return f"Edited {self._workspace.shown(path)}{times}.\n{shown}"

    def _refuse_git(self, path: Path) -> None:
        """Refuse files in .git: its hooks and settings are programs that others run later, outside the sandbox."""
        if any(part.casefold() == ".git" for part in path.relative_to(self._workspace.root).parts):
            raise Rejected("what is in .git is not written by hand; use git in the terminal, where a person may be asked")

    def _replace(self, path: Path, content: bytes, *, make: bool) -> bool:
        """Write a file atomically; return whether it replaces one."""
        with self._workspace.folder(path.parent, make=make) as folder:
            before = _standing(path.name, folder)
            if before is not None and not stat.S_ISREG(before.st_mode):
                raise Rejected(f"{self._workspace.shown(path)!r} is no ordinary file, and is not replaced")
            temporary = f"{TEMPORARY}{secrets.token_hex(8)}"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            file = os.open(temporary, flags, 0o666, dir_fd=folder)
            try:
                with os.fdopen(file, "wb") as opened:
                    opened.write(content)
                    opened.flush()
                    if before is not None:
                        os.fchmod(file, stat.S_IMODE(before.st_mode))
                    os.fsync(file)
                os.replace(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                os.unlink(temporary, dir_fd=folder)
                raise
            os.fsync(folder)
            return before is not None


class ReadRequest(msgspec.Struct):
    """What to read, in which workspace."""

    root: str
    args: ReadFile


@offloadable
def read_file(request: ReadRequest) -> str:
    """Return lines of a file, numbered for the model.  Raises `Rejected` and `NotFound`."""
    workspace = Workspace(Path(request.root))
    return translating_errors(lambda: _read(workspace, request.args))


def _read(workspace: Workspace, args: ReadFile) -> str:
    path = workspace.resolve(args.path)
    content = content_of(workspace, path, args.path)
    text, encoding = _decoded(content, args.path)
    lines = text.splitlines()
    if not lines:
        return f"{workspace.shown(path)} is empty."
    if args.offset > len(lines):
        raise Rejected(f"{args.path!r} has {len(lines)} lines; there is no line {args.offset}")
    chosen = lines[args.offset - 1 : args.offset - 1 + args.limit]
    shown: list[str] = []
    chars = 0
    for number, line in enumerate(chosen, args.offset):
        row = f"{number:>6}\t{line if len(line) <= LINE_MAX_CHARS else f'{line[:LINE_MAX_CHARS]}… [the line goes on]'}"
        if chars + len(row) > READ_MAX_CHARS and shown:
            break
        chars += len(row) + 1
        shown.append(row)
    last = args.offset + len(shown) - 1
    notes = [] if encoding == "utf-8" else [f"[decoded as {encoding}]"]
    if args.offset > 1 or last < len(lines):
        more = f"; go on with offset {last + 1}" if last < len(lines) else ""
        notes.append(f"[lines {args.offset} to {last} of {len(lines)}{more}]")
    return "\n".join([*shown, *notes])


def content_of(workspace: Workspace, path: Path, text: str, bytes_max: int = FILE_MAX_BYTES, hint: str = READ_LESS) -> bytes:
    """Return the content of a file, without following a link that has just been put there.

    Raises `Rejected` for a larger one, with a hint what to do instead; `text` is the path as it was named.
    """
    if path == workspace.root:
        raise Rejected(_FOLDER.format(text))
    with workspace.folder(path.parent) as folder:
        # Non-blocking, because it may be a pipe without a writer.
        file = os.open(path.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        _check_readable(os.fstat(file), text, bytes_max, hint)
        with os.fdopen(file, "rb", closefd=False) as opened:
            return opened.read(bytes_max)
    finally:
        os.close(file)


def _check_readable(found: os.stat_result, text: str, bytes_max: int, hint: str) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise Rejected(_FOLDER.format(text))
    if not stat.S_ISREG(found.st_mode):
        raise Rejected(f"{text!r} is no ordinary file")
    if found.st_size > bytes_max:
        raise Rejected(f"{text!r} has {found.st_size} bytes, and {bytes_max} can be read at most; {hint}")


def _standing(name: str, folder: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _encoded(text: str) -> bytes:
    try:
        content = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise Rejected(f"the text has a character that cannot be written, at {error.start}") from error
    if len(content) > WRITE_MAX_BYTES:
        raise Rejected(f"the text has {len(content)} bytes; {WRITE_MAX_BYTES} can be written at most")
    return content


def _decoded(content: bytes, name: str) -> tuple[str, str]:
    """Return a text and its encoding."""
    if name.lower().endswith(_IMAGES):
        raise Rejected(f"{name!r} is an image, which this tool cannot show; its size is {len(content)} bytes")
    if is_binary(content):
        raise Rejected(f"{name!r} is binary ({len(content)} bytes); look at it with file, xxd or strings in the terminal")
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", "replace"), "utf-16"
    try:
        return content.decode("utf-8-sig"), "utf-8"
    except UnicodeDecodeError:
        return content.decode("latin-1"), "latin-1"


def _places(text: str, piece: str) -> list[int]:
    places: list[int] = []
    at = text.find(piece)
    while at >= 0 and len(places) < NEAR_MAX:
        places.append(at)
        at = text.find(piece, at + len(piece))
    return places


def _missing(args: EditFile, text: str) -> str:
    """Return the error for a text that was not found, with similar lines."""
    said = f"old does not stand in {args.path!r}; it must be exactly as in the file, blanks and line ends included"
    lines = text.splitlines()
    wanted = args.old.strip("\n").splitlines()
    if not wanted or not lines or len(lines) > NEAR_MAX_LINES:
        return f"{said}. Read the file again."
    bare, stripped = [line.strip() for line in wanted], [line.strip() for line in lines]
    if (at := _place_of(bare, stripped)) is not None:
        piece = "\n".join(lines[at : at + len(wanted)])
        return f"{said}. Only the blanks differ at line {at + 1}, where it reads:\n{piece}"
    near = _nearest(max(bare, key=len), stripped)
    shown = [f"{number + 1}: {lines[number][:LINE_MAX_CHARS]}" for number in near]
    return "\n".join([f"{said}. The nearest lines are:", *shown]) if shown else f"{said}. Read the file again."


def _place_of(wanted: list[str], lines: list[str]) -> int | None:
    """Return the index at which some lines occur among others; None if they do not."""
    # Joined to one text, because that is searched in linear time.
    text, piece = "\n".join(["", *lines, ""]), "\n".join(["", *wanted, ""])
    at = text.find(piece)
    return None if at < 0 else text.count("\n", 0, at)


def _nearest(wanted: str, lines: list[str]) -> list[int]:
    """Return the indexes of the lines that are most similar to one."""
    pieces = _pieces(wanted)
    likeness = ((_likeness(pieces, _pieces(line)), -number) for number, line in enumerate(lines))
    best = heapq.nlargest(NEAR_MAX, (each for each in likeness if each[0] >= NEAR_MIN))
    return [-number for _, number in best]


def _pieces(line: str) -> set[str]:
    line = line[:NEAR_MAX_CHARS]
    return {line[at : at + 3] for at in range(max(len(line) - 2, 1))}


def _likeness(left: set[str], right: set[str]) -> float:
    return 2 * len(left & right) / (len(left) + len(right))
