"""Server-sent events: frames as they come, for many readers at once.  A disconnect ends a stream and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from holdfast.core.journal import Entry, EntryRecord
from holdfast.errors import NotFound, Unavailable
from holdfast.web.clients import Sending
from holdfast.web.protocol import Connection, connection_of

# Often enough that a proxy on the way does not close the connection as idle.
HEARTBEAT_S = 15
# A heartbeat goes to this many readers before other tasks get their turn.
GREETED_AT_ONCE = 100
# What many follow at once is encoded once: the last frames, none of them large.
FRAMES_KEPT = 64
FRAME_KEPT_MAX = 16 * 1024
_HEARTBEAT = b": still here\n\n"
# How soon a browser asks again after the stream broke.
OPENING = b"retry: 1000\n\n"
RESET = b"event: reset\ndata: {}\n\n"
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_encode = msgspec.json.Encoder().encode


class Streams:
    """All streams that are open: one heartbeat for them together, and one end.

    There is one of these per application, and every `EventStream` of it is made with that.
    """

    def __init__(self, closing: asyncio.Event) -> None:
        self._closing = closing
        self._open: set[_Reader] = set()
        self._care: asyncio.Task[None] | None = None
        self._frames: list[tuple[Entry, bytes] | None] = [None] * FRAMES_KEPT

    def __len__(self) -> int:
        return len(self._open)

    @property
    def closing(self) -> bool:
        return self._closing.is_set()

    @property
    def closed(self) -> asyncio.Event:
        """Is set when the gateway closes."""
        return self._closing

    def add(self, reader: _Reader) -> None:
        self._open.add(reader)
        if self._care is None:
            self._care = asyncio.create_task(self._take_care(), name="streams")

    def remove(self, reader: _Reader) -> None:
        self._open.discard(reader)
        if not self._open and self._care:
            self._care.cancel()
            self._care = None

    def frame(self, entry: Entry) -> bytes:
        """Return an entry as an event; for those who follow the same session it is the same one."""
        place = id(entry) // 16 % FRAMES_KEPT
        kept = self._frames[place]
        if kept and kept[0] is entry:
            return kept[1]
        made = b"id: %d\ndata: %b\n\n" % (entry.seq, _encode(EntryRecord.of(entry)))
        if len(made) <= FRAME_KEPT_MAX:
            self._frames[place] = entry, made
        return made

    async def _take_care(self) -> None:
        while True:
            try:
                async with asyncio.timeout(HEARTBEAT_S):
                    await self._closing.wait()
            except TimeoutError:
                await self._beat()
            else:
                for reader in self._open:
                    reader.end()
                return

    async def _beat(self) -> None:
        for number, reader in enumerate(list(self._open), 1):
            if reader in self._open:
                # It may have ended while others were greeted, and nothing can be sent behind an end.
                await reader.beat()
            if number % GREETED_AT_ONCE == 0:
                await asyncio.sleep(0)


class _Reader:
    """The reader of a stream.  Frames that it has not read wait in its connection, and never delay the writers."""

    __slots__ = ("_connection", "_limit", "_send")

    def __init__(self, connection: Connection, send: Send) -> None:
        self._connection = connection
        self._send = send
        self._limit = asyncio.timeout(None)

    async def read(self, frames: AsyncGenerator[bytes]) -> bool:
        """Send what comes until it ends, the reader leaves, or `end` is called; returns whether all of it was sent."""
        self._connection.when_lost = self.end
        try:
            async with self._limit, aclosing(frames):
                async for frame in frames:
                    await self._send({"type": "http.response.body", "body": frame, "more_body": True})
        except TimeoutError:
            if not self._limit.expired():
                raise
            return False
        finally:
            self._connection.when_lost = None
        return True

    def end(self) -> None:
        # As a timeout it ends the wait of the task wherever that is, and is told apart from a cancellation.
        if not self._limit.expired():
            self._limit.reschedule(0)

    async def beat(self) -> None:
        # A reader that is behind needs no heartbeat, and must not delay the heartbeats of others.
        if not self._connection.choked:
            await self._send({"type": "http.response.body", "body": _HEARTBEAT, "more_body": True})

    async def say_goodbye(self, words: bytes, *, hurried: bool) -> None:
        if hurried and self._connection.choked:
            self._connection.abort()
        else:
            await self._send({"type": "http.response.body", "body": words, "more_body": False})


class EventStream(Response):
    """Frames, each a whole event in the wire's format, until they end, the reader leaves or the gateway closes.

    The generator is always closed with the stream.  The stream also ends when its session is deleted, and when the store
    does not answer; then the reader reconnects with its cursor.  `farewell` is a last frame that tells a reader who could
    take a part for the whole that the stream was cut.
    """

    media_type = "text/event-stream"

    def __init__(self, frames: AsyncGenerator[bytes], streams: Streams, *, farewell: Callable[[], bytes] = bytes) -> None:
        super().__init__(headers=_HEADERS)
        # What is sent has no length that could be known before.
        del self.headers["content-length"]
        self._frames = frames
        self._streams = streams
        self._farewell = farewell

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - The shape of ASGI.
        connection = connection_of(scope)
        reader = _Reader(connection, send)
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        if scope["method"] == "HEAD" or connection.lost or self._streams.closing:
            await self._frames.aclose()
            whole = False
        else:
            whole = await self._show(reader)
        await reader.say_goodbye(b"" if whole else self._farewell(), hurried=self._streams.closing)
        if isinstance(self.background, Sending):
            self.background.ended(whole=whole)

    async def _show(self, reader: _Reader) -> bool:
        self._streams.add(reader)
        try:
            return await reader.read(self._frames)
        except (NotFound, Unavailable):
            return False
        finally:
            self._streams.remove(reader)


async def journal(entries: AsyncGenerator[Entry], streams: Streams, *, reset: bool = False) -> AsyncGenerator[bytes]:
    """Yield entries as events, each with its cursor; with `reset` the reader is told first to forget what it has."""
    async with aclosing(entries):
        yield OPENING + (RESET if reset else b"")
        async for entry in entries:
            yield streams.frame(entry)
