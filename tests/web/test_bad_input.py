"""Bad input gets an answer that says what is wrong, and never a stack trace."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from holdfast.desk.local import StoreReading
from holdfast.desk.port import Pruning
from holdfast.desk.views import Stop
from holdfast.errors import Rejected
from holdfast.ids import SessionId
from holdfast.store.opening import open_readonly
from holdfast.web import protocol, requests, sessions
from tests.engine.world import until
from tests.web.house import House, open_house

JSON = {"content-type": "application/json"}
BAD_BODIES = {
    "not JSON": b"hello",
    "half": b'{"text": "hel',
    "an array": b"[]",
    "a number": b"7",
    "NaN": b'{"text": NaN}',
    "too large a number": b'{"text": "a", "more": 1e999}',
    "no text": b"{}",
    "text that is none": b'{"text": 7}',
    "null": b'{"text": null}',
    "not UTF-8": b'{"text": "\xff\xfe"}',
    "very deep": b'{"text": ' + b"[" * 10_000 + b"]" * 10_000 + b"}",
    "nothing said": b'{"text": "  "}',
}
BAD_QUESTIONS = [
    "/api/sessions?limit=0",
    "/api/sessions?limit=-1",
    "/api/sessions?limit=many",
    "/api/sessions?limit=9999999999999999999999",
    "/api/sessions?state=asleep",
    "/api/sessions?cursor=nonsense",
    "/api/sessions?cursor=12",
    "/api/sessions/%00",
    "/api/sessions/a%0Ab",
    "/api/turns",
    "/api/deliveries?state=lost",
    "/api/deliveries?limit=0",
    "/api/search?q=a&limit=0",
]


async def refused(house: House, content: bytes | AsyncIterator[bytes], headers: dict[str, str] = JSON) -> tuple[int, str]:
    session_id = await house.session(key="one")
    answer = await house.web.post(f"/api/sessions/{session_id}/messages", content=content, headers=headers)
    error = answer.json()["error"]
    assert error.keys() == {"code", "message", "hint"}
    assert "Traceback" not in answer.text
    return answer.status_code, error["code"]


async def test_a_bad_body_is_400(home: Path) -> None:
    async with open_house(home) as house:
        for name, body in BAD_BODIES.items():
            assert (await refused(house, body))[0] == 400, name
        # None of them left anything behind.
        assert (await house.get("/api/status"))["accepted"] == 0


async def test_a_bad_question_is_400(home: Path) -> None:
    async with open_house(home) as house:
        for path in BAD_QUESTIONS:
            answer = await house.web.get(path)
            assert answer.status_code == 400, path
            assert answer.json()["error"]["message"]


async def test_a_number_beyond_all_reason_is_400(home: Path) -> None:
    async with open_house(home, api_key="a-key-for-the-operator") as house:
        for number in (b"1e306", b"-1", b"-0.5", b"1e12", b"NaN", b"Infinity", b'"soon"'):
            for path, body in (("stop", b'{"timeout": %b}'), ("prune", b'{"channel": "web", "older_than_days": %b}')):
                answer = await house.web.post(f"/api/{path}", content=body % number, headers=JSON)
                assert answer.status_code == 400, (path, number)
        assert (await house.get("/ready"))["ready"]
        for number in (float("nan"), float("inf"), -1, 1e306):
            with pytest.raises(Rejected):
                Stop(timeout=number)
            with pytest.raises(Rejected):
                Pruning(channel="web", older_than_days=number)


async def test_a_page_that_could_hold_nothing_is_refused_wherever_it_is_asked_for(home: Path) -> None:
    async with open_house(home) as house:
        session_id = SessionId(await house.session())
        desk = house.desk
        for page in (desk.sessions, desk.deliveries, partial(desk.turns, session_id), partial(desk.search, "a")):
            with pytest.raises(Rejected, match="limit"):
                await page(limit=0)
        store = await open_readonly("sqlite", home)
        try:
            reading = StoreReading(store=store)
            for page in (
                reading.sessions,
                reading.deliveries,
                partial(reading.turns, session_id),
                partial(reading.search, "a"),
            ):
                with pytest.raises(Rejected, match="limit"):
                    await page(limit=0)
            assert len((await reading.sessions(limit=10**30)).items) == 1
        finally:
            await store.close()


async def test_names_that_are_odd_are_400(home: Path) -> None:
    async with open_house(home) as house:
        session_id = await house.session()
        names = ({"key": "a\0b"}, {"key": "x" * 5_000}, {"key": session_id}, {"title": "line\nline"}, {"channel": "c" * 300})
        for opening in names:
            assert (await house.web.post("/api/sessions", json=opening)).status_code == 400, opening
        renamed = await house.web.patch(f"/api/sessions/{session_id}", json={"title": "t" * 5_000})
        assert renamed.status_code == 400
        await house.post(f"/api/sessions/{session_id}/messages", {"text": "a"}, 400, **{"Idempotency-Key": "k" * 5_000})
        assert (await house.web.get("/api/sessions/")).status_code == 404


async def test_a_body_that_is_no_json_or_packed_is_415(home: Path) -> None:
    async with open_house(home) as house:
        assert await refused(house, b'{"text": "a"}', {"content-type": "text/plain"}) == (415, "not_json")
        packed = {**JSON, "content-encoding": "gzip"}
        assert await refused(house, b'{"text": "a"}', packed) == (415, "encoded")


async def test_a_body_over_the_cap_is_413_said_or_not(home: Path) -> None:
    async def unsaid() -> AsyncIterator[bytes]:
        for _ in range(sessions.MESSAGE_MAX // 65_536 + 2):
            yield b" " * 65_536

    async with open_house(home) as house:
        assert await refused(house, b'{"text": "' + b"x" * 3 * requests.BODY_MAX + b'"}') == (413, "too_large")
        assert await refused(house, unsaid()) == (413, "too_large")


async def test_a_sender_that_never_ends_is_cut_off(home: Path) -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b" " * 65_536

    async with open_house(home) as house:
        session_id = await house.session()
        async with asyncio.timeout(30):
            try:
                answer = await house.web.post(f"/api/sessions/{session_id}/messages", content=endless(), headers=JSON)
            except httpx2.TransportError:
                return
        assert answer.status_code == 413


async def test_a_body_that_never_ends_is_408(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The patience is shortened; the waiting is real."""
    monkeypatch.setattr(requests, "BODY_TIMEOUT_S", 0.2)
    async with open_house(home) as house:
        session_id = await house.session()
        reader, writer = await raw(house)
        head = f"POST /api/sessions/{session_id}/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n"
        writer.write(head.encode() + b'{"text"')
        assert b" 408 " in await asyncio.wait_for(reader.readline(), 10)
        writer.close()


