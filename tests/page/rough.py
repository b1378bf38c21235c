"""A bad connection between a browser and its gateway: it delays, stalls, and breaks at any point."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import AsyncIterator

from tests.blackbox.gateway import Gateway

_PIECE = 65_536
_METHODS = (b"GET ", b"POST ", b"PATCH ", b"PUT ", b"DELETE ")
_MOODS = {"fair": 60, "delay": 12, "stall": 4, "before": 5, "within": 3, "after": 7, "drop": 9}
_DELAY_S = (0.02, 1.0)
_STALL_S = (1.0, 12.0)
_DROP_AFTER = (1, 6_000)
_GUST_EVERY_S = (4.0, 15.0)
_GUST_S = (0.5, 9.0)


class Broken(OSError):
    """The connection broke."""


class Connection:
    """One connection of the browser, and what will happen to it."""

    def __init__(self, line: RoughLine) -> None:
        self._line = line
        # This much more of the answer gets through; None is all of it.
        self._left: int | None = None

    async def outward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(_PIECE):
            await self._line.passable()
            await self._ask(piece, writer)
            await writer.drain()

    async def inward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(self._line.slice()):
            await self._line.passable()
            if self._left is not None:
                piece, self._left = piece[: self._left], self._left - len(piece)
            writer.write(piece)
            await writer.drain()
            if self._left is not None and self._left <= 0:
                raise Broken

    async def _ask(self, piece: bytes, writer: asyncio.StreamWriter) -> None:
        """Send a part of a request; what happens to it is decided at its start."""
        chance, mood = self._line.chance, self._line.mood() if piece.startswith(_METHODS) else "fair"
        if mood == "before":
            raise Broken
        if mood in ("delay", "stall"):
            await asyncio.sleep(chance.uniform(*(_DELAY_S if mood == "delay" else _STALL_S)))
        if mood == "within":
            writer.write(piece[: chance.randrange(1, len(piece))])
            await writer.drain()
            raise Broken
        if mood in ("after", "drop"):
            self._left = 0 if mood == "after" else chance.randint(*_DROP_AFTER)
        writer.write(piece)


class RoughLine:
    """A proxy with its own address.  With `calm` it forwards everything."""

    def __init__(self, gateway: Gateway, chance: random.Random) -> None:
        self.url = ""
        self.calm = True
        self.chance = chance
        self.seen = Counter[str]()
        self._port = gateway.port
        self._whole = asyncio.Event()
        self._whole.set()
        self._connected: set[asyncio.Task[None]] = set()

    def mood(self) -> str:
        if self.calm:
            return "fair"
        mood = self.chance.choices(list(_MOODS), list(_MOODS.values()))[0]
        self.seen[mood] += 1
        return mood

    def slice(self) -> int:
        """Return how much is forwarded at once: events are cut anywhere."""
        return _PIECE if self.calm else self.chance.choice((7, 100, 1_000, _PIECE))

    async def passable(self) -> None:
        await self._whole.wait()

    async def blow(self) -> None:
        """Stall now and then; afterwards some connections are broken."""
        try:
            while not self.calm:
                await asyncio.sleep(self.chance.uniform(*_GUST_EVERY_S))
                self._whole.clear()
                await asyncio.sleep(self.chance.uniform(*_GUST_S))
                if self.chance.random() < 0.7:
                    self.hang_up()
                self._whole.set()
                self.seen["gust"] += 1
        finally:
            self._whole.set()

    def hang_up(self) -> None:
        for each in self._connected:
            each.cancel()

    async def run(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._connected.add(task)
        try:
            await self._connect(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._connected.discard(task)
            writer.transport.abort()

    async def close(self) -> None:
        connected = list(self._connected)
        self.hang_up()
        await asyncio.gather(*connected, return_exceptions=True)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self.passable()
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._port)
        connection = Connection(self)
        ways = [
            asyncio.create_task(connection.outward(reader, far_writer)),
            asyncio.create_task(connection.inward(far_reader, writer)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in ways:
                each.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            far_writer.transport.abort()


@contextlib.asynccontextmanager
async def rough_line(gateway: Gateway, chance: random.Random) -> AsyncIterator[RoughLine]:
    """Put a proxy in front of a gateway for as long as the context lasts."""
    made = RoughLine(gateway, chance)
    server = await asyncio.start_server(made.run, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        server.close()
        await made.close()
        await server.wait_closed()
