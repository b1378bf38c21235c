"""Waiting for a hint, but never only for a hint."""

from __future__ import annotations

import asyncio


class Wake:
    """Set from anywhere in the loop; a waiter returns at the next hint or when its patience ends."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        self._event.set()

    async def wait(self, patience_ms: float) -> None:
        """Return at once if a hint came since the last wait."""
        try:
            async with asyncio.timeout(patience_ms / 1000):
                await self._event.wait()
        except TimeoutError:
            return
        self._event.clear()
