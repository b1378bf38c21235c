"""Writing through a store that may be away for a while."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from holdfast.clock import Clock
from holdfast.errors import Unavailable

T = TypeVar("T")

_WAIT_FIRST_MS = 50
_WAIT_MAX_MS = 2_000


async def persist(
    clock: Clock,
    write: Callable[[], Awaitable[T]],
    give_up_on: tuple[type[Unavailable], ...] = (),
    *,
    has_failed: bool = False,
) -> T:
    """Repeat a write that is safe to repeat until the store takes it; one that `has_failed` before begins with a wait."""
    wait_ms = _WAIT_FIRST_MS
    while True:
        if has_failed:
            await clock.sleep_ms(wait_ms)
            wait_ms = min(wait_ms * 2, _WAIT_MAX_MS)
        try:
            return await write()
        except Unavailable as error:
            if isinstance(error, give_up_on):
                raise
            has_failed = True
