"""Bad input gets an answer that says what is wrong, and never a stack trace."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import sys
import time
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from holdfast.app.services import offline_services
from holdfast.errors import Rejected
from holdfast.ids import SessionId
from holdfast.operations import sessions
from holdfast.operations.gateway import Stop
from holdfast.operations.sessions import Pruning
from holdfast.store.opening import open_readonly
from holdfast.web import protocol, requests
from holdfast.web.json_offsets import offset
from tests.engine.world import until
from tests.web.house import House, open_house

JSON = {"content-type": "application/json"}
# Each with the byte at which it goes wrong.
BAD_BODIES = {
    "not JSON": (b"hello", 0),
    "not JSON behind some that is": (b'{"text": "a"} more', 15),
    "half": (b'{"text": "hel', 13),
    "empty": (b"", 0),
    "only spaces": (b"  ", 2),
    "an array": (b"[]", 0),
    "an array behind spaces": (b"  []", 2),
    "a number": (b"7", 0),
    "NaN": (b'{"text": NaN}', 9),
    "Infinity": (b'{"text": Infinity}', 9),
    "too large a number": (b'{"text": "a", "more": 1e999}', 22),
    "too large a number in an array": (b'{"text": "a", "more": [1, -1e999]}', 26),
    "no text": (b"{}", 0),
    "text that is none": (b'{"text": 7}', 9),
    "text that is none, behind much": (b'{"more": [{"text": 1}, "text"], "text": 7}', 40),
    "a picture that is none": (b'{"text": "a", "images": [{"media_type": "image/png", "data": 7}]}', 61),
    "null": (b'{"text": null}', 9),
    "not UTF-8": (b'{"text": "\xff\xfe"}', 10),
    "half a character": (b'{"text": "a\xc3"}', 11),
    "half of a pair": (b'{"text": "\\ud800"}', 18),
    "a byte order mark": (b'\xef\xbb\xbf{"text": "a"}', 0),
    "a control character": (b'{"text": "a\x00b"}', 11),
    "a comma too many": (b'{"text": "a",}', 13),
    "very deep": (b'{"text": ' + b"[" * 10_000 + b"]" * 10_000 + b"}", 9 + sys.getrecursionlimit() - 1),
}
BAD_QUESTIONS = [
    "/api/sessions?limit=0",
    "/api/sessions?limit=-1",
    "/api/sessions?limit=many",
    "/api/sessions?limit=9999999999999999999999",
    "/api/sessions?limit=",
    "/api/sessions?state=asleep",
    "/api/sessions?state=",
    "/api/sessions?archived=",
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
    error = error_of(answer)
    assert error.keys() - {"offset"} == {"code", "message", "hint"}
    return answer.status_code, error["code"]


def error_of(answer: httpx2.Response) -> Any:
    """Return what a refusal says; there is always something to do instead."""
    error = answer.json()["error"]
    assert error["message"]
    assert error["hint"]
    assert "Traceback" not in answer.text
    return error


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
async def test_a_bad_body_is_400_and_says_at_which_byte(home: Path, encoding: str) -> None:
    async with open_house(home) as house:
        session_id = await house.session()
        headers = {**JSON, "content-encoding": encoding}
        for name, (body, offset) in BAD_BODIES.items():
            content = gzip.compress(body) if encoding == "gzip" else body
            answer = await house.web.post(f"/api/sessions/{session_id}/messages", content=content, headers=headers)
            error = error_of(answer)
            assert (answer.status_code, error["code"], error["offset"]) == (400, "bad_json", offset), name
        # None of them left anything behind.
        assert (await house.get("/api/status"))["accepted"] == 0


async def test_a_message_that_says_nothing_is_400(home: Path) -> None:
    async with open_house(home) as house:
        assert await refused(house, b'{"text": "  "}') == (400, "rejected")


@pytest.mark.parametrize(("path", "offset"), [("a%00b", 1), ("%00", 0), ("abc%0A", 3), ("%7F", 0), ("x" * 300, 200)])
async def test_an_id_that_cannot_be_one_is_400_and_says_where(home: Path, path: str, offset: int) -> None:
    async with open_house(home) as house:
        for address in ("/api/sessions/{}", "/api/sessions/{}/messages", "/api/turns/{}", "/api/deliveries/{}"):
            answer = await house.web.get(address.format(path))
            error = error_of(answer)
            assert (answer.status_code, error["code"], error["offset"]) == (400, "bad_id", offset), address


async def test_odd_characters_break_no_store(home: Path, store_url: str) -> None:
    """A NUL, half a character, or what no text has: refused, not found, or kept; never an error of ours."""
    async with open_house(home, store=store_url) as house:
        session_id = await house.session()
        for odd in ("%00", "a%00b", "%ff", "%ed%a0%80", "%F4%90%80%80", "\\", "%27%3B--"):
            for place in (
                "/api/sessions?key={}",
                "/api/sessions?cursor={}",
                "/api/sessions?channel={}",
                "/api/turns?session={}",
                "/api/deliveries?session={}",
                "/api/processes?session={}",
                "/api/approvals?session={}",
                "/api/search?q={}",
                "/api/memory?q={}",
                "/api/memory/recall?q={}",
                "/api/memory/segments?session={}",
                "/api/sessions/{}",
                "/api/turns/{}",
                "/api/jobs/{}",
                "/v1/responses/{}",
                "/v1/runs/{}",
            ):
                answer = await house.web.get(place.format(odd))
                assert answer.status_code in (200, 400, 404), (place, odd, answer.text)
        for odd in ("\0", "a\0b", "\x7f", "\ufffe", "\U0010ffff"):
            for path, body in (
                ("/api/sessions", {"key": odd}),
                ("/api/sessions", {"title": odd}),
                ("/api/sessions", {"channel": odd}),
                ("/api/sessions", {"previous_session_id": odd}),
                ("/api/memory", {"text": odd}),
                ("/api/memory/commit", {"session_id": odd}),
                ("/api/memory/forget", {"session_id": odd}),
                ("/api/jobs", {"name": odd, "schedule": "0 4 * * *", "prompt": odd}),
                (f"/api/sessions/{session_id}/fork", {"through": odd}),
                (f"/api/sessions/{session_id}/messages", {"text": f"say {odd}"}),
                ("/v1/runs", {"input": f"say {odd}", "metadata": {odd: odd}}),
                ("/v1/chat/completions", {"model": odd, "messages": [{"role": "user", "content": odd}]}),
            ):
                answer = await house.web.post(path, json=body)
                assert answer.status_code < 500, (path, odd, answer.text)


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
        services = house.services
        for page in (
            services.sessions.list,
            services.deliveries.list,
            partial(services.turns.list, session_id),
            partial(services.sessions.search, "a"),
        ):
            with pytest.raises(Rejected, match="limit"):
                await page(limit=0)
        store = await open_readonly("sqlite", home)
        try:
            reading = offline_services(store)
            for page in (
                reading.sessions.list,
                reading.deliveries.list,
                partial(reading.turns.list, session_id),
                partial(reading.sessions.search, "a"),
            ):
                with pytest.raises(Rejected, match="limit"):
                    await page(limit=0)
            assert len((await reading.sessions.list(limit=10**30)).items) == 1
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


async def test_a_body_that_is_no_json_is_415(home: Path) -> None:
    async with open_house(home) as house:
        for kind in ("text/plain", "application/jsonp", "multipart/form-data", "", "application/x-www-form-urlencoded"):
            assert await refused(house, b'{"text": "a"}', {"content-type": kind}) == (415, "not_json"), kind
        for kind in ("application/json", "Application/JSON; charset=utf-8"):
            assert await refused(house, b'{"text": 7}', {"content-type": kind}) == (400, "bad_json"), kind


async def test_a_body_may_be_packed_with_gzip_and_with_nothing_else(home: Path) -> None:
    async with open_house(home) as house:
        packed = {**JSON, "content-encoding": "gzip"}
        session_id = await house.session(key="one")
        content = gzip.compress('{"text": "schön verpackt"}'.encode())
        sent = await house.web.post(f"/api/sessions/{session_id}/messages", content=content, headers=packed)
        assert sent.status_code == 202
        assert "schön verpackt" in str((await house.get(f"/api/sessions/{session_id}/messages"))["items"][0])
        for encoding in ("br", "deflate", "zstd", "gzip, gzip", "compress"):
            other = {**JSON, "content-encoding": encoding}
            assert await refused(house, b'{"text": "a"}', other) == (415, "encoded"), encoding
        for broken in (b'{"text": "a"}', content[:-12], content[:10], b"\x1f\x8b", content * 2, content + b"{}"):
            assert await refused(house, broken, packed) == (400, "bad_gzip")


async def test_a_little_that_unpacks_to_much_is_413(home: Path) -> None:
    """And nobody waits for it: what is unpacked is let go as soon as it is too much."""
    bomb = b""
    for _ in range(40):
        # Forty times the cap, in less than a megabyte.
        bomb += b" " * requests.BODY_MAX
    packed = gzip.compress(b'{"text": "' + bomb + b'"}')
    assert len(packed) < requests.BODY_MAX / 10
    async with open_house(home) as house:
        answer = await house.web.post("/api/sessions", content=packed, headers={**JSON, "content-encoding": "gzip"})
        assert (answer.status_code, error_of(answer)["code"]) == (413, "too_large")
        twice = gzip.compress(packed)
        assert (await refused(house, twice, {**JSON, "content-encoding": "gzip"}))[0] == 400


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
        wrong = await house.web.put("/api/sessions/ses_0")
        assert (wrong.status_code, error_of(wrong)["code"]) == (405, "wrong_method")
        assert wrong.headers["allow"] == "DELETE, GET, HEAD, PATCH"


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


async def test_a_cursor_that_was_never_given_out_is_400(home: Path) -> None:
    async with open_house(home) as house:
        session_id = await house.session()
        for path in (
            "/api/sessions?cursor=nonsense",
            "/api/sessions?cursor=12",
            f"/api/turns?session={session_id}&cursor=x",
            f"/api/sessions/{session_id}/messages?limit=5&cursor=x",
            "/api/deliveries?cursor=x.y",
            "/api/approvals?cursor=%00",
        ):
            answer = await house.web.get(path)
            assert (answer.status_code, error_of(answer)["code"]) == (400, "rejected"), path
        for cursor in ("x", "-1", "1.5", "1e3", "9" * 30, "٣"):
            answer = await house.web.get(f"/api/sessions/{session_id}/events?after={cursor}")
            assert (answer.status_code, error_of(answer)["code"]) == (400, "bad_parameter"), cursor
            header = {"last-event-id": cursor.encode()}
            answer = await house.web.get(f"/api/sessions/{session_id}/events", headers=header)
            assert answer.status_code == 400, cursor


@pytest.mark.parametrize(
    "path",
    [
        "/../etc/passwd",
        "/static/../../etc/passwd",
        "//etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/..%2f..%2fetc/passwd",
        "/page.js/../../../holdfast.toml",
        "/..\\..\\holdfast.toml",
        "/%5c..%5choldfast.toml",
        "/page.js%00.html",
        "/.%2e/holdfast.db",
    ],
)
async def test_a_path_that_leads_out_is_403(home: Path, path: str) -> None:
    """As it was sent, byte by byte: a client would put it in order first."""
    async with open_house(home) as house:
        reader, writer = await raw(house)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 403 "), head
        assert json.loads(body)["error"]["code"] == "bad_path"
        writer.close()


async def test_the_cancel_of_a_finished_turn_is_409_with_its_state(home: Path) -> None:
    async with open_house(home) as house:
        turn = await house.send(await house.session(), "count to 1")
        await house.settled(turn["turn_id"])
        answer = await house.web.post(f"/api/turns/{turn['turn_id']}/cancel")
        error = error_of(answer)
        assert (answer.status_code, error["code"], error["state"]) == (409, "illegal_move", "completed")


async def test_the_same_key_with_another_body_is_422(home: Path) -> None:
    async with open_house(home) as house:
        session_id = await house.session()
        address, key = f"/api/sessions/{session_id}/messages", {"Idempotency-Key": "k"}
        first = await house.web.post(address, json={"text": "a"}, headers=key)
        again = await house.web.post(address, json={"text": "a"}, headers=key)
        assert first.json()["turn_id"] == again.json()["turn_id"]
        other = await house.web.post(address, json={"text": "b"}, headers=key)
        assert (other.status_code, error_of(other)["code"]) == (422, "key_reused")


async def test_whoever_may_not_is_told_why(home: Path) -> None:
    """Foreign hosts and origins, no key, a wrong one, one for something else, and one that asks too often."""
    async with open_house(home, api_key="a-key-for-the-operator") as house:
        small = await house.post("/api/keys", {"name": "small", "scopes": ["webhook:alerts"]}, 201)
        slow = await house.post("/api/keys", {"name": "slow", "scopes": ["api"], "rate_limit": 1}, 201)
        table = [
            (421, "foreign_host", {"host": "evil.example"}),
            (403, "foreign_origin", {"origin": "https://evil.example"}),
            (403, "foreign_origin", {"origin": "null"}),
            (403, "foreign_origin", {"sec-fetch-site": "cross-site"}),
            (401, "unauthorized", {"authorization": ""}),
            (401, "unauthorized", {"authorization": "Bearer wrong"}),
            (401, "unauthorized", {"authorization": "Basic YTpi"}),
            (403, "wrong_scope", {"authorization": f"Bearer {small['key']}"}),
        ]
        for status, code, headers in table:
            answer = await house.web.get("/api/status", headers=headers)
            assert (answer.status_code, error_of(answer)["code"]) == (status, code), headers
            assert ("www-authenticate" in answer.headers) == (status == 401)
        answers = [await house.web.get("/api/me", headers={"authorization": f"Bearer {slow['key']}"}) for _ in range(2)]
        assert (answers[0].status_code, answers[1].status_code) == (200, 429)
        assert error_of(answers[1])["code"] == "rate_limited"
        assert 1 <= int(answers[1].headers["retry-after"]) <= 60
        admin = await house.web.post("/api/stop", json={}, headers={"authorization": f"Bearer {small['key']}"})
        assert (admin.status_code, error_of(admin)["code"]) == (403, "wrong_scope")


async def test_what_no_model_could_answer_is_refused(home: Path) -> None:
    async with open_house(home) as house:
        said = [{"role": "user", "content": "count to 1"}]
        unknown = await house.web.post("/v1/chat/completions", json={"model": "gpt-none", "messages": said})
        assert unknown.status_code == 404
        assert "holdfast" in error_of(unknown)["message"] + error_of(unknown)["hint"]
        for wrong in ({"messages": []}, {"messages": said, "stream": "yes"}, {}, {"messages": "count"}):
            answer = await house.web.post("/v1/chat/completions", json={"model": "holdfast", **wrong})
            assert answer.status_code == 400, wrong
            assert error_of(answer)["code"]


async def test_a_full_queue_is_429_and_says_when_to_come_again(home: Path) -> None:
    async with open_house(home) as house:
        session_id = await house.session()
        await house.send(session_id, "wait 60 seconds")
        answers = [
            await house.web.post(f"/api/sessions/{session_id}/messages", json={"text": f"more {number}"})
            for number in range(100)
        ]
        assert (answers[-1].status_code, error_of(answers[-1])["code"]) == (429, "queue_full")
        assert answers[-1].headers["retry-after"]


def test_a_string_that_never_ends_is_looked_through_once() -> None:
    """S6: each of its quotes looked like the begin of another string, which a megabyte of them made a matter of hours."""
    began = time.process_time()
    for body in (b'[1e999, "' + b'\\"' * 500_000, b'{"a": ' + b'"\\' * 400_000):
        offset(body, ValueError("Expected `int` - at `$.b`"))
    assert time.process_time() - began < 2
