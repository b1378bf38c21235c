"""The spool: what turns write while their store is away, on this node's own disk until it can be handed in.

A home holds `spool/<node>/<turn>.<attempt>.jsonl`, one entry per line.  Nothing is created while the store answers.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from holdfast.clock import SystemClock
from holdfast.core.events import content
from holdfast.core.journal import LATE, DraftEntry
from holdfast.core.turns import Turn
from holdfast.ids import NodeId, TurnId

_FILE = re.compile(r"(\w+)\.(\d+)\.jsonl")

Line = tuple[int, DraftEntry]
_LATE_KINDS = frozenset(each.kind for each in LATE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """A file that is not written any more."""

    path: Path
    turn_id: TurnId
    attempt: int

    def read(self) -> list[Line]:
        """Return its entries up to the first line that was cut off while it was written."""
        lines: list[Line] = []
        for text in self.path.read_bytes().splitlines(keepends=True):
            try:
                line = _parse(text)
            except ValueError:
                break
            lines.append(line)
        return lines

    def age_ms(self, now_ms: int) -> int:
        """Return how long ago it was last written."""
        # The system dates files by the machine's clock, which may be off, or have jumped since: what is young by either is.
        return min(now_ms, SystemClock().now_ms()) - int(self.path.stat().st_mtime * 1000)

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)


class SpoolFile:
    """What one attempt has not been able to write.  `size` is its bytes; 0 while there is no file."""

    def __init__(self, path: Path, size_max: int, written: set[Path]) -> None:
        self.size = 0
        self.size_max = size_max
        self._path = path
        self._written = written

    async def append(self, lines: Sequence[Line]) -> None:
        """Return once these lines are on the disk, below the others."""
        self._written.add(self._path)
        encoded = b"".join(map(_encode, lines))
        await asyncio.to_thread(_append, self._path, encoded)
        self.size += len(encoded)

    async def rewrite(self, lines: Sequence[Line]) -> None:
        """Return once these lines, and no others, are on the disk, even if the file was removed."""
        encoded = b"".join(map(_encode, lines))
        await asyncio.to_thread(_replace, self._path, encoded)
        self.size = len(encoded)

    async def remove(self) -> None:
        if self.size:
            await asyncio.to_thread(self._path.unlink, missing_ok=True)
            self.size = 0

    def release(self) -> None:
        """Leave the file, if there is one, to be handed in."""
        self._written.discard(self._path)


class Spool:
    """The spool of a home, shared by all nodes that ever run in it."""

    def __init__(self, home: Path) -> None:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.home_id = _home_id(home)
        self._root = home / "spool"
        self._written: set[Path] = set()

    def file(self, node_id: NodeId, turn: Turn, size_max: int) -> SpoolFile:
        """Return the place for what a turn cannot write; beyond `size_max` bytes it is not enough to go on."""
        return SpoolFile(self._root / node_id / f"{turn.id}.{turn.attempt}.jsonl", size_max, self._written)

    def left(self) -> dict[NodeId, list[Left]]:
        """Return the files of every node, without those that are still written in this process."""
        try:
            folders = sorted(self._root.iterdir())
        except FileNotFoundError:
            return {}
        return {NodeId(folder.name): self._left(folder) for folder in folders if folder.is_dir()}

    def forget(self, node_id: NodeId) -> None:
        """Remove the empty folder of a dead node."""
        folder = self._root / node_id
        with contextlib.suppress(OSError):
            for torn in folder.glob("*.tmp"):
                torn.unlink()
            folder.rmdir()

    def _left(self, folder: Path) -> list[Left]:
        files = [path for path in sorted(folder.iterdir()) if path not in self._written]
        found = [(path, match) for path in files if (match := _FILE.fullmatch(path.name))]
        return [Left(path=path, turn_id=TurnId(match[1]), attempt=int(match[2])) for path, match in found]


def _home_id(home: Path) -> str:
    """Return the name by which all nodes of this home are known, made when the first asks for it."""
    path = home / "home.id"
    if not path.exists():
        fresh = home / f"home.id.{uuid.uuid4().hex}.tmp"
        _write(fresh, os.O_EXCL, f"{uuid.uuid4().hex}\n".encode())
        with contextlib.suppress(FileExistsError):
            os.link(fresh, path)
        fresh.unlink()
        _sync_folder(home)
    return path.read_text("ascii").strip()


def _encode(line: Line) -> bytes:
    nth, draft = line
    # Escaped, so that it holds half a surrogate pair too; the store decides what becomes of one.
    entry = {"nth": nth, "kind": draft.event.kind, "at": draft.at, "data": content(draft.event)}
    return json.dumps(entry).encode("ascii") + b"\n"


def _parse(text: bytes) -> Line:
    if not text.endswith(b"\n"):
        raise ValueError("a line without its end")
    decoded: object = json.loads(text)
    match decoded:
        case {"nth": int(nth), "kind": str(kind), "at": int(at), "data": dict(data)} if kind in _LATE_KINDS:  # pyright: ignore[reportUnknownVariableType] - Untyped until here.
            return nth, DraftEntry.read(kind, at, cast("dict[str, object]", data))
        case _:
            raise ValueError("not an entry")


def _append(path: Path, content: bytes) -> None:
    if not path.exists():
        return _replace(path, content)
    before = path.stat().st_size
    try:
        _write(path, os.O_APPEND, content)
    except OSError:
        # Half a line would hide the lines below it.
        os.truncate(path, before)
        raise


def _replace(path: Path, content: bytes) -> None:
    _make_folder(path.parent)
    fresh = path.with_suffix(".tmp")
    _write(fresh, os.O_TRUNC, content)
    fresh.rename(path)
    _sync_folder(path.parent)


def _write(path: Path, flags: int, content: bytes) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | flags, 0o600)
    try:
        while content:
            content = content[os.write(file, content) :]
        os.fsync(file)
    finally:
        os.close(file)


def _make_folder(folder: Path) -> None:
    """Make the folder of a node, and make it last."""
    for each in (folder.parent, folder):
        if not each.exists():
            each.mkdir(mode=0o700, exist_ok=True)
            _sync_folder(each.parent)


def _sync_folder(folder: Path) -> None:
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
