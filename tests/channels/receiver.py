"""A scripted receiver on loopback: real sockets, a record of what arrived, and every way to answer or not to."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.engine.world import Hang


@dataclass(frozen=True)
class Post:
    """One request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Reply:
    """An answer.  `more` is what it promises beyond its body and never sends; an endless one goes on for ever."""

    status: str = "200 OK"
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    more: int = 0
    endless: bool = False


@dataclass(frozen=True)
class Cut:
    """No answer: the connection is cut, after the request was read or before that."""

    reads: bool = True


Line = Reply | Cut | Hang


class Receiver:
    """A server that runs, what arrived there, and what it will do next; without a script it takes everything."""

    def __init__(self, script: Sequence[Line] | Callable[[Post], Line]) -> None:
        self.port = 0
        self.posts: list[Post] = []
        self.connections = 0
        self.sent_bytes = 0
        self._script = script if callable(script) else list(script)

    @property
    def hosts(self) -> list[str]:
        return [f"127.0.0.1:{self.port}"]

    def url(self, path: str = "/hook", host: str = "127.0.0.1", scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}{path}"

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            if not callable(self._script) and self._script and self._script[0] == Cut(reads=False):
                self._script.pop(0)
                _reset(writer)
                return
            post = await _read(reader)
            self.posts.append(post)
            await self._play(self._next(post), reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    def _next(self, post: Post) -> Line:
        if callable(self._script):
            return self._script(post)
        return self._script.pop(0) if self._script else Reply()

    async def _play(self, line: Line, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        match line:
            case Cut():
                _reset(writer)
            case Hang():
                await line.wait()
                await self._write(writer, Reply())
            case Reply():
                await self._write(writer, line)
                if line.more:
                    # Whoever waits for the rest has to leave by itself.
                    await reader.read()

    async def _write(self, writer: asyncio.StreamWriter, reply: Reply) -> None:
        length = {} if reply.endless else {"Content-Length": str(len(reply.body) + reply.more)}
        lines = "".join(f"{name}: {value}\r\n" for name, value in {**length, **reply.headers}.items())
        writer.write(f"HTTP/1.1 {reply.status}\r\n{lines}Connection: close\r\n\r\n".encode("latin-1"))
        writer.write(reply.body)
        await writer.drain()
        while reply.endless:
            writer.write(reply.body)
            self.sent_bytes += len(reply.body)
            await writer.drain()


@asynccontextmanager
async def receiving(*script: Line, by: Callable[[Post], Line] | None = None) -> AsyncIterator[Receiver]:
    """Answer each request with the next line of the script, or as `by` says."""
    receiver = Receiver(by or script)
    talks: set[asyncio.Task[None]] = set()
    server = await asyncio.start_server(
        lambda reader, writer: talks.add(asyncio.create_task(receiver.converse(reader, writer))), "127.0.0.1", 0
    )
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()
        for each in talks:
            each.cancel()
        await asyncio.gather(*talks, return_exceptions=True)


def _reset(writer: asyncio.StreamWriter) -> None:
    """Cut a connection so that the other side notices at once."""
    connection: socket.socket = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def _read(reader: asyncio.StreamReader) -> Post:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Post(method=method, path=path, headers=headers, body=body)
