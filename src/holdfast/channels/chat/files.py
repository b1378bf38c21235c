"""Files that came with messages: fetched, kept where tools find them, and named in the text that the model reads."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.channels.chat.account import ChatAccount, ChatServices
from holdfast.channels.chat.pdf import READ_MAX_S, PdfFile, read_pdf
from holdfast.channels.chat.port import RemoteFile
from holdfast.core import images
from holdfast.core.intake import Image
from holdfast.core.legible import one_line
from holdfast.errors import HoldfastError, Rejected, Unavailable

log = logging.getLogger(__name__)

FILE_MAX_BYTES = 20 * 1024 * 1024
FETCH_MAX_S = 60
TRIES = 3
# So much of a text or PDF file is shown to the model with the message.
TEXT_MAX_CHARS = 20_000
_PDF = b"%PDF-"
# Names come from strangers.
NAME_MAX_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """What came with a message: the lines that name it to the model, and the pictures that the model sees."""

    lines: tuple[str, ...] = ()
    images: tuple[Image, ...] = ()


class Files:
    """The files of one account."""

    def __init__(self, account: ChatAccount, services: ChatServices) -> None:
        self._account = account
        self._services = services

    async def receive(self, files: Sequence[RemoteFile], owner: str) -> Received:
        """Fetch files, and keep them for those who may use the workspace.  What cannot be had is said in its line."""
        lines: list[str] = []
        pictures: list[Image] = []
        for file in files:
            line, picture = await self._receive(file, owner, room=len(pictures) < images.IMAGES_MAX)
            lines.append(line)
            pictures += picture
        return Received(lines=tuple(lines), images=tuple(pictures))

    async def _receive(self, file: RemoteFile, owner: str, *, room: bool) -> tuple[str, list[Image]]:
        try:
            content = await self._fetch(file)
        except (HoldfastError, TimeoutError) as error:
            log.warning("%s: the file %s was not fetched: %s", self._account.name, file.name, error)
            return f"{_named(file)}, which could not be fetched: {error or 'it took too long'}", []
        kind = images.media_type(content)
        seen = kind is not None and room and len(content) <= images.BYTES_MAX
        picture = [Image(media_type=kind, data=content)] if kind and seen else []
        return await self._kept(file, content, owner, shown=bool(picture)), picture

    async def _fetch(self, file: RemoteFile) -> bytes:
        for tried in range(1, TRIES + 1):
            try:
                async with asyncio.timeout(FETCH_MAX_S):
                    return await self._account.platform.fetch(file, FILE_MAX_BYTES)
            except Unavailable as error:
                wait_s = max(error.retry_after_s or 0, tried)
                # The message, and everything behind it in its chat, does not wait that long for a file.
                if tried == TRIES or wait_s > FETCH_MAX_S:
                    raise
                await self._services.clock.sleep_ms(1000 * wait_s)
        raise AssertionError("every try returns or raises")

    async def _kept(self, file: RemoteFile, content: bytes, owner: str, *, shown: bool) -> str:
        line, said = _named(file, len(content)), await self._said(file, content, owner)
        if self._services.uploads is None or not self._services.trusts(owner):
            return f"{line}{said}" if said or shown else f"{line}, which cannot be opened here"
        try:
            kept = await self._services.uploads.keep(file.name, content)
        except Rejected as error:
            return f"{line}, which could not be kept: {error}"
        return f"{line} at {kept.path}{said}"

    async def _said(self, file: RemoteFile, content: bytes, owner: str) -> str:
        """Return what the line of a file says of its text; empty for a file that is not made of text."""
        pool = self._services.pool
        if not content.startswith(_PDF) or pool is None:
            return _which_says(_text(file, content))
        try:
            wanted = PdfFile(content=content, chars_max=TEXT_MAX_CHARS)
            return _which_says(await pool.run(read_pdf, wanted, READ_MAX_S, user=owner))
        except (HoldfastError, TimeoutError) as error:
            return f", whose text cannot be read: {error or 'it takes too long'}"


def _named(file: RemoteFile, size: int | None = None) -> str:
    name, kind = one_line(file.name)[:NAME_MAX_CHARS] or "file", one_line(file.media_type)[:NAME_MAX_CHARS]
    return f"Attached: {name} ({kind or 'unknown type'}, {file.bytes if size is None else size:,} bytes)"


def _text(file: RemoteFile, content: bytes) -> str:
    """Return the text of a text file; empty for any other."""
    if not file.media_type.startswith("text/") and file.media_type not in ("application/json", "application/xml"):
        return ""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return ""
    return text


def _which_says(text: str) -> str:
    cut = text if len(text) <= TEXT_MAX_CHARS else text[:TEXT_MAX_CHARS] + "\n[The rest is left out.]"
    return f", which says:\n{cut}" if text else ""
