"""Segments of memory as they are shown: their receipts, and a debt in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from holdfast.core.segments import Debt, Segment, SegmentState
from holdfast.ids import SegmentId, SessionId, TurnId
from holdfast.operations.projection import project

# Other owners than the operator read this in place of an error, which may name machines.
FAILED = "it could not be handed over"


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentView:
    """The receipt of a segment: its turns, the provider that it is owed to, and what has become of it.

    A `parked` debt is owed to a provider that this gateway cannot reach.  It waits until a person waives it.
    """

    id: SegmentId
    session_id: SessionId
    # The provider that it is owed to.
    owner: str
    state: SegmentState
    parked: bool
    # The first and the last of the turns that it has, as they are numbered in the session.
    generations: tuple[int, int]
    turns: Sequence[TurnId]
    attempt: int
    error: str | None
    # What the provider answered when it took the segment.
    receipt: str | None
    created_at: int
    next_try_at: int | None
    # When it was committed or waived.
    settled_at: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """How an owner sees segments.  Only the operator may see the address of a provider, and what it said."""

    operator: bool
    parked: Callable[[str], bool]

    def view(self, segment: Segment, turns: Sequence[TurnId]) -> SegmentView:
        parked = self.is_parked(segment)
        return project(
            SegmentView,
            segment,
            owner=self.named(segment.owner),
            parked=parked,
            generations=(segment.first_generation, segment.last_generation),
            turns=turns,
            error=self.told(segment.error),
            next_try_at=segment.due_at if segment.state is SegmentState.SEALED and not parked else None,
        )

    def is_parked(self, segment: Segment) -> bool:
        return segment.state is SegmentState.SEALED and self.parked(segment.owner)

    def named(self, owner: str) -> str:
        return owner if self.operator else owner.partition(":")[0]

    def told(self, error: str | None) -> str | None:
        return error if self.operator or error is None else FAILED


def in_words(debt: Debt) -> str:
    """Return a debt as people read it: what waits for a provider, and then what waits for something else."""
    waiting = f"{debt.owed} waiting" + (f" ({debt.failed} of them failed)" if debt.failed else "")
    rest = {"on hold": debt.parked, "in progress": debt.open, "being learned": debt.committing}
    return ", ".join([waiting, *(f"{number} {what}" for what, number in rest.items() if number)])
