"""A database far away: a proxy in front of a Unix socket that holds every byte back for half of a round trip each way.

Nothing limits how much is on its way, as on a long cable.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

READ_BYTES = 1 << 16


class Far:
    """The way to a database.  `round_trip_s` may be changed at any time."""

    def __init__(self, url: str, round_trip_s: float) -> None:
        self.round_trip_s = round_trip_s
        parts = urlsplit(url)
        (self._there,), (self._port,) = (parse_qs(parts.query)[name] for name in ("host", "port"))
        self._folder = tempfile.TemporaryDirectory(prefix="hf-far-", dir="/tmp")
        self.url = f"postgresql://{parts.netloc}{parts.path}?host={quote(self._folder.name)}&port={self._port}"
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def socket(self) -> Path:
        return Path(self._folder.name) / f".s.PGSQL.{self._port}"

    async def serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._connections.add(task)
        back, there = await asyncio.open_unix_connection(f"{self._there}/.s.PGSQL.{self._port}")
        try:
            # A connection that is cut, by either end or by us, is simply gone.
            with contextlib.suppress(asyncio.CancelledError, OSError):
                await asyncio.gather(self._pass(reader, there), self._pass(back, writer))
        finally:
            self._connections.discard(task)
            for each in (writer, there):
                each.close()

    async def _pass(self, reader: StreamReader, writer: StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        while piece := await reader.read(READ_BYTES):
            loop.call_later(self.round_trip_s / 2, writer.write, piece)
        await asyncio.sleep(self.round_trip_s / 2)
        writer.close()

    async def close(self) -> None:
        for task in self._connections:
            task.cancel()
        if self._connections:
            await asyncio.wait(self._connections)
        self._folder.cleanup()


@asynccontextmanager
async def far(url: str, round_trip_s: float = 0) -> AsyncGenerator[Far]:
    """Yield the way to a database through a proxy."""
    way = Far(url, round_trip_s)
    server = await asyncio.start_unix_server(way.serve, way.socket)
    try:
        yield way
    finally:
        server.close()
        await way.close()
