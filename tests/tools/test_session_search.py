"""What was said is found again by whoever said it, and by nobody else."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.agent.scripted import Say, ScriptedAgent
from holdfast.agent.tools.session_search import session_search_tool, snippet
from holdfast.errors import Rejected
from tests.engine.world import Open, answered, opened, running_engine
from tests.tools.contexts import call_context


async def test_a_search_finds_messages_and_answers_of_the_owner_only(open_it: Open) -> None:
    async with opened(open_it) as store:
        async with running_engine(store, ScriptedAgent(lambda work: [Say(f"about {work.message}: figs")])) as engine:
            mine = await answered(engine, store, "apples and pears", conversation="a")
            await answered(engine, store, "apples of others", conversation="b", owner="ann")
        search = session_search_tool(store.passages)
        text = await search.run({"query": "apples"}, call_context())
        assert text.startswith("2 found, the newest first:")
        assert f"{mine.session_id}, agent: about apples and pears: figs" in text
        assert f"{mine.session_id}, person: apples and pears" in text
        assert "others" not in text
        assert "untrusted" in text
        assert "(this conversation)" in await search.run({"query": "figs"}, call_context({"id": mine.session_id}))
        assert "try fewer" in await search.run({"query": "bananas"}, call_context())
        assert (await search.run({"query": "apples", "limit": 1}, call_context())).startswith("1 found")


@pytest.mark.parametrize("args", [{}, {"query": ""}, {"query": "a", "limit": 0}, {"query": "a", "limit": 51}])
async def test_a_search_for_nothing_is_refused(open_it: Open, args: dict[str, Any]) -> None:
    async with opened(open_it) as store:
        with pytest.raises(Rejected):
            await session_search_tool(store.passages).run(args, call_context())


@pytest.mark.parametrize(
    ("text", "query", "shown"),
    [
        ("short", "short", "short"),
        ("a b\n c", "x", "a b c"),
        ("x" * 50 + " needle " + "y" * 50, "NEEDLE", "…xxxx needle yyyyyyyy…"),
    ],
)
def test_a_snippet_shows_what_was_looked_for(text: str, query: str, shown: str) -> None:
    assert snippet(text, query, 20) == shown
