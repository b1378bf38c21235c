"""The fold from journal to transcript: what a person reads, from what happened."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import takewhile
from typing import assert_never, cast

from holdfast.core import effects, notes
from holdfast.core.intake import Speaker, prior_in
from holdfast.core.journal import CLOSING, OUTPUT, PENDING, Data, Entry, EntryKind
from holdfast.core.notes import Recovery
from holdfast.ids import TurnId

# The kind of the note that a summary is.
COMPACTED = "compacted"
# The argument that says most about a call, whatever the tool.
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
        if entry.kind in _CLOSING_KINDS:
            closed.add(attempt)
        elif entry.nth is not None and attempt in closed:
            late.setdefault(entry.turn_id, []).append(entry)
            continue
        placed.append(entry)
    for turn_id, entries_of_turn in late.items():
        turns[turn_id] = _put_back(turns[turn_id], entries_of_turn)
    return [item for placed in turns.values() if not _left_out(placed) for item in _items(placed)]


_CLOSING_KINDS = frozenset(CLOSING.values())


def _left_out(placed: Sequence[Entry]) -> bool:
    """Return whether a turn shows nothing of its own: it was undone, or its message joined another turn and stands there."""
    return any(
        entry.kind is EntryKind.TURN_UNDONE or (entry.kind is EntryKind.TURN_COMPLETED and "joined" in entry.data)
        for entry in placed
    )


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
        if entry.kind in _SILENT:
            continue
        if items and _SPOKEN.get(entry.kind) is items[-1].role and attempt_of_last == entry.attempt:
            pieces[-1].append(_text(entry.data))
            continue
        item = _item(entry, lost.get(entry.attempt))
        if item is None:
            continue
        if entry.kind is EntryKind.TURN_ACCEPTED:
            before = _said_before(entry)
            items += before
            pieces += [[each.text] for each in before]
        if entry.kind is EntryKind.TOOL_FINISHED and _finish_tool(items, cards.get(item.call_id, []), item):
            continue
        if item.role is Role.TOOL:
            cards.setdefault(item.call_id, []).append(len(items))
        items.append(item)
        pieces.append([item.text])
        attempt_of_last = entry.attempt
    return [
        replace(item, text="".join(texts)) if len(texts) > 1 else item for item, texts in zip(items, pieces, strict=True)
    ]


def _said_before(accepted: Entry) -> list[Item]:
    return [
        Item(role=Role.PRIOR, turn_id=accepted.turn_id, at=accepted.at, text=each.text, kind=each.speaker)
        for each in prior_in(accepted.data)
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
    resolved = {entry.attempt for entry in placed if entry.kind is EntryKind.TURN_RECOVERED}
    shown = {entry.attempt for entry in placed if entry.kind in OUTPUT}
    found: dict[int, Recovery] = {}
    for entry in placed:
        if entry.kind is not EntryKind.TURN_INTERRUPTED:
            continue
        if entry.attempt not in resolved and entry.data.get("recovery") == PENDING:
            found[entry.attempt] = Recovery.PENDING
        else:
            found[entry.attempt] = Recovery.OUTPUT if entry.attempt in shown else Recovery.NOTHING
    return found


# What comes in pieces that belong together.
_SPOKEN = {EntryKind.TEXT: Role.ASSISTANT, EntryKind.REASONING: Role.REASONING}
# What shows nothing: most entries of a long conversation, so they are passed over before anything is made of them.
_SILENT = frozenset(
    {
        EntryKind.TURN_STARTED,
        EntryKind.TURN_DEFERRED,
        EntryKind.TURN_COMPLETED,
        EntryKind.TURN_RECOVERED,
        EntryKind.TURN_UNDONE,
        EntryKind.USAGE,
    }
)
_ROLES = {
    **_SPOKEN,
    EntryKind.TURN_ACCEPTED: Role.USER,
    EntryKind.MESSAGE_JOINED: Role.USER,
    EntryKind.TOOL_STARTED: Role.TOOL,
    EntryKind.TOOL_FINISHED: Role.TOOL,
    EntryKind.APPROVAL_ASKED: Role.QUESTION,
    EntryKind.APPROVAL_ANSWERED: Role.QUESTION,
    EntryKind.TURN_FAILED: Role.MARKER,
    EntryKind.TURN_CANCELLED: Role.MARKER,
    EntryKind.TURN_INTERRUPTED: Role.MARKER,
}
# What no attempt brought forth, so none can have left it behind.
_LASTING = frozenset({EntryKind.TURN_ACCEPTED, EntryKind.MESSAGE_JOINED, EntryKind.CONTEXT_COMPACTED, *CLOSING.values()})


def _finish_tool(items: list[Item], cards: list[int], finished: Item) -> bool:
    for index in reversed(cards):
        card = items[index]
        if card.outcome is None:
            items[index] = replace(card, result=finished.result, outcome=finished.outcome)
            return True
        if finished.outcome == effects.CallState.UNKNOWN:
            return True  # The result arrived late, and is put back above the entry that says nobody knows it.
    return False


def _text(data: Data, key: str = "text") -> str:
    value = data.get(key, "")
    return value if isinstance(value, str) else ""


def _item(entry: Entry, recovery: Recovery | None) -> Item | None:
    """Return what one entry shows; `recovery` is None unless its attempt was interrupted."""
    data = entry.data
    plain = Item(
        role=_ROLES.get(entry.kind, Role.NOTE),
        turn_id=entry.turn_id,
        at=entry.at,
        text=_text(data),
        recovered=recovery is not None and entry.kind not in _LASTING,
    )
    match entry.kind:
        case EntryKind.TURN_ACCEPTED | EntryKind.TEXT | EntryKind.REASONING | EntryKind.NOTE:
            return plain
        case EntryKind.MESSAGE_JOINED:
            return replace(plain, kind="joined")
        case EntryKind.TOOL_STARTED:
            name, call_id = _text(data, "name"), _text(data, "call_id")
            return replace(plain, name=name, call_id=call_id, args=data.get("args"))
        case EntryKind.TOOL_FINISHED:
            result = data.get("result")
            return replace(
                plain,
                name=_text(data, "name"),
                call_id=_text(data, "call_id"),
                args=data.get("args"),
                result=result if isinstance(result, str) else None,
                outcome=_text(data, "outcome"),
            )
        case EntryKind.APPROVAL_ASKED:
            return replace(plain, kind="asked")
        case EntryKind.APPROVAL_ANSWERED:
            return replace(plain, kind="answered")
        case EntryKind.CONTEXT_COMPACTED:
            return replace(plain, kind=COMPACTED, args={"through": _text(data, "through")})
        case EntryKind.TURN_FAILED | EntryKind.TURN_CANCELLED | EntryKind.TURN_INTERRUPTED:
            kind = entry.kind.partition(".")[2]
            return replace(plain, kind=kind, text=_marker(entry, recovery))
        case (
            EntryKind.TURN_STARTED
            | EntryKind.TURN_DEFERRED
            | EntryKind.TURN_COMPLETED
            | EntryKind.TURN_RECOVERED
            | EntryKind.TURN_UNDONE
            | EntryKind.USAGE
        ):
            return None
        case _:
            assert_never(entry.kind)


def _marker(entry: Entry, recovery: Recovery | None) -> str:
    """Return what stands at the end of a turn that was not answered."""
    if entry.kind is EntryKind.TURN_FAILED:
        return notes.failed(_text(entry.data, "error"))
    if entry.kind is EntryKind.TURN_CANCELLED:
        return notes.cancelled(_text(entry.data, "cause"))
    return notes.interrupted(_text(entry.data, "cause"), recovery or Recovery.NOTHING, _text(entry.data, "error"))


def cut_off_by(entries: Sequence[Entry]) -> str | None:
    """Return the cause of the last interruption that stands in the transcript and no completed turn has followed yet."""
    undone = {entry.turn_id for entry in entries if entry.kind is EntryKind.TURN_UNDONE}
    cause: str | None = None
    for entry in entries:
        if entry.kind is EntryKind.TURN_INTERRUPTED and entry.turn_id not in undone:
            cause = _text(entry.data, "cause")
        elif entry.kind is EntryKind.TURN_COMPLETED and "joined" not in entry.data:
            cause = None
    return cause


def tool_unanswered(items: Sequence[Item], turn_id: TurnId) -> bool:
    """Return whether the transcript before a turn ends in a tool result that no text follows."""
    earlier = takewhile(lambda item: item.turn_id != turn_id, items)
    said = [item for item in earlier if item.role not in (Role.MARKER, Role.NOTE)]
    return bool(said) and said[-1].role is Role.TOOL and said[-1].outcome is not None
