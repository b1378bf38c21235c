"""The line to a gateway in another process: JSON over its Unix socket, and its refusals as the errors they were."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import httpx2
import msgspec

from holdfast.core.journal import Entry, EntryRecord
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

T = TypeVar("T")

TIMEOUT_S = 30
# Longer than the pause between two heartbeats, so that a gateway that hangs is noticed.
_SILENCE_MAX_S = 40


class _Problem(msgspec.Struct):
    code: str = ""
    message: str = ""
    state: str = ""


class _Refusal(msgspec.Struct):
    error: _Problem


class _RemoteMove(IllegalMove):
    """A move that the gateway refused, in its own words."""

    def __init__(self, message: str, state: str) -> None:
        Rejected.__init__(self, message)
        self.state = state


class Link:
    """Requests and their answers."""

    def __init__(self, client: httpx2.AsyncClient, path: Path) -> None:
        self._client = client
        self._path = path

    async def get(self, address: str, kind: type[T], query: Mapping[str, object] | None = None) -> T:
        asked = {name: str(value) for name, value in (query or {}).items() if value is not None}
        return await self.call("GET", address, kind, params=asked)

    async def post(
        self,
        address: str,
        kind: type[T],
        value: object = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> T:
        return await self.call("POST", address, kind, json=value, headers=headers, timeout_s=timeout_s)

    async def call(
        self,
        method: str,
        address: str,
        kind: type[T],
        *,
        params: Mapping[str, str] | None = None,
        json: object = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> T:
        timeout = httpx2.Timeout(TIMEOUT_S, read=timeout_s)
        content = None if json is None else msgspec.json.encode(json)
        sent = {**({"Content-Type": "application/json"} if content else {}), **(headers or {})}
        try:
            response = await self._client.request(
                method, address, params=params, content=content, headers=sent, timeout=timeout
            )
        except httpx2.ConnectError as error:
            raise NotRunning(self._path.parent) from error
        except httpx2.TransportError as error:
            raise Unavailable("the gateway went away before it answered") from error
        if response.is_error:
            raise refusal(response)
        return msgspec.json.decode(response.content, type=kind)

    async def delete(self, address: str, kind: type[T]) -> T:
        return await self.call("DELETE", address, kind)

    async def events(self, address: str, after: int, arrived: Callable[[], None]) -> AsyncGenerator[Entry]:
        """Yield entries as they come; `arrived` is called once the gateway has accepted the request."""
        timeout = httpx2.Timeout(TIMEOUT_S, read=_SILENCE_MAX_S)
        try:
            async with self._client.stream("GET", address, params={"after": after}, timeout=timeout) as response:
                if response.is_error:
                    await response.aread()
                    raise refusal(response)
                arrived()
                async for line in _lines(response.aiter_bytes()):
                    if line.startswith(b"data: ") and line != b"data: {}":
                        yield msgspec.json.decode(line[6:], type=EntryRecord).entry
        except httpx2.TransportError as error:
            raise Unavailable("the gateway does not answer") from error


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    """Cut a stream of events into lines.  Text may hold what else counts as the end of a line, so only one byte does."""
    rest = b""
    async for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            yield line


def at(collection: str, name: str, *rest: str) -> str:
    return "/".join(("/api", collection, quote(name, safe=""), *rest))


def refusal(response: httpx2.Response) -> HoldfastError:
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
