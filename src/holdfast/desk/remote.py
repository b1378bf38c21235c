"""The desk of another process: the gateway that runs in a home, over its Unix socket."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import httpx2
import msgspec

from holdfast.core.delivery import Delivery
from holdfast.core.delivery import State as DeliveryState
from holdfast.core.intake import Busy, Receipt
from holdfast.core.journal import Entry
from holdfast.core.sessions import Hit
from holdfast.core.sessions import State as SessionState
from holdfast.desk.address import NOTICED_AFTER_S, short_path, unnoticed
from holdfast.desk.port import Opening, Pruning
from holdfast.desk.views import Health, Page, SessionView, Status, Stop, Transcript, TurnView
from holdfast.errors import (
    HoldfastError,
    IllegalMove,
    NotFound,
    NotRunning,
    QueueFull,
    Rejected,
    Stale,
    Unavailable,
)
from holdfast.ids import DeliveryId, SessionId, TurnId, new_id

T = TypeVar("T")

TIMEOUT_S = 30
# A gateway that restarts is back within this; a reader waits for it.
ABSENCE_MAX_S = 60
_RETRY_S = 0.2
# Longer than the pause between two heartbeats, so that a gateway that hangs is noticed.
_SILENCE_MAX_S = 40


class _Problem(msgspec.Struct):
    code: str = ""
    message: str = ""
    state: str = ""


class _Refusal(msgspec.Struct):
    error: _Problem


class _Pruned(msgspec.Struct):
    pruned: int


class _Deleted(msgspec.Struct):
    deleted: bool


class _RemoteMove(IllegalMove):
    """A move that the gateway refused, in its own words."""

    def __init__(self, message: str, state: str) -> None:
        Rejected.__init__(self, message)
        self.state = state


class _Absence:
    """How long the gateway has been away.  Whoever waits is told once that it is not there."""

    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell = tell
        self._told = False
        self._since: float | None = None

    def over(self) -> None:
        self._told = False
        self._since = None

    async def wait(self) -> None:
        """Wait before the next try.  Raises `Unavailable` when it has been away for too long."""
        now = time.monotonic()
        self._since = self._since or now
        if now - self._since > ABSENCE_MAX_S:
            raise Unavailable("the gateway has not come back")
        if now - self._since > NOTICED_AFTER_S and not self._told:
            self._told = True
            self._tell()
        await asyncio.sleep(_RETRY_S)


class RemoteDesk:
    """Everything that may be asked, as HTTP."""

    def __init__(self, client: httpx2.AsyncClient, path: Path, absent: Callable[[], None]) -> None:
        self._client = client
        self._path = path
        self._absent = absent

    async def sessions(
        self,
        *,
        state: SessionState | None = None,
        key: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page[SessionView]:
        query = {"state": state, "key": key, "cursor": cursor, "limit": limit}
        return await self._get("/api/sessions", Page[SessionView], query)

    async def session(self, session_id: SessionId) -> SessionView:
        return await self._get(_at("sessions", session_id), SessionView)

    async def transcript(self, session_id: SessionId) -> Transcript:
        return await self._get(_at("sessions", session_id, "messages"), Transcript)

    async def turns(self, session_id: SessionId, *, cursor: str | None = None, limit: int = 100) -> Page[TurnView]:
        return await self._get("/api/turns", Page[TurnView], {"session": session_id, "cursor": cursor, "limit": limit})

    async def turn(self, turn_id: TurnId) -> TurnView:
        return await self._get(_at("turns", turn_id), TurnView)

    async def deliveries(
        self,
        *,
        state: DeliveryState | None = None,
        session_id: SessionId | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page[Delivery]:
        query = {"state": state, "session": session_id, "cursor": cursor, "limit": limit}
        return await self._get("/api/deliveries", Page[Delivery], query)

    async def delivery(self, delivery_id: DeliveryId) -> Delivery:
        return await self._get(_at("deliveries", delivery_id), Delivery)

    async def search(self, query: str, limit: int = 50) -> Page[Hit]:
        return await self._get("/api/search", Page[Hit], {"q": query, "limit": limit})

    async def open(self, opening: Opening) -> SessionView:
        return await self._post("/api/sessions", SessionView, opening)

    async def send(self, session_id: SessionId, text: str, key: str | None = None, busy: Busy | None = None) -> Receipt:
        # With a key of its own the request is safe to repeat, when its answer is lost or the gateway restarts.
        headers = {"Idempotency-Key": key or new_id("cli", time.time_ns() // 1_000_000)}
        absence = _Absence(self._absent)
        while True:
            try:
                return await self._post(
                    _at("sessions", session_id, "messages"), Receipt, {"text": text, "busy": busy}, headers
                )
            except Unavailable:
                await absence.wait()

    async def rename(self, session_id: SessionId, title: str) -> SessionView:
        return await self._call("PATCH", _at("sessions", session_id), SessionView, json={"title": title})

    async def end(self, session_id: SessionId) -> SessionView:
        return await self._post(_at("sessions", session_id, "end"), SessionView)

    async def suspend(self, session_id: SessionId) -> SessionView:
        return await self._post(_at("sessions", session_id, "suspend"), SessionView)

    async def fork(self, session_id: SessionId, through: TurnId | None = None) -> SessionView:
        return await self._post(_at("sessions", session_id, "fork"), SessionView, {"through": through})

    async def delete(self, session_id: SessionId) -> None:
        await self._call("DELETE", _at("sessions", session_id), _Deleted)

    async def prune(self, pruning: Pruning) -> int:
        return (await self._post("/api/prune", _Pruned, pruning)).pruned

    async def cancel(self, turn_id: TurnId) -> TurnView:
        return await self._post(_at("turns", turn_id, "cancel"), TurnView)

    async def retry(self, turn_id: TurnId) -> TurnView:
        return await self._post(_at("turns", turn_id, "retry"), TurnView)

    async def answer(self, turn_id: TurnId, text: str, question_id: str | None = None) -> TurnView:
        return await self._post(_at("turns", turn_id, "answer"), TurnView, {"text": text, "question_id": question_id})

    async def retry_delivery(self, delivery_id: DeliveryId) -> Delivery:
        return await self._post(_at("deliveries", delivery_id, "retry"), Delivery)

    async def health(self) -> Health:
        return await self._get("/health", Health)

    async def ready(self) -> Health:
        return await self._get("/ready", Health)

    async def status(self) -> Status:
        return await self._get("/api/status", Status)

    async def stop(self, stop: Stop) -> None:
        await self._post("/api/stop", Health, stop)

    async def follow(self, session_id: SessionId, after: int = 0) -> AsyncGenerator[Entry]:
        """Yield every entry after a cursor; a gateway that restarts in between is waited for."""
        absence = _Absence(self._absent)
        while True:
            with contextlib.suppress(Unavailable):
                async with contextlib.aclosing(self._stream(session_id, after, absence)) as entries:
                    async for entry in entries:
                        after = entry.seq
                        yield entry
            await absence.wait()

    async def _stream(self, session_id: SessionId, after: int, absence: _Absence) -> AsyncGenerator[Entry]:
        timeout = httpx2.Timeout(TIMEOUT_S, read=_SILENCE_MAX_S)
        address = _at("sessions", session_id, "events")
        try:
            async with self._client.stream("GET", address, params={"after": after}, timeout=timeout) as response:
                if response.is_error:
                    await response.aread()
                    raise _refusal(response)
                absence.over()
                async for line in _lines(response.aiter_bytes()):
                    if line.startswith(b"data: ") and line != b"data: {}":
                        yield msgspec.json.decode(line[6:], type=Entry)
        except httpx2.TransportError as error:
            raise Unavailable("the gateway does not answer") from error

    async def _get(self, address: str, kind: type[T], query: Mapping[str, object] | None = None) -> T:
        asked = {name: str(value) for name, value in (query or {}).items() if value is not None}
        return await self._call("GET", address, kind, params=asked)

    async def _post(self, address: str, kind: type[T], value: object = None, headers: Mapping[str, str] | None = None) -> T:
        return await self._call("POST", address, kind, json=value, headers=headers)

    async def _call(
        self,
        method: str,
        address: str,
        kind: type[T],
        *,
        params: Mapping[str, str] | None = None,
        json: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> T:
        content = None if json is None else msgspec.json.encode(json)
        sent = {**({"Content-Type": "application/json"} if content else {}), **(headers or {})}
        try:
            response = await self._client.request(method, address, params=params, content=content, headers=sent)
        except httpx2.ConnectError as error:
            raise NotRunning(self._path.parent) from error
        except httpx2.TransportError as error:
            raise Unavailable("the gateway went away before it answered") from error
        if response.is_error:
            raise _refusal(response)
        return msgspec.json.decode(response.content, type=kind)


@contextlib.asynccontextmanager
async def connected(path: Path, absent: Callable[[], None] = unnoticed) -> AsyncGenerator[RemoteDesk]:
    """Reach the gateway behind a socket.  Raises `NotRunning` when nobody answers there.

    `absent` is called when it goes away later and somebody has to wait for it.
    """
    with short_path(path) as short:
        transport = httpx2.AsyncHTTPTransport(uds=short)
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost", timeout=TIMEOUT_S) as client:
            desk = RemoteDesk(client, path, absent)
            await desk.health()
            yield desk


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    """Cut a stream of events into lines.  Text may hold what else counts as the end of a line, so only one byte does."""
    rest = b""
    async for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            yield line


def _at(collection: str, name: str, *rest: str) -> str:
    return "/".join(("/api", collection, quote(name, safe=""), *rest))


def _refusal(response: httpx2.Response) -> HoldfastError:
    """Return the error that the gateway meant."""
    try:
        problem = msgspec.json.decode(response.content, type=_Refusal).error
    except msgspec.DecodeError:
        problem = _Problem(message=f"the gateway answered {response.status_code}")
    match response.status_code:
        case 404:
            return NotFound(problem.message)
        case 409 if problem.code == "stale":
            return Stale(problem.message)
        case 409:
            return _RemoteMove(problem.message, problem.state)
        case 422:
            return Rejected(problem.message)
        case 429:
            return QueueFull(problem.message)
        case status if status >= 500:
            return Unavailable(problem.message)
        case _:
            return Rejected(problem.message)
