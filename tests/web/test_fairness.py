"""Fairness: what one owner or one address takes keeps nobody else waiting, and is refused with what to do about it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from holdfast.config import LimitsConfig
from holdfast.operations.keys import KeyPlan
from holdfast.web import protocol, requests
from tests.engine.world import until
from tests.web.house import PATIENCE_S, House, open_house
from tests.web.somebody import holding, needs_root
from tests.web.test_limits import HEAD, raw

KEY = "the-key-of-the-operator-of-these-tests"


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing but its number close a connection that is silent."""
    monkeypatch.setattr(protocol, "HEAD_TIMEOUT_S", 10 * PATIENCE_S)
    monkeypatch.setattr(requests, "BODY_TIMEOUT_S", 10 * PATIENCE_S)


@contextlib.asynccontextmanager
async def tenant(house: House, owner: str = "alice") -> AsyncIterator[httpx2.AsyncClient]:
    made = await house.services.keys.create(KeyPlan(name=owner, owner=owner))
    headers = {"Authorization": f"Bearer {made.key}"}
    async with httpx2.AsyncClient(base_url=house.url, verify=False, timeout=PATIENCE_S, headers=headers) as web:
        await until(lambda: _is_known(web))
        yield web


async def _is_known(web: httpx2.AsyncClient) -> bool:
    return (await web.get("/api/me")).status_code == 200


async def holds(web: httpx2.AsyncClient, count: int) -> list[httpx2.Response]:
    """Send messages that are answered after a minute, each in a session of its own."""
    return await asyncio.gather(*(_send(web, nth, "wait 60 seconds") for nth in range(count)))


async def _send(web: httpx2.AsyncClient, nth: int, text: str) -> httpx2.Response:
    opened = await web.post("/api/sessions", json={"key": f"held-{nth}"})
    if opened.status_code != 201:
        return opened
    return await web.post(f"/api/sessions/{opened.json()['id']}/messages", json={"text": text})


@pytest.mark.parametrize("limits", [LimitsConfig(), LimitsConfig(running=0, queued=0)], ids=["default", "no quota"])
async def test_the_held_turns_of_a_tenant_do_not_keep_the_operators_waiting(home: Path, limits: LimitsConfig) -> None:
    """S11: 270 of them took every place there was."""
    async with open_house(home, api_key=KEY, limits=limits) as house, tenant(house) as alice:
        sent = await holds(alice, 270)
        taken = sum(each.status_code == 202 for each in sent)
        assert taken == 270 if not limits.queued else taken < 270
        async with asyncio.timeout(PATIENCE_S):
            turn = await house.send(await house.session(), "count to 3")
            assert (await house.settled(turn["turn_id"]))["state"] == "completed"


async def test_a_tenant_who_has_used_up_a_quota_is_told_what_to_do(home: Path) -> None:
    limits = LimitsConfig(sessions=2, bytes=2_000, queued=2, running=1)
    async with open_house(home, api_key=KEY, limits=limits) as house, tenant(house) as alice:
        sent = sorted(await holds(alice, 4), key=lambda each: each.status_code)
        assert [each.status_code for each in sent][2:] == [429, 429]
        problem = sent[-1].json()["error"]
        assert (problem["code"], "[limits]" in problem["hint"]) == ("over_quota", True)
        assert "2 sessions already; delete" in problem["message"]
        session = sent[0].json()["session_id"]
        large = await alice.post(f"/api/sessions/{session}/messages", json={"text": "x" * 3_000})
        assert (large.status_code, large.json()["error"]["code"]) == (429, "over_quota")
        # The operator has none of these.
        for nth in range(4):
            assert (await _send(house.web, nth, "x" * 3_000)).status_code == 202


async def test_connections_that_are_left_idle_give_way_to_new_ones(home: Path, patient: None) -> None:
    """S12: 2,600 idle connections kept everybody else out; here an address may have twenty."""
    async with asyncio.timeout(PATIENCE_S), open_house(home, limits=LimitsConfig(connections=20)) as house:
        idle = [await raw(house) for _ in range(60)]
        assert (await house.get("/health"))["ready"]
        await until(lambda: sum(reader.at_eof() for reader, _ in idle) >= 40)
        for _, writer in idle:
            writer.close()


async def test_connections_that_are_in_use_are_not_closed_for_others(home: Path, patient: None) -> None:
    async with asyncio.timeout(PATIENCE_S), open_house(home, limits=LimitsConfig(connections=4)) as house:
        session_id = await house.session()
        stream = HEAD.replace(b"/health", f"/api/sessions/{session_id}/events".encode()) + b"\r\n"
        await house.web.aclose()
        busy = [await raw(house) for _ in range(4)]
        for reader, writer in busy:
            writer.write(stream)
            await reader.readuntil(b"retry: 1000")
        refused, late = await raw(house)
        with contextlib.suppress(ConnectionError):
            assert await refused.read() == b""
        assert not any(reader.at_eof() for reader, _ in busy)
        for writer in (late, *(each for _, each in busy)):
            writer.close()


HALF_SIGN_IN = (
    "POST /api/sign-in HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"
)


@needs_root
async def test_another_user_of_this_machine_does_not_shut_the_operator_out(home: Path, patient: None) -> None:
    """1,500 requests without their bodies did, because all users share 127.0.0.1."""
    async with (
        asyncio.timeout(PATIENCE_S),
        open_house(home, limits=LimitsConfig(connections=20)) as house,
        holding(house.url, HALF_SIGN_IN, 20, "127.0.0.1") as count_open,
    ):
        assert await count_open() == 20
        # Until then the last of them may count as idle.
        await asyncio.sleep(0.2)
        for _ in range(3):
            reader, writer = await raw(house)
            writer.write(HEAD + b"Connection: close\r\n\r\n")
            assert (await reader.read()).startswith(b"HTTP/1.1 200 ")
            writer.close()
        assert await count_open() == 20


@needs_root
async def test_a_user_of_this_machine_has_no_more_connections_from_several_addresses(home: Path, patient: None) -> None:
    async with (
        asyncio.timeout(PATIENCE_S),
        open_house(home, limits=LimitsConfig(connections=20)) as house,
        holding(house.url, HALF_SIGN_IN, 20, "127.0.0.1", "127.0.0.2", "127.0.0.3") as count_open,
    ):

        async def are_no_more_than_one_may_have() -> bool:
            return await count_open() <= 20

        await until(are_no_more_than_one_may_have)


async def test_a_connection_that_was_refused_makes_no_room_for_another(home: Path, patient: None) -> None:
    """They come at once, so the next one is looked at before the one that was refused is gone."""
    async with asyncio.timeout(PATIENCE_S), open_house(home, limits=LimitsConfig(connections=4)) as house:
        await house.web.aclose()
        busy = [await raw(house) for _ in range(4)]
        for _, writer in busy:
            writer.write(HALF_SIGN_IN.encode())
        await asyncio.sleep(0.2)
        late = await asyncio.gather(*(raw(house) for _ in range(10)))
        for reader, writer in late:
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""
            writer.close()
        for _, writer in busy:
            writer.close()


async def test_two_host_headers_are_refused(home: Path) -> None:
    """S12: a proxy may have judged by the one, and we by the other."""
    async with asyncio.timeout(PATIENCE_S), open_house(home) as house:
        reader, writer = await raw(house)
        writer.write(HEAD + b"Host: 127.0.0.1\r\n\r\n")
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert b'"code":"bad_http"' in answer
        writer.close()
