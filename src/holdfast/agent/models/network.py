"""Sockets for the HTTP client, without its per-read cost.

The client's own sockets open a cancel scope and pass through five layers for every read, which is more work than
everything else that is done for a token.  These are the event loop's own, so TLS is the loop's too.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterable
from typing import Any, cast

import httpcore2

# A reader that falls behind stops the sender here.
BUFFER_MAX_BYTES = 1 << 20
# An address that does not answer is given up for the next one after this long.
ADDRESS_MAX_S = 2.0


class Connection(asyncio.Protocol, httpcore2.AsyncNetworkStream):
    """One connection; whatever has arrived by the time it is read comes in one piece."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._pieces: list[bytes] = []
        self._buffered = 0
        self._paused = False
        self._ended = False
        self._error: Exception | None = None
        self._reader: asyncio.Future[None] | None = None
        self._writer: asyncio.Future[None] | None = None
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._pieces.append(data)
        self._buffered += len(data)
        if self._buffered > BUFFER_MAX_BYTES and not self._paused:
            self._paused = True
            self._transport.pause_reading()
        _wake(self._reader)

    def eof_received(self) -> None:
        self._ended = True
        _wake(self._reader)

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended, self._error = True, self._error or exc
        _wake(self._reader)
        _wake(self._writer)

    def pause_writing(self) -> None:
        self._writer = self._loop.create_future()

    def resume_writing(self) -> None:
        _wake(self._writer)
        self._writer = None

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if not self._pieces and not self._ended:
            self._reader = self._loop.create_future()
            timer = self._loop.call_later(timeout, _expire, self._reader) if timeout is not None else None
            try:
                await self._reader
            except TimeoutError:
                raise httpcore2.ReadTimeout from None
            finally:
                self._reader = None
                if timer is not None:
                    timer.cancel()
        return self._take(max_bytes)

    def _take(self, max_bytes: int) -> bytes:
        if not self._pieces:
            if self._error is not None:
                raise httpcore2.ReadError(str(self._error)) from self._error
            return b""
        data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces = [data[max_bytes:]] if len(data) > max_bytes else []
        data = data[:max_bytes]
        self._buffered -= len(data)
        if self._paused and self._buffered < BUFFER_MAX_BYTES // 2:
            self._paused = False
            self._transport.resume_reading()
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if self._ended:
            raise httpcore2.WriteError("the connection is closed")
        self._transport.write(buffer)
        if self._writer is None:
            return
        try:
            async with asyncio.timeout(timeout):
                await asyncio.shield(self._writer)
        except TimeoutError:
            raise httpcore2.WriteTimeout from None

    async def aclose(self) -> None:
        self._ended = True
        # Nothing that is still unsent is wanted any more, and nobody waits for a peer that does not say goodbye.
        self._transport.abort()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.AsyncNetworkStream:
        try:
            async with asyncio.timeout(timeout):
                transport = await self._loop.start_tls(
                    self._transport, self, ssl_context, server_hostname=server_hostname, ssl_handshake_timeout=timeout
                )
        except TimeoutError as error:
            self._transport.abort()
            raise httpcore2.ConnectTimeout from error
        except OSError as error:
            self._transport.abort()
            raise httpcore2.ConnectError(str(error)) from error
        if transport is None:
            raise httpcore2.ConnectError("the connection was closed during the TLS handshake")
        self._transport = transport
        return self

    def get_extra_info(self, info: str) -> Any:  # As declared by the client.
        match info:
            case "is_readable":
                # An idle connection on which something arrives is one that was closed.
                return self._ended or bool(self._pieces)
            case "server_addr":
                return self._transport.get_extra_info("peername")
            case "client_addr":
                return self._transport.get_extra_info("sockname")
            case _:
                return self._transport.get_extra_info(info)


class Network(httpcore2.AsyncNetworkBackend):
    """How the client reaches a server."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,  # noqa: ARG002 - The shape of a backend; we choose none.
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,  # noqa: ARG002 - As above.
    ) -> httpcore2.AsyncNetworkStream:
        try:
            async with asyncio.timeout(timeout):
                return await _first_that_answers(host, port)
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout from error
        except OSError as error:
            raise httpcore2.ConnectError(str(error)) from error

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


async def _first_that_answers(host: str, port: int) -> Connection:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    *earlier, last = dict.fromkeys(str(each[4][0]) for each in found)
    for address in earlier:
        try:
            async with asyncio.timeout(ADDRESS_MAX_S):
                return (await loop.create_connection(Connection, address, port))[1]
        except OSError:
            continue
    return (await loop.create_connection(Connection, last, port))[1]


def _wake(waiter: asyncio.Future[None] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)


def _expire(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_exception(TimeoutError())
