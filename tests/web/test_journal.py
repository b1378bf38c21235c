"""The journal by pages: what a page folds is what happened, each entry once, and what follows is what was missing."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.web.house import PATIENCE_S, House, open_house


async def talk(house: House, *texts: str) -> str:
    session_id = await house.session()
    for text in texts:
        await house.settled((await house.send(session_id, text))["turn_id"])
    return session_id


async def raw(house: House, session_id: str, seq: int) -> list[Any]:
    """Read the whole journal as it is followed."""
    taken: list[Any] = []
    async with asyncio.timeout(PATIENCE_S), house.events(session_id) as events:
        async for entry in events:
            taken.append(entry)
            if entry["seq"] == seq:
                break
    return taken


def words(entries: list[Any]) -> str:
    return "".join(each["data"]["text"] for each in entries if each["kind"] == "text")


async def test_pages_of_the_journal_hold_every_entry_once_with_their_words_joined(home: Path) -> None:
    async with open_house(home) as house:
        session_id = await talk(house, "count to 30", "two, count to 1", "three, count to 1")
        path = f"/api/sessions/{session_id}/journal"
        newest = await house.get(path, turns=2)
        oldest = await house.get(path, turns=2, cursor=newest["next_cursor"])
        assert (oldest["next_cursor"], newest["session"]["id"]) == (None, session_id)
        assert [each["data"]["text"] for each in newest["entries"] if each["kind"] == "turn.accepted"] == [
            "two, count to 1", "three, count to 1"
        ]  # fmt: skip
        joined = oldest["entries"] + newest["entries"]
        entries = await raw(house, session_id, newest["seq"])
        assert [seq for each in joined for seq in range(each["since"], each["seq"] + 1)] == [e["seq"] for e in entries]
        assert words(joined) == words(entries)
        assert len(joined) < len(entries)
        # Everything else is as it was.
        whole = [{key: value for key, value in each.items() if key != "since"} for each in joined]
        assert [each for each in whole if each["kind"] not in ("text", "reasoning")] == [
            each for each in entries if each["kind"] not in ("text", "reasoning")
        ]
        spent = [each["data"] for each in entries if each["kind"] == "usage"]
        assert newest["used"]["output_tokens"] == sum(each["output_tokens"] for each in spent)
        # What comes next is what is not there.
        async with house.events(session_id, newest["seq"]) as events:
            await house.send(session_id, "echo: later")
            assert (await anext(events))["seq"] == newest["seq"] + 1


async def test_a_journal_with_nothing_in_it_is_one_empty_page_and_no_page_is_without_limit(home: Path) -> None:
    async with open_house(home) as house:
        session_id = await house.session()
        path = f"/api/sessions/{session_id}/journal"
        page = await house.get(path, turns=10**9)
        assert (page["entries"], page["next_cursor"], page["seq"], page["used"]["cost_micros"]) == ([], None, 0, 0)
        for wrong in ({"turns": "0"}, {"cursor": "x"}):
            assert (await house.web.get(path, params=wrong)).status_code == 400
