"""The fold from journal to transcript: what a person reads, from what happened."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import takewhile
from typing import TypeVar, assert_never, cast

from msgspec import UNSET, UnsetType

from holdfast.core import effects, notes
from holdfast.core.events import (
    PENDING,
    ApprovalAnswered,
    ApprovalAsked,
    ContextCompacted,
    Event,
    MessageJoined,
    Note,
    Reasoning,
    Text,
    TokensUsed,
    ToolFinished,
    ToolStarted,
    TurnAccepted,
    TurnCancelled,
    TurnCompleted,
    TurnDeferred,
    TurnFailed,
    TurnInterrupted,
    TurnRecovered,
    TurnRevised,
    TurnStarted,
    TurnUndone,
    UnknownEvent,
)
from holdfast.core.intake import Speaker
from holdfast.core.journal import ENDS, OUTPUT, WORDS, Entry, ends_attempt
from holdfast.core.notes import Recovery
from holdfast.ids import TurnId

T = TypeVar("T")

# The kind of the note that a summary is.
COMPACTED = "compacted"
# The names of the argument that says most about a call, for every tool.
_TELLING = ("command", "path", "url", "query", "pattern", "goal", "question", "text", "prompt", "action", "name")


class Role(StrEnum):
    """Whose an item is.  What a client says was said before its message is `PRIOR`; its kind is who said it."""

    PRIOR = "prior"
    USER = "user"
    ASSISTANT = "assistant"
    REASONING = "reasoning"
    TOOL = "tool"
    QUESTION = "question"
    NOTE = "note"
    MARKER = "marker"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One thing in a transcript.  `recovered` marks what was shown by an attempt that never came to its end."""

    role: Role
    turn_id: TurnId
    at: int
    text: str = ""
    recovered: bool = False
    kind: str | None = None
    call_id: str | None = None
    name: str | None = None
    args: object = None
    result: str | None = None
    outcome: str | None = None


def fold(entries: Iterable[Entry]) -> list[Item]:
    """Return the transcript of one session from its entries in `seq` order.

    Turns stand in the order of their acceptance.  An entry that arrives after its attempt was interrupted is put back
    where it was written, above the interruption marker.
    """
    turns: dict[TurnId, list[Entry]] = {}
    late: dict[TurnId, list[Entry]] = {}
    closed: set[tuple[TurnId, int]] = set()
    for entry in entries:
        placed, attempt = turns.setdefault(entry.turn_id, []), (entry.turn_id, entry.attempt)
        if isinstance(entry.event, ENDS):
            closed.add(attempt)
        elif entry.nth is not None and attempt in closed:
            late.setdefault(entry.turn_id, []).append(entry)
            continue
        placed.append(entry)
    for turn_id, entries_of_turn in late.items():
        turns[turn_id] = _put_back(turns[turn_id], entries_of_turn)
    return [item for placed in turns.values() if not _left_out(placed) for item in _items(placed)]


def _left_out(placed: Sequence[Entry]) -> bool:
    """Return whether a turn shows nothing of its own: it was undone, or its message joined another turn and stands there."""
    ends = (entry.event for entry in placed if isinstance(entry.event, _LEAVING))
    return any(isinstance(event, TurnUndone) or event.joined for event in ends)


# Only these can say that a turn shows nothing of its own.
_LEAVING = (TurnUndone, TurnCompleted)


def _put_back(placed: list[Entry], late: list[Entry]) -> list[Entry]:
    """Return the entries of a turn with each late one below the last that its worker had written before it."""
    written = [(entry.attempt, entry.nth, index) for index, entry in enumerate(placed) if entry.nth is not None]
    below: dict[int, list[Entry]] = {}
    for entry in sorted(late, key=lambda each: (each.attempt, each.nth or 0)):
        before = bisect_left(written, (entry.attempt, entry.nth or 0, 0))
        # With no earlier entry of its own the place is right below the acceptance, which opens every turn.
        below.setdefault(written[before - 1][2] if before else 0, []).append(entry)
    return [each for index, entry in enumerate(placed) for each in (entry, *below.get(index, ()))]


