"""Files as a place to send to: `file:NAME` appends to NAME.jsonl in the outbox folder of the home, for scripts and people.

A file can be looked at again, so what became of a delivery that was cut off is always known.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from holdfast.core.delivery import Delivery
from holdfast.errors import Rejected, Unavailable

FOLDER = "outbox"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class FileCarrier:
    """Takes deliveries to files in one folder."""

    # The file is searched for the id before it is written again.
    dedupes = True

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def check(self, target: str) -> None:
        self._path(target)

    def split(self, text: str) -> Sequence[str]:
        return [text]

    async def send(self, sent: Delivery) -> str:
        return await asyncio.to_thread(self._append, self._path(sent.target), sent)

    async def find(self, sent: Delivery) -> str | None:
        path = self._path(sent.target)
        return path.name if await asyncio.to_thread(_holds, path, sent) else None

    def _path(self, target: str) -> Path:
        name = target.partition(":")[2]
        if not _NAME.fullmatch(name):
            raise Rejected(f"{target!r} names no file: use letters, digits, dots and dashes, 64 at most")
        return self._folder / f"{name}.jsonl"

    def _append(self, path: Path, sent: Delivery) -> str:
        line = msgspec.json.encode(
            {
                "id": sent.id,
                "at": sent.created_at,
                "session_id": sent.session_id,
                "turn_id": sent.turn_id,
                "text": sent.outgoing,
            }
        )
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise Unavailable(f"cannot write {path.name}: {error.strerror}") from error
        try:
            # Half a line, of a write that was cut off, must not swallow this one.
            os.write(file, b"" if _ends_whole(file) else b"\n")
            os.write(file, line + b"\n")
            os.fsync(file)
        finally:
            os.close(file)
        return path.name


def _ends_whole(file: int) -> bool:
    size = os.fstat(file).st_size
    return not size or os.pread(file, 1, size - 1) == b"\n"


def _holds(path: Path, sent: Delivery) -> bool:
    try:
        with path.open("rb") as lines:
            return any(_id(line) == sent.id for line in lines if sent.id.encode() in line)
    except FileNotFoundError:
        return False


def _id(line: bytes) -> object:
    try:
        return msgspec.json.decode(line, type=dict[str, object]).get("id")
    except msgspec.DecodeError:
        return None
