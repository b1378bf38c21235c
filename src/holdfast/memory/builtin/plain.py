"""Plain rules: what remembers where no model is set up.  A few English sentences are understood, always in the same way."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from holdfast.agent.toolbox import shortened
from holdfast.agent.tools.port import Spend
from holdfast.core.facts import FACT_MAX_CHARS, folded
from holdfast.core.segments import SpokenMessage
from holdfast.core.transcript import Role
from holdfast.ids import MemoryId, TurnId
from holdfast.memory.builtin.extraction import PERSON_MAX_CHARS
from holdfast.memory.builtin.findings import FactFinding, Findings, Known, rememberable

# Of one talk.
FOUND_MAX = 25
# A longer sentence says too much for one fact.
SENTENCE_MAX_CHARS = 2 * FACT_MAX_CHARS

_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+")
_CLAUSE = re.compile(r",? (?:and|but) (?=(?:i|my)\b)|, (?=(?:i|my)\b)", re.IGNORECASE)
_REMEMBER = re.compile(r"(?:please\s+)?(?:remember|keep in mind)(?:\s+that|:)?\s+(?P<rest>.+)", re.IGNORECASE)
_FORGET = re.compile(r"(?:please\s+)?forget(?:\s+that)?\s+(?P<rest>.+)", re.IGNORECASE)
_OWN = re.compile(r"\b(my|mine|me|i)\b", re.IGNORECASE)
_THEIRS = {"my": "their", "mine": "theirs", "me": "them", "i": "they"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fact:
    """A fact, and how every fact about the same thing begins, where there can be only one."""

    text: str
    topic: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    """A sentence that is understood, and the fact it states."""

    pattern: re.Pattern[str]
    fact: Callable[[re.Match[str]], _Fact]


def _shape(pattern: str, fact: Callable[[re.Match[str]], _Fact]) -> _Shape:
    return _Shape(pattern=re.compile(pattern, re.IGNORECASE), fact=fact)


def _about(topic: str, rest: str) -> _Fact:
    return _Fact(text=f"{topic} {_turned(rest)}", topic=f"{topic} ")


_SHAPES = (
    _shape(
        # "Call me later" and "call me when it is done" give no name.
        r"(?:(?:hi|hello)[,!]?\s+)?(?:(?:my name is|i am called|i['’]m called)(?! not\b)|call me(?= (?-i:[A-ZÀ-Þ])))"
        r"\s+([^\W\d_][\w'’. -]{0,60})",
        lambda said: _about("Name:", said[1]),
    ),
    _shape(
        r"i\s+(live|work)\s+(.+)",
        lambda said: _about(f"{said[1].capitalize()}s", said[2]),
    ),
    _shape(
        r"i\s+(?:really\s+)?(like|love|prefer|hate|own|use|speak|play|drive)\s+(.+)",
        lambda said: _Fact(text=f"{said[1].capitalize()}s {_turned(said[2])}"),
    ),
    _shape(
        r"i(?:\s+a|['’])m\s+((?:an?|from|allergic|vegan|vegetarian|married)\b.*)",
        lambda said: _Fact(text=f"Is {_turned(said[1])}"),
    ),
    _shape(
        r"i(?:\s+have|['’]ve\s+got)\s+((?:an?|one|two|three|four|five|no|\d+)\s(?!question|problem|issue|idea\b).+)",
        lambda said: _Fact(text=f"Has {_turned(said[1])}"),
    ),
    _shape(
        r"my\s+((?!question\b|point\b|problem\b|guess\b|code\b|name is not\b)[\w'’ -]{1,40}?)\s+(is|are)\s+(.+)",
        lambda said: _about(f"Their {said[1]} {said[2].lower()}", said[3]),
    ),
    _shape(
        r"(?:please\s+)?((?:always|never)\s+(?:answer|reply|write|speak|call|use)\b.+)",
        lambda said: _Fact(text=f"Wants: {said[1].lower()}"),
    ),
)


class PlainExtractor:
    """Understands the sentences that it knows, and no others."""

    name = "plain rules"

    def parts(self, talk: Sequence[SpokenMessage]) -> list[Sequence[SpokenMessage]]:
        return [talk]

    async def extract(self, talk: Sequence[SpokenMessage], known: Known, spend: Spend) -> Findings:  # noqa: ARG002 - Nothing is.
        found: list[FactFinding] = []
        facts = dict(known.facts)
        for message in talk:
            # Others are served in between: a talk may be as long as it likes.
            await asyncio.sleep(0)
            for sentence in _sentences(message):
                finding = _heard(sentence, message.turn_id, facts)
                if finding and len(found) < FOUND_MAX:
                    found.append(finding)
        return Findings(found=tuple(found))


def _sentences(message: SpokenMessage) -> Iterator[str]:
    if message.role is not Role.USER:
        return
    for sentence in _SENTENCE.split(shortened(message.text, PERSON_MAX_CHARS)):
        # With one space between words, the patterns have one way to read it.
        if len(plain := " ".join(sentence.split())) <= SENTENCE_MAX_CHARS:
            yield from _clauses(plain)


def _clauses(sentence: str) -> Sequence[str]:
    """Return the parts of a sentence that says several things of its speaker; any other is left whole."""
    first, *more = _CLAUSE.split(sentence)
    return [first, *more] if more and not sentence.endswith("?") and _stated(first) else [sentence]


def _heard(sentence: str, turn_id: TurnId, facts: Mapping[MemoryId, str]) -> FactFinding | None:
    if sentence.endswith("?"):
        return None
    sentence = sentence.rstrip(" .!;")
    if forget := _FORGET.fullmatch(sentence):
        over = folded((_stated(forget["rest"]) or _Fact(text=_turned(forget["rest"]))).text)
        gone = next((each for each, text in facts.items() if folded(text) == over), None)
        return FactFinding(turn_id=turn_id, id=gone) if gone else None
    remember = _REMEMBER.fullmatch(sentence)
    fact = _stated(remember["rest"] if remember else sentence)
    if fact is None and remember:
        fact = _Fact(text=_turned(remember["rest"]))
    text = rememberable(fact.text[:1].upper() + fact.text[1:]) if fact else ""
    if not fact or not text:
        return None
    before = [each for each, said in facts.items() if fact.topic and said.casefold().startswith(fact.topic.casefold())]
    return FactFinding(turn_id=turn_id, text=text, id=before[0] if before else None)


def _stated(sentence: str) -> _Fact | None:
    said = ((shape, shape.pattern.fullmatch(sentence)) for shape in _SHAPES)
    return next((shape.fact(match) for shape, match in said if match), None)


def _turned(text: str) -> str:
    """Return what a person said of themselves in the third person."""
    return _OWN.sub(lambda own: _THEIRS[own[0].lower()], text)
