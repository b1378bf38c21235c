"""A load client that costs next to nothing: requests made up beforehand, answers only looked through for two marks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self, cast

WAIT_MAX_S = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """What an answer is known by: its first piece that counts, and its end."""

    first: bytes
    last: bytes


@dataclass(slots=True)
class Heard:
    """When an answer began and ended, in seconds on the clock of this process."""

    asked: float
    first: float = 0.0
    last: float = 0.0

    @property
    def first_ms(self) -> float:
        return (self.first - self.asked) * 1000


class Line(asyncio.Protocol):
    """One kept connection that asks one thing at a time."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport
        self._tail = b""
        self._marks = Marks(first=b"", last=b"")
        self._heard = Heard(0.0)
        self._answered: asyncio.Future[Heard] | None = None

    @classmethod
    async def to(cls, port: int) -> Self:
        _, line = await asyncio.get_running_loop().create_connection(cls, "127.0.0.1", port)
        return line

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    async def ask(self, request: bytes, marks: Marks) -> Heard:
        """Send a request and return when its answer began and ended."""
        self._tail, self._marks, self._heard = b"", marks, Heard(time.perf_counter())
        self._answered = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await asyncio.wait_for(self._answered, WAIT_MAX_S)

    def data_received(self, data: bytes) -> None:
        # A mark may be cut anywhere, so what came last is looked at once more.
        seen = self._tail + data
        now = time.perf_counter()
        if not self._heard.first and self._marks.first in seen:
            self._heard.first = now
        if self._marks.last in seen and self._answered is not None and not self._answered.done():
            self._heard.last = now
            self._answered.set_result(self._heard)
        self._tail = seen[-64:]

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answered is not None and not self._answered.done():
            self._answered.set_exception(exc or ConnectionError(f"the connection ended: {self._tail!r}"))

    def close(self) -> None:
        self._transport.close()


class Reader(asyncio.Protocol):
    """One stream of events, followed for as long as it is open."""

    def __init__(self, request: bytes, heard: Callable[[bytes], None]) -> None:
        self._request = request
        self._heard = heard
        self.opened = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        if not self.opened.done():
            self.opened.set_result(None)
        self._heard(data)


def post(path: str, body: bytes, *headers: str) -> bytes:
    """Return a request as it goes over the wire."""
    lines = (f"POST {path} HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json", *headers)
    return "\r\n".join((*lines, f"Content-Length: {len(body)}", "", "")).encode() + body
