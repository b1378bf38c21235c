"""One thing that is remembered about a person, with the turn that it came from."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.ids import MemoryId, TurnId


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """One remembered fact."""

    id: MemoryId
    owner: str
    text: str
    created_at: int
    updated_at: int
    turn_id: TurnId | None = None
