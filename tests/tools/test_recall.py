"""What was said and what is remembered: found again by its owner, and by nobody else."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.agent.scripted import Reach, Say, ScriptedAgent
from holdfast.agent.toolbox import Toolbox
from holdfast.agent.tools.memory import MEMORIES_MAX, memory_tool
from holdfast.agent.tools.session_search import session_search_tool, snippet
from holdfast.clock import SystemClock
from holdfast.core.redaction import MASK, Redaction
from holdfast.errors import NotFound, Rejected
from holdfast.store.opening import Store
from tests.engine.world import Open, answered, opened, running_engine
from tests.tools.sites import site

SECRET = "open-sesame-42"


async def test_a_search_finds_messages_and_answers_of_the_owner_only(open_it: Open) -> None:
    async with opened(open_it) as store:
        async with running_engine(store, ScriptedAgent(lambda work: [Say(f"about {work.message}: figs")])) as engine:
            mine = await answered(engine, store, "apples and pears", conversation="a")
            await answered(engine, store, "apples of others", conversation="b", owner="ann")
        search = session_search_tool(store.sessions)
        text = await search.run({"query": "apples"}, site())
        assert text.startswith("2 found, the newest first:")
        assert f"{mine.session_id}, agent: about apples and pears: figs" in text
        assert f"{mine.session_id}, person: apples and pears" in text
        assert "others" not in text
        assert "untrusted" in text
        assert "(this conversation)" in await search.run({"query": "figs"}, site({"id": mine.session_id}))
        assert "try fewer" in await search.run({"query": "bananas"}, site())
        assert (await search.run({"query": "apples", "limit": 1}, site())).startswith("1 found")


@pytest.mark.parametrize("args", [{}, {"query": ""}, {"query": "a", "limit": 0}, {"query": "a", "limit": 51}])
async def test_a_search_for_nothing_is_refused(open_it: Open, args: dict[str, Any]) -> None:
    async with opened(open_it) as store:
        with pytest.raises(Rejected):
            await session_search_tool(store.sessions).run(args, site())


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


def memory(store: Store) -> Any:
    return memory_tool(store.memories, Redaction([SECRET]), SystemClock())


async def test_a_fact_is_added_found_changed_and_removed(open_it: Open) -> None:
    """R10: a repeated call adds nothing."""
    async with opened(open_it) as store:
        here = site()
        added = await memory(store).run({"action": "add", "text": "Likes  tea."}, here)
        assert await memory(store).run({"action": "add", "text": "Likes tea."}, here) == added
        (kept,) = await store.memories.list("local")
        assert (kept.text, kept.turn_id, added) == ("Likes tea.", here.turn.id, f"Remembered: {kept.id}: Likes tea.")
        again = await memory(store).run({"action": "add", "text": "Likes tea."}, site(call_id="call_2"))
        assert again == f"Known already: {kept.id}: Likes tea."
        assert kept.id in await memory(store).run({"action": "search", "text": "TEA"}, here)
        assert "Likes coffee." in await memory(store).run(
            {"action": "replace", "id": kept.id, "text": "Likes coffee."}, here
        )
        assert await memory(store).run({"action": "list"}, here) == f"{kept.id}: Likes coffee."
        assert await memory(store).run({"action": "remove", "id": kept.id}, here) == f"Removed {kept.id}."
        assert "nothing was changed" in await memory(store).run({"action": "remove", "id": kept.id}, here)


async def test_facts_of_others_are_out_of_reach(open_it: Open) -> None:
    async with opened(open_it) as store:
        await memory(store).run({"action": "add", "text": "Likes tea."}, site({"owner": "ann"}))
        (theirs,) = await store.memories.list("ann")
        assert await memory(store).run({"action": "list"}, site()) == "Nothing is remembered about that."
        assert "no memory" in await memory(store).run({"action": "remove", "id": theirs.id}, site())
        with pytest.raises(NotFound):
            await memory(store).run({"action": "replace", "id": theirs.id, "text": "x"}, site())
        assert await store.memories.list("ann") == [theirs]


@pytest.mark.parametrize(
    "text",
    [
        "-----BEGIN RSA PRIVATE KEY-----",
        "The key is sk-proj-abcdefghijklmnopqrstuvwx",
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "xoxb-1234567890-abcdefghij",
        "AKIAABCDEFGHIJKLMNOP",
        "his password is hunter22",
        "api_key = 0123456789",
        "1234567890:AAabcdefghijklmnopqrstuvwxyz0123456789",
    ],
)
async def test_what_looks_like_a_secret_is_not_remembered(open_it: Open, text: str) -> None:
    """K1"""
    async with opened(open_it) as store:
        with pytest.raises(Rejected, match="looks like a password or a key"):
            await memory(store).run({"action": "add", "text": text}, site())
        assert await store.memories.list("local") == []


@pytest.mark.parametrize(
    "text", ["Wants a password manager.", "Collects tokens of old arcades.", "Keeps the secret garden."]
)
async def test_what_only_speaks_of_secrets_is_remembered(open_it: Open, text: str) -> None:
    async with opened(open_it) as store:
        assert (await memory(store).run({"action": "add", "text": text}, site())).startswith("Remembered")


async def test_a_known_secret_is_masked(open_it: Open) -> None:
    """K1"""
    async with opened(open_it) as store:
        await memory(store).run({"action": "add", "text": f"Says {SECRET}."}, site())
        assert [each.text for each in await store.memories.list("local")] == [f"Says {MASK}."]


async def test_there_is_room_for_so_many_facts(open_it: Open) -> None:
    async with opened(open_it) as store:
        for number in range(MEMORIES_MAX):
            await memory(store).run({"action": "add", "text": f"Fact {number}."}, site(call_id=f"call_{number}"))
        with pytest.raises(Rejected, match="replace or remove one first"):
            await memory(store).run({"action": "add", "text": "One more."}, site(call_id="more"))
        assert "Remembered" in await memory(store).run({"action": "add", "text": "Fact 0."}, site(call_id="call_0"))


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"action": "add"},
        {"action": "add", "text": " "},
        {"action": "replace", "text": "x"},
        {"action": "remove"},
        {"action": "search"},
        {"action": "add", "text": "x" * 1_001},
        {"action": "burn"},
    ],
)
async def test_arguments_that_say_nothing_are_refused(open_it: Open, args: dict[str, str]) -> None:
    async with opened(open_it) as store:
        with pytest.raises(Rejected):
            await memory(store).run(args, site())


async def test_what_one_conversation_remembers_another_one_knows(open_it: Open) -> None:
    async with opened(open_it) as store:
        toolbox = Toolbox([memory(store)])
        script = [
            Reach("memory", {"action": "add", "text": "Likes tea."}),
            Reach("memory", {"action": "list"}, report=lambda call: str(call.result)),
        ]
        async with running_engine(store, ScriptedAgent(script, toolbox=toolbox)) as engine:
            turns = [await answered(engine, store, conversation=key) for key in ("a", "b")]
        answers = [(await store.journal.read_turn(turn.id))[-1].data["text"] for turn in turns]
        assert answers[0] == answers[1]
        assert "Likes tea." in str(answers[0])
