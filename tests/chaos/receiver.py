"""The far side of deliveries to a URL: it writes down what it has read, and is out of order at times."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from enum import StrEnum

from tests.http_server import answer, read, serving


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

    @property
    def target(self) -> str:
        return f"url:http://127.0.0.1:{self.port}/"

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[Receiver]:
        async with serving(self._serve) as self.port:
            yield self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._answer(reader, writer):
                pass
        finally:
            if self.mood is not Mood.WELL:
                writer.transport.abort()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; return whether another may follow."""
        if self.mood is Mood.DEAF:
            self.refused += 1
            return False
        if (request := await read(reader)) is None:
            return False
        body, mood = request.json, self.mood
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
        await answer(writer, 200 if mood is Mood.WELL else 503, {})
        return True
