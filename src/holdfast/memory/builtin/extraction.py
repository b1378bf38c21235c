"""Extraction: finds in a conversation what will still matter about the person in other conversations."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from itertools import groupby
from typing import Protocol

from holdfast.agent.compaction import CHARS_PER_TOKEN
from holdfast.agent.models import port
from holdfast.agent.models.port import AssistantMessage, Done, Model, Request, StopReason, TextDelta, UserMessage
from holdfast.agent.toolbox import shortened
from holdfast.agent.tools.port import Spend
from holdfast.core.segments import SpokenMessage
from holdfast.core.transcript import Role
from holdfast.errors import ContextTooLong, ModelRejected, ModelUnavailable, ModelUnusable
from holdfast.memory.builtin.findings import Findings, Known
from holdfast.memory.builtin.paper import RULES, NotTaken, Paper

COMMIT_MAX_S = 120
# The share of a commit's time that one answer may take, so that the error can say what took so long.
_ANSWER_SHARE = 0.8
ANSWER_TOKENS_MAX = 8_000
ANSWER_MAX_CHARS = 60_000
# How often a model is asked before it counts as unusable.
ASKED_MAX = 2
# The limit of one part of a conversation.
PART_MAX_CHARS = 24_000
KNOWN_MAX_CHARS = 8_000
# The limits of one message.  Of a longer one, such as pasted text, the beginning and the end are read.
PERSON_MAX_CHARS = 12_000
ASSISTANT_MAX_CHARS = 1_500
# The shares of the model's context; the rest is for the rules.
_PART = 0.3
_KNOWN_PART = 0.15
_ANSWER_PART = 0.25
_PIECE_MIN_CHARS = 500
# The size of the JSON around each message.
_AROUND_CHARS = 60

_AGAIN = "That could not be used: {reason}. Answer again, with the one JSON object of the shape described and nothing else."
_UNFOUNDED = "no quote stands in what the person said; copy their words exactly, and leave out what they did not say"
_ENDS = {StopReason.REFUSAL: "it was refused", StopReason.CALLS: "there are no tools"}


class Unusable(ModelUnavailable):
    """The model gave no usable answer."""


class TookTooLong(ModelUnavailable):
    """The model did not answer in time; with a smaller part it may."""


class Extractor(Protocol):
    """Finds what is worth remembering."""

    @property
    def name(self) -> str: ...

    def parts(self, talk: Sequence[SpokenMessage]) -> list[Sequence[SpokenMessage]]:
        """Split a conversation into parts that can be read at once."""
        ...

    async def extract(self, talk: Sequence[SpokenMessage], known: Known, spend: Spend) -> Findings:
        """Read a part.  The usage of a model is reported to `spend`.

        Raises `Unusable` if the model gave no usable answer, `ContextTooLong` if the part does not fit, and `TookTooLong` if
        it did not answer in time.
        """
        ...


def spoken(messages: Sequence[SpokenMessage]) -> list[SpokenMessage]:
    """Return the messages of turns in which a person speaks; other turns are about the work of machines."""
    persons = {message.turn_id for message in messages if message.role is Role.USER and message.text.strip()}
    return [message for message in messages if message.turn_id in persons]


def halves(talk: Sequence[SpokenMessage]) -> list[Sequence[SpokenMessage]]:
    """Split a part into halves.  Raises `Unusable` if it cannot be split further."""
    if len(talk) > 1:
        middle = len(talk) // 2
        return [half for each in (talk[:middle], talk[middle:]) if (half := spoken(each))]
    (message,) = talk
    middle = len(message.text) // 2
    if middle < _PIECE_MIN_CHARS:
        raise Unusable("the model has no room for a single message; name another one in memory.model")
    return [[replace(message, text=message.text[:middle])], [replace(message, text=message.text[middle:])]]


class ModelExtractor:
    """Extracts with a model."""

    def __init__(self, model: Model, commit_max_s: float = COMMIT_MAX_S) -> None:
        self._model = model
        self._answer_max_s = commit_max_s * _ANSWER_SHARE

    @property
    def name(self) -> str:
        return self._model.name

    def parts(self, talk: Sequence[SpokenMessage]) -> list[Sequence[SpokenMessage]]:
        room = max(self._room(_PART, PART_MAX_CHARS), _PIECE_MIN_CHARS)
        cut = _cut([_bounded(message, room) for message in talk], room)
        return [part for each in cut if (part := spoken(each))]

    async def extract(self, talk: Sequence[SpokenMessage], known: Known, spend: Spend) -> Findings:
        paper = Paper(talk, known, self._room(_KNOWN_PART, KNOWN_MAX_CHARS))
        asked: list[port.Message] = [UserMessage(text=paper.text())]
        found: Findings | None = None
        reason = ""
        for _ in range(ASKED_MAX):
            answer, reason = await self._ask(asked, spend)
            if not reason:
                found, reason = _taken(paper, answer)
            if not reason and found is not None:
                return found
            if answer.strip():
                # Cut, so that a long wrong answer is not paid for twice.
                said = AssistantMessage(text=shortened(answer, ASSISTANT_MAX_CHARS))
                asked = [asked[0], said, UserMessage(text=_AGAIN.format(reason=reason))]
        if found is None:
            raise Unusable(f"{self._model.name} gave nothing usable: {reason}")
        # The model insists on facts that the person never stated; none of them is taken.
        return found

    def _room(self, share: float, most_chars: int) -> int:
        return min(int(self._model.facts.context_tokens * share * CHARS_PER_TOKEN) or most_chars, most_chars)

    async def _ask(self, messages: Sequence[port.Message], spend: Spend) -> tuple[str, str]:
        """Return the model's text, and the problem with it; empty if there is none."""
        facts = self._model.facts
        limits = (ANSWER_TOKENS_MAX, facts.output_tokens_max, int(facts.context_tokens * _ANSWER_PART))
        request = Request(system=RULES, messages=messages, output_tokens_max=min(each for each in limits if each))
        try:
            async with asyncio.timeout(self._answer_max_s):
                return await self._answer(request, spend)
        except TimeoutError:
            raise TookTooLong(f"{self._model.name} did not answer within {self._answer_max_s:g} seconds") from None
        except (ContextTooLong, ModelUnusable):
            raise
        except ModelRejected as error:
            return "", f"it took no such request: {error}"

    async def _answer(self, request: Request, spend: Spend) -> tuple[str, str]:
        said, chars = list[str](), 0
        async with aclosing(self._model.stream(request)) as events:
            async for event in events:
                match event:
                    case TextDelta(text=text) if (chars := chars + len(text)) <= ANSWER_MAX_CHARS:
                        said.append(text)
                    case TextDelta():
                        return "".join(said), "it was too long"
                    case Done(reason=reason, usage=used):
                        await spend(used)
                        return "".join(said), _ENDS.get(reason, "")
                    case _:
                        pass
        return "".join(said), "it did not come to its end"


