"""Passages: what was said, and what sessions are called, is found by its words, at once and by its owner alone."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.core.intake import Inbound
from holdfast.core.search import WANTED_MAX, matches, wanted
from holdfast.core.sessions import SearchHit
from holdfast.ids import new_session_id, new_turn_id
from holdfast.store import passages as passages_sql
from holdfast.store.audit import audit
from holdfast.store.database import clean
from holdfast.store.passages import INDEXED, PART_BITS, RARE_MAX, STEP_MAX, TITLES_MAX, UNSEARCHED_MAX
from holdfast.store.store import Store
from tests.conformance.scenes import MINUTE, START, Scene
from tests.conformance.test_forks import copy_of


def indexed(scene: Scene) -> str:
    return INDEXED[scene.store.database.dialect.name]


async def find(scene: Scene, query: str, owner: str = "local", limit: int = 50) -> list[SearchHit]:
    """Search before and after everything is indexed: it makes no difference."""
    before = await scene.store.passages.find(owner, query, limit)
    await index(scene)
    after = await scene.store.passages.find(owner, query, limit)
    assert before == after
    assert not after.is_indexing
    return list(after.hits)


async def index(scene: Scene) -> None:
    await index_all(scene.store)


async def index_all(store: Store) -> None:
    for _ in range(100):
        if not await store.passages.index():
            return
    raise AssertionError("there is no end of what is to be indexed")


async def texts(scene: Scene, query: str, owner: str = "local") -> list[str]:
    return [hit.text for hit in await find(scene, query, owner)]


async def test_search_finds_messages_and_answers_of_their_owner_alone(scene: Scene) -> None:
    turn = await scene.finished("where is the harbour", answer="the harbour is north")
    scene.now += MINUTE
    await scene.accept("a harbour of mine", owner="somebody else")
    assert set(await texts(scene, "harbour")) == {"where is the harbour", "the harbour is north"}
    assert await texts(scene, "harbour", "somebody else") == ["a harbour of mine"]
    (hit,) = await find(scene, "north")
    entry = (await scene.entries(turn.session_id))[-1]
    assert (hit.session_id, hit.turn_id, hit.seq, hit.at) == (turn.session_id, turn.id, entry.seq, entry.at)
    assert hit.kind == entry.kind


async def test_search_wants_all_words_in_any_case_and_order(scene: Scene) -> None:
    await scene.accept("The quick brown fox")
    assert await texts(scene, "FOX quick") == ["The quick brown fox"]
    assert await texts(scene, "fox slow") == []


async def test_search_does_not_cover_what_was_only_streamed(scene: Scene) -> None:
    """The whole answer is in its closing entry; its pieces would be found twice."""
    turn = await scene.say(await scene.running(), "albatross")
    assert await texts(scene, "albatross") == []
    await scene.finish(turn, text="albatross")
    assert await texts(scene, "albatross") == ["albatross"]


async def test_search_returns_the_newest_first_up_to_its_limit(scene: Scene) -> None:
    for number in range(5):
        scene.now += 1
        await scene.accept(f"harbour {number}", conversation=f"chat:{number}")
    hits = await find(scene, "harbour", limit=3)
    assert [hit.text for hit in hits] == ["harbour 4", "harbour 3", "harbour 2"]


async def test_a_query_without_words_finds_nothing(scene: Scene) -> None:
    await scene.accept("anything at all")
    for query in ("", " ", "\t\n", "-", "*", '"', '""', "'", "()", "\0", "...", "\ud800", "😀"):
        assert await texts(scene, query) == [], query


OPERATORS = [
    "cats AND dogs",
    "cats OR dogs",
    "NOT dogs",
    "NEAR(cats dogs)",
    "cats NOT dogs",
    "text:cats",
    "^cats",
    "cats*",
    "-cats",
    "+cats",
    "cats & dogs",
    "cats | dogs",
    "!cats",
    "cats:*",
    "cats <-> dogs",
    "(cats",
    "cats)",
    "{cats}",
    "'cats",
    '"cats dogs',
    'cats""dogs',
    "cats\\",
    "cats; DROP TABLE sessions",
    "cats -- dogs",
    "cats\0dogs",
    "cats \ud800",
    "%cats%",
]


async def test_operators_are_plain_words(scene: Scene) -> None:
    """No query is an error, and no word of it an operator: every word must be there."""
    await scene.accept("cats")
    await scene.accept("dogs")
    await scene.accept("nothing of the kind")
    for query in OPERATORS:
        words = "".join(letter if letter.isalnum() else " " for letter in query.lower()).split()
        expected = {"cats"} if words == ["cats"] else {"dogs"} if words == ["dogs"] else set()
        assert set(await texts(scene, query)) == expected, query


async def test_operators_can_be_searched_for(scene: Scene) -> None:
    await scene.accept("this AND that or NOT near")
    assert await texts(scene, "and OR not NEAR") == ["this AND that or NOT near"]


async def test_a_word_in_quotes_is_found_without_them(scene: Scene) -> None:
    await scene.accept('he said "harbour" and left')
    for query in ('"harbour"', "'harbour'", "harbour", '"harbour" left', "harbour,"):
        assert len(await texts(scene, query)) == 1, query


async def test_words_are_found_inside_addresses_paths_and_numbers(scene: Scene) -> None:
    """Punctuation separates words, on each database alike."""
    text = "see https://example.com/usr/path, user@host.org v3.14, 2.71, state-of-the-art snake_case -5"
    await scene.accept(text)
    for query in ("example", "com/usr", "path", "user@host", "14", "2.71", "71", "art", "state-of-the-art", "snake", "5"):
        assert await texts(scene, query) == [text], query


async def test_words_of_other_alphabets_are_found(scene: Scene) -> None:
    await scene.accept("Grüße aus Zürich, привет, γειά")
    for query in ("Grüße", "zürich", "привет", "γειά", "Zurich", "GRUSSE", "γεια", "zu\u0308ri"):
        assert len(await texts(scene, query)) == 1, query


async def test_a_script_without_spaces_is_found_by_any_part_of_it(scene: Scene) -> None:
    await scene.accept("彼は東京都庁にいる")
    for query in ("東京", "京都", "都", "東京都庁", "いる", "彼", "東京 いる"):
        assert len(await texts(scene, query)) == 1, query
    for query in ("東都", "大", "東京大"):
        assert await texts(scene, query) == [], query


async def test_every_word_is_found_by_how_it_begins(scene: Scene) -> None:
    await scene.accept("The lighthouse keeper")
    for query in ("lighth", "lighthouse", "li ke", "keep light th", "LIGHTHOUSE K", "the"):
        expected = [] if query.endswith("K") else ["The lighthouse keeper"]
        assert await texts(scene, query) == expected, query
    for query in ("ighthouse", "lighthouses", "house"):
        assert await texts(scene, query) == [], query


async def test_a_single_letter_is_a_whole_word(scene: Scene) -> None:
    """So many words begin with it that finding all of them would say nothing."""
    await scene.accept("plan a voyage")
    await scene.accept("an alternative", conversation="chat:2")
    assert await texts(scene, "a") == ["plan a voyage"]


async def test_sessions_are_found_by_their_titles_first(scene: Scene) -> None:
    talk = await scene.accept("a voyage")
    await scene.accept("the voyage of others", owner="somebody else")
    await scene.store.sessions.change(talk.session_id, title="Voyage to Zürich")
    title, said = await find(scene, "voya")
    assert (title.session_id, title.turn_id, title.seq, title.kind) == (talk.session_id, None, 0, "title")
    assert (title.text, title.at, said.text) == ("Voyage to Zürich", scene.now, "a voyage")
    assert [hit.text for hit in await find(scene, "ZURICH to v")] == []
    assert [hit.text for hit in await find(scene, "ZURICH to vo")] == ["Voyage to Zürich"]
    assert await find(scene, "zurich", "somebody else") == []


async def test_a_renamed_session_is_found_by_its_new_name_alone(scene: Scene) -> None:
    """F1"""
    talk = await scene.accept()
    for title in ("Heron", "Gull of the sea", "Gull, gull", ""):
        await scene.store.sessions.change(talk.session_id, title=title)
    assert await find(scene, "heron") + await find(scene, "gull") == []
    await scene.store.sessions.change(talk.session_id, title="Cormorant")
    await scene.store.sessions.change(talk.session_id, pinned=True)
    assert await texts(scene, "cormorant") == ["Cormorant"]
    copy = replace(copy_of(scene), title="Cormorant")
    await scene.store.sessions.fork(talk.session_id, copy)
    assert {hit.session_id for hit in await find(scene, "cormorant")} == {talk.session_id, copy.id}
    for session_id in (talk.session_id, copy.id):
        await scene.store.sessions.delete(session_id, scene.now)
    assert await find(scene, "cormorant") == []


async def test_titles_leave_room_for_what_was_said(scene: Scene) -> None:
    for number in range(TITLES_MAX + 3):
        scene.now += 1
        talk = await scene.accept("heron", conversation=f"chat:{number}")
        await scene.store.sessions.change(talk.session_id, title=f"Heron {number}")
    hits = await find(scene, "heron", limit=TITLES_MAX + 2)
    assert [hit.kind for hit in hits] == ["title"] * TITLES_MAX + ["turn.accepted"] * 2
    assert hits[0].text == f"Heron {TITLES_MAX + 2}"


@pytest.mark.parametrize("rare", [0, 1, RARE_MAX])
async def test_a_search_goes_on_in_older_parts_of_the_journal(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, rare: int
) -> None:
    """The parts are read from the newest on, however far apart two entries are, and however rare the longest word is."""
    monkeypatch.setattr(passages_sql, "RARE_MAX", rare)
    for number in range(6):
        await scene.accept(f"heron {number}", conversation=f"chat:{number}")
        await scene.accept(f"gull {number}", conversation=f"gulls:{number}", owner="somebody else")
        await leap(scene)
    for limit in (1, 2, 5, 50):
        hits = await find(scene, "her", limit=limit)
        assert [hit.text for hit in hits] == [f"heron {number}" for number in reversed(range(6))][:limit]
    assert await texts(scene, "heron 0") == ["heron 0"]
    assert await texts(scene, "heron 7") == []
    assert await texts(scene, "gull") == []


async def leap(scene: Scene) -> None:
    """Have the next entry stand in a later part of the journal."""
    if scene.postgres:
        await scene.sql(f"SELECT setval('entries_id_seq', nextval('entries_id_seq') + {7 << PART_BITS})")
        return
    talk = await scene.accept("leap", conversation="leap", owner="nobody")
    await scene.sql(f"UPDATE unsearched SET id = id + {7 << PART_BITS} WHERE session_id = '{talk.session_id}'")
    await scene.sql(f"UPDATE entries SET id = id + {7 << PART_BITS} WHERE session_id = '{talk.session_id}'")


async def test_owners_whose_terms_begin_alike_see_only_their_own(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passages_sql, "_OWNER_DIGITS", 0)
    for number in range(8):
        await scene.accept(f"heron {number}", conversation=f"chat:{number}", owner="ann" if number % 4 else "bob")
    hits = await find(scene, "heron", "bob", limit=2)
    assert [hit.text for hit in hits] == ["heron 4", "heron 0"]


async def test_what_waits_to_be_indexed_is_found_as_far_as_it_is_new(scene: Scene) -> None:
    await scene.accept("albatross")
    for number in range(UNSEARCHED_MAX):
        await scene.accept("gull", conversation=f"chat:{number}")
    found = await scene.store.passages.find("local", "albatross")
    assert (found.hits, found.is_indexing) == ((), True)
    assert len((await scene.store.passages.find("local", "gull", UNSEARCHED_MAX)).hits) == UNSEARCHED_MAX
    assert await scene.store.passages.index(1) == 1
    found = await scene.store.passages.find("local", "albatross")
    assert ([hit.text for hit in found.hits], found.is_indexing) == (["albatross"], False)
    await index(scene)
    assert await texts(scene, "albatross") == ["albatross"]
    assert await scene.sql("SELECT COUNT(*) FROM unsearched") == [(0,)]


async def test_nodes_that_index_together_index_everything_once(scene: Scene) -> None:
    for number in range(2 * STEP_MAX):
        await scene.accept("gull", conversation=f"chat:{number}")
    stores = [scene.store, *([await scene.another_store()] if scene.postgres else [])]
    done = [1]
    while any(done):
        done = await asyncio.gather(*(store.passages.index() for store in stores for _ in range(2)))
    assert await scene.sql(f"SELECT COUNT(*) FROM {indexed(scene)}") == [(2 * STEP_MAX,)]


async def test_a_session_that_is_deleted_while_it_is_indexed_leaves_nothing(scene: Scene) -> None:
    for _ in range(10):
        talks = [await scene.accept("gull", conversation=f"chat:{number}") for number in range(4)]
        deleting = [scene.store.sessions.delete(talk.session_id, scene.now) for talk in talks]
        other = await scene.another_store() if scene.postgres else scene.store
        await asyncio.gather(other.passages.index(), *deleting, other.passages.index())
        if scene.postgres:
            await other.close()
    assert await scene.sql(f"SELECT (SELECT COUNT(*) FROM {indexed(scene)}), (SELECT COUNT(*) FROM unsearched)") == [(0, 0)]


async def test_a_session_that_is_deleted_before_it_is_indexed_leaves_nothing_to_index(scene: Scene) -> None:
    turn = await scene.finished()
    assert await scene.sql("SELECT COUNT(*) FROM unsearched") == [(2,)]
    await scene.store.sessions.delete(turn.session_id, scene.now)
    assert await scene.sql("SELECT COUNT(*) FROM unsearched") == [(0,)]


async def test_the_audit_notices_what_is_not_indexed_or_not_there(scene: Scene) -> None:
    await scene.accept("gull")
    (id_,) = (await scene.sql("SELECT id FROM unsearched"))[0]
    await scene.sql("UPDATE unsearched SET id = -1")
    assert await audit(scene.store.database) == [
        f"F1 what can be searched is either indexed or waits for it: {id_}",
        "F1 what waits to be indexed is there: -1",
    ]
    await scene.sql("UPDATE unsearched SET id = :id", id=id_)
    await index(scene)
    await scene.sql("INSERT INTO unsearched SELECT id, session_id, seq FROM entries")
    assert await audit(scene.store.database) == [f"F1 what can be searched is either indexed or waits for it: {id_}"]
    await scene.sql("DELETE FROM unsearched")
    await scene.sql(f"UPDATE entries SET kind = 'turn.started' WHERE {'seq = 1' if scene.postgres else f'id = {id_}'}")
    assert f"F1 what can be found is there: {id_}" in await audit(scene.store.database)
    await scene.sql("UPDATE entries SET kind = 'turn.accepted'")


HOSTILE = [
    " ".join(f"word{number}" for number in range(10_000)),
    "gull " * 10_000,
    '"' * 10_000,
    "gull*" * 1_000,
    "(" * 5_000 + "gull" + ")" * 5_000,
    "a" * 1_000_000,
    "\0" * 1_000,
    "東" * 20_000,
    " ".join(chr(97 + number % 26) * 2 for number in range(5_000)),
    "\u0301" * 10_000,
]


@pytest.mark.parametrize("query", HOSTILE, ids=range(len(HOSTILE)))
async def test_no_query_is_an_error_or_takes_long(scene: Scene, query: str) -> None:
    for number in range(100):
        await scene.accept(f"gull {number}", conversation=f"chat:{number}")
        if number % 25 == 0:
            await leap(scene)
    began = time.process_time()
    await find(scene, query)
    assert time.process_time() - began < 2


def test_of_a_query_only_the_first_words_count() -> None:
    """Each of them costs a look at the index."""
    words = [f"word{number}" for number in range(2 * WANTED_MAX)]
    assert [each.text for each in wanted(" ".join(words))] == words[:WANTED_MAX]


def test_a_search_finds_what_the_rule_says_on_every_store(open_it: Callable[[], Awaitable[Store]]) -> None:
    """F1: messages and queries of odd words: the index agrees with `matches`, before and after it has the words."""
    owners = itertools.count(1)
    with asyncio.Runner() as runner:
        store = runner.run(open_it())

        @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
        @given(st.lists(MESSAGES, min_size=1, max_size=8), st.lists(MESSAGES, min_size=1, max_size=6))
        def check(said: list[str], queries: list[str]) -> None:
            runner.run(agrees(store, f"owner{next(owners)}", said, queries))

        try:
            check()
        finally:
            runner.run(store.close())


# fmt: off
ODD = [
    "gull", "GULLS", "gu", "g", "zürich", "Zu\u0308rich", "ZURICH", "straße", "STRASSE", "東京都", "東京", "京", "ﬁne",
    "fine", "한국어", "한국", "ไทย", "हिन्दी", "हि", "x²", "3.14", "14", "a_b", "don't", "don", "t", "naïve", "İstanbul", "ǅ",
    "\u0301", "😀", "'", '"', "\\", ":*", "AND", "١٢", "ß", "\u200d", "ⅷ", "viii", "word" * 20, "word" * 11,
]
# fmt: on
MESSAGES = st.lists(st.sampled_from(ODD) | st.text(max_size=6), min_size=1, max_size=5).map(" ".join)


async def agrees(store: Store, owner: str, said: list[str], queries: list[str]) -> None:
    for number, text in enumerate(said):
        message = Inbound(conversation=f"{owner}:{number}", text=text, channel="web", owner=owner)
        await store.intake.accept(message, new_turn_id(START), new_session_id(START), START)
    for is_indexed in (False, True):
        if is_indexed:
            await index_all(store)
        for query in [*queries, *said]:
            expected = [clean(text) for text in reversed(said) if wanted(query) and matches(clean(text), wanted(query))]
            assert [hit.text for hit in (await store.passages.find(owner, query)).hits] == expected, query


async def test_a_huge_message_is_accepted_and_found_by_its_first_words(scene: Scene) -> None:
    """A2: no size of text is refused by an index."""
    await scene.accept("harbour " + " ".join(f"w{number}" for number in range(200_000)))
    await scene.accept("x" * 3_000_000, conversation="chat:2")
    await scene.accept("".join(chr(0x20000 + number) + " " for number in range(40_000)) * 6, conversation="chat:3")
    assert len(await find(scene, "harbour")) == 1
    assert await find(scene, "y" * 100_000) == []
    assert await find(scene, "harbour " * 2_000 + "nowhere") == []


async def test_pruned_messages_are_not_found(scene: Scene) -> None:
    """W6, W7: the index keeps nothing of what is gone."""
    await scene.finished("albatross", answer="albatross", channel="webhook", one_shot=True, remembers=False)
    assert len(await texts(scene, "albatross")) == 2
    assert await scene.store.sessions.prune("webhook", scene.now) == 1
    assert await texts(scene, "albatross") == []
    assert await scene.sql("SELECT COUNT(*) FROM passages") == [(0,)]
