"""A rehearsal: does with other settings everything that a start does, except starting, so that they are known to work."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path

from holdfast.app.adapters import adapters
from holdfast.app.build import Builder
from holdfast.app.node import Node, redaction
from holdfast.config import Config, ServerConfig, is_exposed, shown
from holdfast.errors import ConfigInvalid, Exposed, Fatal, NotFound, Unavailable
from holdfast.operations.keys import opens_api
from holdfast.store.opening import open_readonly
from holdfast.store.store import Store
from holdfast.web.server import tcp_socket


async def rehearse(running: Node, config: Config, other: Config, home: Path) -> None:
    """Try another configuration than that of a running node.  Raises `ConfigInvalid`."""
    server, resources = other.server, running.resources
    if other.store.url != config.store.url:
        await _answers(other.store.url, home)
    if (server.host, server.port) != (config.server.host, config.server.port):
        await asyncio.to_thread(_listen_once, server)
    await check_locked(server)(resources.store)
    builder = await Builder.of(other, home, redaction(other), resources.clock)
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(adapters(builder, resources))


async def _answers(url: str, home: Path) -> None:
    """Check that there is a store at an address, or that one can be made there.  Raises `ConfigInvalid`."""
    try:
        await (await open_readonly(url, home)).close()
    except NotFound:
        # The first start creates it.
        return
    except (Unavailable, Fatal) as error:
        raise ConfigInvalid(f"store.url: {shown(url)}: {error}") from error


def _listen_once(server: ServerConfig) -> None:
    with tcp_socket(server.host, server.port):
        pass


def check_locked(server: ServerConfig) -> Callable[[Store], Awaitable[None]]:
    """Return the check that a gateway which others can reach asks them for a key or a password.  It raises `Exposed`."""

    async def check(store: Store) -> None:
        if is_exposed(server) and not any(map(opens_api, await store.keys.list())):
            raise Exposed(server.host)

    return check
