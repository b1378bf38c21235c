"""The stream of a session: from any cursor, across reconnects and restarts, each entry once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from holdfast.ids import SessionId
from holdfast.operations.gateway import Stop
from holdfast.web import events as sse
from tests.engine.world import until
from tests.web.house import PATIENCE_S, House, open_house


async def take(house: House, session_id: str, number: int, **where: Any) -> list[Any]:
    """Read so many events and leave, without a word to the gateway."""
    taken = []
    async with asyncio.timeout(PATIENCE_S), house.events(session_id, **where) as events:
        async for event in events:
            taken.append(event)
            if len(taken) == number:
                break
    return taken


async def read_to_the_end(house: House, session_id: str, **where: Any) -> list[Any]:
    taken = []
    async with asyncio.timeout(PATIENCE_S), house.events(session_id, **where) as events:
        async for event in events:
            taken.append(event)
            if event != "reset" and event["kind"] == "turn.completed":
                break
    return taken


async def test_a_stream_replays_from_the_start_and_ends_with_the_journal(home: Path) -> None:
    """J3: what is replayed is what was shown live."""
    async with open_house(home) as house:
        session_id = await house.session()
        await house.send(session_id, "count to 1")
        live = await read_to_the_end(house, session_id)
        assert [entry["seq"] for entry in live] == list(range(1, len(live) + 1))
        assert live[0]["kind"] == "turn.accepted"
        assert {"kind", "session_id", "turn_id", "seq", "at", "data"} <= live[0].keys()
        assert await read_to_the_end(house, session_id) == live


async def test_a_reader_that_comes_back_gets_exactly_what_it_missed(home: Path) -> None:
    """J8: none twice, none lost, by header and by parameter; leaving is no cancel (J9)."""
    async with open_house(home) as house:
        session_id = await house.session()
        receipt = await house.send(session_id, "count to 30")
        first = await take(house, session_id, 3)
        second = await take(house, session_id, 2, after=first[-1]["seq"])
        rest = await read_to_the_end(house, session_id, **{"Last-Event-ID": str(second[-1]["seq"])})
        assert [entry["seq"] for entry in (*first, *second, *rest)] == list(range(1, rest[-1]["seq"] + 1))
        assert (await house.settled(receipt["turn_id"]))["state"] == "completed"


async def test_a_cursor_beyond_the_end_is_reset(home: Path) -> None:
    async with open_house(home) as house:
        session_id = await house.session()
        await house.settled((await house.send(session_id, "count to 1"))["turn_id"])
        events = await read_to_the_end(house, session_id, after=1_000_000)
        assert events[0] == "reset"
        assert events[1]["seq"] == 1
        bad = await house.web.get(f"/api/sessions/{session_id}/events", headers={"last-event-id": "x"})
        assert bad.status_code == 400


async def test_a_silent_stream_shows_that_it_lives(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pause between two heartbeats is shortened; the stream is real."""
    monkeypatch.setattr(sse, "HEARTBEAT_S", 0.05)
    async with open_house(home) as house:
        session_id = await house.session()
        async with asyncio.timeout(PATIENCE_S), house.web.stream("GET", f"/api/sessions/{session_id}/events") as response:
            lines = response.aiter_lines()
            while not (await anext(lines)).startswith(":"):
                pass


async def test_open_streams_do_not_keep_a_gateway_from_ending(home: Path) -> None:
    async with open_house(home) as house:
        session_id = await house.session()
        async with house.events(session_id) as events:
            stop = asyncio.create_task(house.stop())
            assert [event async for event in events] == []
            async with asyncio.timeout(PATIENCE_S):
                assert await stop == Stop()


async def test_a_follower_survives_a_restart_of_the_gateway(home: Path) -> None:
    """J8: a client waits for the gateway and goes on behind the last entry that it has."""
    seen: list[int] = []
    async with open_house(home) as house:
        session_id = SessionId(await house.session(key="long"))
        first = await house.send(session_id, "count to 1")
        await house.settled(first["turn_id"])
        services = house.services

        async def follow() -> None:
            async for entry in services.sessions.follow(session_id):
                seen.extend([entry.seq])

        following = asyncio.create_task(follow())
        await house.stop()
        async with open_house(home) as again:
            second = await again.send(session_id, "count to 2")
            await again.settled(second["turn_id"])
            last = (await again.get(f"/api/sessions/{session_id}"))["seq"]
            await until(lambda: seen and seen[-1] >= last)
        following.cancel()
        assert seen == list(range(1, last + 1))


async def test_whoever_reads_what_somebody_deletes_is_not_kept_waiting(home: Path) -> None:
    """A stream ends, and a request that waits for an answer is told; nobody hangs on something that is no more."""
    asked = {"model": "holdfast", "messages": [{"role": "user", "content": "wait 60 seconds"}]}
    async with open_house(home) as house, asyncio.timeout(PATIENCE_S):
        waiting = asyncio.create_task(
            house.web.post("/v1/chat/completions", json=asked, headers={"X-Session-Key": "doomed"})
        )  # fmt: skip
        (session,) = await until(lambda: _sessions(house))
        async with house.events(session["id"]) as events:
            assert (await anext(events))["kind"] == "turn.accepted"
            assert (await house.web.delete(f"/api/sessions/{session['id']}")).status_code == 200
            async for event in events:
                assert event["session_id"] == session["id"]
        answer = await waiting
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")


async def _sessions(house: House) -> list[Any]:
    return (await house.get("/api/sessions"))["items"]
