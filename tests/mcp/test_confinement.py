"""An MCP server in a sandbox of its own: it works there, keeps its state, and reaches what its settings name."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from holdfast.agent.mcp.confinement import Confinement
from holdfast.agent.mcp.servers import McpServers
from holdfast.config import McpConfig
from holdfast.sandbox import Sandbox, SandboxKind, profile
from holdfast.sandbox.proxy import Network
from tests import machine
from tests.mcp.scenes import ENVIRONMENT, PATIENCE_S, ROOT, HastyClock, call_context, tool, until

# A server that does what it is told before it begins to serve.
_SERVER = """
import os, sys, urllib.request
exec(os.environ.get("FIRST", ""))
sys.argv = ["plain.py", "list"]
exec(open(os.environ["PLAIN"]).read())
"""
CONFINING = pytest.mark.parametrize("kind", machine.CONFINING)


def server(first: str = "", **more: object) -> McpConfig:
    plain = str(ROOT / "tests/mcp/plain.py")
    readable = (plain, sys.prefix, sys.base_prefix)
    config: dict[str, object] = {"command": (sys.executable, "-c", _SERVER), "env": {"FIRST": first, "PLAIN": plain}}
    return McpConfig(**{**config, "readable": readable, **more})  # type: ignore[arg-type]


@contextlib.asynccontextmanager
async def confined(config: McpConfig, home: Path, kind: SandboxKind) -> AsyncGenerator[McpServers]:
    """Run one server in a sandbox for as long as the context lasts."""
    (home / "workspace").mkdir()
    (home / "holdfast.toml").write_text("secret")
    box = await Sandbox.find("on", profile(home / "workspace"), kinds=[kind])
    confinement = Confinement(box, Network(home), home)
    servers = McpServers({"own": config}, HastyClock(), ENVIRONMENT, PATIENCE_S, confinement=confinement)
    task = asyncio.create_task(servers.run())
    try:
        yield servers
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@CONFINING
async def test_a_server_works_and_keeps_its_state_in_a_folder_of_its_own(kind: SandboxKind, tmp_path: Path) -> None:
    """SECURITY 10: its home is that folder, and of the gateway's it sees nothing else."""
    first = f"open(os.path.expanduser('~/state'), 'w').write(str(os.path.exists({str(tmp_path / 'holdfast.toml')!r})))"
    async with confined(server(first), tmp_path, kind) as servers:
        assert await (await tool(servers, "own__first")).run({}, call_context()) == "hello"
    assert (tmp_path / "mcp/own/state").read_text() == "False"


@CONFINING
async def test_a_server_that_fails_in_its_sandbox_says_what_it_wanted(kind: SandboxKind, tmp_path: Path) -> None:
    """S3: a host that its settings do not name is refused, and named."""
    async with confined(server("urllib.request.urlopen('http://shop.test/')"), tmp_path, kind) as servers:

        async def look() -> str | None:
            return servers.status["own"] if "tried to reach" in servers.status["own"] else None

        assert "it tried to reach shop.test:80, which mcp.own.hosts does not name" in await until(look)


@pytest.mark.launcher
async def test_a_server_that_dies_in_its_sandbox_is_said_to_be_in_one(tmp_path: Path) -> None:
    async with confined(server("sys.exit(3)"), tmp_path, SandboxKind.LAUNCHER) as servers:

        async def look() -> str | None:
            return servers.status["own"] if "status 3" in servers.status["own"] else None

        assert "mcp.own.sandbox = false runs it without" in await until(look)


@pytest.mark.launcher
async def test_a_server_that_was_taken_out_of_the_sandbox_runs_as_it_is(tmp_path: Path) -> None:
    first = f"open({str(tmp_path / 'seen')!r}, 'w').write(open({str(tmp_path / 'holdfast.toml')!r}).read())"
    async with confined(server(first, sandbox=False), tmp_path, SandboxKind.LAUNCHER) as servers:
        assert await (await tool(servers, "own__first")).run({}, call_context()) == "hello"
    assert (tmp_path / "seen").read_text() == "secret"
