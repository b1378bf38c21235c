"""Memories: each text once for its owner, changed in one step, and found by its words."""

from __future__ import annotations

import asyncio
import random
import string
from dataclasses import replace

import pytest

from holdfast.core.facts import PROFILE_MAX_CHARS, MemoriesChanged, Memory, MemoryChanges, MemoryKind
from holdfast.errors import NotFound, Rejected
from holdfast.ids import MemoryId, SegmentId, SessionId, TurnId
from holdfast.store import memories as memories_sql
from tests.conformance.scenes import MINUTE, START, Scene, closed_gate, on_postgres


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
    assert await scene.store.memories.add(scene.fact("  LIKES   Tea. ")) == first
    other = await scene.store.memories.add(scene.fact(owner="somebody"))
    assert other.id != first.id
    assert len(await scene.store.memories.list("local")) == 1


async def test_a_call_that_is_repeated_after_its_memory_was_changed_adds_nothing(scene: Scene) -> None:
    """P1"""
    first = await scene.store.memories.add(scene.fact())
    changed = await scene.store.memories.replace("local", first.id, "likes coffee", scene.now)
    assert await scene.store.memories.add(first) == changed
    assert await scene.store.memories.list("local") == [changed]


async def test_text_that_no_index_holds_is_remembered_all_the_same(scene: Scene) -> None:
    """The profile may be long; NUL, and half a surrogate pair, are replaced."""
    letters = random.Random(1).choices(string.ascii_letters + "äöü😀", k=PROFILE_MAX_CHARS)
    for text in ("".join(letters), " ".join(letters)):
        kept = await scene.store.memories.add(scene.fact(text))
        assert kept.text == text
        assert await scene.store.memories.add(scene.fact(text)) == kept
    odd = await scene.store.memories.add(scene.fact("half \ud83d, no\0thing"))
    assert odd.text == "half ?, no\ufffdthing"
    assert await scene.store.memories.add(scene.fact("half \ud83d, no\0thing")) == odd
    assert await scene.store.memories.search("local", "no\0thing") == [odd]


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


async def test_an_empty_search_finds_everything_and_one_without_words_nothing(scene: Scene) -> None:
    first = await scene.store.memories.add(scene.fact("likes tea"))
    scene.now += 1
    second = await scene.store.memories.add(scene.fact("likes coffee"))
    assert await scene.store.memories.search("local", "  ") == [second, first]
    assert await scene.store.memories.search("local", "?!") == []


ODD = [
    "",
    " ",
    "tea\0",
    "\0",
    '"',
    "'",
    "tea'; DROP TABLE memories; --",
    'NEAR("tea", 3)',
    "tea OR",
    "tea AND NOT (",
    "tea*",
    "* & | ! <-> :*",
    "col:tea",
    "^tea",
    "{tea}",
    "-tea",
    "\\",
    "half \ud83d tea",
    "☕🍵",
    "%_%",
    "\U0010ffff",
    "x" * 100_000,
    "tea " * 25_000,
    " ".join(str(number) for number in range(20_000)),
    "喝茶" * 30_000,
]


@pytest.mark.parametrize("query", ODD, ids=lambda query: ascii(query[:12]))
async def test_no_message_is_too_odd_to_look_something_up_for(scene: Scene, query: str) -> None:
    """K1: neither an error nor an operator, whatever it holds."""
    await scene.store.memories.add(scene.fact("drinks tea"))
    for found in (
        await scene.store.memories.recall("local", query),
        await scene.store.memories.search("local", query),
    ):
        assert [each.text for each in found] in ([], ["drinks tea"])
    assert [each.text for each in await scene.store.memories.recall("local", "tea?")] == ["drinks tea"]


FACTS = (
    "is allergic to peanuts",
    "lives in Lübeck by the harbour",
    "drinks green tea in the morning",
    "has a sister in London",
    "works as a baker in the harbour",
    "我喜欢喝茶",
)


@pytest.mark.parametrize(
    ("message", "found"),
    [
        ("Which ALLERGIES do I have?", ["is allergic to peanuts"]),
        ("What do I drink?", ["drinks green tea in the morning"]),
        ("Is there a bakery at the harbour?", ["works as a baker in the harbour", "lives in Lübeck by the harbour"]),
        ("LÜBECK!", ["lives in Lübeck by the harbour"]),
        ("and what about the sisters of London", ["has a sister in London"]),
        ("在家喝茶吗", ["我喜欢喝茶"]),
        ("Do you have it in there by the way?", []),
        ("nothing of this kind", []),
    ],
)
async def test_a_message_recalls_what_shares_its_words(scene: Scene, message: str, found: list[str]) -> None:
    """Best first; any word will do, in any of its forms, and those that are everywhere say nothing."""
    for text in FACTS:
        await scene.store.memories.add(scene.fact(text))
        await scene.store.memories.add(scene.fact(f"{text} too", owner="somebody"))
    assert [each.text for each in await scene.store.memories.recall("local", message)] == found
    assert [each.text for each in await scene.store.memories.recall("local", message, limit=1)] == found[:1]


