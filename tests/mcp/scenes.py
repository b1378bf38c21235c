"""What the tests of MCP servers share: a running set of servers, and a turn to call their tools from."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import TypeVar

import psutil

from holdfast.agent.mcp.servers import McpServers
from holdfast.agent.tools.port import CallContext, Tool
from holdfast.clock import SystemClock
from holdfast.config import McpConfig
from holdfast.core.sessions import Session
from holdfast.core.turns import Mode, Turn
from holdfast.ids import CallId, SessionId, TurnId

T = TypeVar("T")
ROOT = Path(__file__).parents[2]
PATIENCE_S = 30
# What a real server needs to be found, and nothing else.
ENVIRONMENT = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}


class HastyClock(SystemClock):
    """Waits a tenth of what it is told."""

    async def sleep_ms(self, duration_ms: float) -> None:
        await super().sleep_ms(duration_ms / 10)


REAL = McpConfig(command=(sys.executable, "-m", "tests.mcp.server", "stdio"))


def plain(how: str, argument: str = "", timeout: float = 10) -> McpConfig:
    return McpConfig(command=(sys.executable, str(ROOT / "tests" / "mcp" / "plain.py"), how, argument), timeout=timeout)


@contextlib.asynccontextmanager
async def running(config: Mapping[str, McpConfig], connect_min_s: float = PATIENCE_S) -> AsyncGenerator[McpServers]:
    """Run servers for as long as the context lasts; none of their processes may outlive it."""
    before = set(psutil.Process().children())
    servers = McpServers(config, HastyClock(), ENVIRONMENT, connect_min_s)
    task = asyncio.create_task(servers.run())
    try:
        yield servers
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        # Where a server is behind a URL, the process is the test's own.
        assert set(psutil.Process().children()) <= before or any(each.url for each in config.values())


async def until(look: Callable[[], Awaitable[T | None]]) -> T:
    """Return what a look finds, as soon as it finds something: another process decides when."""
    async with asyncio.timeout(PATIENCE_S):
        while (found := await look()) is None:  # noqa: ASYNC110 - There is nothing that could be waited for.
            await asyncio.sleep(0.01)
    return found


async def tool(servers: McpServers, name: str) -> Tool:
    """Return a tool as soon as it is offered."""

    async def look() -> Tool | None:
        return next((each for each in await servers.tools() if each.name == name), None)

    return await until(look)


async def told(servers: McpServers, server: str, word: str) -> str:
    """Return the status of a server as soon as it says a word."""

    async def look() -> str | None:
        status = servers.status[server]
        return status if word in status else None

    return await until(look)


def call_context(mode: Mode = Mode.CONVERSATION) -> CallContext:
    session = Session(
        id=SessionId("s"), key="web:s", channel="web", owner="local", one_shot=False, created_at=0, updated_at=0
    )
    turn = Turn(id=TurnId("t"), session_id=session.id, ordinal=1, accepted_at=0, mode=mode)
    return CallContext(session=session, turn=turn, call_id=CallId("c"), rest=contextlib.nullcontext)


def free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


async def until_listening(port: int) -> None:
    async def look() -> bool | None:
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            return True
        return None

    await until(look)
