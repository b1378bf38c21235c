"""Server-sent events: the journal of a session as it grows.  A disconnect ends the stream and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from holdfast.core.journal import Entry
from holdfast.errors import Unavailable

# Often enough for every proxy on the way to believe that somebody is there.
HEARTBEAT_S = 15
_HEARTBEAT = b": still here\n\n"
# How soon a browser asks again after the stream broke.
_OPENING = b"retry: 1000\n\n"
_RESET = b"event: reset\ndata: {}\n\n"
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_encode = msgspec.json.Encoder().encode


class EventStream(Response):
    """Entries as they become durable, until the reader leaves or the gateway closes."""

    media_type = "text/event-stream"

    def __init__(self, entries: AsyncGenerator[Entry], closing: asyncio.Event, *, reset: bool = False) -> None:
        super().__init__(headers=_HEADERS)
        # What is sent has no length that could be known before.
        del self.headers["content-length"]
        self._entries = entries
        self._closing = closing
        self._opening = _OPENING + (_RESET if reset else b"")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - The shape of ASGI.
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        await _write(send, self._opening)
        tasks = [
            asyncio.create_task(part)
            for part in (self._pump(send), _beat(send), _left(receive), self._closing.wait())
        ]  # fmt: skip
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        if not tasks[0].cancelled():
            tasks[0].result()

    async def _pump(self, send: Send) -> None:
        try:
            async for entry in self._entries:
                await _write(send, b"id: %d\ndata: %b\n\n" % (entry.seq, _encode(entry)))
        except Unavailable:
            # The reader asks again with its cursor, when the store is back.
            return
        finally:
            await self._entries.aclose()


async def _write(send: Send, piece: bytes) -> None:
    await send({"type": "http.response.body", "body": piece, "more_body": True})


async def _beat(send: Send) -> None:
    while True:
        await asyncio.sleep(HEARTBEAT_S)
        await _write(send, _HEARTBEAT)


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
