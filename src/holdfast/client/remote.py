"""The services of the gateway that runs in a home, over its Unix socket."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import httpx2

from holdfast.client.absence import unnoticed
from holdfast.client.following import sessions_proxy
from holdfast.client.link import TIMEOUT_S, Link
from holdfast.client.proxy import proxy
from holdfast.home_files import short_path
from holdfast.operations.services import Services, nouns


def remote_services(link: Link, absent: Callable[[], None]) -> Services:
    """Return the services of the gateway behind a link; `absent` is called when a request has to wait for it."""
    # A proxy stands in for the class of its noun.
    proxies: dict[str, Any] = {noun: proxy(service, link, absent) for noun, service in nouns().items()}
    proxies["sessions"] = sessions_proxy(link, absent)
    return Services(**proxies)


@contextlib.asynccontextmanager
async def connected(path: Path, absent: Callable[[], None] = unnoticed) -> AsyncGenerator[Services]:
    """Reach the gateway behind a socket.  Raises `NotRunning` when it does not answer.

    `absent` is called when it goes away later and a caller has to wait for it.
    """
    with short_path(path) as short:
        # The socket speaks no TLS; reading the certificates that are trusted here would take longer than most requests.
        transport = httpx2.AsyncHTTPTransport(uds=short, verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost", timeout=TIMEOUT_S) as client:
            services = remote_services(Link(client, path), absent)
            await services.gateway.health()
            yield services
