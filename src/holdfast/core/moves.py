"""One way to look a move up, so that every table refuses an illegal one alike."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

from holdfast.errors import IllegalMove

S = TypeVar("S", bound=StrEnum)
E = TypeVar("E", bound=StrEnum)


def move(moves: Mapping[tuple[S, E], S], subject: str, state: S, event: E) -> S:
    """Return the state after `event`.  Raises `IllegalMove` where the table has no entry."""
    if (after := moves.get((state, event))) is None:
        raise IllegalMove(subject, state, event)
    return after
