"""Scripted HTTP servers on loopback: real sockets, and a record of what was asked of them."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests import http_server
from tests.http_server import Request


@dataclass(frozen=True)
class Reply:
    """One scripted answer; without an end it is sent over and over until the client hangs up."""

    body: bytes = b""
    status: str = "200 OK"
    headers: dict[str, str] = field(default_factory=dict)
    endless: bool = False
    hangs: bool = False


@dataclass
class Served:
    """A server that runs, and what it was asked."""

    port: int
    asked: list[Request] = field(default_factory=list)
    sent_bytes: int = 0

    def url(self, path: str = "/", host: str = "127.0.0.1", scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}{path}"


@asynccontextmanager
async def serving(
    script: Callable[[Request], Reply], host: str = "127.0.0.1", context: ssl.SSLContext | None = None
) -> AsyncIterator[Served]:
    """Answer every request as the script says."""
    served = Served(port=0)

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if asked := await http_server.read(reader):
            served.asked.append(asked)
            await _write(writer, script(asked), served, body=asked.method != "HEAD")

    async with http_server.serving(converse, host=host, tls=context) as served.port:
        yield served


async def _write(writer: asyncio.StreamWriter, reply: Reply, served: Served, *, body: bool) -> None:
    length = {} if reply.endless or reply.hangs else {"Content-Length": str(len(reply.body))}
    lines = "".join(f"{name}: {value}\r\n" for name, value in {**length, **reply.headers}.items())
    writer.write(f"HTTP/1.1 {reply.status}\r\n{lines}Connection: close\r\n\r\n".encode("latin-1"))
    while body:
        writer.write(reply.body)
        served.sent_bytes += len(reply.body)
        await writer.drain()
        if reply.hangs:
            await asyncio.sleep(3_600)
        if not reply.endless:
            break
