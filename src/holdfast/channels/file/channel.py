"""The file channel.  It can read its files, so it always knows what became of a delivery that was cut off."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

from holdfast.channels.file.client import append, lines
from holdfast.channels.file.render import is_line_of, line
from holdfast.channels.port import Capabilities, Channel, ChannelContext
from holdfast.core.delivery import Delivery
from holdfast.core.questions import Question
from holdfast.core.turns import Turn
from holdfast.errors import Rejected

NAME = "file"
FOLDER = "outbox"
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@contextlib.asynccontextmanager
async def opened(context: ChannelContext) -> AsyncGenerator[Channel]:
    yield Channel(capabilities=Capabilities(delivers_later=True), carrier=FileCarrier(context.home / FOLDER))


class FileCarrier:
    """Appends deliveries to files in one folder."""

    # The file is searched for the id before a delivery is written again.
    dedupes = True
    in_line = False
    takes_files = False

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def check(self, target: str) -> None:
        self._path(target)

    def split(self, text: str) -> Sequence[str]:
        return [text]

    def ask(self, turn: Turn, question: Question, target: str, now_ms: int) -> Sequence[Delivery]:  # noqa: ARG002 - No person reads it.
        return ()

    async def send(self, sent: Delivery) -> str:
        path = self._path(sent.target)
        await asyncio.to_thread(append, path, line(sent))
        return path.name

    async def find(self, sent: Delivery) -> str | None:
        path = self._path(sent.target)
        return path.name if await asyncio.to_thread(_holds, path, sent) else None

    def _path(self, target: str) -> Path:
        name = target.partition(":")[2]
        if not _FILE_NAME.fullmatch(name):
            raise Rejected(f"{target!r} names no file: use letters, digits, dots and dashes, 64 at most")
        return self._folder / f"{name}.jsonl"


def _holds(path: Path, sent: Delivery) -> bool:
    return any(is_line_of(each, sent) for each in lines(path))
