"""All sessions in one stream: what changes is told, also by another node, and nobody is told of what is another's."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2

from holdfast.operations.gateway import Stop
from holdfast.operations.keys import KeyPlan
from tests.engine.world import until
from tests.postgres import Server
from tests.web.house import PATIENCE_S, House, open_house

Events = AsyncIterator[tuple[str, Any]]


@asynccontextmanager
async def watching(client: httpx2.AsyncClient) -> AsyncIterator[Events]:
    """Watch as a browser does; what comes first says that the list is to be read."""
    async with client.stream("GET", "/api/events") as response:
        assert response.headers["content-type"].startswith("text/event-stream"), await response.aread()
        events = parse(response)
        assert await following(events) == ("reset", {})
        yield events


async def parse(response: httpx2.Response) -> Events:
    name = ""
    async for line in response.aiter_lines():
        field, _, value = line.partition(": ")
        if field == "event":
            name = value
        elif field == "data":
            yield name, json.loads(value)


async def following(events: Events) -> tuple[str, Any]:
    async with asyncio.timeout(PATIENCE_S):
        return await anext(events)


async def seen(events: Events, is_it: Callable[[Any], bool]) -> list[Any]:
    """Read on until a session is shown as it should be; returns all that came up to it."""
    came: list[Any] = []
    while not came or not is_it(came[-1]):
        name, data = await following(events)
        assert name == "session"
        came.append(data)
    return came


async def test_whatever_changes_about_a_session_is_told(home: Path) -> None:
    async with open_house(home) as house, watching(house.web) as events:
        session_id = await house.session()
        (opened,) = await seen(events, lambda each: each["id"] == session_id)
        assert opened == await house.get(f"/api/sessions/{session_id}")
        sent = await house.send(session_id, "ask me which one?")
        *_, waits = await seen(events, lambda each: each["activity"] == "waiting")
        assert (waits["turns"], waits["label"]) == (1, "ask me which one?")
        await house.post(f"/api/turns/{sent['turn_id']}/answer", {"text": "this"})
        await seen(events, lambda each: each["activity"] is None)
        for change in ({"title": "Mine"}, {"pinned": True}, {"archived": True}):
            await house.web.patch(f"/api/sessions/{session_id}", json=change)
            await seen(events, lambda each, wanted=change: wanted.items() <= each.items())
        copy = await house.post(f"/api/sessions/{session_id}/fork", {}, 201)
        await seen(events, lambda each: each["id"] == copy["id"])
        await house.post(f"/api/sessions/{session_id}/suspend")
        await seen(events, lambda each: each["state"] == "suspended")
        await house.post(f"/api/sessions/{session_id}/end")
        await seen(events, lambda each: each["state"] == "ended")
        await house.web.delete(f"/api/sessions/{session_id}")
        assert await following(events) == ("gone", {"id": session_id})


async def test_what_is_only_being_said_is_not_told(home: Path) -> None:
    async with open_house(home) as house, watching(house.web) as events:
        session_id = await house.session()
        await house.send(session_id, "count to 60")
        came = await seen(events, lambda each: each["turns"] == 1 and each["activity"] is None)
        said = (await house.get(f"/api/sessions/{session_id}"))["seq"]
        # Opened, queued, running, over, and fewer where two of these fall together.
        assert len(came) <= 4 < said


async def test_nobody_is_told_of_what_is_anothers(home: Path) -> None:
    """SECURITY 14"""
    async with open_house(home) as house:
        made = {name: (await house.services.keys.create(KeyPlan(name=name, owner=name))).key for name in ("ann", "bob")}
        clients = {
            name: httpx2.AsyncClient(
                base_url=house.url, verify=False, timeout=PATIENCE_S, headers={"authorization": f"Bearer {key}"}
            )
            for name, key in made.items()
        }
        async with clients["ann"] as ann, clients["bob"] as bob:
            await until(lambda: known(bob))
            async with watching(ann) as her_events, watching(bob) as his_events:
                hers = (await ann.post("/api/sessions", json={"title": "hers"})).json()["id"]
                await seen(her_events, lambda each: each["title"] == "hers")
                await ann.delete(f"/api/sessions/{hers}")
                assert await following(her_events) == ("gone", {"id": hers})
                his = (await bob.post("/api/sessions", json={})).json()["id"]
                # Whatever he was told until now he reads first.
                name, shown = await following(his_events)
                assert (name, shown["id"]) == ("session", his)


async def known(client: httpx2.AsyncClient) -> bool:
    return (await client.get("/api/me")).status_code == 200


async def test_another_node_is_heard_of_too(home: Path, postgres: Server) -> None:
    store = postgres.create_database("activity")
    async with (
        open_house(home / "a", store=store) as here,
        open_house(home / "b", store=store) as there,
        watching(there.web) as events,
    ):
        session_id = await changed_until_heard(here, events)
        await here.web.delete(f"/api/sessions/{session_id}")
        assert await following(events) == ("gone", {"id": session_id})


async def changed_until_heard(house: House, events: Events) -> str:
    """Open a session and wait until it is told; its reader may be told meanwhile that it missed something."""
    session_id = await house.session()
    while True:
        name, data = await following(events)
        if name == "session" and data["id"] == session_id:
            return session_id
        assert name == "reset"
        await house.web.patch(f"/api/sessions/{session_id}", json={"title": "again"})


async def test_a_stream_of_all_sessions_ends_with_the_gateway(home: Path) -> None:
    async with open_house(home) as house, watching(house.web) as events:
        stop = asyncio.create_task(house.stop())
        assert [event async for event in events] == []
        async with asyncio.timeout(PATIENCE_S):
            assert await stop == Stop()
