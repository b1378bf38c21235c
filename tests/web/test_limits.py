"""What a client may take: slow heads, slow bodies, and connections that are held for nothing."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from holdfast.web import protocol, requests, server
from tests.web.house import PATIENCE_S, House, open_house

HEAD = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n"
DRIP_S = 0.02


async def raw(house: House) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    address = urlsplit(house.url)
    return await asyncio.open_connection(address.hostname, address.port)


async def drip(writer: asyncio.StreamWriter, words: bytes) -> None:
    """Send byte by byte, for as long as somebody takes them."""
    with contextlib.suppress(ConnectionError):
        for each in words:
            writer.write(bytes([each]))
            await writer.drain()
            await asyncio.sleep(DRIP_S)


async def test_a_head_that_drips_costs_the_connection(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every byte is another sign of life, and none of them counts.  The patience is shortened; the waiting is real."""
    monkeypatch.setattr(protocol, "HEAD_TIMEOUT_S", 0.3)
    async with asyncio.timeout(PATIENCE_S), open_house(home) as house:
        reader, writer = await raw(house)
        dripping = asyncio.create_task(drip(writer, HEAD + b"X: " + b"y" * 10_000))
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        dripping.cancel()
        writer.close()


async def test_a_body_that_drips_is_408_and_costs_the_connection(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "BODY_TIMEOUT_S", 0.3)
    async with asyncio.timeout(PATIENCE_S), open_house(home) as house:
        session_id = await house.session()
        reader, writer = await raw(house)
        writer.write(
            f"POST /api/sessions/{session_id}/messages HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            "Content-Type: application/json\r\nContent-Length: 10000\r\n\r\n".encode()
        )
        dripping = asyncio.create_task(drip(writer, b'{"text": "' + b"y" * 9_000))
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b'"code":"too_slow"' in answer
        assert b"connection: close" in answer
        dripping.cancel()
        writer.close()
        assert (await house.get("/api/status"))["accepted"] == 0


async def test_many_who_never_finish_their_head_keep_nobody_else_waiting(home: Path) -> None:
    async with asyncio.timeout(PATIENCE_S), open_house(home) as house:
        half_open = [await raw(house) for _ in range(400)]
        for _, writer in half_open:
            writer.write(HEAD)
        begun = asyncio.get_running_loop().time()
        turn = await house.send(await house.session(), "count to 1")
        assert (await house.settled(turn["turn_id"]))["state"] == "completed"
        assert asyncio.get_running_loop().time() - begun < 5
        for _, writer in half_open:
            writer.close()


async def test_a_connection_that_nobody_uses_is_closed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The patience is shortened; the waiting is real."""
    monkeypatch.setattr(server, "IDLE_S", 0.2)
    async with asyncio.timeout(PATIENCE_S), open_house(home) as house:
        reader, writer = await raw(house)
        writer.write(HEAD + b"\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 200 ")
        writer.close()


async def test_requests_that_come_at_once_are_answered_in_their_order(home: Path) -> None:
    async with asyncio.timeout(PATIENCE_S), open_house(home) as house:
        reader, writer = await raw(house)
        second = HEAD.replace(b"/health", b"/nowhere") + b"Connection: close\r\n\r\n"
        writer.write(HEAD + b"\r\n" + second)
        answers = await reader.read()
        assert answers.index(b"HTTP/1.1 200 ") < answers.index(b"HTTP/1.1 404 ")
        writer.close()


@pytest.mark.parametrize(
    "nonsense",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nA b: c\r\n\r\n",
    ],
)
async def test_what_is_no_http_is_400_and_costs_the_connection(home: Path, nonsense: bytes) -> None:
    async with asyncio.timeout(PATIENCE_S), open_house(home) as house:
        reader, writer = await raw(house)
        writer.write(nonsense)
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400 ")
        assert json.loads(body)["error"]["code"] == "bad_http"
        writer.close()
        assert (await house.get("/health"))["ready"]
