"""A process whose event loop stands still in its first life; run by the watchdog's test.

It sleeps, or, told to "log" or "print", it waits for ever for somebody to read what it writes.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from pathlib import Path

from holdfast.daemon.process import watched
from holdfast.daemon.service_manager import ServiceManager
from holdfast.daemon.watchdog import Watchdog

MORE_THAN_A_PIPE_HOLDS = "x" * 1_000_000
STALLS = {
    "sleep": lambda: time.sleep(30),
    "log": lambda: logging.error(MORE_THAN_A_PIPE_HOLDS),
    "print": lambda: print(MORE_THAN_A_PIPE_HOLDS, flush=True),
}


async def main(marks: Path, stall: str) -> None:
    lives = len(marks.read_text().splitlines()) + 1 if marks.exists() else 1
    with marks.open("a") as file:
        file.write(f"{os.getpid()}\n")
    async with watched(Watchdog(0.4, 30), ServiceManager({})):
        await asyncio.sleep(0.6)
        if lives == 1:
            STALLS[stall]()


if __name__ == "__main__":
    logging.basicConfig()
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
