"""A scripted receiver on loopback: real sockets, a record of what arrived, and every way to answer or not to."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests.engine.world import Hang
from tests.http_server import Request, read, serving


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

    def __init__(self, script: Sequence[Line] | Callable[[Request], Line]) -> None:
        self.port = 0
        self.posts: list[Request] = []
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
        if not callable(self._script) and self._script and self._script[0] == Cut(reads=False):
            self._script.pop(0)
            _reset(writer)
        elif post := await read(reader):
            self.posts.append(post)
            await self._play(self._next(post), reader, writer)

    def _next(self, post: Request) -> Line:
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
async def receiving(*script: Line, by: Callable[[Request], Line] | None = None) -> AsyncIterator[Receiver]:
    """Answer each request with the next line of the script, or as `by` says."""
    receiver = Receiver(by or script)
    async with serving(receiver.converse) as receiver.port:
        yield receiver


def _reset(writer: asyncio.StreamWriter) -> None:
    """Cut a connection so that the other side notices at once."""
    connection: socket.socket = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