async def test_common_words_do_not_drown_rare_ones(scene: Scene) -> None:
    for number in range(30):
        scene.now += 1
        await scene.store.memories.add(scene.fact(f"project meeting number {number}"))
    rare = await scene.store.memories.add(scene.fact("the project with Ferdinand", created_at=START, updated_at=START))
    found = await scene.store.memories.recall("local", "The project meeting: is Ferdinand there?", limit=3)
    assert (found[0], len(found)) == (rare, 3)


async def test_the_very_word_counts_for_more_than_one_that_begins_like_it(scene: Scene) -> None:
    tea = await scene.store.memories.add(scene.fact("tea", created_at=START - 1, updated_at=START - 1))
    team = await scene.store.memories.add(scene.fact("team"))
    assert await scene.store.memories.recall("local", "tea?") == [tea, team]


async def test_what_was_changed_is_found_by_its_new_words_only(scene: Scene) -> None:
    memory = await scene.store.memories.add(scene.fact("likes tea"))
    changed = await scene.store.memories.replace("local", memory.id, "likes coffee", scene.now)
    for look in (scene.store.memories.search, scene.store.memories.recall):
        assert await look("local", "tea") == []
        assert await look("local", "coffee") == [changed]
    await scene.store.memories.remove("local", memory.id)
    for look in (scene.store.memories.search, scene.store.memories.recall):
        assert await look("local", "coffee") == []
    assert await scene.sql("SELECT * FROM memory_words") == []


async def test_there_is_one_profile_and_it_comes_first(scene: Scene) -> None:
    """It is replaced by the next, keeps its id, and is no fact that a message recalls."""
    profile = await scene.store.memories.add(scene.fact("A baker.", kind=MemoryKind.PROFILE, turn_id="t1"))
    scene.now += 1
    facts = [await scene.store.memories.add(scene.fact("a baker")), await scene.store.memories.add(scene.fact("likes tea"))]
    scene.now += 1
    second = await scene.store.memories.add(scene.fact("A baker by the sea.", kind=MemoryKind.PROFILE, turn_id="t2"))
    assert second == replace(profile, text="A baker by the sea.", updated_at=scene.now, turn_id="t2")
    facts.append(await scene.store.memories.add(scene.fact("likes rain")))
    assert await scene.store.memories.recent("local") == [second, *sorted(facts, key=order, reverse=True)]
    assert (await scene.store.memories.recent("local", limit=2)) == [second, facts[-1]]
    assert await scene.store.memories.recall("local", "baker") == [facts[0]]
    assert set(await scene.store.memories.search("local", "baker")) == {second, facts[0]}
    assert await scene.store.memories.recent("somebody") == []


def order(memory: Memory) -> tuple[int, str]:
    return memory.updated_at, memory.id


async def test_changes_are_made_together(scene: Scene) -> None:
    tea, coffee, milk = [await scene.store.memories.add(scene.fact(f"likes {what}")) for what in ("tea", "coffee", "milk")]
    theirs = await scene.store.memories.add(scene.fact(owner="somebody"))
    scene.now += MINUTE
    changes = MemoryChanges(
        added=[scene.fact("LIKES milk!"), scene.fact("likes rain"), scene.fact("likes rain"), scene.fact("likes coffee")],
        replaced=[
            replace(tea, text="likes green tea", turn_id="t", segment_id="s"),
            replace(tea, id=MemoryId("gone")),
            replace(theirs, text="mine"),
            milk,
        ],
        removed=[coffee.id, coffee.id, MemoryId("none"), theirs.id],
    )
    changed = await scene.store.memories.change("local", changes, scene.now)
    assert changed == MemoriesChanged(added=2, replaced=1, removed=1, known=3)
    found = {each.text: each for each in await scene.store.memories.list("local")}
    assert set(found) == {"likes green tea", "likes milk", "likes rain", "likes coffee"}
    assert found["likes green tea"] == replace(
        tea, text="likes green tea", updated_at=scene.now, turn_id="t", segment_id="s"
    )
    assert found["likes milk"] == milk
    assert await scene.store.memories.list("somebody") == [theirs]
    assert await scene.store.memories.search("local", "green") == [found["likes green tea"]]
    assert await scene.store.memories.change("local", MemoryChanges(), scene.now) == MemoriesChanged()


