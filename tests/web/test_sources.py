"""Where sessions come from, as every answer that has a session in it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2

from holdfast.operations.keys import KeyPlan
from tests.engine.world import until
from tests.web.house import House, open_house
from tests.web.test_activity import seen, watching
from tests.web.test_tenants import known
from tests.webhooks.sender import open_routes, route, send

UNSAID = dict.fromkeys(("chat_id", "chat_name", "chat_type", "thread_id", "user_id", "user_name"))
COMPLETION: dict[str, Any] = {"model": "holdfast", "messages": [{"role": "user", "content": "count to 1"}]}


async def only(client: httpx2.AsyncClient) -> Any:
    (session,) = (await client.get("/api/sessions")).json()["items"]
    return session


async def everywhere(house: House, session_id: str) -> list[Any]:
    """Return a session as each of the answers has it that carry one."""
    one = f"/api/sessions/{session_id}"
    exported = await house.web.get(f"{one}/export", params={"format": "json"})
    return [
        await house.get(one),
        await only(house.web),
        *[(await house.get(f"{one}/{part}"))["session"] for part in ("messages", "journal")],
        json.loads(exported.text)["session"],
        (await house.web.patch(one, json={"title": "named"})).json(),
        await house.post(f"{one}/fork", status=201),
    ]


async def test_a_delivery_says_where_it_came_from_wherever_its_session_is_shown(home: Path) -> None:
    """W2: chat id, chat name, chat type and user are those of the route and the delivery."""
    async with open_routes(home, alerts=route(prompt="count to 1")) as house, watching(house.web) as events:
        said = (await send(house, "alerts", {}, "dlv-1")).json()
        *_, told = await seen(events, lambda session: session["state"] == "ended")
        source = {
            **UNSAID,
            "chat_id": "webhook:alerts:dlv-1",
            "chat_name": "webhook/alerts",
            "chat_type": "webhook",
            "user_id": "webhook:alerts",
        }
        assert [each["source"] for each in (told, *await everywhere(house, said["session_id"]))] == [source] * 8


async def test_every_channel_says_what_it_knows_and_null_for_the_rest(home: Path) -> None:
    """W2: what is begun on the page has no chat, a job has a name, and a client without a key is only known as one."""
    async with open_house(home) as house:
        opened = await house.post("/api/sessions", {}, 201)
        assert (opened["source"], opened["model"]) == (UNSAID, None)
        await house.post("/v1/chat/completions", COMPLETION)
        await house.post("/api/jobs", {"name": "tide", "schedule": "0 4 * * *", "prompt": "count to 1"}, 201)
        await house.post("/api/jobs/tide/run", status=202)

        async def sources() -> Any:
            found = {each["channel"]: each["source"] for each in (await house.get("/api/sessions"))["items"]}
            return found if len(found) == 3 else None

        found = await until(sources)
        assert found["api"] == {**UNSAID, "chat_type": "api"}
        assert found["cron"].pop("chat_id").startswith("cron:tide:")
        assert found["cron"] | {"chat_id": None} == {
            **UNSAID,
            "chat_name": "cron/tide",
            "chat_type": "cron",
            "user_id": "cron:tide",
        }


async def test_a_client_with_a_key_is_named_by_it_and_to_nobody_else(home: Path) -> None:
    """W2, SECURITY 14: by the id of the key, which is no secret, and only to the owner of the session."""
    async with open_house(home) as house:
        made = {name: await house.services.keys.create(KeyPlan(name=name, owner=name)) for name in ("alice", "bob")}
        alice, bob = (
            httpx2.AsyncClient(base_url=house.url, timeout=20, headers={"authorization": f"Bearer {each.key}"})
            for each in made.values()
        )
        async with alice, bob:
            await until(lambda: known(bob))
            assert (await alice.post("/v1/chat/completions", json=COMPLETION)).status_code == 200
            hers = await only(alice)
            assert hers["source"] == {**UNSAID, "chat_type": "api", "user_id": made["alice"].made.id}
            assert (await bob.get("/api/sessions")).json()["items"] == []
            assert (await bob.get(f"/api/sessions/{hers['id']}")).status_code == 404