def _taken(paper: Paper, answer: str) -> tuple[Findings | None, str]:
    """Return the findings of an answer, and the problem with it; empty if there is none."""
    try:
        found = paper.findings(answer)
    except NotTaken as error:
        return None, str(error)
    return found, "" if found.found or not found.unfounded else _UNFOUNDED


def _bounded(message: SpokenMessage, room: int) -> SpokenMessage:
    longest = PERSON_MAX_CHARS if message.role is Role.USER else ASSISTANT_MAX_CHARS
    return replace(message, text=shortened(message.text, min(longest, room // 2)))


def _cut(talk: Sequence[SpokenMessage], room: int) -> Iterator[Sequence[SpokenMessage]]:
    """Yield parts of whole turns that fit; a turn that is too long alone is split between messages."""
    part: list[SpokenMessage] = []
    left = room
    for _, of_turn in groupby(talk, key=lambda message: message.turn_id):
        turn = list(of_turn)
        whole = sum(map(_size, turn))
        for number, message in enumerate(turn):
            if part and (_size(message) > left or (not number and whole > left)):
                yield part
                part, left = [], room
            part.append(message)
            left -= _size(message)
    if part:
        yield part


def _size(message: SpokenMessage) -> int:
    return len(message.text) + _AROUND_CHARS
