"""Bindings: whom debts are owed to now, and whom they were owed to before the operator chose another."""

from __future__ import annotations

import logging
from collections.abc import Callable

from holdfast.foreign_call import foreign_call
from holdfast.ports import MemoryProvider

log = logging.getLogger(__name__)

CLOSE_TIMEOUT_S = 5


def nobody(_owner: str) -> MemoryProvider | None:
    """Know no earlier binding."""
    return None


class Bindings:
    """The provider of today, and those of earlier days, opened again when a debt is owed to them."""

    def __init__(self, current: MemoryProvider | None, earlier: Callable[[str], MemoryProvider | None] = nobody) -> None:
        self.current = current
        self._earlier = earlier
        self._opened: dict[str, MemoryProvider | None] = {}

    def of(self, owner: str) -> MemoryProvider | None:
        if self.current is not None and self.current.owner == owner:
            return self.current
        if owner not in self._opened:
            self._opened[owner] = self._earlier(owner)
        found = self._opened[owner]
        # Whoever calls itself something else is somebody else, and gets nothing of this owner's.
        return found if found is not None and found.owner == owner else None

    async def close(self) -> None:
        """Close whatever was opened, once; what does not let itself be closed is left."""
        opened = {id(each): each for each in (self.current, *self._opened.values()) if each is not None}
        self.current, self._opened = None, {}
        for provider in opened.values():
            await _close(provider)


async def _close(provider: MemoryProvider) -> None:
    try:
        await foreign_call(provider.close(), CLOSE_TIMEOUT_S, f"close {provider.owner}")
    except Exception:  # The edge to a provider: the others are closed all the same.
        log.exception("the memory provider %s could not be closed", provider.owner)
