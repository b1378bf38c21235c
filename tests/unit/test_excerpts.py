"""Excerpts show the words that were looked for, and a browser marks exactly these."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.excerpts import EXCERPT_MAX_CHARS, LOOKED_MAX_CHARS, Excerpt, excerpt
from holdfast.core.search import fold

FAMILY = "👨‍👩‍👧‍👦"
CAFE = "cafe\u0301"
WORDS = ("alpha", "Beta", "straße", CAFE, "日本語", FAMILY, "👍🏽", "x_y", "\u202e", "naïve", "e\u0301tat", "🇩🇪", "\n")


def marked(found: Excerpt) -> list[str]:
    """Cut out what a browser would mark: it counts in UTF-16 code units."""
    units = found.snippet.encode("utf-16-le")
    return [units[2 * begin : 2 * end].decode("utf-16-le") for begin, end in found.marks]


def test_words_are_marked_where_a_browser_finds_them() -> None:
    found = excerpt(f"{FAMILY} and {FAMILY}: the Café, no cafeteria, THE café", "café the")
    assert marked(found) == ["the", "Café", "cafe", "THE", "café"]


def test_what_begins_with_a_word_is_marked_as_far_as_it_is_the_word() -> None:
    assert marked(excerpt("the lighthouse, a LIGHTHOUSE", "lighth")) == ["lighth", "LIGHTH"]
    assert marked(excerpt("a cat and a", "a")) == ["a", "a"]


def test_accents_and_case_do_not_count() -> None:
    assert marked(excerpt("Straße nach Zürich, ŁÓDŹ und e\u0301te\u0301", "strasse zurich ETE")) == [
        "Straße", "Zürich", "e\u0301te\u0301"
    ]  # fmt: skip


def test_a_script_without_spaces_is_marked_anywhere() -> None:
    assert marked(excerpt("彼は東京都庁にいる", "東京都")) == ["東京都"]


def test_a_letter_and_its_mark_are_not_torn_apart() -> None:
    """What looks like a part of a letter is no word of its own, in front of one or behind it."""
    assert marked(excerpt(f"{CAFE} cafe {CAFE}", "cafe")) == [CAFE, "cafe", CAFE]
    assert marked(excerpt(f"{CAFE} cafe", CAFE)) == [CAFE, "cafe"]
    assert marked(excerpt("e\u0301tat tat", "tat")) == ["tat"]
    assert marked(excerpt("snake_case is case", "case")) == ["case", "case"]


def test_a_text_is_looked_through_only_so_far() -> None:
    """Many long ones may be found at once, and somebody waits for all of them."""
    text = f"once upon a time {'x ' * LOOKED_MAX_CHARS} heliotrope"
    assert excerpt(text, "heliotrope").snippet.startswith("once upon a time x x")


def test_an_excerpt_stands_around_the_first_word_that_was_found() -> None:
    text = "far away " * 200 + "here is the heliotrope, at last" + " and so on" * 200
    found = excerpt(text, "heliotrope")
    assert found.snippet.startswith("…away far") or found.snippet.startswith("…far away")
    assert found.snippet.endswith("…")
    assert (marked(found), len(found.snippet) <= EXCERPT_MAX_CHARS) == (["heliotrope"], True)


def test_a_cut_leaves_every_character_whole() -> None:
    for lead in range(50, 70):
        found = excerpt(FAMILY * 30 + "·" * lead + "heliotrope " + FAMILY * 60, "heliotrope")
        bare = found.snippet.replace("…", "").replace("·", "").replace("heliotrope", "").replace(FAMILY, "").strip()
        assert bare == ""
        assert marked(found) == ["heliotrope"]


def test_without_words_a_text_begins_where_it_does() -> None:
    assert excerpt("one\n\ttwo  three", "") == Excerpt(snippet="one two three")
    assert excerpt("", "word") == Excerpt(snippet="")


@given(st.lists(st.sampled_from(WORDS), max_size=200), st.lists(st.sampled_from(WORDS), max_size=3))
def test_whatever_is_looked_for_is_what_is_marked(text: list[str], query: list[str]) -> None:
    found = excerpt(" ".join(text), " ".join(query))
    assert len(found.snippet) <= EXCERPT_MAX_CHARS
    assert found.snippet.isprintable() or FAMILY in found.snippet
    wanted = {fold(part) for word in query for part in word.split("_")}
    assert {fold(word) for word in marked(found)} <= wanted
    if set(text) & set(query) & {"alpha", "Beta", "straße", CAFE, "日本語"}:
        assert found.marks


@given(st.text(max_size=600), st.text(max_size=20))
def test_no_text_is_too_odd(text: str, query: str) -> None:
    found = excerpt(text, query)
    assert len(found.snippet) <= EXCERPT_MAX_CHARS
    assert all(
        0 <= begin < end <= len(found.snippet.encode("utf-16-le", "surrogatepass")) // 2 for begin, end in found.marks
    )
