"""Connections of scripted HTTP servers on loopback, which may answer, or break the protocol, wherever they like."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

Converse = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True)
class Request:
    """One request as it arrived.  The names of its headers are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@contextlib.asynccontextmanager
async def serving(
    converse: Converse, port: int = 0, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    """Serve connections, and cancel those that are left when the context ends.  Yields the port."""
    talks: set[asyncio.Task[None]] = set()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await converse(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(talk(reader, writer))
        talks.add(task)
        task.add_done_callback(talks.discard)

    server = await asyncio.start_server(begin, host, port, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        left = list(talks)
        for each in left:
            each.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await server.wait_closed()


async def read(reader: asyncio.StreamReader) -> Request | None:
    """Return the next request of a connection; None if the client has closed it."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.strip().split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method=method, path=path, headers=headers, body=body)


async def answer(writer: asyncio.StreamWriter, status: int, body: object) -> None:
    """Answer with JSON."""
    raw = json.dumps(body).encode()
    writer.write(f"HTTP/1.1 {status} Scripted\r\nContent-Length: {len(raw)}\r\n\r\n".encode() + raw)
    await writer.drain()
