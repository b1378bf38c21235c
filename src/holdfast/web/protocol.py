"""HTTP with a limit on what a client may take: how much, how slowly, and from how many at once."""

from __future__ import annotations

import asyncio
import functools
import sys
from collections.abc import Callable
from typing import Any, Protocol, cast

from starlette.responses import Response
from starlette.types import ASGIApp, Scope
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from holdfast.web import lingering_close
from holdfast.web.answers import NO_MEMORY, refusal
from holdfast.web.lingering_close import Lingering
from holdfast.web.peers import Peers, peer_of
from holdfast.web.users import uid_of

HEAD_MAX = 64 * 1024
HEAD_TIMEOUT_S = 10.0
# How long sent bytes may wait for a client that reads none of them.
WRITE_TIMEOUT_S = 60.0
CONNECTIONS_MAX = 2_000
# This many more connections get an answer that says there are too many; further ones are closed without an answer.
CROWD_MAX = 500
_TWO_HOSTS = refusal(400, "bad_http", "a request names one host, in one Host header", "send Host once")
_TWO_HOSTS.headers["Connection"] = "close"
_CROWDED = refusal(503, "crowded", "too many connections are open", "try again in a moment")
_CROWDED.headers["Connection"] = "close"
# Made beforehand, because by then there is no memory to make it.
_STARVED = refusal(*NO_MEMORY)
_CONNECTION = "holdfast.connection"


class Connection(Protocol):
    """What an answer may know of the connection that it goes out by."""

    # Called when the client has gone.
    when_lost: Callable[[], None] | None

    @property
    def lost(self) -> bool: ...
    @property
    def arrived(self) -> bool:
        """Whether all of what is being answered has come in."""
        ...

    @property
    def choked(self) -> bool:
        """Whether more was sent than the client takes."""
        ...

    @property
    def uid(self) -> int | None:
        """Which user of this machine the client is; None where that cannot be told."""
        ...

    def abort(self) -> None:
        """Close it at once; bytes that wait to be sent are dropped."""
        ...


def connection_of(scope: Scope) -> Connection:
    """Return the connection by which a request came."""
    return scope["extensions"][_CONNECTION]


def has_arrived(scope: Scope) -> bool:
    """Return whether all of a request has come in, so that reading its body does not have to wait."""
    connection: Connection | None = scope.get("extensions", {}).get(_CONNECTION)
    return connection is not None and connection.arrived


