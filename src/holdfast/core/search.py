"""What a search looks for: the terms of a text, made here so that every database agrees on what one is.

Case and accents do not count.  A term is found by how it begins, so that a search shows something while it is typed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from holdfast.core.words import RUN, UNSPACED, WORD_MAX_CHARS, pairs

# Only so much of one text can be found: an index takes only so much, and all of it is written at once.
TEXT_MAX_CHARS = 200_000
TERMS_MAX = 30_000
TERMS_MAX_BYTES = 500_000
# Of a query; the words behind these do not count.
QUERY_MAX_CHARS = 100_000
WANTED_MAX = 64
_PLAIN = re.compile(r"[a-z0-9]+")
# Those above letters of Latin, Greek and Cyrillic.  The marks of other scripts are letters to their readers.
_ACCENTS = re.compile("[\u0300-\u036f]")


class _Folds(dict[int, str]):
    """What each character is to a search, kept once it was asked for."""

    def __missing__(self, code: int) -> str:
        decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", chr(code)).casefold())
        self[code] = folded = unicodedata.normalize("NFC", _ACCENTS.sub("", decomposed))
        return folded


_folds = _Folds()


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One term of a query.  A single letter is a whole word, where words have spaces between them."""

    text: str

    @property
    def is_whole(self) -> bool:
        return len(self.text) == 1 and not is_unspaced(self.text)

    def is_met_by(self, term: str) -> bool:
        return term == self.text if self.is_whole else term.startswith(self.text)


def is_unspaced(text: str) -> bool:
    """Return whether a term is of a script without spaces between words."""
    return UNSPACED.match(text) is not None


def fold(text: str) -> str:
    """Return a text without case or accents, character by character."""
    return text.lower() if text.isascii() else text.translate(_folds)


def resizes(text: str) -> bool:
    """Return whether folding makes more or fewer characters of one of a text."""
    return any(len(fold(each)) != 1 for each in set(text))


def terms(text: str) -> list[str]:
    """Return what a text can be found by, each term once."""
    text = text[:TEXT_MAX_CHARS]
    if text.isascii():
        found = dict.fromkeys(run[:WORD_MAX_CHARS] for run in _PLAIN.findall(text.lower()))
    else:
        found = dict.fromkeys(_split(RUN.findall(fold(unicodedata.normalize("NFC", text)))))
    return _within_limits(found)


def _split(runs: Iterable[str]) -> Iterable[str]:
    for run in runs:
        for number, part in enumerate(UNSPACED.split(run)):
            if number % 2:
                yield from pairs(part)
            elif part:
                yield part[:WORD_MAX_CHARS]


def _within_limits(found: Iterable[str]) -> list[str]:
    kept: list[str] = []
    left = TERMS_MAX_BYTES
    for term in found:
        left -= len(term.encode())
        if left < 0 or len(kept) == TERMS_MAX:
            break
        kept.append(term)
    return kept


def wanted(query: str) -> list[Wanted]:
    """Return what a query looks for: all of it has to be there."""
    return [Wanted(text=term) for term in terms(query[:QUERY_MAX_CHARS])[:WANTED_MAX]]


def matches(text: str, query: Iterable[Wanted]) -> bool:
    """Return whether a text has all that is wanted."""
    found = terms(text)
    return all(any(each.is_met_by(term) for term in found) for each in query)
