"""The line between a client and its server, which can be cut as a cable is: neither side is told."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Awaitable, Callable

from tests.blackbox.gateway import Gateway

_PIECE = 65_536
_chance = random.SystemRandom()

Connect = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


class Line:
    """Listens at an address of its own and passes everything on, while it is whole.

    Each piece is passed on after a delay between the two of `delay_s`.
    """

    def __init__(self, connect: Connect) -> None:
        self.port = 0
        self.delay_s = (0.0, 0.0)
        self._connect_far = connect
        self._whole = asyncio.Event()
        self._whole.set()
        self._refuses = False
        self._losing = b""
        self._writers: set[asyncio.StreamWriter] = set()
        self._passing: set[asyncio.Task[None]] = set()

    def cut(self) -> None:
        """Pass nothing on any more, either way; connections stay open, and new ones are made but never answered."""
        self._whole.clear()

    def restore(self) -> None:
        """Pass everything on again, also what has waited meanwhile."""
        self._whole.set()

    def replace(self) -> None:
        """Pass on what is opened from now on.  What was open stays silent for ever, as behind a router that forgot."""
        self._whole = asyncio.Event()
        self._whole.set()

    def hang_up(self) -> None:
        """Break everything that is open, and whatever is opened from now on: this is noticed at once."""
        self._refuses = True
        self.drop()

    def drop(self) -> None:
        """Break everything that is open."""
        for each in self._writers:
            each.transport.abort()

    def mend(self) -> None:
        """Pass on what comes from now on.  What was open is broken by then."""
        self.hang_up()
        self._losing = b""
        self._refuses = False
        self._whole.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def lose_answer(self, request: bytes) -> None:
        """Cut, once the server has got the next piece that contains this; its answer does not arrive."""
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
        far_reader, far_writer = await self._connect_far()
        ways = (self._pass(whole, reader, far_writer), self._pass(whole, far_reader, writer))
        passing = [asyncio.create_task(each) for each in ways]
        try:
            await asyncio.wait(passing, return_when=asyncio.FIRST_COMPLETED)
        finally:
            far_writer.transport.abort()
            for each in passing:
                each.cancel()
            await asyncio.gather(*passing, return_exceptions=True)

    async def _pass(self, whole: asyncio.Event, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(_PIECE):
            if any(self.delay_s):
                await asyncio.sleep(_chance.uniform(*self.delay_s))
            await whole.wait()
            writer.write(piece)
            await writer.drain()
            if self._losing and self._losing in piece:
                self._losing = b""
                self.cut()


@contextlib.asynccontextmanager
async def lay(connect: Connect) -> AsyncIterator[Line]:
    """Lay a line to a server for as long as the context lasts."""
    made = Line(connect)
    server = await asyncio.start_server(made.run, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        await made.close()
        await server.wait_closed()


def line(gateway: Gateway) -> contextlib.AbstractAsyncContextManager[Line]:
    """Lay a line to a gateway."""
    return lay(lambda: asyncio.open_connection("127.0.0.1", gateway.port))
