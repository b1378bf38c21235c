"""Bindings: the memory provider of new segments, and the earlier providers of segments that are still owed to them."""

from __future__ import annotations

import logging
from collections.abc import Callable

from holdfast.foreign_call import foreign_call
from holdfast.ports import MemoryProvider

log = logging.getLogger(__name__)

CLOSE_TIMEOUT_S = 5


def no_earlier(_owner: str) -> MemoryProvider | None:
    """Return no earlier provider."""
    return None


class MemoryBindings:
    """The current provider, and earlier ones, which are opened again when a segment is owed to them."""

    def __init__(self, current: MemoryProvider | None, earlier: Callable[[str], MemoryProvider | None] = no_earlier) -> None:
        self.current = current
        self._earlier = earlier
        self._opened: dict[str, MemoryProvider | None] = {}

    def of(self, owner: str) -> MemoryProvider | None:
        if self.current is not None and self.current.owner == owner:
            return self.current
        if owner not in self._opened:
            self._opened[owner] = self._earlier(owner)
        found = self._opened[owner]
        # A different name is a different binding, and does not get this one's segments.
        return found if found is not None and found.owner == owner else None

    async def close(self) -> None:
        """Close every open provider once.  A failure is logged."""
        opened = {id(each): each for each in (self.current, *self._opened.values()) if each is not None}
        self.current, self._opened = None, {}
        for provider in opened.values():
            await _close(provider)


async def _close(provider: MemoryProvider) -> None:
    try:
        await foreign_call(provider.close(), CLOSE_TIMEOUT_S, f"close {provider.owner}")
    except Exception:  # The edge to a provider: the others are closed anyway.
        log.exception("the memory provider %s could not be closed", provider.owner)
