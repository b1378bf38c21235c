"""HTTP with a limit on what a client may take: how much, how slowly, and from how many at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, cast

from starlette.types import ASGIApp, Scope
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from holdfast.web.answers import refusal

HEAD_MAX = 64 * 1024
HEAD_TIMEOUT_S = 10.0
# So long what was sent may wait for a client that takes nothing of it.
WRITE_TIMEOUT_S = 60.0
CONNECTIONS_MAX = 2_000
# So many more are told that there are too many; whoever comes after them is told nothing.
CROWD_MAX = 500
_CROWDED = refusal(503, "crowded", "too many connections are open", "try again in a moment")
_CROWDED.headers["Connection"] = "close"
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

    def abort(self) -> None:
        """Close it, whatever still waits to be sent."""
        ...


def connection_of(scope: Scope) -> Connection:
    """Return the connection by which a request came."""
    return scope["extensions"][_CONNECTION]


def has_arrived(scope: Scope) -> bool:
    """Return whether all of a request has come in, so that nobody has to wait for the rest."""
    connection: Connection | None = scope.get("extensions", {}).get(_CONNECTION)
    return connection is not None and connection.arrived


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's protocol; a client with too long or slow a head, or that takes nothing, loses its connection.

    What comes behind an answer has as long as a head, be it the rest of a body that nobody read.
    """

    when_lost: Callable[[], None] | None = None
    # What is being answered, which is not the last request where several came at once.
    _running: RequestResponseCycle | None = None
    # How much has come since a head was complete or a body went on.
    _size = 0
    _went_on = False
    _in_head = False
    _head_timer: asyncio.TimerHandle | None = None
    _write_timer: asyncio.TimerHandle | None = None

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
        if len(self.connections) > CONNECTIONS_MAX + CROWD_MAX:
            self.transport.abort()
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
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
        super().data_received(data)
        # A head, and what may stand behind a body, is kept until it is complete, and may have no end.
        self._size = 0 if self._went_on else self._size + len(data)
        if self._size > HEAD_MAX:
            self.transport.close()
        if (self._in_head or self._is_idle) and not self._head_timer:
            # A head that came at once needs none; after any other sign of life uvicorn would wait without end for the next.
            self._await_head()

    def send_400_response(self, msg: str) -> None:
        answer = refusal(400, "bad_http", msg, "send HTTP/1.1")
        head = [*self.server_state.default_headers, *answer.raw_headers, (b"connection", b"close")]
        lines = (b"%b: %b\r\n" % each for each in head)
        self.transport.write(b"".join((STATUS_LINE[400], *lines, b"\r\n", bytes(answer.body))))
        self.transport.close()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head = True
        self.scope["extensions"] = {_CONNECTION: self}  # type: ignore[typeddict-item]  # It is nobody's but ours.
        self._end_head()

    def on_header(self, name: bytes, value: bytes) -> None:
        # Whatever stands behind a body was not there when the request was judged.
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._end_head()
        self._in_head, self._went_on = False, True
        # Judged at each request, because a connection stays while the crowd comes and goes.
        served = cast("ASGIApp", self.config.loaded_app)  # pyright: ignore[reportUnknownMemberType] - uvicorn does not say.
        self.app = _CROWDED if len(self.connections) > CONNECTIONS_MAX else served
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._went_on = True
        super().on_body(body)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGIApp) -> None:  # type: ignore[override]  # The same.
        self._running = cycle
        super()._start_asgi_task(cycle, app)  # type: ignore[arg-type]

    def pause_writing(self) -> None:
        super().pause_writing()
        self._write_timer = self.loop.call_later(WRITE_TIMEOUT_S, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._end_write()

    @property
    def _is_idle(self) -> bool:
        return not self.cycle or self.cycle.response_complete

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_TIMEOUT_S, self.transport.close)

    def _end_head(self) -> None:
        if self._head_timer:
            self._head_timer.cancel()
            self._head_timer = None

    def _end_write(self) -> None:
        if self._write_timer:
            self._write_timer.cancel()
            self._write_timer = None
