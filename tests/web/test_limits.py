"""What a client may take: slow heads, slow bodies, and connections that are held for nothing."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import uvloop

from holdfast.web import protocol, requests, server
from tests.engine.world import until
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


HALF_BODY = b"POST /nowhere HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10000\r\n\r\n"
HALF_CHUNK = b"POST /nowhere HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("asked", "behind"),
    [
        (HEAD + b"\r\n", b"\r\n" * 5_000),
        (HALF_BODY, b"y" * 9_000),
        (HALF_CHUNK, b"1;" + b"y" * 9_000),
        (HALF_CHUNK, b"0\r\nX: " + b"y" * 9_000),
    ],
)
async def test_what_drips_behind_an_answer_costs_the_connection(
    home: Path, monkeypatch: pytest.MonkeyPatch, asked: bytes, behind: bytes
) -> None:
    """Nobody may hold a connection by signs of life that ask for nothing."""
    monkeypatch.setattr(protocol, "HEAD_TIMEOUT_S", 0.3)
    async with asyncio.timeout(PATIENCE_S), open_house(home) as house:
        reader, writer = await raw(house)
        writer.write(asked)
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 ")
        dripping = asyncio.create_task(drip(writer, behind))
        with contextlib.suppress(ConnectionError):
            await reader.read()
        assert not dripping.done()
        dripping.cancel()
        writer.close()


@pytest.mark.parametrize("behind", [b"X: y\r\n", b"X: y", b"y"])
async def test_what_stands_behind_a_body_is_bounded(home: Path, behind: bytes) -> None:
    """The parser keeps all of it, be it one line without an end or many."""
    async with asyncio.timeout(PATIENCE_S), open_house(home) as house:
        reader, writer = await raw(house)
        writer.write(HALF_CHUNK + b"0\r\n" + (b"" if behind.startswith(b"X") else b"X: "))
        taken = 0
        with contextlib.suppress(ConnectionError):
            while taken < 200 * protocol.HEAD_MAX:
                writer.write(behind * 1_000)
                await writer.drain()
                taken += 1_000 * len(behind)
        assert taken < 200 * protocol.HEAD_MAX
        writer.close()
        with contextlib.suppress(ConnectionError):
            await reader.read()
        assert (await house.get("/health"))["ready"]


async def test_no_header_counts_that_stands_behind_a_body(home: Path) -> None:
    """What was not there when a request was judged is not there for whoever answers it."""
    async with asyncio.timeout(PATIENCE_S), open_house(home) as house:
        session_id = await house.session()
        reader, writer = await raw(house)
        head = f"POST /api/sessions/{session_id}/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
        writer.write(f"{head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        writer.write(b'e\r\n{"text":"one"}\r\n0\r\nIdempotency-Key: twice\r\n\r\n')
        assert (await reader.read()).startswith(b"HTTP/1.1 202 ")
        writer.close()
        again = await house.send(session_id, "another", **{"idempotency-key": "twice"})
        assert not again["duplicate"]


async def test_a_large_body_that_nobody_reads_may_still_end(home: Path) -> None:
    """Whoever is refused while they send should read why, and go on with the same connection."""
    async with asyncio.timeout(PATIENCE_S), open_house(home) as house:
        reader, writer = await raw(house)
        size = 10 * protocol.HEAD_MAX
        writer.write(HALF_BODY.replace(b"10000", str(size).encode()))
        assert (await reader.readuntil(b"}}")).startswith(b"HTTP/1.1 404 ")
        writer.write(b"y" * size + HEAD + b"Connection: close\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 200 ")
        writer.close()


async def test_beyond_a_crowd_nobody_is_let_in(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections that never ask for anything must not take all that this process can hold."""
    monkeypatch.setattr(protocol, "CONNECTIONS_MAX", 3)
    monkeypatch.setattr(protocol, "CROWD_MAX", 2)
    async with asyncio.timeout(PATIENCE_S), open_house(home) as house:
        silent = [await raw(house) for _ in range(5)]
        reader, writer = await raw(house)
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        assert not any(each.at_eof() for each, _ in silent)
        for each in (*(one for _, one in silent), writer):
            each.close()


def test_whoever_asks_for_more_behind_a_stream_and_leaves_is_no_error(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Else a stranger could fill the log with what looks like bugs.  Only the loop of a real gateway minds."""
    uvloop.run(_ask_for_more_and_leave(home))
    assert [each.getMessage() for each in caplog.records if each.levelno >= logging.ERROR] == []


async def _ask_for_more_and_leave(home: Path) -> None:
    async with asyncio.timeout(PATIENCE_S), open_house(home) as house:
        session_id = await house.session()
        reader, writer = await raw(house)
        stream = HEAD.replace(b"/health", f"/api/sessions/{session_id}/events".encode()) + b"\r\n"
        writer.write(stream + HEAD + b"\r\n")
        await reader.readuntil(b"retry: 1000")
        writer.transport.abort()
        for _ in range(3):
            turn = await house.send(session_id, "count to 30")
            await house.settled(turn["turn_id"])


async def test_bodies_that_come_at_once_have_a_limit_together(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who sends a delivery is known only when all of it is there, so many halves of one must not take all memory."""
    monkeypatch.setattr(requests, "BODIES_MAX", 30_000)
    async with asyncio.timeout(PATIENCE_S), open_house(home) as house:
        half = HALF_BODY.replace(b"/nowhere", b"/api/sign-in") + b"y" * 9_000
        held = [await raw(house) for _ in range(4)]
        for _, writer in held:
            writer.write(half)
        # Whoever comes last is refused, and the others are not.
        refused = [asyncio.create_task(reader.readuntil(b"}}")) for reader, _ in held]
        done, waiting = await asyncio.wait(refused, return_when=asyncio.FIRST_COMPLETED)
        assert [b'"code":"crowded"' in each.result() for each in done] == [True]
        assert len(waiting) == 3
        for each in waiting:
            each.cancel()
        for _, writer in held:
            writer.close()
        # What was kept of them is forgotten with them.
        body = '{"code": "' + "x" * 29_000 + '"}'

        async def look() -> bool:
            answer = await house.web.post("/api/sign-in", content=body, headers={"content-type": "application/json"})
            return answer.status_code == 401

        await until(look)
