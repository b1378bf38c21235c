"""One line being typed."""

from __future__ import annotations

import pytest

from holdfast.cli.line import Line
from holdfast.core.commands import completed

LEFT, UP, DOWN = "\x1b[D", "\x1b[A", "\x1b[B"


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ("tide", "tide"),
        ("tidee\x7f", "tide"),
        ("ide\x01t", "tide"),
        ("tde\x1b[D\x1b[Di", "tide"),
        ("tde\x02\x02i\x05s", "tides"),
        ("the tide\x17sea", "the sea"),
        ("the tide  \x17sea", "the sea"),
        ("junk\x15tide", "tide"),
        ("tidejunk" + LEFT * 4 + "\x0b", "tide"),
        ("tiXde" + LEFT * 3 + "\x1b[3~", "tide"),
        ("tiXde" + LEFT * 3 + "\x04", "tide"),
        ("spring tide\x1b[1;5Dhigh ", "spring high tide"),
        ("spring tide\x1bb\x1bb\x1bf now", "spring now tide"),
        ("one\x1b\ntwo", "one\ntwo"),
        ("\x1b[200~one\r\ntwo\nthree\x1b[201~", "one\n\ntwo\nthree"),
        ("é€😀\x7f", "é€"),
        ("a\x00\x07\x1b[99~\x1b[15;2~b", "ab"),
        ("\x7f\x17\x15\x0b\x1b[D\x1b[C\x1b[3~", ""),
    ],
)
def test_keys_edit_the_line(keys: str, text: str) -> None:
    line = Line()
    assert line.feed(keys) == []
    assert line.text == text
    # However the keys are cut on their way here, they mean the same.
    slowly = Line()
    for key in keys:
        assert slowly.feed(key) == []
    assert (slowly.text, slowly.cursor) == (line.text, line.cursor)


def test_enter_ends_a_line_and_ctrl_d_leaves_an_empty_one() -> None:
    line = Line()
    assert line.feed("one\ntwo\r\x04") == ["one", "two", None]
    assert line.feed("x\x04") == []
    assert line.text == "x"


def test_earlier_lines_come_back() -> None:
    line = Line()
    line.feed("one\n\ntwo\ntwo\n")
    assert line.history == ["one", "two"]
    line.feed(UP)
    assert line.text == "two"
    line.feed(UP + UP)
    assert line.text == "one"
    line.feed(DOWN + "!")
    assert line.text == "two!"
    line.feed(DOWN + DOWN)
    assert line.text == ""


def test_what_is_cleared_is_not_remembered() -> None:
    line = Line()
    line.feed("secret")
    assert line.clear() == "secret"
    line.feed(UP)
    assert (line.text, line.history) == ("", [])


def test_the_tabulator_completes_a_command_and_is_a_tabulator_elsewhere() -> None:
    line = Line(complete=completed)
    line.feed("/mod\tx\t")
    assert line.text == "/model x\t"
    line.clear()
    line.feed("\x1b[200~/mod\t\x1b[201~")
    assert line.text == "/mod\t"
