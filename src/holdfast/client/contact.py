"""Contact with a home: through the gateway that runs there, by being that gateway, or by reading its store.

Most commands ask a gateway that runs already, so nothing is imported here before it is needed that only a gateway needs.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

from holdfast.client.absence import NOTICED_AFTER_S, unnoticed
from holdfast.config import Config
from holdfast.errors import NotRunning, Owned
from holdfast.home_files import SOCKET
from holdfast.operations.services import Services

# A gateway that restarts answers again well within these.
STARTING_LOOKS = 100
STARTING_LOOK_S = 0.1


@contextlib.asynccontextmanager
async def running_gateway(home: Path, absent: Callable[[], None] = unnoticed) -> AsyncGenerator[Services]:
    """Reach the gateway that runs in a home.  Raises `NotRunning`."""
    if not (home / SOCKET).exists():
        raise NotRunning(home)
    from holdfast.client.remote import connected

    async with connected(home / SOCKET, absent) as services:
        yield services


@contextlib.asynccontextmanager
async def services(config: Config, home: Path, absent: Callable[[], None] = unnoticed) -> AsyncGenerator[Services]:
    """Reach the gateway of a home, or be it for as long as the context lasts; `absent` is called while it is away."""
    async with contextlib.AsyncExitStack() as stack:
        try:
            found = await stack.enter_async_context(running_gateway(home, absent))
        except NotRunning:
            found = await _own_gateway(stack, config, home, absent)
        yield found


async def _own_gateway(stack: contextlib.AsyncExitStack, config: Config, home: Path, absent: Callable[[], None]) -> Services:
    """Be the gateway of a home; where another one is just starting there, wait for that."""
    from holdfast.app.node import own_gateway

    try:
        return await stack.enter_async_context(own_gateway(config, home))
    except Owned as refused:
        return await _starting_gateway(stack, home, refused, absent)


async def _starting_gateway(
    stack: contextlib.AsyncExitStack, home: Path, refused: Owned, absent: Callable[[], None]
) -> Services:
    """Wait for a gateway that owns a home and does not answer yet.  Raises the refusal when there is none."""
    for look in range(STARTING_LOOKS):
        if not (home / SOCKET).exists():
            break
        if look == int(NOTICED_AFTER_S / STARTING_LOOK_S):
            absent()
        with contextlib.suppress(NotRunning):
            return await stack.enter_async_context(running_gateway(home, absent))
        await asyncio.sleep(STARTING_LOOK_S)
    raise refused


@contextlib.asynccontextmanager
async def reading_services(config: Config, home: Path) -> AsyncGenerator[Services]:
    """Read from the gateway of a home, or from its store while none runs."""
    async with contextlib.AsyncExitStack() as stack:
        try:
            found = await stack.enter_async_context(running_gateway(home))
        except NotRunning:
            from holdfast.app.node import offline_gateway

            found = await stack.enter_async_context(offline_gateway(config, home))
        yield found
