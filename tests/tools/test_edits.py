"""What an edit changed is shown in time that grows with the text, and no faster."""

from __future__ import annotations

import time

import pytest

from holdfast.agent.tools.edits import LINES_MAX, Replacement, difference

TEXT = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"


def shown(text: str, old: str, new: str) -> list[str]:
    return difference(Replacement(text=text, old=old, new=new, name="a.txt")).splitlines()


@pytest.mark.parametrize(
    ("text", "old", "new", "lines"),
    [
        (TEXT, "four", "4", ["@@ -2,5 +2,5 @@", " two", " three", "-four", "+4", " five", " six"]),
        (TEXT, "one\n", "", ["@@ -1,4 +1,3 @@", "-one", " two", " three", " four"]),
        (TEXT, "seven\n", "seven\neight\n", ["@@ -5,3 +5,4 @@", " five", " six", " seven", "+eight"]),
        (TEXT, "e", "E", ["@@ -1,7 +1,7 @@", "-one", "+onE", " two", "-three", "+thrEE"]),
        ("a b\r\nc\r\n", "b", "x", ["@@ -1,2 +1,2 @@", "-a b", "+a x", " c"]),
        ("alone", "alone", "", ["@@ -1,1 +1,0 @@", "-alone"]),
        ("a\nb", "a\nb", "b\na", ["@@ -1,2 +1,2 @@", "+b", " a", "-b"]),
    ],
)
def test_a_replacement_is_shown_as_lines(text: str, old: str, new: str, lines: list[str]) -> None:
    assert shown(text, old, new)[:2] == ["--- a.txt", "+++ a.txt"]
    assert shown(text, old, new)[2 : 2 + len(lines)] == lines


def test_the_numbers_of_later_lines_know_what_came_before() -> None:
    heads = [line for line in shown("x\n" + "y\n" * 20 + "x\n", "x\n", "x\nx\n") if line.startswith("@@")]
    assert heads == ["@@ -1,4 +1,5 @@", "@@ -20,3 +21,4 @@"]


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        # Every line is replaced by another: a general diff would compare each with each.
        (
            "\n".join(map(str, range(200_000))),
            "\n".join(map(str, range(200_000))),
            "\n".join(map(str, range(0, 1_400_000, 7))),
        ),
        ("x\n" * 400_000, "x", "y"),
        ("x" * 2_000_000, "x", "yy"),
    ],
    ids=["all lines", "every line alone", "one line"],
)
def test_a_large_edit_is_shown_in_part_and_soon(text: str, old: str, new: str) -> None:
    """S7: 200,000 changed lines took minutes."""
    began = time.process_time()
    lines = shown(text, old, new)
    assert time.process_time() - began < 2
    assert len(lines) <= LINES_MAX + 1