async def raw(house: House) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    address = urlsplit(house.url)
    return await asyncio.open_connection(address.hostname, address.port)


async def test_a_head_that_never_ends_costs_the_connection(home: Path) -> None:
    async with open_house(home) as house:
        reader, writer = await raw(house)
        writer.write(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Long: ")
        # Long before the patience with a slow one would end.
        with contextlib.suppress(ConnectionError):
            async with asyncio.timeout(protocol.HEAD_TIMEOUT_S / 2):
                while not reader.at_eof():
                    writer.write(b"x" * 4_096)
                    await writer.drain()
                    await asyncio.sleep(0)
        assert await house.get("/health")
        writer.close()


async def test_a_head_that_comes_too_slowly_costs_the_connection(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The patience is shortened; the waiting is real.  A connection that is in use, or streams, is left alone."""
    monkeypatch.setattr(protocol, "HEAD_TIMEOUT_S", 0.3)
    async with open_house(home) as house:
        session_id = await house.session()
        async with house.events(session_id) as events:
            for head in (b"", b"GET /health HTT"):
                reader, writer = await raw(house)
                writer.write(head)
                async with asyncio.timeout(20):
                    assert await reader.read() == b""
                writer.close()
            reader, writer = await raw(house)
            for _ in range(2):
                writer.write(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
                assert b"200" in await reader.readline()
                while await reader.readline() != b"\r\n":
                    pass
                await reader.readexactly(len((await house.web.get("/health")).content))
                await asyncio.sleep(0.4)
            writer.close()
            await house.send(session_id, "hello")
            assert (await anext(events))["kind"] == "turn.accepted"


async def test_what_is_not_there_is_404_and_a_wrong_method_405(home: Path) -> None:
    async with open_house(home) as house:
        for path in (
            "/nowhere",
            "/api/sessions/ses_0",
            "/api/sessions/ses_0/messages",
            "/api/turns/trn_0",
            "/api/deliveries/d",
        ):
            answer = await house.web.get(path)
            assert (answer.status_code, bool(answer.json()["error"]["message"])) == (404, True), path
        for path in ("/api/sessions/ses_0/events", "/api/sessions/ses_0/messages"):
            assert (await house.web.get(path)).status_code == 404, path
        assert (await house.web.post("/api/turns/trn_0/cancel")).status_code == 404
        assert (await house.web.put("/api/sessions")).status_code == 405


async def test_more_connections_than_there_is_room_for_are_told_so(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is room for few here; the connections are real."""
    async with open_house(home) as house:
        monkeypatch.setattr(protocol, "CONNECTIONS_MAX", 3)
        await house.get("/health")
        waiting = [await raw(house) for _ in range(3)]
        crowded = await house.web.get("/health")
        assert (crowded.status_code, crowded.json()["error"]["code"]) == (503, "crowded")
        assert (crowded.headers["retry-after"], crowded.headers["connection"]) == ("1", "close")
        for _, writer in waiting:
            writer.close()
            await writer.wait_closed()

        async def room() -> bool:
            return (await house.web.get("/health")).status_code == 200

        await until(room)


async def test_a_full_queue_is_429_and_says_when_to_come_again(home: Path) -> None:
    async with open_house(home) as house:
        session_id = await house.session()
        await house.send(session_id, "wait 60 seconds")
        answers = [
            await house.web.post(f"/api/sessions/{session_id}/messages", json={"text": f"more {number}"})
            for number in range(100)
        ]
        assert answers[-1].status_code == 429
        assert answers[-1].headers["retry-after"]
