"""After a loss: what a sweep took over from nodes that are gone, and how long to look for what they may have left."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar, assert_never

from holdfast.ids import NodeId, SessionId, TurnId

T = TypeVar("T")

TRIES_MAX = 12
GIVE_UP_AGE_MS = 24 * 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupted:
    """What became of the turns of one sweep, for the log and the boot report."""

    continued: tuple[TurnId, ...] = ()
    rested: tuple[TurnId, ...] = ()
    suspended: tuple[TurnId, ...] = ()
    given_up: tuple[TurnId, ...] = ()
    # Whose readers should look; which turn is whose says the store.
    sessions: tuple[SessionId, ...] = field(default=(), compare=False)

    def __add__(self, other: Interrupted) -> Interrupted:
        return Interrupted(
            sessions=self.sessions + other.sessions,
            continued=self.continued + other.continued,
            rested=self.rested + other.rested,
            suspended=self.suspended + other.suspended,
            given_up=self.given_up + other.given_up,
        )

    def __len__(self) -> int:
        return len(self.continued) + len(self.rested) + len(self.suspended) + len(self.given_up)


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """What one sweep took over from dead nodes."""

    turns: Interrupted = field(default_factory=Interrupted)
    released: int = 0
    deliveries: int = 0
    segments: int = 0

    def __add__(self, other: Swept) -> Swept:
        return Swept(
            turns=self.turns + other.turns,
            released=self.released + other.released,
            deliveries=self.deliveries + other.deliveries,
            segments=self.segments + other.segments,
        )

    @property
    def total(self) -> int:
        return len(self.turns) + self.released + self.deliveries + self.segments


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What waits in all sessions: messages for their turn, turns for a person, conversations for their next message."""

    queued: int = 0
    waiting: int = 0
    resumable: int = 0


def orphans(held: Set[T], known: Set[T], suspected: Set[T]) -> tuple[set[T], set[T]]:
    """Split what the store says we hold but we do not know of: certain orphans, and those to look at once more.

    A claim whose answer was lost leaves such a row behind.  One look is not enough: the answer may just be on its way.
    """
    unknown = set(held - known)
    return unknown & suspected, unknown - suspected


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingRecovery:
    """An interrupted attempt whose node may have left more of it in its home than has arrived."""

    turn_id: TurnId
    attempt: int
    session_id: SessionId
    node_id: NodeId
    home: str
    tries: int
    since: int


class Sight(StrEnum):
    """What can be seen of a lost attempt: something came in late, it may come at any moment, or nothing moves."""

    FOUND = "found"
    ARRIVING = "arriving"
    SEALED = "sealed"


class LookVerdict(StrEnum):
    """What one look leads to.  Both `RESOLVE` and `GIVE_UP` end the search."""

    RESOLVE = "resolve"
    WAIT = "wait"
    CHARGE = "charge"
    GIVE_UP = "give_up"


def is_too_old(age_ms: int) -> bool:
    """Return whether a search ends because of its age alone, even if there is more to find."""
    return age_ms > GIVE_UP_AGE_MS


def after_look(sight: Sight, tries: int, age_ms: int) -> LookVerdict:
    """Decide about a search after `tries` looks that found nothing; only a look at what is sealed counts."""
    if is_too_old(age_ms):
        return LookVerdict.GIVE_UP
    match sight:
        case Sight.FOUND:
            return LookVerdict.RESOLVE
        case Sight.ARRIVING:
            return LookVerdict.WAIT
        case Sight.SEALED:
            return LookVerdict.GIVE_UP if tries + 1 >= TRIES_MAX else LookVerdict.CHARGE
        case _:
            assert_never(sight)
