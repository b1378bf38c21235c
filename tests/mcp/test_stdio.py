"""A real server process on pipes: its tools are called, it dies in the middle of a call, and it comes back."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from holdfast.core.effects import Effect
from holdfast.errors import Rejected, Unavailable
from tests.mcp.scenes import REAL, McpServers, call_context, running, told, tool, until
from tests.mcp.server import PIXEL


async def call(servers: McpServers, called: str, /, **args: object) -> str:
    return await (await tool(servers, called)).run(args, call_context())


async def test_tools_of_a_real_server_are_called() -> None:
    """Results of every kind reach the model as text, and hints of the server become effects."""
    async with running({"real": REAL}) as servers:
        assert await call(servers, "real__echo", text="hä?\n") == "hä?\n"
        assert await call(servers, "real__add", a=1, b=2) == "3"
        assert (
            await call(servers, "real__picture")
            == f"look:\n[an image, image/png, {len(PIXEL)} bytes: it cannot be shown here]"
        )
        assert "".join((await call(servers, "real__structured")).split()) == '{"answer":42}'
        with pytest.raises(Rejected, match=r"says that fail failed: .*the printer is on fire"):
            await call(servers, "real__fail")
        with pytest.raises(Rejected, match="Field required"):
            await call(servers, "real__echo")
        tools = {each.name: each for each in await servers.tools()}
        assert tools["real__echo"].effect is Effect.PURE
        assert tools["real__add"].effect is Effect.KEYED
        assert tools["real__slow"].effect is Effect.EFFECTFUL
        assert not any(each.harmless for each in tools.values())
        assert tools["real__echo"].schema == {
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
        }
        await call(servers, "real__learn")
        assert await call(servers, "real__learnt") == "new"


async def test_a_server_knows_what_it_is_given_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Security 10: the environment of the gateway is not that of a server."""
    monkeypatch.setenv("HOLDFAST_TEST_SECRET", "hunter22")
    async with running({"real": replace(REAL, env={"GIVEN": "this"})}) as servers:
        assert (await call(servers, "real__variable", name="HOLDFAST_TEST_SECRET")).startswith("None ")
        assert (await call(servers, "real__variable", name="GIVEN")).startswith("this ")


async def test_a_call_in_the_middle_of_which_the_server_is_killed_has_an_unknown_outcome(tmp_path: Path) -> None:
    """R10: what may have been done is never called failed; the server is back for the next call."""
    async with running({"real": REAL}) as servers:
        echo = await tool(servers, "real__echo")
        pid = int((await call(servers, "real__variable", name="x")).split()[1])
        began = tmp_path / "began"
        slow = asyncio.create_task(call(servers, "real__slow", seconds=60, began=str(began)))

        async def look() -> bool | None:
            return began.exists() or None

        await until(look)
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(Rejected, match=r"lost in the middle of the call.*The outcome of slow is unknown"):
            await slow
        with pytest.raises(Unavailable, match=r"the MCP server real is not connected: .*Nothing was done"):
            await echo.run({"text": "?"}, call_context())
        await told(servers, "real", "not connected")
        assert await servers.tools() == []
        assert "SIGKILL" in await told(servers, "real", "SIGKILL")
        assert int((await call(servers, "real__variable", name="x")).split()[1]) != pid
        assert await echo.run({"text": "again"}, call_context()) == "again"


async def test_a_server_that_ends_itself_is_started_again() -> None:
    async with running({"real": REAL}) as servers:
        with pytest.raises(Rejected, match="outcome of crash is unknown"):
            await call(servers, "real__crash")
        await told(servers, "real", "not connected")
        assert await call(servers, "real__echo", text="again") == "again"


async def test_a_server_ends_with_its_connection() -> None:
    async with running({"real": REAL}) as servers:
        pid = int((await call(servers, "real__variable", name="x")).split()[1])
        assert psutil.pid_exists(pid)
    assert not psutil.pid_exists(pid)


async def test_servers_stop_also_while_a_connection_breaks() -> None:
    """Nothing that goes wrong at the end keeps a gateway from ending."""
    async with running({"real": REAL}) as servers:
        pid = int((await call(servers, "real__variable", name="x")).split()[1])
        os.kill(pid, signal.SIGKILL)
        await told(servers, "real", "not connected")
