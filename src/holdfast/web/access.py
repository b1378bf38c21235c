"""What was asked, and how it was answered: a name for every request, a line in the log, and counts."""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import re
import time
from collections.abc import Generator, Iterable

import msgspec
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.core.redaction import Redaction
from holdfast.engine.log_redaction import RedactingFilter
from holdfast.web.metrics import Meter
from holdfast.web.principal import How

log = logging.getLogger("holdfast.access")

REQUEST_ID = b"x-request-id"
_SANE = re.compile(rb"[A-Za-z0-9._:/+=-]{1,128}")
_UNKNOWN = frozenset({How.ANONYMOUS, How.STRANGER})
_STREAM = b"text/event-stream"
# The next answer may differ, so a client must not cache this one.  An answer that may be cached says so itself.
_UNKEPT = (b"cache-control", b"no-store")
_encode = msgspec.json.Encoder().encode

Headers = Iterable[tuple[bytes, bytes]]


class Observed:
    """An application whose every answer carries the name of its request, and is counted.

    With `logs` there is a line for each, which holds nothing that came in a header, a query or a body.
    """

    def __init__(self, app: ASGIApp, meter: Meter, *, logs: bool = False) -> None:
        self._app = app
        self._meter = meter
        self._logs = logs
        # No two processes should give out the same name.
        self._prefix = os.urandom(6).hex().encode()
        self._numbers = itertools.count()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        asked = _Asked(scope, send, _given(scope["headers"]) or self._new())
        try:
            await self._app(scope, receive, asked.send)
        finally:
            self._meter.count(asked.method, asked.route, asked.status, None if asked.streams else asked.seconds)
            if self._logs:
                log.info("%s", _encode(asked.line()).decode())

    def _new(self) -> bytes:
        return b"req_%b_%d" % (self._prefix, next(self._numbers))


class _Asked:
    """One request, as it is answered."""

    __slots__ = ("_began", "_scope", "_send", "id", "size", "status", "streams")

    def __init__(self, scope: Scope, send: Send, request_id: bytes) -> None:
        self._scope = scope
        self._send = send
        self._began = time.perf_counter()
        self.id = request_id
        # What a client sees that left before there was an answer.
        self.status = 0
        self.size = 0
        self.streams = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers: list[tuple[bytes, bytes]] = list(message["headers"])
            self.streams = any(name == b"content-type" and value.startswith(_STREAM) for name, value in headers)
            headers.append((REQUEST_ID, self.id))
            if all(name != b"cache-control" for name, _ in headers):
                headers.append(_UNKEPT)
            message["headers"] = headers
        else:
            self.size += len(message.get("body", b""))
        await self._send(message)

    @property
    def method(self) -> str:
        return self._scope["method"]

    @property
    def route(self) -> str:
        """The template of the address, as there are few of; empty where there is none."""
        return self._scope["state"].get("route", "")

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._began

    def line(self) -> dict[str, object]:
        principal = self._scope["state"].get("principal")
        return {
            "at": int(time.time() * 1000),
            "method": self.method,
            "path": self._scope["path"],
            "status": self.status,
            "ms": round(self.seconds * 1000, 1),
            "bytes": self.size,
            "owner": principal.owner if principal and principal.how not in _UNKNOWN else None,
            "key_id": principal.key_id if principal else None,
            "request_id": self.id.decode(),
        }


def _given(headers: Headers) -> bytes | None:
    """Return the name that a client has given to its request, if it can be repeated everywhere."""
    for name, value in headers:
        if name == REQUEST_ID and _SANE.fullmatch(value):
            return value
    return None


@contextlib.contextmanager
def written(redaction: Redaction) -> Generator[None]:
    """Write the lines to standard error as they are, one JSON object each, for as long as the context lasts."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(message)s"))
    handler.addFilter(RedactingFilter(redaction))
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.propagate = True
