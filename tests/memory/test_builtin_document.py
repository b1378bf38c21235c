"""The document and the store: what a person saves is what is remembered, beside what was learned meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from holdfast.core.document import as_markdown, changes
from holdfast.core.facts import MemoriesChanged, Memory, MemoryKind
from holdfast.core.keys import LOCAL
from holdfast.ids import MemoryId, new_memory_id
from holdfast.store.store import Store
from tests.engine.world import START, Open, opened

FACTS = ("Likes tea", "Has two cats", "Lives in Rome")


async def remember(store: Store, id_: str, text: str, kind: MemoryKind = MemoryKind.FACT) -> None:
    at = START + len(await store.memories.list(LOCAL))
    await store.memories.add(Memory(id=MemoryId(id_), owner=LOCAL, text=text, created_at=at, updated_at=at, kind=kind))


async def shown(store: Store) -> str:
    return as_markdown(await store.memories.list(LOCAL))


async def save(store: Store, base: str, edited: str) -> MemoriesChanged:
    asked = changes(base, edited, owner=LOCAL, now_ms=START + 100, new_id=partial(new_memory_id, START + 100))
    return await store.memories.change(LOCAL, asked, START + 100)


def swapped(text: str) -> str:
    return text.replace("Likes tea", "?").replace("Has two cats", "Likes tea").replace("?", "Has two cats")


def rotated(text: str) -> str:
    return (
        swapped(text).replace("Likes tea <", "Lives in Rome <").replace("Lives in Rome <!-- mem_3", "Likes tea <!-- mem_3")
    )


@pytest.mark.parametrize(
    ("edit", "counts", "facts"),
    [
        (lambda text: text, MemoriesChanged(), FACTS),
        (swapped, MemoriesChanged(), FACTS),
        (rotated, MemoriesChanged(), FACTS),
        (lambda text: text.replace("tea", "COFFEE"), MemoriesChanged(replaced=1), ("Likes COFFEE", *FACTS[1:])),
        (lambda text: text.replace("tea", "TEA!"), MemoriesChanged(replaced=1), ("Likes TEA!", *FACTS[1:])),
        (lambda text: text.replace("Likes tea", "lives in rome"), MemoriesChanged(removed=1), FACTS[1:]),
        (lambda text: text + "- Sails\n- sails.\n", MemoriesChanged(added=1), (*FACTS, "Sails")),
        (lambda text: text.replace("mem_", "mem_of_another_house"), MemoriesChanged(), FACTS),
        (lambda _: "## Profile\n\n## Facts\n", MemoriesChanged(removed=4), ()),
        (
            lambda text: text.replace("Has two cats", "Likes coffee").replace("Likes tea", "Has three cats"),
            MemoriesChanged(replaced=2),
            ("Has three cats", "Likes coffee", "Lives in Rome"),
        ),
    ],
)
async def test_what_a_person_saves_is_what_is_remembered(
    open_it: Open, edit: Callable[[str], str], counts: MemoriesChanged, facts: tuple[str, ...]
) -> None:
    async with opened(open_it) as store:
        for number, text in enumerate(FACTS, 1):
            await remember(store, f"mem_{number}", text)
        await remember(store, "mem_p", "A gardener.", MemoryKind.PROFILE)
        base = await shown(store)
        assert await save(store, base, edit(base)) == counts
        found = await store.memories.list(LOCAL)
        assert sorted(each.text for each in found if each.kind is MemoryKind.FACT) == sorted(facts)


async def test_what_was_learned_meanwhile_stays(open_it: Open) -> None:
    async with opened(open_it) as store:
        await remember(store, "mem_1", "Likes tea")
        base = await shown(store)
        await remember(store, "mem_2", "Has a cat")
        await remember(store, "mem_p", "Somebody with a cat.", MemoryKind.PROFILE)
        assert await save(store, base, base.replace("tea", "milk") + "- has a CAT\n") == MemoriesChanged(replaced=1, known=1)
        assert sorted(each.text for each in await store.memories.list(LOCAL)) == [
            "Has a cat",
            "Likes milk",
            "Somebody with a cat.",
        ]


async def test_a_profile_written_twice_is_the_one_that_was_saved_last(open_it: Open) -> None:
    async with opened(open_it) as store:
        base = await shown(store)
        await remember(store, "mem_p", "Somebody.", MemoryKind.PROFILE)
        assert await save(store, base, base.replace("## Profile", "## Profile\nA pilot.")) == MemoriesChanged(replaced=1)
        assert [(each.id, each.text) for each in await store.memories.list(LOCAL)] == [("mem_p", "A pilot.")]


async def test_what_was_forgotten_meanwhile_is_not_brought_back(open_it: Open) -> None:
    async with opened(open_it) as store:
        await remember(store, "mem_1", "Likes tea")
        await remember(store, "mem_2", "Has a cat")
        base = await shown(store)
        await store.memories.remove(LOCAL, MemoryId("mem_1"))
        assert await save(
            store, base, base.replace("Likes tea", "Likes milk").replace("a cat", "two cats")
        ) == MemoriesChanged(replaced=1)
        assert [each.text for each in await store.memories.list(LOCAL)] == ["Has two cats"]
