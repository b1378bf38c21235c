"""Memory in OpenViking behind a whole gateway: chosen in its configuration, and paid at the boundaries that people make."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2

from holdfast.config import MemoryConfig
from holdfast.memory.openviking.provider import identity
from holdfast.operations.keys import KeyPlan
from tests.engine.world import until
from tests.memory.vikings import KEY, OpenViking, an_openviking
from tests.web.house import House, open_house

OPERATOR = "a-key-for-the-operator"


def at(server: OpenViking) -> MemoryConfig:
    return MemoryConfig(provider="openviking", url=server.url, api_key=KEY)


async def talk(house: House, text: str, **opening: Any) -> str:
    session_id = await house.session(**opening)
    await house.settled((await house.send(session_id, text))["turn_id"])
    return session_id


async def test_a_new_conversation_ends_the_one_before_and_is_told_what_that_left(home: Path) -> None:
    """M11: the boundary is named, and what was extracted there is recalled for the next message."""
    async with an_openviking("trusted") as server, open_house(home, memory=at(server)) as house:
        first = await talk(house, "count to 1 as I keep bees")
        assert server.asked("POST .*/commit$") == []
        second = await house.session(previous_session_id=first)
        await until(lambda: server.extractions.total() == 1)
        (segment,) = await until(lambda: _paid(house, first))
        assert (segment["owner"], segment["receipt"]) == (f"openviking:{server.url}", "1 memory extracted")
        await house.settled((await house.send(second, "count to 2 for my bees"))["turn_id"])
        assert [post.json["query"] for post in server.asked("/find$")][-1] == "count to 2 for my bees"
        found = await house.get("/api/memory/recall", q="bees")
        assert [each["text"] for each in found["items"]] == ["# Summary count to 1 as I keep bees"]


async def _paid(house: House, session_id: str) -> Any:
    return (await house.get("/api/memory/segments", session=session_id, state="committed"))["items"]


async def test_a_tenant_is_somebody_else_there_and_a_single_request_is_told_to_nobody(home: Path) -> None:
    """M1: one-shot requests are not remembered; whoever has a key of their own has memory of their own."""
    async with an_openviking("trusted") as server, open_house(home, api_key=OPERATOR, memory=at(server)) as house:
        key = (await house.services.keys.create(KeyPlan(name="ada", owner="ada"))).key
        async with httpx2.AsyncClient(
            base_url=house.url, verify=False, timeout=20, headers={"authorization": f"Bearer {key}"}
        ) as ada:
            await until(lambda: _is_known(ada))
            await _ask(ada, "count to 3")
            await _ask(ada, "count to 4", **{"X-Session-Key": "mine"})
        mine = await talk(house, "count to 1")
        assert await house.post("/api/memory/commit", {"session_id": mine}) == {"committed": True}
        await until(lambda: len(server.sessions) == 2)
        who = identity("ada")
        assert {owner[:2] for owner in server.sessions} == {("default", "default"), (who.account_id, who.user_id)}
        assert server.memories.keys() == {("default", "default")}, "nothing of hers is over yet"
        assert not [post for post in server.receiver.posts if b"count to 3" in post.body]


async def _ask(client: httpx2.AsyncClient, text: str, **headers: str) -> None:
    model = (await client.get("/v1/models")).json()["data"][0]["id"]
    asked = {"model": model, "messages": [{"role": "user", "content": text}]}
    answer = await client.post("/v1/chat/completions", json=asked, headers=headers)
    assert answer.status_code == 200, answer.text


async def _is_known(client: httpx2.AsyncClient) -> bool:
    return (await client.get("/api/me")).status_code == 200
