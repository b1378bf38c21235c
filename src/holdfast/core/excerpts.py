"""Excerpts: the part of a text that a search was about, and where in it the words are."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.core.legible import one_line
from holdfast.core.search import Wanted, fold, is_unspaced, resizes, wanted
from holdfast.core.words import MARKS

EXCERPT_MAX_CHARS = 240
# What is shown of the text before the first word that was found.
LEAD_CHARS = 60
# So far a text is looked through for them: a search finds many, and each may be as long as a book.
LOOKED_MAX_CHARS = 50_000
# How far a cut is moved to keep one character whole; a longer pile of combining marks is cut.
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
    sought = _pattern(query)
    found = next(_found(text[:LOOKED_MAX_CHARS], sought), None)
    begin = _begin(text, found[0]) if found else 0
    # What cannot be seen is left out, so there may be room for more; looking twice as far finds most of it.
    shown = one_line(text[begin : begin + 2 * EXCERPT_MAX_CHARS])
    lead = _ELLIPSIS if begin else ""
    room = EXCERPT_MAX_CHARS - len(lead)
    if len(shown) > room or begin + 2 * EXCERPT_MAX_CHARS < len(text):
        shown = shown[: _cut(shown, min(room - 1, len(shown)))].rstrip() + _ELLIPSIS
    snippet = lead + shown
    marks = tuple((_units(snippet[:start]), _units(snippet[:end])) for start, end in _found(snippet, sought))
    return Excerpt(snippet=snippet, marks=marks)


def _pattern(query: str) -> re.Pattern[str] | None:
    words = [_shape(each) for each in sorted(wanted(query), key=lambda each: len(each.text), reverse=True)]
    return re.compile("|".join(words)) if words else None


def _shape(word: Wanted) -> str:
    if is_unspaced(word.text):
        return re.escape(word.text)
    # A word begins where no letter is before it, nor a mark that belongs to one; and so it ends, if it is a whole one.
    end = rf"(?!{_LETTER}|{_MARK})" if word.is_whole else ""
    return rf"(?<!{_LETTER})(?<!{_MARK}){re.escape(word.text)}{end}"


def _found(text: str, sought: re.Pattern[str] | None) -> Iterator[tuple[int, int]]:
    """Yield where a text has what is sought, ignoring case and accents."""
    if sought is None:
        return
    folded = fold(text)
    # Where no character became more or fewer, as in most texts, a place is the same in both.
    places = None if text.isascii() or not resizes(text) else [at for at, each in enumerate(text) for _ in fold(each)]
    for start, end in _joined(sought.finditer(folded)):
        if places is None:
            yield start, end
        else:
            yield places[start], _end(text, places[end - 1] + 1)


def _joined(found: Iterator[re.Match[str]]) -> Iterator[tuple[int, int]]:
    """Yield what was found, and as one what stands together: a script without spaces is looked for by pairs of letters."""
    begun: tuple[int, int] | None = None
    for each in found:
        if begun and begun[1] != each.start():
            yield begun
            begun = None
        begun = (begun or each.span())[0], each.end()
    if begun:
        yield begun


def _end(text: str, at: int) -> int:
    # The accents behind the last letter belong to it.
    while at < len(text) and not fold(text[at]):
        at += 1
    return at


def _begin(text: str, first: int) -> int:
    begin = max(first - LEAD_CHARS, 0)
    space = text.find(" ", begin, begin + WORD_CHARS) if begin else -1
    return space + 1 if space >= 0 else _cut(text, begin)


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
