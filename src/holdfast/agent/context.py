"""What a model reads of a conversation, made from its transcript alone, so that any attempt can begin with it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, takewhile

import msgspec

from holdfast.agent.models.port import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from holdfast.agent.steps import STEP, step_of
from holdfast.agent.toolbox import shortened
from holdfast.core import effects
from holdfast.core.effects import Call
from holdfast.core.intake import Image, Speaker
from holdfast.core.transcript import COMPACTED, Item, Role
from holdfast.ids import CallId, TurnId
from holdfast.ports import Assignment

CONTINUE = (
    "[Note of the gateway: your answer was cut off at this point, and the person has seen what stands above. Go on exactly "
    "where it stops: do not repeat anything, do not mention the interruption.]"
)
UNKNOWN = (
    "Nobody knows what became of this call: it was cut off after it had started. It may have taken effect or not, and it "
    "was not run again. Do not assume either; find out first if that matters."
)
SUMMARY = "[Summary of the conversation before this point, made to save space. The exact words are in the transcript.]"

# A result of an older step, where space is short.
OLD_RESULT_MAX_CHARS = 1_000
# What the last steps have brought is what the model is working with.
STEPS_KEPT = 3

# What every vendor takes as the id of a call.
_NOT_IN_AN_ID = re.compile(r"[^a-zA-Z0-9_-]")
_TURN_TAIL = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """A conversation as a model reads it: `older` turns, then the `current` one, as far as it has come.

    `said` is what the current turn has told the person, one text per step; the last may be cut off in its middle.
    """

    older: Sequence[Message]
    current: Sequence[Message]
    said: Sequence[str] = ()

    @property
    def is_cut(self) -> bool:
        """Whether the last step stopped in the middle of its words."""
        return bool(self.current) and isinstance(self.current[-1], AssistantMessage)


def wire_id(turn_id: TurnId, call: str | None) -> str:
    """Return the id of a call in what a model reads, where the calls of all turns stand together."""
    return _NOT_IN_AN_ID.sub("-", f"{turn_id[-_TURN_TAIL:]}_{call}")


def last_step(work: Assignment) -> int:
    """Return the number of the last step that made calls in this turn, in whichever attempt; 0 where none did."""
    known = [*(call.id for call in work.calls), *(item.call_id for item in work.history if item.turn_id == work.turn.id)]
    return max((step_of(each) or 0 for each in known), default=0)


def _number(id_: str) -> int:
    found = re.search(r"s\d+_c(\d+)\Z", id_)
    return int(found[1]) if found else 0


def in_order(calls: Iterable[Call]) -> list[Call]:
    """Return calls in the order in which the model asked for them."""

    def place(call: Call) -> tuple[int, ...]:
        found = STEP.fullmatch(call.id)
        return (int(found[1]), int(found[2])) if found else (0, 0)

    return sorted(calls, key=place)


def rebuilt(work: Assignment, calls: Sequence[Call], history: Sequence[Item] | None = None) -> Context:
    """Return what the model reads.  `calls` are those of this turn as they are now, `history` a shorter one than all."""
    summary, items = _parted(work.history if history is None else history)
    older: list[Message] = [UserMessage(text=f"{SUMMARY}\n\n{summary}")] if summary else []
    notes = ""
    current = _Turn(work.turn.id)
    for turn_id, of_turn in groupby(items, key=lambda item: item.turn_id):
        if turn_id == work.turn.id:
            _read(of_turn, current, {call.id: call for call in calls}, notes, work.images, work.message)
            # Items below were accepted later, and do not belong to this turn.
            break
        turn = _Turn(turn_id)
        notes = _read(of_turn, turn, {}, notes, work.earlier_images.get(turn_id, ()))
        older += turn.messages()
    else:
        current.hear(f"{notes}{work.message}", work.images)
    for call in in_order(calls):
        current.call(step_of(call.id), _requested(work.turn.id, call), outcome(call))
    return Context(older=older, current=current.messages(), said=current.said())


def turns_before(work: Assignment, history: Sequence[Item]) -> list[TurnId]:
    """Return the turns that stand whole before the current one, in their order."""
    _, items = _parted(history)
    return list(takewhile(lambda turn_id: turn_id != work.turn.id, dict.fromkeys(item.turn_id for item in items)))


def _parted(history: Sequence[Item]) -> tuple[str, Sequence[Item]]:
    """Return the summary that a history begins with, whichever turn it was made in, and the rest."""
    if history and history[0].kind == COMPACTED:
        return history[0].text, history[1:]
    return "", history


def thrifty(messages: Sequence[Message]) -> list[Message]:
    """Return messages with the results of older steps cut short; the last steps stay whole."""
    steps = [index for index, each in enumerate(messages) if isinstance(each, AssistantMessage) and each.calls]
    kept_from = steps[-STEPS_KEPT] if len(steps) >= STEPS_KEPT else 0
    return [
        replace(each, text=shortened(each.text, OLD_RESULT_MAX_CHARS))
        if isinstance(each, ToolMessage) and index < kept_from
        else each
        for index, each in enumerate(messages)
    ]


def without(history: Sequence[Item], through: TurnId, summary: str) -> list[Item]:
    """Return a history in which a summary stands for every turn up to and with one."""
    last = max(index for index, item in enumerate(history) if item.turn_id == through)
    return [Item(role=Role.NOTE, turn_id=through, at=history[last].at, kind=COMPACTED, text=summary), *history[last + 1 :]]


def as_text(history: Iterable[Item], result_max_chars: int = OLD_RESULT_MAX_CHARS) -> str:
    """Return turns as plain text, for a model that is to summarise them."""
    return "\n\n".join(line for item in history if (line := _line(item, result_max_chars)))


# What a client told the model for one turn is no part of what was said.
_VOICES: Mapping[str, str] = {Speaker.USER: "Person", Speaker.ASSISTANT: "Assistant"}


def _line(item: Item, result_max_chars: int) -> str:
    match item.role:
        case Role.PRIOR:
            voice = _VOICES.get(item.kind or "")
            return f"{voice}: {item.text}" if voice else ""
        case Role.USER:
            return f"Person: {item.text}"
        case Role.ASSISTANT:
            return f"Assistant: {item.text}"
        case Role.TOOL:
            result = shortened(_outcome(item.outcome, item.result), result_max_chars)
            return f"Tool {item.name} {shortened(_json(item.args), result_max_chars)}: {result}"
        case Role.QUESTION | Role.MARKER:
            return f"({item.text})"
        case Role.NOTE:
            return f"Earlier summary: {item.text}" if item.kind == COMPACTED else ""
        case Role.REASONING:
            return ""


@dataclass(slots=True)
class _Step:
    """What a model said at once: words, and the calls it asked for."""

    text: list[str] = field(default_factory=list[str])
    calls: dict[str, tuple[ToolCall, str]] = field(default_factory=dict[str, tuple[ToolCall, str]])

    def messages(self) -> list[Message]:
        text = "".join(self.text)
        if not text and not self.calls:
            return []
        # In the order in which they were asked for, whichever was started or decided first.
        made = sorted(self.calls.values(), key=lambda each: _number(each[0].id))
        results = [ToolMessage(call_id=call.id, text=result) for call, result in made]
        return [AssistantMessage(text=text, calls=[call for call, _ in made]), *results]


class _Turn:
    """One turn on its way to what a model reads: what was heard, and the steps between."""

    def __init__(self, turn_id: TurnId) -> None:
        self.id = turn_id
        self._parts: list[UserMessage | AssistantMessage | _Step] = []
        # A step is found again by its number: its calls may have been made in several attempts.
        self._steps: dict[int, _Step] = {}

    def hear(self, text: str, images: Sequence[Image] = ()) -> None:
        self._parts.append(UserMessage(text=text, images=images))

    def recall(self, item: Item) -> None:
        """Put what a client says was said before in its place; none of it belongs to this turn."""
        match item.kind:
            case Speaker.USER:
                self.hear(item.text)
            case Speaker.ASSISTANT:
                self._parts.append(AssistantMessage(text=item.text))
            case _:
                # What the model is told for one turn stands in the system prompt of that turn.
                pass

    def say(self, text: str) -> None:
        step = self._parts[-1] if self._parts else None
        if not isinstance(step, _Step) or step.calls:
            self._parts.append(step := _Step())
        step.text.append(text)

    def call(self, number: int | None, call: ToolCall, result: str) -> None:
        step = self._steps.get(number) if number is not None else None
        if step is None:
            step = self._begun(number)
        step.calls[call.id] = (call, result)

    def _begun(self, number: int | None) -> _Step:
        """Return the step that a call begins; without a number, calls that follow each other belong together."""
        last = self._parts[-1] if self._parts else None
        if isinstance(last, _Step) and (not last.calls or number is None):
            step = last
        else:
            self._parts.append(step := _Step())
        if number is not None:
            self._steps[number] = step
        return step

    def messages(self) -> list[Message]:
        found: list[Message] = []
        for part in self._parts:
            found += part.messages() if isinstance(part, _Step) else [part]
        return found

    def said(self) -> list[str]:
        return [text for part in self._parts if isinstance(part, _Step) and (text := "".join(part.text))]


def _read(
    items: Iterable[Item],
    turn: _Turn,
    calls: Mapping[CallId, Call],
    notes: str,
    images: Sequence[Image],
    message: str | None = None,
) -> str:
    """Put the items of one turn in their place; returns what the model should be told before the next message.

    `message` stands for the words that opened the turn, where they are to be read with a note.
    """
    left = ""
    for item in items:
        match item.role:
            case Role.PRIOR:
                turn.recall(item)
            case Role.USER if item.kind == "joined":
                turn.hear(item.text)
            case Role.USER:
                turn.hear(notes + (item.text if message is None else message), images)
                notes = ""
            case Role.ASSISTANT:
                turn.say(item.text)
            case Role.TOOL:
                _read_call(item, turn, calls)
            case Role.MARKER if item.kind != "interrupted":
                left += f"[Note of the gateway about the turn above: {item.text}]\n\n"
            case _:
                # Reasoning is for people; an interruption is named once, before the message that follows it.
                pass
    return notes + left


def _read_call(item: Item, turn: _Turn, calls: Mapping[CallId, Call]) -> None:
    known = calls.get(CallId(item.call_id or ""))
    if known is not None:
        turn.call(step_of(item.call_id), _requested(turn.id, known), _outcome(known.state, known.result))
        return
    call = ToolCall(id=wire_id(turn.id, item.call_id), name=item.name or "", args=_json(item.args))
    turn.call(step_of(item.call_id), call, _outcome(item.outcome, item.result))


def _requested(turn_id: TurnId, call: Call) -> ToolCall:
    return ToolCall(id=wire_id(turn_id, call.id), name=call.name, args=call.args)


def _outcome(state: str | None, result: str | None) -> str:
    match state:
        case effects.CallState.OK:
            return result or ""
        case effects.CallState.ERROR:
            return f"Error: {result or 'it failed'}"
        case _:
            return f"{UNKNOWN} {result}" if result else UNKNOWN


def outcome(call: Call) -> str:
    """Return what a model reads of a call that has ended."""
    return _outcome(call.state, call.result)


def _json(args: object) -> str:
    return msgspec.json.encode(args if args is not None else {}).decode()


def joined(messages: Iterable[Message]) -> list[Message]:
    """Return messages in which no two of a person follow each other: not every vendor takes that."""
    found: list[Message] = []
    for each in messages:
        if found and isinstance(each, UserMessage) and isinstance(last := found[-1], UserMessage):
            found[-1] = UserMessage(text=f"{last.text}\n\n{each.text}", images=[*last.images, *each.images])
        else:
            found.append(each)
    return found
