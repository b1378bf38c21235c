"""A process that stops, loses its watchdog process while its turns have time left, and is held then."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

from holdfast.daemon.watchdog import Watchdog

# Longer than the second that turns have, and the margin after it.
HELD_S = 30


def watchdog() -> str:
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text().strip()


async def replaced(first: str) -> None:
    while watchdog() in ("", first):  # noqa: ASYNC110 - Nothing says when the kernel has started a process.
        await asyncio.sleep(0.1)


async def main() -> None:
    watchdog = Watchdog(600, 600)
    async with watchdog.watching(lambda: None):
        watchdog.stopping(1)
        # Long enough for it to have read that.
        await asyncio.sleep(1)
        first = watchdog()
        os.kill(int(first), signal.SIGKILL)
        await replaced(first)
        await asyncio.sleep(0.5)
        time.sleep(HELD_S)  # noqa: ASYNC251 - This is the loop that stands still.


if __name__ == "__main__":
    asyncio.run(main())
