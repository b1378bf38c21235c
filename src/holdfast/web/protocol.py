"""HTTP with a limit on what may come before anybody knows who it is: how much, how slowly, and from how many at once."""

from __future__ import annotations

import asyncio
from typing import cast

from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from holdfast.web.answers import refusal

HEAD_MAX = 64 * 1024
HEAD_TIMEOUT_S = 10.0
CONNECTIONS_MAX = 2_000
_CROWDED = refusal(503, "crowded", "too many connections are open", "try again in a moment")
_CROWDED.headers["Connection"] = "close"


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's protocol; a head that is too long or takes too long costs the client its connection."""

    _head_size = 0
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # As uvicorn narrows it.
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_head()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        # While the head is not complete, all that has come belongs to it.
        if self._head_timer:
            self._head_size += len(data)
            if self._head_size > HEAD_MAX:
                self.transport.close()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if not self._head_timer:
            self._await_head()

    def on_headers_complete(self) -> None:
        self._end_head()
        # Judged at each request, because a connection stays while the crowd comes and goes.
        served = cast("ASGIApp", self.config.loaded_app)  # pyright: ignore[reportUnknownMemberType] - uvicorn does not say.
        self.app = _CROWDED if len(self.connections) > CONNECTIONS_MAX else served
        super().on_headers_complete()

    def _await_head(self) -> None:
        self._head_size = 0
        self._head_timer = self.loop.call_later(HEAD_TIMEOUT_S, self.transport.close)

    def _end_head(self) -> None:
        if self._head_timer:
            self._head_timer.cancel()
            self._head_timer = None
