"""The fold from journal to transcript: what a person reads, from what happened."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import takewhile
from typing import assert_never

from holdfast.core import notes
from holdfast.core.journal import CLOSING, Data, Entry, Kind
from holdfast.ids import TurnId


class Role(StrEnum):
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
    closed: set[tuple[TurnId, int]] = set()
    for entry in entries:
        placed, attempt = turns.setdefault(entry.turn_id, []), (entry.turn_id, entry.attempt)
        if entry.kind in _CLOSING_KINDS:
            closed.add(attempt)
        elif entry.nth is not None and attempt in closed:
            _put_back(placed, entry, entry.nth)
            continue
        placed.append(entry)
    return [item for placed in turns.values() for item in _items(placed)]


_CLOSING_KINDS = frozenset(CLOSING.values())


def _put_back(placed: list[Entry], entry: Entry, nth: int) -> None:
    for index in range(len(placed) - 1, -1, -1):
        other = placed[index]
        if other.nth is not None and (other.attempt, other.nth) < (entry.attempt, nth):
            placed.insert(index + 1, entry)
            return
    # With no earlier entry of its own the place is right below the acceptance, which opens every turn.
    placed.insert(1, entry)


def _items(placed: list[Entry]) -> list[Item]:
    lost = {entry.attempt for entry in placed if entry.kind is Kind.TURN_INTERRUPTED}
    items: list[Item] = []
    # The pieces of each item's text: a long answer arrives in very many.
    pieces: list[list[str]] = []
    attempt_of_last = 0
    for entry in placed:
        item = _item(entry, recovered=entry.attempt in lost)
        if item is None:
            continue
        if item.role is Role.TOOL and entry.kind is Kind.TOOL_FINISHED and _finish_tool(items, item):
            continue
        if items and _continues(items[-1], item) and attempt_of_last == entry.attempt:
            pieces[-1].append(item.text)
            continue
        items.append(item)
        pieces.append([item.text])
        attempt_of_last = entry.attempt
    return [replace(item, text="".join(texts)) for item, texts in zip(items, pieces, strict=True)]


def _continues(last: Item, item: Item) -> bool:
    return last.role is item.role and item.role in (Role.ASSISTANT, Role.REASONING)


def _finish_tool(items: list[Item], finished: Item) -> bool:
    for index in range(len(items) - 1, -1, -1):
        card = items[index]
        if card.call_id == finished.call_id and card.outcome is None:
            items[index] = replace(card, result=finished.result, outcome=finished.outcome)
            return True
    return False


def _text(data: Data, key: str = "text") -> str:
    value = data.get(key, "")
    return value if isinstance(value, str) else ""


def _item(entry: Entry, *, recovered: bool) -> Item | None:
    data = entry.data
    plain = Item(role=Role.NOTE, turn_id=entry.turn_id, at=entry.at, text=_text(data), recovered=recovered)
    match entry.kind:
        case Kind.TURN_ACCEPTED:
            return replace(plain, role=Role.USER, recovered=False)
        case Kind.TEXT:
            return replace(plain, role=Role.ASSISTANT)
        case Kind.REASONING:
            return replace(plain, role=Role.REASONING)
        case Kind.TOOL_STARTED:
            name, call_id = _text(data, "name"), _text(data, "call_id")
            return replace(plain, role=Role.TOOL, name=name, call_id=call_id, args=data.get("args"))
        case Kind.TOOL_FINISHED:
            result = data.get("result")
            return replace(
                plain,
                role=Role.TOOL,
                name=_text(data, "name"),
                call_id=_text(data, "call_id"),
                result=result if isinstance(result, str) else None,
                outcome=_text(data, "outcome"),
            )
        case Kind.APPROVAL_ASKED:
            return replace(plain, role=Role.QUESTION, kind="asked")
        case Kind.APPROVAL_ANSWERED:
            return replace(plain, role=Role.QUESTION, kind="answered")
        case Kind.NOTE:
            return plain
        case Kind.TURN_FAILED:
            return replace(plain, role=Role.MARKER, kind="failed", text=notes.failed(_text(data, "error")), recovered=False)
        case Kind.TURN_CANCELLED:
            text = notes.cancelled(_text(data, "cause"))
            return replace(plain, role=Role.MARKER, kind="cancelled", text=text, recovered=False)
        case Kind.TURN_INTERRUPTED:
            text = notes.interrupted(_text(data, "cause"))
            return replace(plain, role=Role.MARKER, kind="interrupted", text=text, recovered=False)
        case Kind.TURN_STARTED | Kind.TURN_COMPLETED:
            return None
        case _:
            assert_never(entry.kind)


def cut_off_by(entries: Sequence[Entry]) -> str | None:
    """Return the cause of the interruption that the next words of a turn follow, if they follow one.

    That is the turn's own last interruption when it goes on, or that of the turn before it.
    """
    latest: Entry | None = None
    for entry in entries:
        if entry.kind in _CLOSING_KINDS:
            latest = entry
    if latest is None or latest.kind is not Kind.TURN_INTERRUPTED:
        return None
    return _text(latest.data, "cause")


def tool_unanswered(items: Sequence[Item], turn_id: TurnId) -> bool:
    """Return whether the transcript before a turn ends in a tool result that no text follows."""
    earlier = takewhile(lambda item: item.turn_id != turn_id, items)
    said = [item for item in earlier if item.role not in (Role.MARKER, Role.NOTE)]
    return bool(said) and said[-1].role is Role.TOOL and said[-1].outcome is not None
