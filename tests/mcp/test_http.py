"""A real server behind a URL on loopback: its tools are called, it goes away, and it comes back."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from asyncio.subprocess import Process
from pathlib import Path

import httpx2
import pytest
from mcp_types import CONNECTION_CLOSED

from holdfast.agent.mcp.http import UNREACHABLE, ErrorTransport
from holdfast.config import McpConfig
from holdfast.errors import Rejected, Unavailable
from tests.mcp.scenes import ENVIRONMENT, ROOT, call_context, free_port, running, told, tool, until, until_listening


async def start(port: int) -> Process:
    environment = {**os.environ, **ENVIRONMENT}
    command = (sys.executable, "-m", "tests.mcp.server", str(port))
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, env=environment, stderr=asyncio.subprocess.DEVNULL)
    await until_listening(port)
    return process


async def test_a_server_behind_a_url_goes_away_and_comes_back(tmp_path: Path) -> None:
    """R10: what may have been done is never called failed, and what was never sent is not called unknown."""
    port = free_port()
    process = await start(port)
    async with running({"far": McpConfig(url=f"http://127.0.0.1:{port}/mcp", timeout=10)}) as servers:
        echo = await tool(servers, "far__echo")
        assert await echo.run({"text": "hello"}, call_context()) == "hello"
        await (await tool(servers, "far__learn")).run({}, call_context())
        assert await (await tool(servers, "far__learnt")).run({}, call_context()) == "new"
        began = tmp_path / "began"
        slow = asyncio.create_task(
            (await tool(servers, "far__slow")).run({"seconds": 60, "began": str(began)}, call_context())
        )

        async def look() -> bool | None:
            return began.exists() or None

        await until(look)
        process.kill()
        await process.wait()
        with pytest.raises(Rejected, match="The outcome of slow is unknown"):
            await slow
        assert "cannot be reached" in await told(servers, "far", "cannot be reached")
        with pytest.raises(Unavailable, match="Nothing was done; try later"):
            await echo.run({"text": "?"}, call_context())
        process = await start(port)
        assert await (await tool(servers, "far__echo")).run({"text": "again"}, call_context()) == "again"
    process.kill()
    await process.wait()


async def test_a_url_where_no_mcp_server_is_says_so() -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno")
        writer.close()

    listener = await asyncio.start_server(refuse, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    async with listener, running({"far": McpConfig(url=f"http://127.0.0.1:{port}/mcp")}) as servers:
        assert "HTTP status 401" in await told(servers, "far", "401")
        assert await servers.tools() == []


async def test_a_request_that_never_left_is_told_from_one_that_may_have_arrived() -> None:
    """R10: only what a server may have got is called unknown."""

    async def swallow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.close()

    listener = await asyncio.start_server(swallow, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/mcp"
    async with httpx2.AsyncClient(transport=ErrorTransport(httpx2.AsyncHTTPTransport())) as client:
        async with listener:
            arrived = await client.post(address, json={})
        never_left = await client.post(address, json={})
    assert arrived.json()["error"]["code"] == CONNECTION_CLOSED
    assert never_left.json()["error"]["code"] == UNREACHABLE


@pytest.mark.parametrize("header", ["", "content-encoding: gzip"])
async def test_an_answer_of_any_size_is_not_read_to_its_end(header: str) -> None:
    """Security 12: neither a body without an end nor a compressed one fills the memory of the gateway."""

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{header}\r\n".replace("\r\n\r\n", "\r\n")
        writer.write(head.encode() + b"connection: close\r\n\r\n")
        with contextlib.suppress(OSError):
            while not writer.is_closing():
                writer.write(b" " * 65_536)
                await writer.drain()

    listener = await asyncio.start_server(flood, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    async with listener, running({"far": McpConfig(url=f"http://127.0.0.1:{port}/mcp")}) as servers:
        await told(servers, "far", "compressed" if header else "more than")
