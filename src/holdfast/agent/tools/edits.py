"""The diff of a replacement in a file, computed in linear time."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass

LINES_MAX = 200
CONTEXT = 2
# At most this many lines are compared one by one, which takes cubic time.  More are shown as replaced as a whole.
COMPARED_MAX = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """The replacement of every `old` by `new` in a text; `name` is that of the file."""

    text: str
    old: str
    new: str
    name: str


@dataclass(frozen=True, slots=True)
class _Change:
    """Replaced lines: their range in the text, and their new content."""

    start: int
    stop: int
    after: str


def difference(edit: Replacement) -> str:
    """Return the diff of a replacement, up to `LINES_MAX` lines."""
    shown = [f"--- {edit.name}", f"+++ {edit.name}"]
    line, shift, counted = 1, 0, 0
    for change in _changes(edit):
        line += edit.text.count("\n", counted, change.start)
        counted = change.start
        before, after = _lines(edit.text[change.start : change.stop]), _lines(change.after)
        head, tail = _context(edit.text, change)
        shown += _hunk(line, line + shift, head, before, after, tail)
        shift += len(after) - len(before)
        if len(shown) > LINES_MAX:
            return "\n".join([*shown[:LINES_MAX], "[… the difference goes on]"])
    return "\n".join(shown)


def _changes(edit: Replacement) -> Iterator[_Change]:
    """Yield the changes; replacements with overlapping context form one change, unless it grows too long."""
    text, old = edit.text, edit.old
    at = text.find(old)
    while at >= 0:
        start = text.rfind("\n", 0, at) + 1
        stop, reach, steps = start, at + 1, 0
        while 0 <= at < reach:
            end = at + len(old)
            if end >= stop:
                stop, steps = _line_end(text, end), steps + 1
                reach = stop if steps > LINES_MAX else _after(text, stop, 2 * CONTEXT)
            at = text.find(old, end)
        yield _Change(start, stop, text[start:stop].replace(old, edit.new))


def _after(text: str, at: int, lines: int) -> int:
    for _ in range(lines):
        at = _line_end(text, at)
    return at


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def _lines(text: str) -> list[str]:
    """Split at line feeds only, as line numbers are counted here."""
    lines = text.split("\n")
    return [line.removesuffix("\r") for line in (lines if lines[-1] else lines[:-1])]


def _context(text: str, change: _Change) -> tuple[list[str], list[str]]:
    start, stop = change.start, _after(text, change.stop, CONTEXT)
    for _ in range(CONTEXT):
        start = text.rfind("\n", 0, max(start - 1, 0)) + 1
    return _lines(text[start : change.start]), _lines(text[change.stop : stop])


def _hunk(line: int, line_now: int, head: list[str], before: list[str], after: list[str], tail: list[str]) -> list[str]:
    old, new = [*head, *before, *tail], [*head, *after, *tail]
    if max(len(old), len(new)) <= COMPARED_MAX:
        compared = difflib.unified_diff(old, new, lineterm="", n=COMPARED_MAX)
        body = [*compared][3:]
    else:
        body = [*(f" {each}" for each in head), *(f"-{each}" for each in before)]
        body += [*(f"+{each}" for each in after), *(f" {each}" for each in tail)]
    first, first_now = line - len(head), line_now - len(head)
    return [f"@@ -{first},{len(old)} +{first_now},{len(new)} @@", *body]
