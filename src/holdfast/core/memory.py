"""A memory segment is a debt: completed turns of one session that their owner has yet to commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Self

from holdfast.core.moves import move
from holdfast.ids import SegmentId, SessionId


class State(StrEnum):
    OPEN = "open"
    SEALED = "sealed"
    COMMITTING = "committing"
    COMMITTED = "committed"


class Event(StrEnum):
    SEAL = "seal"
    COMMIT = "commit"
    SUCCEED = "succeed"
    FAIL = "fail"


# A crash while committing is a failed commit: the provider gets the same segment id again.
MOVES: Mapping[tuple[State, Event], State] = MappingProxyType(
    {
        (State.OPEN, Event.SEAL): State.SEALED,
        (State.SEALED, Event.COMMIT): State.COMMITTING,
        (State.COMMITTING, Event.SUCCEED): State.COMMITTED,
        (State.COMMITTING, Event.FAIL): State.SEALED,
    }
)

DIRTY = frozenset(State) - {State.COMMITTED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """The turns `first_generation` to `last_generation` of a session, owed to the provider binding `owner`."""

    id: SegmentId
    session_id: SessionId
    owner: str
    first_generation: int
    last_generation: int
    created_at: int
    due_at: int
    state: State = State.OPEN
    attempt: int = 0
    fence: int = 0
    error: str | None = None

    def on(self, event: Event) -> Self:
        """Return the segment after `event`."""
        return replace(self, state=move(MOVES, self.id, self.state, event))


class Record(StrEnum):
    """How a completed turn joins the ledger."""

    EXTEND = "extend"
    OPEN = "open"
    SEAL_AND_OPEN = "seal_and_open"


def record(open_owner: str | None, owner: str) -> Record:
    """Decide where a turn completed under `owner` goes; consecutive turns of one owner share a segment."""
    if open_owner is None:
        return Record.OPEN
    return Record.EXTEND if open_owner == owner else Record.SEAL_AND_OPEN


def next_to_commit(dirty: Sequence[Segment], owner: str) -> Segment | None:
    """Return the segment of one session that `owner` may commit now: the oldest, and only if it is its own."""
    oldest = min(dirty, key=lambda segment: segment.first_generation, default=None)
    return oldest if oldest and oldest.owner == owner and oldest.state is State.SEALED else None
