"""Servers that misbehave: none of them costs anybody else anything, and each says why it cannot be used."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys

import psutil
import pytest

from holdfast.agent.mcp.servers import DESCRIPTION_MAX_CHARS, TOOLS_MAX
from holdfast.agent.mcp.stdio import MESSAGE_MAX_BYTES
from holdfast.agent.tools.port import NAME
from holdfast.config import McpConfig
from holdfast.errors import Unavailable
from tests.mcp.scenes import ROOT, call_context, plain, running, told, tool


async def test_a_server_that_never_answers_keeps_nobody_waiting() -> None:
    """Security 12: a hung server is given up after its time, and its neighbour is used meanwhile."""
    async with running({"mute": plain("mute", timeout=1), "good": plain("good")}, connect_min_s=1) as servers:
        assert await (await tool(servers, "good__first")).run({}, call_context()) == "hello"
        assert "did not answer within 1 s" in await told(servers, "mute", "did not answer")
        # It does not even give the loop a turn.
        with pytest.raises(StopIteration) as done:
            servers.tools().send(None)
        assert all(each.name.startswith("good__") for each in done.value.value)


async def test_garbage_on_stdout_is_logged_and_skipped(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with running({"loud": plain("garbage")}) as servers:
        assert await (await tool(servers, "loud__first")).run({}, call_context()) == "hello"
    assert "MCP server loud: (no message, on stdout) Welcome to the server!" in caplog.text


async def test_a_list_that_has_changed_is_looked_at_again() -> None:
    """A server of an older protocol tells by itself that it has another tool."""
    async with running({"old": plain("good")}) as servers:
        await (await tool(servers, "old__first")).run({}, call_context())
        assert await (await tool(servers, "old__second")).run({}, call_context()) == "hello"


@pytest.mark.parametrize(("number", "kept"), [(100, 100), (1000, TOOLS_MAX)])
async def test_a_server_with_many_tools_is_bounded(number: int, kept: int) -> None:
    """Security 12: what a server says about itself takes a bounded place in a request."""
    async with running({"many": plain("many", str(number))}) as servers:
        await tool(servers, "many__tool_7")
        tools = await servers.tools()
        assert len({each.name for each in tools}) == len(tools) == kept
        assert all(NAME.fullmatch(each.name) for each in tools)
        assert max(len(each.description) for each in tools) < DESCRIPTION_MAX_CHARS + 50


async def test_a_call_that_hangs_ends_after_its_time_and_the_server_is_started_again() -> None:
    async with running({"slow": plain("hang", timeout=1)}) as servers:
        first = await tool(servers, "slow__first")
        with pytest.raises(Unavailable, match=r"did not answer within 1 s\. Calling first again"):
            await first.run({}, call_context())
        assert "did not answer within 1 s" in await told(servers, "slow", "not connected")
        await tool(servers, "slow__first")


async def test_a_message_without_an_end_ends_the_connection() -> None:
    """Security 12: a server cannot fill the memory of the gateway."""
    async with running({"big": plain("flood", str(MESSAGE_MAX_BYTES + 1))}) as servers:
        with pytest.raises(Unavailable, match="was lost in the middle"):
            await (await tool(servers, "big__first")).run({}, call_context())
        assert "more than" in await told(servers, "big", "message of more than")


async def test_a_command_that_is_not_there_says_so() -> None:
    async with running({"none": McpConfig(command=("no-such-program",))}) as servers:
        assert "cannot start no-such-program: No such file" in await told(servers, "none", "cannot start")


async def test_a_cancelled_call_leaves_the_server_as_it_was() -> None:
    async with running({"good": plain("good"), "slow": plain("hang")}) as servers:
        hung = asyncio.create_task((await tool(servers, "slow__first")).run({}, call_context()))
        await asyncio.sleep(0)
        hung.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hung
        assert await (await tool(servers, "good__first")).run({}, call_context()) == "hello"


GATEWAY = """
import asyncio
from tests.mcp.scenes import plain, running, tool
async def main():
    async with running({"deaf": plain("hang")}) as servers:
        await tool(servers, "deaf__first")
        print("ready", flush=True)
        await asyncio.sleep(3600)
asyncio.run(main())
"""


def test_a_gateway_killed_with_9_leaves_no_server_behind() -> None:
    """Servers end with the gateway, however it ends."""
    with subprocess.Popen([sys.executable, "-c", GATEWAY], cwd=ROOT, stdout=subprocess.PIPE, text=True) as gateway:
        assert gateway.stdout
        assert gateway.stdout.readline() == "ready\n"
        (server,) = psutil.Process(gateway.pid).children()
        # Stopped, it cannot see that its stdin has ended.
        server.send_signal(signal.SIGSTOP)
        os.kill(gateway.pid, signal.SIGKILL)
    server.wait(timeout=10)


def test_nothing_is_imported_before_it_is_needed() -> None:
    """A gateway without MCP servers does not pay for the package."""
    check = "import sys, holdfast.agent.mcp.servers; assert not {'mcp', 'mcp_types', 'pydantic'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", check], check=True, timeout=60)