class _Outlet:
    """The transport as an answer uses it: how to close behind an answer is for the protocol to say."""

    __slots__ = ("close", "is_closing", "write")

    def __init__(self, transport: asyncio.Transport, close: Callable[[], None]) -> None:
        self.write = transport.write
        self.is_closing = transport.is_closing
        self.close = close


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's protocol; a client with too long or slow a head, or that takes nothing, loses its connection.

    What comes behind an answer, such as the rest of a body that was not read, has as long as a head and may be as large as
    what a closing connection takes.  Within these bounds the next request may follow.
    """

    when_lost: Callable[[], None] | None = None
    # Shared by all connections of a server.
    peers = Peers()
    _peer: str | None = None
    # What is being answered, which is not the last request where several came at once.
    _running: RequestResponseCycle | None = None
    # Whether the server closes, and no connection may take longer than it must.
    _leaving = False
    # How much has come since a head was complete or a body went on.
    _size = 0
    _went_on = False
    _in_head = False
    # How much has come since a head was last waited for.
    _behind = 0
    _head_timer: asyncio.TimerHandle | None = None
    _write_timer: asyncio.TimerHandle | None = None

    @functools.cached_property
    def uid(self) -> int | None:
        return uid_of(self.transport.get_extra_info("socket"))

    @property
    def lost(self) -> bool:
        return self.transport.is_closing()

    @property
    def arrived(self) -> bool:
        return self._running is not None and not self._running.more_body

    @property
    def choked(self) -> bool:
        return self.flow.write_paused

    def abort(self) -> None:
        self.transport.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # As uvicorn narrows it.
        super().connection_made(transport)
        self._outlet = cast("asyncio.Transport", _Outlet(transport, self._close))
        # A client of the Unix socket has no address, and is the operator.
        self._peer = peer_of(self.client[0], self.uid) if self.client else None
        welcome = self._peer is None or self.peers.opened(self._peer)
        if len(self.connections) > CONNECTIONS_MAX + CROWD_MAX or not welcome:
            self.transport.abort()
        self._rest()
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._peer is not None:
            # This is called twice for a connection that lingers.
            self.peers.closed(self._peer, self)
            self._peer = None
        self._end_head()
        super().connection_lost(exc)
        if self._running:
            self._running.disconnected = True
            self._running.message_event.set()
        self._end_write()
        if self.when_lost:
            self.when_lost()

    def data_received(self, data: bytes) -> None:
        self._went_on = False
        try:
            super().data_received(data)
        except MemoryError:
            self._refuse(_STARVED)
        # A head, and what may stand behind a body, is kept until it is complete, and may have no end.
        self._size = 0 if self._went_on else self._size + len(data)
        if self._size > HEAD_MAX:
            self.transport.close()
        if self._in_head or self._is_idle:
            self._pass(len(data))

    def send_400_response(self, msg: str) -> None:
        # The parser tells every error of its callbacks as one of the request.
        error = sys.exception()
        if error and isinstance(error.__context__, MemoryError):
            self._refuse(_STARVED)
        else:
            self._refuse(refusal(400, "bad_http", msg, "send HTTP/1.1"))

    def _refuse(self, answer: Response) -> None:
        """Answer in place of the application, and close."""
        head = [*self.server_state.default_headers, *answer.raw_headers, (b"connection", b"close")]
        lines = (b"%b: %b\r\n" % each for each in head)
        self.transport.write(b"".join((STATUS_LINE[answer.status_code], *lines, b"\r\n", bytes(answer.body))))
        self._linger()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head = True
        self.scope["extensions"] = {_CONNECTION: self}  # type: ignore[typeddict-item]  # This extension is our own.
        self._end_head()

    def on_header(self, name: bytes, value: bytes) -> None:
        # Trailers, the headers after a body, came too late to be checked with the request.
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._end_head()
        self._in_head, self._went_on = False, True
        # Judged at each request, because a connection stays while the crowd comes and goes.
        served = cast("ASGIApp", self.config.loaded_app)  # pyright: ignore[reportUnknownMemberType] - uvicorn does not say.
        self.app = _CROWDED if len(self.connections) > CONNECTIONS_MAX else served
        if sum(name == b"host" for name, _ in self.headers) > 1:
            # Who stands between may have judged by the other one.
            self.app = _TWO_HOSTS
        if self._peer is not None:
            self.peers.works(self._peer, self)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._went_on = True
        super().on_body(body)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGIApp) -> None:  # type: ignore[override]  # The same.
        self._running = cycle
        cycle.transport = self._outlet
        super()._start_asgi_task(cycle, app)  # type: ignore[arg-type]

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._is_idle:
            self._rest()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._write_timer = self.loop.call_later(WRITE_TIMEOUT_S, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._end_write()

    def shutdown(self) -> None:
        self._leaving = True
        super().shutdown()

    def _rest(self) -> None:
        # One that closes already makes no room for another.
        if self._peer is not None and not self.transport.is_closing():
            self.peers.rests(self._peer, self, self.transport.abort)

    @property
    def _is_idle(self) -> bool:
        return not self.cycle or self.cycle.response_complete

    def _close(self) -> None:
        """Close behind an answer, in such a way that a client that is still sending its request can read it."""
        if self._running and self._running.more_body:
            self._linger()
        else:
            self.transport.close()

    def _linger(self) -> None:
        transport = self.transport
        if self._leaving or transport.is_closing():
            transport.close()
            return
        self._unset_keepalive_if_required()
        # HTTP ends here. It is told so with an error, because uvicorn closes what was lost without one.
        self.connection_lost(ConnectionAbortedError())
        self.transport = cast("asyncio.Transport", Lingering(transport, cast("set[Any]", self.connections), self.loop))
        if self._running:
            self._running.transport = self.transport

    def _pass(self, size: int) -> None:
        """Take what belongs to no request that is being read, in bounds."""
        if not self._head_timer:
            # A head that came at once needs none; after any other sign of life uvicorn would wait without end for the next.
            self._await_head()
        self._behind += size
        if self._behind > lingering_close.LINGER_MAX:
            self.transport.close()

    def _await_head(self) -> None:
        if self.transport.is_closing():
            return
        self._behind = 0
        self._head_timer = self.loop.call_later(HEAD_TIMEOUT_S, self.transport.close)

    def _end_head(self) -> None:
        if self._head_timer:
            self._head_timer.cancel()
            self._head_timer = None

    def _end_write(self) -> None:
        if self._write_timer:
            self._write_timer.cancel()
            self._write_timer = None