def _items(placed: list[Entry]) -> list[Item]:
    lost = _recoveries(placed)
    items: list[Item] = []
    # The pieces of each item's text: a long answer arrives in very many.
    pieces: list[list[str]] = []
    # Where the cards of each call are.
    cards: dict[str | None, list[int]] = {}
    attempt_of_last = 0
    for entry in placed:
        event = entry.event
        if isinstance(event, WORDS):
            if items and _SPOKEN[type(event)] is items[-1].role and attempt_of_last == entry.attempt:
                pieces[-1].append(event.text)
                continue
        elif isinstance(event, _SILENT):
            continue
        elif isinstance(event, TurnRevised):
            _revise(items, pieces, event.text)
            continue
        item = _item(entry, lost.get(entry.attempt))
        if item is None:
            continue
        if isinstance(event, TurnAccepted):
            before = _said_before(entry, event)
            items += before
            pieces += [[each.text] for each in before]
        if isinstance(event, ToolFinished) and _finish_tool(items, cards.get(item.call_id, []), item):
            continue
        if item.role is Role.TOOL:
            cards.setdefault(item.call_id, []).append(len(items))
        items.append(item)
        pieces.append([item.text])
        attempt_of_last = entry.attempt
    return [
        replace(item, text="".join(texts)) if len(texts) > 1 else item for item, texts in zip(items, pieces, strict=True)
    ]


def _revise(items: list[Item], pieces: list[list[str]], text: str) -> None:
    """Let the message of a turn say something else."""
    for index, item in enumerate(items):
        if item.role is Role.USER and item.kind is None:
            items[index], pieces[index] = replace(item, text=text), [text]
            return


def _said_before(entry: Entry, accepted: TurnAccepted) -> list[Item]:
    return [
        Item(role=Role.PRIOR, turn_id=entry.turn_id, at=entry.at, text=each.text, kind=each.speaker)
        for each in accepted.said_before
    ]


def instructions(items: Iterable[Item], turn_id: TurnId) -> list[str]:
    """Return what a client tells the model for one turn alone."""
    return [
        item.text for item in items if item.turn_id == turn_id and item.role is Role.PRIOR and item.kind == Speaker.SYSTEM
    ]


def main_argument(args: object) -> str:
    """Return the argument that says what a call is about."""
    if not isinstance(args, Mapping):
        return ""
    given = cast("Mapping[str, object]", args)
    for key in (*_TELLING, *given):
        if isinstance(value := given.get(key), str | int | float) and not isinstance(value, bool) and value != "":
            return str(value)
        if isinstance(value, list) and value:
            return ", ".join(map(str, cast("list[object]", value)))
    return ""


def _recoveries(placed: Sequence[Entry]) -> dict[int, Recovery]:
    """Return how much was found of each attempt that was interrupted."""
    lost = [(entry.attempt, entry.event) for entry in placed if isinstance(entry.event, TurnInterrupted)]
    if not lost:
        return {}
    resolved = {entry.attempt for entry in placed if isinstance(entry.event, TurnRecovered)}
    shown = {entry.attempt for entry in placed if isinstance(entry.event, OUTPUT)}
    found: dict[int, Recovery] = {}
    for attempt, event in lost:
        if attempt not in resolved and event.recovery == PENDING:
            found[attempt] = Recovery.PENDING
        else:
            found[attempt] = Recovery.OUTPUT if attempt in shown else Recovery.NOTHING
    return found


# What comes in pieces that belong together.
_SPOKEN = {Text: Role.ASSISTANT, Reasoning: Role.REASONING}
# What shows nothing: most entries of a long conversation, so they are passed over before anything is made of them.
_SILENT = (TokensUsed, TurnStarted, TurnDeferred, TurnCompleted, TurnRecovered, TurnUndone)