async def test_two_that_come_to_say_the_same_are_one(scene: Scene) -> None:
    tea, coffee = [await scene.store.memories.add(scene.fact(f"likes {what}")) for what in ("tea", "coffee")]
    changes = MemoryChanges(replaced=[replace(tea, text="Likes coffee.")])
    assert await scene.store.memories.change("local", changes, scene.now) == MemoriesChanged(replaced=1)
    assert await scene.store.memories.list("local") == [coffee]


async def test_two_may_change_places(scene: Scene) -> None:
    """As when somebody edits both at once: neither stands in the way of the other."""
    tea, coffee = [await scene.store.memories.add(scene.fact(f"likes {what}", turn_id=what)) for what in ("tea", "coffee")]
    changes = MemoryChanges(replaced=[replace(tea, text="likes coffee"), replace(coffee, text="likes tea")])
    assert await scene.store.memories.change("local", changes, scene.now) == MemoriesChanged(replaced=2)
    found = {each.id: each.text for each in await scene.store.memories.list("local")}
    assert found == {tea.id: "likes coffee", coffee.id: "likes tea"}


async def test_a_profile_is_added_replaced_and_known(scene: Scene) -> None:
    profile = scene.fact("A baker.", kind=MemoryKind.PROFILE)
    changes = MemoryChanges(added=[profile])
    assert await scene.store.memories.change("local", changes, scene.now) == MemoriesChanged(added=1)
    assert await scene.store.memories.change("local", changes, scene.now) == MemoriesChanged(known=1)
    changes = MemoryChanges(added=[scene.fact("A baker by the sea.", kind=MemoryKind.PROFILE)])
    assert await scene.store.memories.change("local", changes, scene.now) == MemoriesChanged(replaced=1)
    changes = MemoryChanges(replaced=[replace(profile, text="A baker in Lübeck.")])
    assert await scene.store.memories.change("local", changes, scene.now) == MemoriesChanged(replaced=1)
    assert [(each.id, each.text) for each in await scene.store.memories.list("local")] == [
        (profile.id, "A baker in Lübeck.")
    ]


