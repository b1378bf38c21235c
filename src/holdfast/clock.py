"""Time comes in as a parameter: wall time for people, monotonic time for deadlines.

Every `…_at` in Holdfast is wall time in milliseconds since 1970 (UTC).  Leases and timeouts use monotonic milliseconds,
which no clock jump can move.  What falls due or expires goes by steady time, which is made of both: see
`engine/timekeeper.py`.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import Protocol

# Both go on while the machine sleeps, which `time.monotonic` does not do everywhere.
_PASSED = time.CLOCK_BOOTTIME if sys.platform == "linux" else time.CLOCK_MONOTONIC
_BOOT = Path("/proc/sys/kernel/random/boot_id")


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

    def passed_ms(self) -> int:
        """Return the milliseconds that have passed since the machine was started, also while it slept."""
        return time.clock_gettime_ns(_PASSED) // 1_000_000

    def boot(self) -> str:
        """Return what identifies this start of the machine; nothing where the system does not tell."""
        return _BOOT.read_text("ascii").strip() if _BOOT.exists() else ""
