"""Lists and conversations by pages: nothing twice, nothing left out, whatever happens between two of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from holdfast.ids import SessionId
from tests.web.house import House, open_house


async def pages(house: House, path: str, **params: Any) -> list[list[Any]]:
    """Read a list page by page until there is no more."""
    read: list[list[Any]] = []
    cursor: str | None = None
    while True:
        page = await house.get(path, **params, **({"cursor": cursor} if cursor else {}))
        read.append(page["items"])
        cursor = page["next_cursor"]
        if not cursor:
            return read


async def talk(house: House, count: int) -> str:
    session_id = await house.session()
    for number in range(count):
        sent = await house.send(session_id, f"word{number}, count to 1")
        await house.settled(sent["turn_id"])
    return session_id


def questions(items: list[Any]) -> list[str]:
    return [each["text"] for each in items if each["role"] == "user"]


async def test_a_conversation_is_read_by_turns_from_either_end(home: Path) -> None:
    async with open_house(home) as house:
        session_id = await talk(house, 5)
        path = f"/api/sessions/{session_id}/messages"
        whole = await house.get(path)
        everything = whole["items"]
        assert whole["next_cursor"] is None
        onward = await pages(house, path, limit=2)
        assert [len(questions(page)) for page in onward] == [2, 2, 1]
        assert [item for page in onward for item in page] == everything
        back = await pages(house, path, limit=2, order="desc")
        assert [len(questions(page)) for page in back] == [2, 2, 1]
        assert [item for page in reversed(back) for item in page] == everything


async def test_a_page_says_where_to_follow_from(home: Path) -> None:
    """J3: what a page does not show yet is exactly what follows."""
    async with open_house(home) as house:
        session_id = await talk(house, 3)
        page = await house.get(f"/api/sessions/{session_id}/messages", limit=1, order="desc")
        assert page["seq"] == (await house.get(f"/api/sessions/{session_id}"))["seq"]
        async with house.events(session_id, page["seq"]) as events:
            sent = await house.send(session_id, "echo: later")
            first = await anext(events)
            assert (first["kind"], first["turn_id"], first["seq"]) == ("turn.accepted", sent["turn_id"], page["seq"] + 1)


async def test_an_empty_conversation_is_one_empty_page(home: Path) -> None:
    async with open_house(home) as house:
        session_id = await house.session()
        for params in ({}, {"limit": 5}, {"limit": 5, "order": "desc"}):
            page = await house.get(f"/api/sessions/{session_id}/messages", **params)
            assert (page["items"], page["next_cursor"], page["seq"]) == ([], None, 0)


async def test_sessions_are_narrowed_and_put_aside(home: Path) -> None:
    async with open_house(home) as house:
        kept, shelved = await house.session(channel="web"), await house.session(channel="api")
        changed = await house.web.patch(f"/api/sessions/{shelved}", json={"archived": True, "pinned": True})
        assert (changed.json()["archived"], changed.json()["pinned"], changed.json()["title"]) == (True, True, None)
        renamed = await house.web.patch(f"/api/sessions/{shelved}", json={"title": "Aside"})
        assert (renamed.json()["archived"], renamed.json()["title"]) == (True, "Aside")

        async def listed(**params: str) -> list[str]:
            return [each["id"] for each in (await house.get("/api/sessions", **params))["items"]]

        assert sorted(await listed()) == sorted([kept, shelved])
        assert await listed(archived="true") == [shelved]
        assert await listed(archived="false") == [kept]
        assert (await listed(pinned="true"), await listed(pinned="false")) == ([shelved], [kept])
        assert await listed(channel="web") == [kept]
        assert await listed(channel="none") == []
        refused = await house.web.get("/api/sessions", params={"archived": "perhaps"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "bad_parameter")


async def test_jobs_and_memories_come_by_pages(home: Path) -> None:
    async with open_house(home) as house:
        for number in range(5):
            await house.post("/api/jobs", {"name": f"job{number}", "schedule": "0 7 * * *", "prompt": "hello"}, 201)
            await house.post("/api/memory", {"text": f"fact {number}"}, 201)
        jobs = await pages(house, "/api/jobs", limit=2)
        assert [[each["name"] for each in page] for page in jobs if page] == [["job0", "job1"], ["job2", "job3"], ["job4"]]
        memories = await pages(house, "/api/memory", limit=2)
        assert [each["text"] for page in memories for each in page] == [f"fact {number}" for number in range(5)]


async def test_a_list_shows_what_each_session_is_about_and_what_it_is_at(home: Path) -> None:
    async with open_house(home) as house:
        waits, done = await house.session(), await house.session(title="Mine")
        sent = await house.send(waits, "ask me which one?")
        await house.in_state(sent["turn_id"], "waiting")
        await house.settled((await house.send(done, "count to 1"))["turn_id"])
        shown = {each["id"]: (each["label"], each["activity"]) for each in (await house.get("/api/sessions"))["items"]}
        assert shown == {waits: ("ask me which one?", "waiting"), done: ("Mine", None)}
        assert {each.id: each.label for each in (await house.services.sessions.list(pinned=False)).items}[
            SessionId(done)
        ] == "Mine"


async def test_a_search_shows_where_the_words_are(home: Path) -> None:
    async with open_house(home) as house:
        session_id = await house.session(channel="web")
        await house.settled((await house.send(session_id, "echo: 👍🏽 the Heliotrope blooms"))["turn_id"])
        hits = (await house.get("/api/search", q="heliotrope"))["items"]
        assert len(hits) == 2
        for hit in hits:
            assert (hit["session_id"], hit["channel"]) == (session_id, "web")
            assert hit["label"] == "echo: 👍🏽 the Heliotrope blooms"
            ((begin, end),) = hit["marks"]
            assert hit["snippet"].encode("utf-16-le")[2 * begin : 2 * end].decode("utf-16-le") == "Heliotrope"
        assert (await house.services.sessions.search("heliotrope")).items[0].snippet == hits[0]["snippet"]
