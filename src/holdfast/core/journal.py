"""The journal: what happened, in the order it became durable.  Everything a user sees is a fold of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from holdfast.core import turns
from holdfast.ids import SessionId, TurnId

Data = Mapping[str, object]


class Kind(StrEnum):
    TURN_ACCEPTED = "turn.accepted"
    TURN_STARTED = "turn.started"
    TEXT = "text"
    REASONING = "reasoning"
    TOOL_STARTED = "tool.started"
    TOOL_FINISHED = "tool.finished"
    APPROVAL_ASKED = "approval.asked"
    APPROVAL_ANSWERED = "approval.answered"
    NOTE = "note"
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
CLOSING: Mapping[turns.State, Kind] = MappingProxyType(
    {
        turns.State.COMPLETED: Kind.TURN_COMPLETED,
        turns.State.FAILED: Kind.TURN_FAILED,
        turns.State.CANCELLED: Kind.TURN_CANCELLED,
        turns.State.INTERRUPTED: Kind.TURN_INTERRUPTED,
    }
)

# What an agent brings forth while it works: what is looked for after its worker is lost.
OUTPUT = frozenset({Kind.TEXT, Kind.REASONING, Kind.TOOL_STARTED, Kind.TOOL_FINISHED})

# The `recovery` of an interruption whose attempt may have left more than has arrived; `turn.recovered` ends the wait.
PENDING = "pending"

# Kinds whose `text` the full-text search covers.
SEARCHED = frozenset({Kind.TURN_ACCEPTED, Kind.TURN_COMPLETED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """An entry that is not durable yet and so must not be shown."""

    kind: Kind
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
    kind: Kind
    at: int
    data: Data
