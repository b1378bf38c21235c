"""Waits for a hint, with a timeout in case the hint is lost."""

from __future__ import annotations

import asyncio


class Wake:
    """Set from anywhere in the loop; a waiter returns at the next hint or at its timeout."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        self._event.set()

    async def wait(self, timeout_ms: float) -> None:
        """Return at once if a hint came since the last wait."""
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._event.wait()
        except TimeoutError:
            return
        self._event.clear()
