"""Time comes in as a parameter: wall time for people, monotonic time for deadlines.

Every `…_at` in Holdfast is wall time in milliseconds since 1970 (UTC).  Nothing that guards correctness compares two of
them: leases and timeouts use monotonic milliseconds, which no clock jump can move.
"""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int:
        """Return wall time in milliseconds since 1970, UTC."""
        ...

    def monotonic_ms(self) -> int:
        """Return milliseconds that only ever grow, with no meaning across processes."""
        ...

    async def sleep_ms(self, duration_ms: float) -> None:
        """Wait."""
        ...


class SystemClock:
    """The machine's own clocks."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    async def sleep_ms(self, duration_ms: float) -> None:
        await asyncio.sleep(duration_ms / 1000)
