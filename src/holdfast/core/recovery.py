"""What a sweep took over from nodes that are gone, for the log and the boot report."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field
from typing import TypeVar

from holdfast.ids import TurnId

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupted:
    """What became of the turns of one sweep, for the log and the boot report."""

    continued: tuple[TurnId, ...] = ()
    rested: tuple[TurnId, ...] = ()
    suspended: tuple[TurnId, ...] = ()
    given_up: tuple[TurnId, ...] = ()

    def __add__(self, other: Interrupted) -> Interrupted:
        return Interrupted(
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

    @property
    def total(self) -> int:
        return len(self.turns) + self.released + self.deliveries + self.segments


def orphans(held: Set[T], known: Set[T], suspected: Set[T]) -> tuple[set[T], set[T]]:
    """Split what the store says we hold but we do not know of: certain orphans, and those to look at once more.

    A claim whose answer was lost leaves such a row behind.  One look is not enough: the answer may just be on its way.
    """
    unknown = set(held - known)
    return unknown & suspected, unknown - suspected
