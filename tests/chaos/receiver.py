"""The far side of deliveries to a URL: it writes down what it has read, and is out of order at times."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Mood(StrEnum):
    """How the receiver behaves."""

    WELL = "answers"
    DEAF = "cuts before it has read"
    MUTE = "cuts after it has read"
    BUSY = "503"


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """One request that the receiver has read to its end.  `taken` says whether it answered with success."""

    id: str
    turn_id: str
    part: int
    text: str
    repeat: bool
    taken: bool


@dataclass
class Receiver:
    """One address for all deliveries.  What it refuses with a status it does not count as received."""

    mood: Mood = Mood.WELL
    sends: list[Send] = field(default_factory=list[Send])
    refused: int = 0
    port: int = 0
    _serving: set[asyncio.Task[Any]] = field(default_factory=set[asyncio.Task[Any]])

    @property
    def target(self) -> str:
        return f"url:http://127.0.0.1:{self.port}/"

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[Receiver]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            for each in self._serving:
                each.cancel()
            await server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._serving.add(task)
        try:
            while await self._answer(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._serving.discard(task)
            writer.transport.abort() if self.mood is not Mood.WELL else writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; return whether another may follow."""
        if self.mood is Mood.DEAF:
            self.refused += 1
            return False
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        length = next(int(line.partition(":")[2]) for line in head.split("\r\n") if line.startswith("content-length:"))
        body = json.loads(await reader.readexactly(length))
        mood = self.mood
        if mood in (Mood.WELL, Mood.MUTE):
            self.sends.append(
                Send(
                    id=body["id"],
                    turn_id=body["turn_id"],
                    part=body["part"],
                    text=body["text"],
                    repeat=body["possible_repeat"],
                    taken=mood is Mood.WELL,
                )
            )
        if mood is not Mood.WELL:
            self.refused += 1
        if mood in (Mood.MUTE, Mood.DEAF):
            return False
        status = "200 OK" if mood is Mood.WELL else "503 Busy"
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode())
        await writer.drain()
        return True
