"""Bindings: whom debts are owed to now, and whom they were owed to before the operator chose another."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.ports import MemoryProvider


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
        return self._opened[owner]

    async def close(self) -> None:
        """Close whatever was opened, once."""
        opened = [self.current, *self._opened.values()]
        self.current, self._opened = None, {}
        for provider in opened:
            if provider is not None:
                await provider.close()
