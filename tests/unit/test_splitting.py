"""Splitting: every part fits, nothing is lost or moved, and code stays code."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.channels.port import MessageSize, Unit
from holdfast.core.splitting import _open_fence, split

SIZES = st.builds(lambda most, unit: MessageSize(most=most, unit=unit), st.integers(8, 120), st.sampled_from(Unit))
FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
FLAG = "\U0001f1e9\U0001f1ea"
THUMB = "\U0001f44d\U0001f3fd"
WORDS = st.sampled_from(["a", "word", "longer-word", " ", "  ", "\n", "\n\n", "é", FAMILY, FLAG, THUMB, "x" * 40])
LINES = st.sampled_from(["```", "```py", "~~~", "````", "code", "  indented", "text here", "", "x" * 30])


def characters(most: int) -> MessageSize:
    return MessageSize(most=most)


def solid(text: str) -> str:
    return "".join(text.split())


@given(st.lists(WORDS, max_size=60).map("".join), SIZES)
def test_every_part_fits_and_nothing_is_lost(text: str, size: MessageSize) -> None:
    parts = split(text, size.fits)
    assert all(map(size.fits, parts))
    assert solid("".join(parts)) == solid(text)
    assert all(each.strip() for each in parts) or len(parts) == 1


@given(st.lists(LINES, max_size=40).map("\n".join), st.integers(90, 200), st.sampled_from(Unit))
def test_code_is_closed_in_every_part_and_none_of_it_is_lost(text: str, most: int, unit: Unit) -> None:
    size = MessageSize(most=most, unit=unit)
    parts = split(text, size.fits)
    assert all(map(size.fits, parts))
    assert [_open_fence(each) for each in parts[:-1]] == [None] * (len(parts) - 1)
    fences = re.compile(r"^[`~]{3,}(py)?$", re.MULTILINE)
    assert solid(fences.sub("", "\n".join(parts))) == solid(fences.sub("", text))


@given(st.integers(0, 6), st.sampled_from([FAMILY, FLAG, THUMB, "e\u0301"]))
def test_a_cluster_at_the_border_is_not_cut(short: int, cluster: str) -> None:
    size = MessageSize(most=40, unit=Unit.UTF16)
    text = "x" * (40 - short) + cluster * 2 + "y" * 30
    parts = split(text, size.fits)
    assert all(map(size.fits, parts))
    assert "".join(parts) == text
    assert sum(part.count(cluster) for part in parts) == 2


def test_utf16_units_count_an_emoji_twice() -> None:
    parts = split("\U0001f600" * 5000, MessageSize(most=4096, unit=Unit.UTF16).fits)
    assert [len(each) for each in parts] == [2048, 2048, 904]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("one two\n\nthree four five", ["one two", "three four five"]),
        ("one two\nthree four five six", ["one two", "three four five six"]),
        ("one two three four five six seven", ["one two three four", "five six seven"]),
        ("x" * 25, ["x" * 20, "x" * 5]),
        ("short", ["short"]),
        ("", [""]),
    ],
)
def test_a_text_is_cut_at_a_paragraph_a_line_or_a_word(text: str, parts: list[str]) -> None:
    assert split(text, characters(20).fits) == parts


def test_code_goes_on_as_code_in_the_same_language() -> None:
    code = "\n".join(f"    line {number}" for number in range(12))
    parts = split(f"Look:\n```py\n{code}\n```\nDone.", characters(80).fits)
    assert all(part.startswith("```py\n    line") for part in parts[1:])
    assert all(part.endswith("\n```") for part in parts[:-1])
    assert parts[-1].endswith("Done.")
    assert sum(part.count("line ") for part in parts) == 12


def test_no_empty_code_block_is_left_where_the_code_ends() -> None:
    parts = split("```\n" + "x" * 12 + "\n```\n" + "after it " * 3, characters(26).fits)
    assert parts[0] == "```\n" + "x" * 12 + "\n```"
    assert "`" not in "".join(parts[1:])
