"""Turns that only wait for others: until they go on, other turns may have their places."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from holdfast.engine.wake import Wake
from holdfast.ids import TurnId


class Resting:
    """The turns that rest on this node.  A turn gives up one place, however many of its calls wait at once."""

    def __init__(self) -> None:
        # Set when a place has become free.
        self.freed = Wake()
        self._waits: Counter[TurnId] = Counter()

    def __len__(self) -> int:
        return len(self._waits)

    def __contains__(self, turn_id: TurnId) -> bool:
        return turn_id in self._waits

    @asynccontextmanager
    async def rest(self, turn_id: TurnId) -> AsyncGenerator[None]:
        """Let a turn rest for as long as the context lasts; afterwards it counts again, even where that is one too many."""
        self._waits[turn_id] += 1
        self.freed.set()
        try:
            yield
        finally:
            self._waits[turn_id] -= 1
            if not self._waits[turn_id]:
                del self._waits[turn_id]
