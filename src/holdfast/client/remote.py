"""The desk of another process: the gateway that runs in a home, over its Unix socket."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import TypeVar

import httpx2

from holdfast.client.following import sessions_proxy
from holdfast.client.link import TIMEOUT_S, Link
from holdfast.client.proxy import proxy
from holdfast.desk.address import short_path, unnoticed
from holdfast.operations.approvals import Approvals
from holdfast.operations.deliveries import Deliveries
from holdfast.operations.gateway import Gateway
from holdfast.operations.jobs import Jobs
from holdfast.operations.keys import Keys
from holdfast.operations.logins import Logins
from holdfast.operations.memories import Memories
from holdfast.operations.processes import Processes
from holdfast.operations.turns import Turns
from holdfast.operations.webhooks import Webhooks

T = TypeVar("T")


class RemoteDesk:
    """Everything that may be asked, as HTTP."""

    def __init__(self, link: Link, absent: Callable[[], None]) -> None:
        self.gateway = proxy(Gateway, link, absent)
        self.sessions = sessions_proxy(link, absent)
        self.turns = proxy(Turns, link, absent)
        self.approvals = proxy(Approvals, link, absent)
        self.processes = proxy(Processes, link, absent)
        self.jobs = proxy(Jobs, link, absent)
        self.deliveries = proxy(Deliveries, link, absent)
        self.memories = proxy(Memories, link, absent)
        self.keys = proxy(Keys, link, absent)
        self.webhooks = proxy(Webhooks, link, absent)
        self.logins = proxy(Logins, link, absent)


@contextlib.asynccontextmanager
async def connected(path: Path, absent: Callable[[], None] = unnoticed) -> AsyncGenerator[RemoteDesk]:
    """Reach the gateway behind a socket.  Raises `NotRunning` when it does not answer.

    `absent` is called when it goes away later and a caller has to wait for it.
    """
    with short_path(path) as short:
        # The socket speaks no TLS; reading the certificates that are trusted here would take longer than most requests.
        transport = httpx2.AsyncHTTPTransport(uds=short, verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost", timeout=TIMEOUT_S) as client:
            desk = RemoteDesk(Link(client, path), absent)
            await desk.gateway.health()
            yield desk
