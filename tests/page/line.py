"""The line between a browser and its gateway, which can be cut as a cable is: nobody is told."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from tests.blackbox.gateway import Gateway

_PIECE = 65_536


class Line:
    """Listens at an address of its own and passes everything on, while it is whole."""

    def __init__(self, gateway: Gateway) -> None:
        self.url = ""
        self._port = gateway.port
        self._whole = asyncio.Event()
        self._whole.set()
        self._refuses = False
        self._losing = b""
        self._writers: set[asyncio.StreamWriter] = set()
        self._passing: set[asyncio.Task[None]] = set()

    def cut(self) -> None:
        """Pass nothing on any more, either way; connections stay open, and new ones are made but never answered."""
        self._whole.clear()

    def replace(self) -> None:
        """Pass on what is opened from now on.  What was open stays silent for ever, as behind a router that forgot."""
        self._whole = asyncio.Event()
        self._whole.set()

    def hang_up(self) -> None:
        """Break everything that is open, and whatever is opened from now on: this is noticed at once."""
        self._refuses = True
        for each in self._writers:
            each.transport.abort()

    def mend(self) -> None:
        """Pass on what comes from now on.  What was open is broken by then."""
        self.hang_up()
        self._refuses = False
        self._whole.set()

    def lose_answer(self, request: bytes) -> None:
        """Cut, once the gateway has got the next request that begins so; its answer reaches nobody."""
        self._losing = request

    async def run(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refuses:
            writer.transport.abort()
            return
        task = asyncio.current_task()
        assert task
        self._passing.add(task)
        self._writers.add(writer)
        with contextlib.suppress(OSError, asyncio.CancelledError):
            await self._connect(reader, writer)
        self._passing.discard(task)
        self._writers.discard(writer)
        writer.transport.abort()

    async def close(self) -> None:
        for each in self._passing:
            each.cancel()
        await asyncio.gather(*self._passing, return_exceptions=True)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        whole = self._whole
        await whole.wait()
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            ways = (self._pass(whole, reader, far_writer), self._pass(whole, far_reader, writer))
            passing = [asyncio.create_task(each) for each in ways]
            await asyncio.wait(passing, return_when=asyncio.FIRST_COMPLETED)
            for each in passing:
                each.cancel()
            await asyncio.gather(*passing, return_exceptions=True)
        finally:
            far_writer.transport.abort()

    async def _pass(self, whole: asyncio.Event, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(_PIECE):
            await whole.wait()
            writer.write(piece)
            await writer.drain()
            if self._losing and piece.startswith(self._losing):
                self._losing = b""
                self.cut()


@contextlib.asynccontextmanager
async def line(gateway: Gateway) -> AsyncIterator[Line]:
    """Lay a line to a gateway for as long as the context lasts."""
    made = Line(gateway)
    server = await asyncio.start_server(made.run, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        server.close()
        await made.close()
        await server.wait_closed()
