"""A client of a gateway, or of a model server, that costs next to nothing: HTTP by hand over kept connections."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Self

WAIT_MAX_S = 120
READ_BYTES = 1 << 16


class Client:
    """One connection to one port of this machine."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._unread = b""

    @classmethod
    async def of(cls, port: int) -> Self:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def post(self, path: str, body: object) -> Any:
        """Return the answer to a request, as it was read from JSON."""
        self.send("POST", path, body)
        return await self._answer(path)

    async def get(self, path: str) -> Any:
        """Return what is there, as it was read from JSON."""
        self.send("GET", path)
        return await self._answer(path)

    async def _answer(self, path: str) -> Any:
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        if not head.startswith("HTTP/1.1 2"):
            raise RuntimeError(f"{path}: {head}")
        length = next(line for line in head.lower().split("\r\n") if line.startswith("content-length:"))
        return json.loads(await self._reader.readexactly(int(length.partition(":")[2])))

    def send(self, method: str, path: str, body: object = None) -> None:
        content = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        self._writer.write(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)

    async def until(self, mark: bytes) -> None:
        """Read on until a mark has come by, wherever the pieces are cut."""
        async with asyncio.timeout(WAIT_MAX_S):
            while mark not in self._unread:
                if not (piece := await self._reader.read(READ_BYTES)):
                    raise RuntimeError(f"the connection ended before {mark!r}")
                self._unread = self._unread[-len(mark) :] + piece
        self._unread = self._unread.partition(mark)[2]

    def close(self) -> None:
        self._writer.close()


class Conversation:
    """A session of a gateway, with its events as they come."""

    def __init__(self, gateway: Client, events: Client, session_id: str) -> None:
        self._gateway = gateway
        self._events = events
        self._path = f"/api/sessions/{session_id}"

    @classmethod
    async def open(cls, gateway: Client, port: int) -> Self:
        """Open a session and follow it."""
        session = await gateway.post("/api/sessions", {})
        events = await Client.of(port)
        events.send("GET", f"/api/sessions/{session['id']}/events")
        await events.until(b"retry: ")
        return cls(gateway, events, session["id"])

    async def say(self, text: str, client: Client | None = None) -> None:
        """Send a message, over the connection of `client` where the usual one is busy."""
        await (client or self._gateway).post(f"{self._path}/messages", {"text": text})

    async def heard(self, mark: str) -> None:
        """Return when something has come by."""
        await self._events.until(mark.encode())

    async def completed(self) -> None:
        """Return when a turn has."""
        await self.heard('"kind":"turn.completed"')

    def close(self) -> None:
        self._events.close()