async def test_there_is_only_so_much_room(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes then is left out, and said to be; what takes the place of something else is not."""
    monkeypatch.setattr(memories_sql, "FACTS_MAX", 3)
    changes = MemoryChanges(added=[scene.fact(f"fact {number}") for number in range(5)])
    assert await scene.store.memories.change("local", changes, scene.now) == MemoriesChanged(added=3, left_out=2)
    assert await scene.store.memories.change("local", changes, scene.now) == MemoriesChanged(known=3, left_out=2)
    first, *_ = await scene.store.memories.list("local")
    with pytest.raises(Rejected, match="remove"):
        await scene.store.memories.add(scene.fact("one more"))
    await scene.store.memories.add(scene.fact("somebody's", owner="somebody"))
    await scene.store.memories.add(scene.fact("a profile", kind=MemoryKind.PROFILE))
    changes = MemoryChanges(added=[scene.fact("one more")], replaced=[replace(first, text="other")], removed=[])
    assert await scene.store.memories.change("local", changes, scene.now) == MemoriesChanged(replaced=1, left_out=1)
    changes = MemoryChanges(added=[scene.fact("one more")], removed=[first.id])
    assert await scene.store.memories.change("local", changes, scene.now) == MemoriesChanged(added=1, removed=1)


async def test_many_at_once_take_no_more_than_the_room(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """S11: on PostgreSQL they come through two nodes, and none may count before another has added."""
    monkeypatch.setattr(memories_sql, "FACTS_MAX", 3)
    stores = [scene.store, await scene.another_store() if scene.postgres else scene.store]
    facts = [scene.fact(f"fact {nth}") for nth in range(12)]
    added = [stores[nth % 2].memories.add(fact) for nth, fact in enumerate(facts)]
    found = await asyncio.gather(*added, return_exceptions=True)
    assert sum(isinstance(each, Rejected) for each in found) == 9
    assert len(await scene.store.memories.list("local")) == 3


async def test_a_segment_is_absorbed_once(scene: Scene) -> None:
    """M4, M6: a commit that is repeated after a crash changes nothing, and answers as before."""
    segment = await scene.sealed()
    assert await scene.store.memories.absorbed(segment.id) is None
    changes = MemoryChanges(added=[scene.fact(segment_id=segment.id)])
    said = await scene.store.memories.absorb("local", segment.id, changes, scene.now)
    assert said == await scene.store.memories.absorbed(segment.id) == "1 fact added"
    await scene.reopen()
    before = await scene.snapshot()
    other = MemoryChanges(added=[scene.fact("likes coffee")], removed=[changes.added[0].id])
    assert await scene.store.memories.absorb("local", segment.id, other, scene.now + MINUTE) == said
    assert await scene.snapshot() == before


async def test_only_a_persons_own_segments_are_absorbed(scene: Scene) -> None:
    """M12, S4: nothing is remembered of one that is gone, or of somebody else's."""
    segment = await scene.sealed()
    before = await scene.snapshot()
    for owner, segment_id in (("somebody", segment.id), ("local", SegmentId("none")), ("local", SegmentId(""))):
        with pytest.raises(NotFound):
            await scene.store.memories.absorb(owner, segment_id, MemoryChanges(added=[scene.fact(owner=owner)]), scene.now)
    assert await scene.snapshot() == before


@on_postgres
async def test_of_two_that_absorb_a_segment_at_once_one_does(scene: Scene) -> None:
    """M6: as when a committer that was given up for dead comes back."""
    segment = await scene.sealed()
    first, second = (
        MemoryChanges(added=[scene.fact()]),
        MemoryChanges(added=[scene.fact("likes coffee"), scene.fact("likes milk")]),
    )
    async with closed_gate(scene.url) as gate:
        dialect = scene.store.database.dialect
        absorbing = asyncio.create_task(
            scene.store.database.write(
                gate.pause(lambda: memories_sql._absorb(dialect, "local", segment.id, first, scene.now))
            )
        )
        await gate.waiting(1)
        other = await scene.another_store()
        again = asyncio.create_task(other.memories.absorb("local", segment.id, second, scene.now))
        await gate.waiting(2)
        await gate.open()
        assert await absorbing == await again == "1 fact added"
    assert [each.text for each in await scene.store.memories.list("local")] == ["likes tea"]


async def test_what_came_from_a_session_is_found_by_it(scene: Scene) -> None:
    """M12: by its turns and by its segments, of its owner only, and nothing where there is no session."""
    turn = await scene.finished()
    other = await scene.finished(conversation="other")
    segment = await scene.store.segments.of_turn(turn.id)
    assert segment
    said = await scene.store.memories.add(scene.fact("likes tea", turn_id=turn.id))
    extracted = await scene.store.memories.add(scene.fact("likes coffee", segment_id=segment.id))
    await scene.store.memories.add(scene.fact("likes milk", turn_id=other.id))
    await scene.store.memories.add(scene.fact("likes rain"))
    await scene.store.memories.add(scene.fact("likes tea", turn_id=turn.id, owner="somebody"))
    assert set(await scene.store.memories.of_session("local", turn.session_id)) == {said, extracted}
    for nothing in ("", "none"):
        assert await scene.store.memories.of_session("local", SessionId(nothing)) == []


async def test_memories_are_counted_by_kind(scene: Scene) -> None:
    assert await scene.store.memories.tally("local") == {MemoryKind.FACT: 0, MemoryKind.PROFILE: 0}
    await scene.store.memories.add(scene.fact())
    await scene.store.memories.add(scene.fact("A baker.", kind=MemoryKind.PROFILE))
    await scene.store.memories.add(scene.fact(owner="somebody"))
    assert await scene.store.memories.tally("local") == {MemoryKind.FACT: 1, MemoryKind.PROFILE: 1}
    assert await scene.store.memories.tally() == {MemoryKind.FACT: 2, MemoryKind.PROFILE: 1}


async def test_what_is_remembered_outlives_its_session(scene: Scene) -> None:
    """It goes when somebody forgets it, not with the conversation it came from."""
    segment = await scene.sealed()
    changes = MemoryChanges(added=[scene.fact(segment_id=segment.id)])
    await scene.store.memories.absorb("local", segment.id, changes, scene.now)
    await scene.store.sessions.delete(segment.session_id, scene.now)
    assert [each.id for each in await scene.store.memories.recall("local", "tea")] == [changes.added[0].id]
    assert await scene.store.memories.absorbed(segment.id) is None


async def test_where_a_turn_is_can_be_looked_up(scene: Scene) -> None:
    first, second = await scene.finished("one"), await scene.finished("two")
    found = await scene.store.memories.origins([second.id, first.id, TurnId("trn_none")])
    assert {each: origin.ordinal for each, origin in found.items()} == {first.id: 1, second.id: 2}
    session = await scene.store.sessions.get(first.session_id)
    origin = found[first.id]
    assert (origin.session_id, origin.key, origin.title, origin.at) == (session.id, session.key, None, first.accepted_at)
    assert await scene.store.memories.origins([]) == {}
