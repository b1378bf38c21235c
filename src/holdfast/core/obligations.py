"""What a gateway still owes, counted."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Obligations:
    """Everything that is not settled yet: answers, messages to be sent, and the unpaid segments of memory."""

    turns: int = 0
    # Of these turns, those that wait for their model.
    retrying: int = 0
    deliveries: int = 0
    segments: int = 0
