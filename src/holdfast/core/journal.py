"""The journal: what happened, in the order it became durable.  Everything a user sees is a fold of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from holdfast.core import turns
from holdfast.ids import SessionId, TurnId

Data = Mapping[str, object]


class EntryKind(StrEnum):
    TURN_ACCEPTED = "turn.accepted"
    TURN_STARTED = "turn.started"
    TEXT = "text"
    REASONING = "reasoning"
    TOOL_STARTED = "tool.started"
    TOOL_FINISHED = "tool.finished"
    APPROVAL_ASKED = "approval.asked"
    APPROVAL_ANSWERED = "approval.answered"
    NOTE = "note"
    TURN_DEFERRED = "turn.deferred"
    USAGE = "usage"
    CONTEXT_COMPACTED = "context.compacted"
    MESSAGE_JOINED = "message.joined"
    TURN_COMPLETED = "turn.completed"
    TURN_FAILED = "turn.failed"
    TURN_CANCELLED = "turn.cancelled"
    TURN_INTERRUPTED = "turn.interrupted"
    TURN_RECOVERED = "turn.recovered"
    TURN_UNDONE = "turn.undone"


# The entry that records a turn's arrival in a settled state.
CLOSING: Mapping[turns.TurnState, EntryKind] = MappingProxyType(
    {
        turns.TurnState.COMPLETED: EntryKind.TURN_COMPLETED,
        turns.TurnState.FAILED: EntryKind.TURN_FAILED,
        turns.TurnState.CANCELLED: EntryKind.TURN_CANCELLED,
        turns.TurnState.INTERRUPTED: EntryKind.TURN_INTERRUPTED,
    }
)

# What an agent brings forth while it works: what is looked for after its worker is lost.
OUTPUT = frozenset({EntryKind.TEXT, EntryKind.REASONING, EntryKind.TOOL_STARTED, EntryKind.TOOL_FINISHED})

# The `recovery` of an interruption whose attempt may have left more than has arrived; `turn.recovered` ends the wait.
PENDING = "pending"

# What an agent has brought forth needs no permission to be kept on disk while the store is away, and may arrive late.  The
# intent to use a tool does: it must reach the store before the tool runs, because by now another node may own the turn.
LATE = frozenset({EntryKind.TEXT, EntryKind.REASONING, EntryKind.TOOL_FINISHED, EntryKind.USAGE})
# Of that, what a later attempt cannot have said itself.
_NEWS = frozenset({EntryKind.TOOL_FINISHED, EntryKind.USAGE})

# What comes in pieces.
_WORDS = frozenset({EntryKind.TEXT, EntryKind.REASONING})

# Kinds whose `text` the full-text search covers.
SEARCHED = frozenset({EntryKind.TURN_ACCEPTED, EntryKind.TURN_COMPLETED})


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftEntry:
    """An entry that is not durable yet and so must not be shown."""

    kind: EntryKind
    at: int
    data: Data = field(default_factory=dict[str, object])


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One durable entry.

    `seq` is gapless per session and is the cursor of every reader.  `nth` is gapless per attempt and set for what the
    worker itself wrote, so that an entry which arrives late still finds its place.
    """

    session_id: SessionId
    seq: int
    turn_id: TurnId
    attempt: int
    nth: int | None
    kind: EntryKind
    at: int
    data: Data


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch(Entry):
    """One entry, or a run of words that stands for several: those from `since` to `seq`.

    It has the number of its last one, so that a reader goes on behind it, and the time at which it began.
    """

    since: int


def takes_late(late: Entry, state: turns.TurnState, attempt: int) -> bool:
    """Return whether a turn, by its state and attempt, takes an entry of a worker that has lost it.

    A cancel is final: what was not in the journal before it is not shown after it.  What was spent is shown nowhere, and
    counts all the same.
    """
    if late.nth is None or late.kind not in LATE or late.attempt > attempt:
        return False
    if state is turns.TurnState.CANCELLED:
        return late.kind is EntryKind.USAGE
    if late.attempt < attempt:
        # The attempt that followed did not know the words, and says them itself.
        return late.kind in _NEWS
    # The worker of a live attempt writes by itself, and one that has ended its turn has left nothing out.
    return state in (turns.TurnState.QUEUED, turns.TurnState.INTERRUPTED)


def join(entries: Iterable[Entry]) -> list[Stretch]:
    """Return entries in `seq` order with each unbroken run of words as one: every fold of them is the same."""
    runs: list[list[Entry]] = []
    for entry in entries:
        if runs and _goes_on(runs[-1][-1], entry):
            runs[-1].append(entry)
        else:
            runs.append([entry])
    return [_stretch(run) for run in runs]


def _goes_on(before: Entry, entry: Entry) -> bool:
    """Return whether an entry holds the very next words of the same speech."""
    same = (entry.kind, entry.turn_id, entry.attempt) == (before.kind, before.turn_id, before.attempt)
    if not same or before.nth is None or (entry.seq, entry.nth) != (before.seq + 1, before.nth + 1):
        return False
    return _is_words(before) and _is_words(entry)


def _is_words(entry: Entry) -> bool:
    # What says more than its text, or could not be read, stands for itself.
    return entry.kind in _WORDS and len(entry.data) == 1 and isinstance(entry.data.get("text"), str)


def _stretch(run: list[Entry]) -> Stretch:
    first, last = run[0], run[-1]
    data = first.data if len(run) == 1 else {"text": "".join(str(each.data["text"]) for each in run)}
    return Stretch(
        session_id=first.session_id,
        seq=last.seq,
        turn_id=first.turn_id,
        attempt=first.attempt,
        nth=last.nth,
        kind=first.kind,
        at=first.at,
        data=data,
        since=first.seq,
    )
