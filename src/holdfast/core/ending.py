"""How a worker ends its turn."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.core.delivery import Delivery
from holdfast.core.journal import DraftEntry
from holdfast.core.turns import TurnEvent
from holdfast.ids import SegmentId


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a worker ends its turn; everything in it becomes true in one transaction.

    `drafts` are the last entries, not shown yet.  `segment_id` is used if the memory debt needs a new segment.
    """

    event: TurnEvent
    at: int
    text: str = ""
    error: str | None = None
    cause: str | None = None
    drafts: tuple[DraftEntry, ...] = ()
    deliveries: tuple[Delivery, ...] = ()
    memory_owner: str | None = None
    segment_id: SegmentId | None = None
