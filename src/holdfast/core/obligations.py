"""What a gateway still owes, counted."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Obligations:
    """Everything that is not settled yet: answers, messages to be sent, memories to be kept."""

    turns: int = 0
    deliveries: int = 0
    segments: int = 0

    @property
    def total(self) -> int:
        return self.turns + self.deliveries + self.segments
