"""Words as memory is looked up by them: made here, so that every database agrees on what one is."""

from __future__ import annotations

import re
import unicodedata

# Longer words are cut: people do not type them, and an index entry has a limited size.
WORD_MAX_CHARS = 40
# Of one text; what is remembered is short.
WORDS_MAX = 1_000
# Of a message that something is recalled for.
QUERY_MAX_CHARS = 8_000
ASKED_MAX = 30

MARKS = "".join(chr(code) for code in range(0x300, 0x2000) if unicodedata.category(chr(code)).startswith("M"))
RUN = re.compile(rf"[^\W_](?:[^\W_]|[{re.escape(MARKS)}])*")
# Scripts that put no space between words, or too much into one: every two letters that stand together are a word.
UNSPACED = re.compile(
    "([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\U00020000-\U0003ffff]+)"
)
# So common that they say nothing of what is meant.  Those of other languages count little by themselves, for being common.
_SILENT = """
about after again all also always am an and any are as at be because been before being both but by can could did do does
doing done down each even every few for from get give go got had has have having he hello her here hers him his how if
in into is it its just know let like make many may me mean might mine more most much must my need never no nor not now
of off ok okay on once one only or other our ours out over own please really same say see shall she should so some such
sure take tell than thank thanks that the their theirs them then there these they thing this those though through to too
under until up upon us use very want was way we well were what when where which while who whom whose why will with
would yes yet you your yours
"""
_UNTOLD = frozenset(_SILENT.split())
_STEM_CHARS = 5


def words(text: str) -> list[str]:
    """Return the words of a text, each once, without case or punctuation."""
    found: dict[str, None] = {}
    for run in RUN.findall(unicodedata.normalize("NFKC", text).casefold()):
        for number, part in enumerate(UNSPACED.split(run)):
            found.update(dict.fromkeys(pairs(part) if number % 2 else [part[:WORD_MAX_CHARS]] if part else []))
        if len(found) >= WORDS_MAX:
            break
    return list(found)[:WORDS_MAX]


def pairs(part: str) -> list[str]:
    """Return every two letters that stand together."""
    # The last letter stands alone, so that every letter begins a word.
    return [part[at : at + 2] for at in range(len(part))]


def telling(query: str) -> list[str]:
    """Return the words of a message that say most about what it means, few enough to look all of them up."""
    found = [word for word in words(query[:QUERY_MAX_CHARS]) if len(word) > 1 and word not in _UNTOLD]
    return sorted(found, key=len, reverse=True)[:ASKED_MAX]


def stem(word: str) -> str:
    """Return what a word begins with in most of its forms: "allergies", "allergy" and "allergic" all begin alike."""
    if not word.isalpha() or len(word) < _STEM_CHARS - 1:
        return word
    if len(word) < _STEM_CHARS:
        return word.removesuffix("s")
    return word[: max(_STEM_CHARS - 1, min(_STEM_CHARS, len(word) - 1))]
