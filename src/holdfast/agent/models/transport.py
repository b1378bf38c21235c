"""An HTTP/1.1 transport for the shared client, at a third of the CPU cost per token.

The client's own transport passes every token through a parser in Python, a cancel scope and six generators.  Here the event
loop's connection feeds a parser in C, and bytes that arrive together are read together.  Proxies are left to the client.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import defaultdict
from collections.abc import AsyncIterator
from typing import cast

import httptools
import httpx2

# Reading from the socket pauses while this much is buffered.
BUFFER_MAX_BYTES = 1 << 20
# If an address does not answer within this time, the next one is tried.
ADDRESS_MAX_S = 2.0
# A connection that was idle for longer may have been dropped by a firewall.
IDLE_MAX_S = 60.0
HEAD_MAX_BYTES = 64 << 10
_INFORMATIONAL_MAX = 199

Origin = tuple[str, str, int]


class HttpConnection(asyncio.Protocol):
    """One connection, and the response that arrives on it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport
        self._waiter: asyncio.Future[None] | None = None
        self._drained: asyncio.Future[None] | None = None
        self._error: Exception | None = None
        self._begin()
        self.ended = False
        self.idle_since = 0.0

    def _begin(self) -> None:
        self._pieces: list[bytes] = []
        self._buffered = 0
        self._paused = False
        self._head_bytes = 0
        self._until_close = True
        self._keep_alive = False
        self.headers: list[tuple[bytes, bytes]] = []
        self.status = 0
        self.complete = False
        self.touched = False

    # Callbacks of the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self.touched = True
        if self.complete:
            # Data after the response is unexpected.
            self.close()
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(error)
        if not self.status:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_MAX_BYTES:
                self._fail(ValueError("headers without end"))
        if self._buffered > BUFFER_MAX_BYTES and not self._paused:
            self._paused = True
            self._transport.pause_reading()
        _wake(self._waiter)

    def eof_received(self) -> None:
        self._end(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(exc)

    def pause_writing(self) -> None:
        self._drained = self._loop.create_future()

    def resume_writing(self) -> None:
        _wake(self._drained)
        self._drained = None

    # Callbacks of the parser.

    def on_message_begin(self) -> None:
        # A second response is unexpected, so the connection is not reused.
        if self.complete:
            self.close()

    def on_header(self, name: bytes, value: bytes) -> None:
        # Trailers after the body are ignored.
        if not self.status:
            self.headers.append((name, value))
            self._until_close &= name.lower() not in (b"content-length", b"transfer-encoding")

    def on_headers_complete(self) -> None:
        if self.complete:
            return
        status = self._parser.get_status_code()
        if status <= _INFORMATIONAL_MAX:
            self.headers = []
        else:
            self.status = status

    def on_body(self, body: bytes) -> None:
        if not self.complete:
            self._pieces.append(body)
            self._buffered += len(body)

    def on_message_complete(self) -> None:
        # An informational response is a message of its own.
        self.complete = bool(self.status)
        self._keep_alive = self._parser.should_keep_alive()

    # For requests.

    async def send(self, data: bytes, timeout: float | None) -> None:
        """Send a request, and reset the response."""
        self._begin()
        self._transport.write(data)
        if self._drained is not None:
            try:
                async with asyncio.timeout(timeout):
                    await asyncio.shield(self._drained)
            except TimeoutError as error:
                raise httpx2.WriteTimeout("") from error

    async def head(self, timeout: float | None) -> None:
        """Wait for the status and the headers."""
        until = self._until(timeout)
        while not self.status:
            self._check()
            await self._wait(until)

    async def read(self, timeout: float | None) -> bytes:
        """Return the next bytes of the body; empty at its end."""
        until = self._until(timeout)
        while not self._pieces:
            if self.complete:
                return b""
            self._check()
            await self._wait(until)
        pieces, self._pieces, self._buffered = self._pieces, [], 0
        if self._paused:
            self._paused = False
            self._transport.resume_reading()
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def secure(self, context: ssl.SSLContext, host: str) -> None:
        """Start TLS."""
        transport = await self._loop.start_tls(self._transport, self, context, server_hostname=host)
        if transport is None:
            raise ConnectionResetError
        self._transport = transport

    @property
    def reusable(self) -> bool:
        """Whether another request can follow."""
        return self.complete and self._keep_alive and not self.ended and not self._pieces

    def close(self) -> None:
        """Abort the connection without waiting for unsent data or the peer."""
        self.ended = True
        self._transport.abort()

    def _check(self) -> None:
        if self.ended:
            raise httpx2.RemoteProtocolError("the connection was cut") from self._error

    def _end(self, error: Exception | None) -> None:
        self.ended, self._error = True, self._error or error
        if self.status and self._until_close and error is None and self._error is None:
            self.complete = True
        _wake(self._waiter)
        _wake(self._drained)

    def _fail(self, error: Exception) -> None:
        self._error = self._error or error
        self.close()

    def _until(self, timeout: float | None) -> float | None:
        return None if timeout is None else self._loop.time() + timeout

    async def _wait(self, until: float | None) -> None:
        self._waiter = self._loop.create_future()
        timer = self._loop.call_at(until, _expire, self._waiter) if until is not None else None
        try:
            await self._waiter
        except TimeoutError:
            raise httpx2.ReadTimeout("") from None
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()


class Body(httpx2.AsyncByteStream):
    """The body of a response.  Closing it before its end closes the connection."""

    def __init__(self, pool: Transport, origin: Origin, connection: HttpConnection, timeout: float | None) -> None:
        self._pool = pool
        self._origin = origin
        self._connection = connection
        self._timeout = timeout
        self._closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while chunk := await self._connection.read(self._timeout):
            yield chunk

    async def aclose(self) -> None:
        if not self._closed:
            self._closed = True
            self._pool.give_back(self._origin, self._connection)


class Transport(httpx2.AsyncBaseTransport):
    """A transport that pools connections by origin."""

    def __init__(self, context: ssl.SSLContext, idle_max_s: float = IDLE_MAX_S) -> None:
        context.set_alpn_protocols(["http/1.1"])
        self._context = context
        self._idle_max_s = idle_max_s
        self._idle: defaultdict[Origin, list[HttpConnection]] = defaultdict(list)
        self._busy: set[HttpConnection] = set()
        # Closes idle connections even if no further request comes.
        self._closing: asyncio.TimerHandle | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        timeouts: dict[str, float | None] = request.extensions.get("timeout", {})
        url = request.url
        origin = url.scheme, url.raw_host.decode("ascii"), url.port or (443 if url.scheme == "https" else 80)
        data = await _written(request)
        while True:
            connection = self._kept(origin)
            reused = connection is not None
            connection = connection or await self._dialled(origin, timeouts.get("connect"))
            self._busy.add(connection)
            try:
                await connection.send(data, timeouts.get("write"))
                await connection.head(timeouts.get("read"))
                break
            except BaseException as error:
                self._drop(connection)
                # The server closed the idle connection while the request was being written: try a new one.
                if not (reused and isinstance(error, httpx2.RemoteProtocolError) and not connection.touched):
                    raise
        body = Body(self, origin, connection, timeouts.get("read"))
        return httpx2.Response(connection.status, headers=connection.headers, stream=body)

    async def aclose(self) -> None:
        for connection in [*self._busy, *(each for kept in self._idle.values() for each in kept)]:
            connection.close()
        self._busy.clear()
        self._idle.clear()
        if self._closing:
            self._closing.cancel()
            self._closing = None

    def give_back(self, origin: Origin, connection: HttpConnection) -> None:
        """Return a connection to the pool, or close it if it cannot be reused."""
        if connection in self._busy and connection.reusable:
            self._busy.discard(connection)
            loop = asyncio.get_running_loop()
            connection.idle_since = loop.time()
            self._idle[origin].append(connection)
            self._closing = self._closing or loop.call_later(self._idle_max_s, self._close_idle)
        else:
            self._drop(connection)

    def _kept(self, origin: Origin) -> HttpConnection | None:
        kept = self._idle[origin]
        while kept:
            connection = kept.pop()
            if connection.reusable and connection.idle_since > self._oldest():
                return connection
            connection.close()
        return None

    def _oldest(self) -> float:
        """Return the earliest `idle_since` of a connection that may be reused."""
        return asyncio.get_running_loop().time() - self._idle_max_s

    def _close_idle(self) -> None:
        self._closing, oldest = None, self._oldest()
        for origin, kept in [*self._idle.items()]:
            for connection in kept:
                if connection.idle_since <= oldest:
                    connection.close()
            self._idle[origin] = [each for each in kept if each.idle_since > oldest]
        left = [each.idle_since for kept in self._idle.values() for each in kept]
        if left:
            self._closing = asyncio.get_running_loop().call_at(min(left) + self._idle_max_s, self._close_idle)

    def _drop(self, connection: HttpConnection) -> None:
        self._busy.discard(connection)
        connection.close()

    async def _dialled(self, origin: Origin, timeout: float | None) -> HttpConnection:
        scheme, host, port = origin
        try:
            async with asyncio.timeout(timeout):
                connection = await _first_that_answers(host, port)
                if scheme == "https":
                    try:
                        await connection.secure(self._context, host)
                    except BaseException:
                        connection.close()
                        raise
        except TimeoutError as error:
            raise httpx2.ConnectTimeout("") from error
        except OSError as error:
            raise httpx2.ConnectError(str(error)) from error
        return connection


async def _written(request: httpx2.Request) -> bytes:
    head = [b"%s %s HTTP/1.1\r\n" % (request.method.encode(), request.url.raw_path)]
    for name, value in request.headers.raw:
        if b"\r" in value or b"\n" in value:
            raise httpx2.LocalProtocolError("a header has more than one line")
        head.append(b"%s: %s\r\n" % (name, value))
    return b"".join([*head, b"\r\n", await request.aread()])


async def _first_that_answers(host: str, port: int) -> HttpConnection:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    *earlier, last = dict.fromkeys(str(each[4][0]) for each in found)
    for address in earlier:
        try:
            async with asyncio.timeout(ADDRESS_MAX_S):
                return (await loop.create_connection(HttpConnection, address, port))[1]
        except OSError:
            continue
    return (await loop.create_connection(HttpConnection, last, port))[1]


def _wake(waiter: asyncio.Future[None] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)


def _expire(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_exception(TimeoutError())
