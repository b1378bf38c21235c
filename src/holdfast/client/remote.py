"""The desk of another process: the gateway that runs in a home, over its Unix socket."""

from __future__ import annotations

import contextlib
import ssl
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

import httpx2

from holdfast.client.link import TIMEOUT_S, Link, at
from holdfast.client.proxy import Absence, patiently, proxy
from holdfast.core.intake import Busy, Image, Receipt
from holdfast.core.journal import Entry
from holdfast.core.sessions import SessionState
from holdfast.desk.address import short_path, unnoticed
from holdfast.desk.plans import (
    Change,
    Opening,
    Order,
    Pruning,
)
from holdfast.desk.views import (
    Deleted,
    Health,
    Pruned,
    Search,
    SessionView,
    Status,
    Stop,
    Transcript,
    TurnView,
)
from holdfast.errors import Unavailable
from holdfast.ids import SessionId, TurnId, new_id
from holdfast.operations.approvals import Approvals
from holdfast.operations.deliveries import Deliveries
from holdfast.operations.jobs import Jobs
from holdfast.operations.keys import Keys
from holdfast.operations.logins import Logins
from holdfast.operations.memories import Memories
from holdfast.operations.operation import Retry
from holdfast.operations.pages import Page
from holdfast.operations.processes import Processes
from holdfast.operations.webhooks import Webhooks

T = TypeVar("T")


def _flag(value: bool | None) -> str | None:
    return None if value is None else str(value).lower()


class RemoteDesk:
    """Everything that may be asked, as HTTP."""

    def __init__(self, link: Link, absent: Callable[[], None]) -> None:
        self._link = link
        self._absent = absent
        self.approvals = proxy(Approvals, link, absent)
        self.processes = proxy(Processes, link, absent)
        self.jobs = proxy(Jobs, link, absent)
        self.deliveries = proxy(Deliveries, link, absent)
        self.memories = proxy(Memories, link, absent)
        self.keys = proxy(Keys, link, absent)
        self.webhooks = proxy(Webhooks, link, absent)
        self.logins = proxy(Logins, link, absent)

    async def sessions(
        self,
        *,
        state: SessionState | None = None,
        channel: str | None = None,
        archived: bool | None = None,
        pinned: bool | None = None,
        key: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page[SessionView]:
        flags = {"archived": _flag(archived), "pinned": _flag(pinned)}
        query = {"state": state, "channel": channel, **flags, "key": key, "cursor": cursor, "limit": limit}
        return await self._link.get("/api/sessions", Page[SessionView], query)

    async def session(self, session_id: SessionId) -> SessionView:
        return await self._link.get(at("sessions", session_id), SessionView)

    async def transcript(
        self, session_id: SessionId, *, cursor: str | None = None, limit: int | None = None, newest: bool = False
    ) -> Transcript:
        query = {"cursor": cursor, "limit": limit, "order": Order.DESC if newest else None}
        return await self._link.get(at("sessions", session_id, "messages"), Transcript, query)

    async def turns(self, session_id: SessionId, *, cursor: str | None = None, limit: int = 100) -> Page[TurnView]:
        return await self._link.get("/api/turns", Page[TurnView], {"session": session_id, "cursor": cursor, "limit": limit})

    async def turn(self, turn_id: TurnId) -> TurnView:
        return await self._patiently(lambda: self._link.get(at("turns", turn_id), TurnView))

    async def search(self, query: str, limit: int = 50) -> Search:
        return await self._link.get("/api/search", Search, {"q": query, "limit": limit})

    async def open(self, opening: Opening) -> SessionView:
        return await self._patiently(lambda: self._link.post("/api/sessions", SessionView, opening))

    async def send(
        self,
        session_id: SessionId,
        text: str,
        key: str | None = None,
        busy: Busy | None = None,
        images: Sequence[Image] = (),
    ) -> Receipt:
        # With a key of its own the request is safe to repeat, when its answer is lost or the gateway restarts.
        headers = {"Idempotency-Key": key or new_id("cli", time.time_ns() // 1_000_000)}
        message = {"text": text, "busy": busy, "images": images}
        address = at("sessions", session_id, "messages")
        return await self._patiently(lambda: self._link.post(address, Receipt, message, headers), Retry.ALWAYS)

    async def compact(self, session_id: SessionId) -> Receipt:
        return await self._link.post(at("sessions", session_id, "compact"), Receipt)

    async def change(self, session_id: SessionId, change: Change) -> SessionView:
        return await self._link.call("PATCH", at("sessions", session_id), SessionView, json=change)

    async def end(self, session_id: SessionId) -> SessionView:
        return await self._link.post(at("sessions", session_id, "end"), SessionView)

    async def suspend(self, session_id: SessionId) -> SessionView:
        return await self._link.post(at("sessions", session_id, "suspend"), SessionView)

    async def fork(self, session_id: SessionId, through: TurnId | None = None, before: TurnId | None = None) -> SessionView:
        wish = {"through": through, "before": before}
        return await self._link.post(at("sessions", session_id, "fork"), SessionView, wish)

    async def delete(self, session_id: SessionId) -> None:
        await self._link.delete(at("sessions", session_id), Deleted)

    async def prune(self, pruning: Pruning) -> Pruned:
        # Once more is harmless, so that a gateway that restarts in between is waited for.
        return await self._patiently(lambda: self._link.post("/api/prune", Pruned, pruning), Retry.ALWAYS)

    async def cancel(self, turn_id: TurnId) -> TurnView:
        return await self._link.post(at("turns", turn_id, "cancel"), TurnView)

    async def retry(self, turn_id: TurnId) -> TurnView:
        return await self._link.post(at("turns", turn_id, "retry"), TurnView)

    async def answer(self, turn_id: TurnId, text: str, question_id: str | None = None) -> TurnView:
        return await self._link.post(at("turns", turn_id, "answer"), TurnView, {"text": text, "question_id": question_id})

    async def health(self) -> Health:
        return await self._link.get("/health", Health)

    async def ready(self) -> Health:
        return await self._link.get("/ready", Health)

    async def status(self) -> Status:
        return await self._link.get("/api/status", Status)

    async def stop(self, stop: Stop) -> None:
        await self._link.post("/api/stop", Health, stop)

    async def _patiently(self, ask: Callable[[], Awaitable[T]], retry: Retry = Retry.UNHEARD) -> T:
        return await patiently(ask, retry, self._absent)

    async def follow(self, session_id: SessionId, after: int = 0) -> AsyncGenerator[Entry]:
        """Yield every entry after a cursor; a gateway that restarts in between is waited for."""
        absence = Absence(self._absent)
        while True:
            with contextlib.suppress(Unavailable):
                stream = self._link.events(at("sessions", session_id, "events"), after, absence.over)
                async with contextlib.aclosing(stream) as entries:
                    async for entry in entries:
                        after = entry.seq
                        yield entry
            await absence.wait()


@contextlib.asynccontextmanager
async def connected(path: Path, absent: Callable[[], None] = unnoticed) -> AsyncGenerator[RemoteDesk]:
    """Reach the gateway behind a socket.  Raises `NotRunning` when nobody answers there.

    `absent` is called when it goes away later and somebody has to wait for it.
    """
    with short_path(path) as short:
        # The socket speaks no TLS; reading the certificates that are trusted here would take longer than most requests.
        transport = httpx2.AsyncHTTPTransport(uds=short, verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost", timeout=TIMEOUT_S) as client:
            desk = RemoteDesk(Link(client, path), absent)
            await desk.health()
            yield desk
