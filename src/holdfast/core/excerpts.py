"""Excerpts: the part of a text that a search was about, and where in it the words are."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from holdfast.core.legible import one_line
from holdfast.core.words import MARKS, RUN

EXCERPT_MAX_CHARS = 240
# What is shown of the text before the first word that was found.
LEAD_CHARS = 60
# A query may be long; so many of its words are looked for.
WORDS_MAX = 50
# So far a text is looked through for them: a search finds many, and each may be as long as a book.
LOOKED_MAX_CHARS = 50_000
# How far a cut is moved for the sake of one character; what is piled up higher is no character to anybody.
_STEPS_MAX = 16
# An excerpt begins with a whole word, unless that is longer than this.
WORD_CHARS = 20
_LETTER = r"[^\W_]"
_MARK = f"[{re.escape(MARKS)}]"
_ELLIPSIS = "…"
_JOINER = "\u200d"
_TONES = range(0x1F3FB, 0x1F400)


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """Some of a text.  `marks` are the begins and ends of words in it, in the units that browsers count in (UTF-16)."""

    snippet: str
    marks: tuple[tuple[int, int], ...] = ()


def excerpt(text: str, query: str) -> Excerpt:
    """Return what stands around the first of a query's words in a text; without any near, how the text begins."""
    wanted = _pattern(query)
    found = wanted.search(text, 0, LOOKED_MAX_CHARS) if wanted else None
    begin = _begin(text, found.start()) if found else 0
    # What cannot be seen is left out, so there may be room for more; looking twice as far finds most of it.
    shown = one_line(text[begin : begin + 2 * EXCERPT_MAX_CHARS])
    lead = _ELLIPSIS if begin else ""
    room = EXCERPT_MAX_CHARS - len(lead)
    if len(shown) > room or begin + 2 * EXCERPT_MAX_CHARS < len(text):
        shown = shown[: _cut(shown, min(room - 1, len(shown)))].rstrip() + _ELLIPSIS
    snippet = lead + shown
    return Excerpt(snippet=snippet, marks=_marks(snippet, wanted))


def _pattern(query: str) -> re.Pattern[str] | None:
    words = list(dict.fromkeys(RUN.findall(query)))[:WORDS_MAX]
    if not words:
        return None
    # A word ends where neither a letter goes on nor a mark that belongs to its last one.
    alone = rf"(?<!{_LETTER})(?<!{_MARK})(?:{{}})(?!{_LETTER}|{_MARK})"
    return re.compile(alone.format("|".join(map(re.escape, words))), re.IGNORECASE)


def _begin(text: str, first: int) -> int:
    begin = max(first - LEAD_CHARS, 0)
    space = text.find(" ", begin, begin + WORD_CHARS) if begin else -1
    return space + 1 if space >= 0 else _cut(text, begin)


def _marks(snippet: str, wanted: re.Pattern[str] | None) -> tuple[tuple[int, int], ...]:
    found = wanted.finditer(snippet) if wanted else ()
    return tuple((_units(snippet[: each.start()]), _units(snippet[: each.end()])) for each in found)


def _units(text: str) -> int:
    """Return how long a text is to a browser."""
    return len(text) + sum(1 for each in text if ord(each) > 0xFFFF)


def _cut(text: str, at: int) -> int:
    """Return a place at or before `at` that is between two characters as people see them."""
    for place in range(at, max(at - _STEPS_MAX, 0), -1):
        if not _is_inside(text, place):
            return place
    return 0 if at <= _STEPS_MAX else at


def _is_inside(text: str, place: int) -> bool:
    if not 0 < place < len(text):
        return False
    after = text[place]
    joined = _JOINER in (after, text[place - 1])
    return joined or unicodedata.category(after).startswith("M") or ord(after) in _TONES