def _finish_tool(items: list[Item], cards: list[int], finished: Item) -> bool:
    for index in reversed(cards):
        card = items[index]
        if card.outcome is None:
            items[index] = replace(card, result=finished.result, outcome=finished.outcome)
            return True
        if finished.outcome == effects.CallState.UNKNOWN:
            return True  # The result arrived late, and is put back above the entry that says it is unknown.
    return False


def _item(entry: Entry, recovery: Recovery | None) -> Item | None:
    """Return what one entry shows; `recovery` is None unless its attempt was interrupted."""
    shown = _shown(entry, entry.event, recovery)
    # What no attempt brought forth, none can have left behind.
    lasts = isinstance(entry.event, TurnAccepted | MessageJoined | ContextCompacted) or ends_attempt(entry.event)
    return replace(shown, recovered=True) if shown and recovery is not None and not lasts else shown


def _shown(entry: Entry, event: Event, recovery: Recovery | None) -> Item | None:  # noqa: C901 - One case for each type of event.
    def item(role: Role, text: str = "", kind: str | None = None) -> Item:
        return Item(role=role, turn_id=entry.turn_id, at=entry.at, text=text, kind=kind)

    match event:
        case Text(text=text) | Reasoning(text=text):
            return item(_SPOKEN[type(event)], text)
        case TurnAccepted(text=text):
            return item(Role.USER, text)
        case MessageJoined(text=text):
            return item(Role.USER, text, "joined")
        case ToolStarted(call_id=call_id, name=name, args=args):
            return replace(item(Role.TOOL), call_id=call_id, name=name, args=args)
        case ToolFinished(call_id=call_id, name=name, outcome=outcome):
            finished = replace(item(Role.TOOL), call_id=call_id, name=name, outcome=outcome)
            return replace(finished, args=_present(event.args), result=_present(event.result))
        case ApprovalAsked(text=text):
            return item(Role.QUESTION, text, "asked")
        case ApprovalAnswered(text=text):
            return item(Role.QUESTION, text, "answered")
        case Note(text=text):
            return item(Role.NOTE, text)
        case UnknownEvent():
            # A newer version wrote it.  Shown as a note, so that nothing that was said is missing.
            return item(Role.NOTE, event.text)
        case ContextCompacted(text=text, through=through):
            return replace(item(Role.NOTE, text, COMPACTED), args={"through": through})
        case TurnFailed(error=error):
            return item(Role.MARKER, notes.failed(error), "failed")
        case TurnCancelled(cause=cause):
            return item(Role.MARKER, notes.cancelled(cause), "cancelled")
        case TurnInterrupted(cause=cause, error=error):
            marker = notes.interrupted(cause, recovery or Recovery.NOTHING, error)
            return item(Role.MARKER, marker, "interrupted")
        case TurnStarted() | TurnDeferred() | TurnCompleted() | TurnRecovered() | TurnUndone() | TokensUsed():
            return None
        case TurnRevised():
            return None
        case _:
            assert_never(event)


def _present(value: T | UnsetType) -> T | None:
    """Return a field of an event; None if it was left out."""
    return None if value is UNSET else value


def cut_off_by(entries: Sequence[Entry]) -> str | None:
    """Return the cause of the last interruption that stands in the transcript and no completed turn has followed yet."""
    undone = {entry.turn_id for entry in entries if isinstance(entry.event, TurnUndone)}
    cause: str | None = None
    for entry in entries:
        if isinstance(entry.event, TurnInterrupted) and entry.turn_id not in undone:
            cause = entry.event.cause
        elif isinstance(entry.event, TurnCompleted) and not entry.event.joined:
            cause = None
    return cause


def tool_unanswered(items: Sequence[Item], turn_id: TurnId) -> bool:
    """Return whether the transcript before a turn ends in a tool result that no text follows."""
    earlier = takewhile(lambda item: item.turn_id != turn_id, items)
    said = [item for item in earlier if item.role not in (Role.MARKER, Role.NOTE)]
    return bool(said) and said[-1].role is Role.TOOL and said[-1].outcome is not None
