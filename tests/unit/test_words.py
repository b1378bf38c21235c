"""Words: the same for every database, in every script."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.words import ASKED_MAX, WORD_MAX_CHARS, WORDS_MAX, stem, telling, words


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("?! … ☕", []),
        ("What's my dog's NAME?", ["what", "s", "my", "dog", "name"]),
        ("tea, Tea and TEA", ["tea", "and"]),
        ("snake_case/path.py", ["snake", "case", "path", "py"]),
        ("Straße STRASSE", ["strasse"]),
        ("Lu\u0308beck Lübeck", ["lübeck"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("喝茶", ["喝茶", "茶"]),
        ("iPhone用户", ["iphone", "用户", "户"]),
        ("\0\ufffd", []),
    ],
)
def test_a_text_has_words(text: str, found: list[str]) -> None:
    assert words(text) == found


def test_a_text_has_only_so_many_words_of_only_so_many_letters() -> None:
    assert words("x" * 10_000) == ["x" * WORD_MAX_CHARS]
    assert len(words(" ".join(map(str, range(10_000))))) == WORDS_MAX
    assert len(words("".join(chr(0x4E00 + number) for number in range(5_000)))) == WORDS_MAX


@given(st.text())
def test_words_are_made_once(text: str) -> None:
    """What is looked up is cut as what is kept was, so that the one finds the other."""
    found = words(text)
    assert len(found) == len(set(found))
    assert all(word and len(word) <= WORD_MAX_CHARS and not any(letter.isspace() for letter in word) for word in found)
    assert all(word.startswith(stem(word)) for word in found)


def test_what_is_asked_for_says_something() -> None:
    assert telling("Do you know what I like about it?") == []
    assert telling("Is my sister in London now?") == ["sister", "london"]


def test_of_a_long_message_the_longest_words_are_asked_for() -> None:
    message = " ".join(["word" + "x" * (number % 50) for number in range(200)])
    asked = telling(message)
    assert len(asked) == ASKED_MAX
    assert min(map(len, asked)) >= max(len(word) for word in set(words(message)) - set(asked))


@pytest.mark.parametrize(
    "forms",
    [
        ("allergies", "allergy", "allergic"),
        ("drinks", "drink", "drinking"),
        ("likes", "liked", "like"),
        ("dogs", "dog"),
        ("baker", "bakery", "bake"),
    ],
)
def test_the_forms_of_a_word_begin_alike(forms: tuple[str, ...]) -> None:
    first, *others = forms
    assert all(each.startswith(stem(first)) or first.startswith(stem(each)) for each in others)


@pytest.mark.parametrize("word", ["2024", "20241116", "b2b", "tea", "喝茶"])
def test_what_has_no_forms_is_its_own_stem(word: str) -> None:
    assert stem(word) == word
