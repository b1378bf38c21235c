"""Memories: each text once for its owner, found by its words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.core.memories import Memory
from holdfast.errors import NotFound, Rejected
from holdfast.ids import MemoryId
from tests.conformance.scenes import MINUTE, START, Scene


async def test_what_is_remembered_is_listed_oldest_first(scene: Scene) -> None:
    first = await scene.store.memories.add(scene.fact("likes tea", turn_id="t"))
    scene.now += MINUTE
    second = await scene.store.memories.add(scene.fact("lives in Lübeck"))
    await scene.store.memories.add(scene.fact("is somebody else", owner="somebody"))
    assert await scene.store.memories.list("local") == [first, second]
    assert await scene.store.memories.list("local", limit=1) == [first]


async def test_pages_of_memories_neither_repeat_nor_skip(scene: Scene) -> None:
    """J8: also where a page ends between memories of the same millisecond."""
    for number in range(7):
        scene.now = START + number // 3
        await scene.store.memories.add(scene.fact(f"fact {number}"))
        await scene.store.memories.add(scene.fact(f"fact {number}", owner="somebody"))
    whole = await scene.store.memories.list("local")
    assert len(whole) == 7
    for limit in (1, 2, 3, 7, 100):
        seen: list[Memory] = []
        while page := await scene.store.memories.list(
            "local", limit, after=(seen[-1].created_at, seen[-1].id) if seen else None
        ):
            seen += page
        assert seen == whole


async def test_a_text_is_remembered_once(scene: Scene) -> None:
    """P1: the same again is the one that is there; another owner's is another."""
    first = await scene.store.memories.add(scene.fact())
    scene.now += MINUTE
    assert await scene.store.memories.add(scene.fact()) == first
    other = await scene.store.memories.add(scene.fact(owner="somebody"))
    assert other.id != first.id


async def test_a_memory_is_replaced_by_its_owner(scene: Scene) -> None:
    first = await scene.store.memories.add(scene.fact())
    await scene.store.memories.add(scene.fact("likes coffee"))
    scene.now += MINUTE
    changed = await scene.store.memories.replace("local", first.id, "likes green tea", scene.now)
    assert changed == replace(first, text="likes green tea", updated_at=scene.now)
    assert await scene.store.memories.replace("local", first.id, "likes green tea", scene.now) == changed
    before = await scene.snapshot()
    with pytest.raises(NotFound):
        await scene.store.memories.replace("somebody", first.id, "mine", scene.now)
    with pytest.raises(NotFound):
        await scene.store.memories.replace("local", MemoryId("none"), "mine", scene.now)
    with pytest.raises(Rejected, match="already"):
        await scene.store.memories.replace("local", first.id, "likes coffee", scene.now)
    assert await scene.snapshot() == before


async def test_a_memory_is_removed_by_its_owner(scene: Scene) -> None:
    memory = await scene.store.memories.add(scene.fact())
    assert not await scene.store.memories.remove("somebody", memory.id)
    assert await scene.store.memories.remove("local", memory.id)
    assert not await scene.store.memories.remove("local", memory.id)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("TEA", ["Drinks green tea", "likes Tea"]),
        ("green drinks", ["Drinks green tea"]),
        ("ÜBER", ["Über-punctual"]),
        ("100%", ["is 100% sure"]),
        ("%", []),
        ("punct", ["Über-punctual"]),
        ("unct", []),
        ("tea coffee", []),
        ("else", []),
    ],
)
async def test_a_search_finds_all_words_in_any_case(scene: Scene, query: str, found: list[str]) -> None:
    for text in ("likes Tea", "Über-punctual", "is 100% sure", "Drinks green tea"):
        scene.now += 1
        await scene.store.memories.add(scene.fact(text))
    await scene.store.memories.add(scene.fact("else: tea", owner="somebody"))
    assert [memory.text for memory in await scene.store.memories.search("local", query)] == found
    assert [memory.text for memory in await scene.store.memories.search("local", query, limit=1)] == found[:1]
