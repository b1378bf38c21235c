"""A process whose event loop stands still in its first life; run by the watchdog's test."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

from holdfast.daemon.life import watched
from holdfast.daemon.notice import Notice


async def main(marks: Path) -> None:
    lives = len(marks.read_text().splitlines()) + 1 if marks.exists() else 1
    with marks.open("a") as file:
        file.write(f"{os.getpid()}\n")
    async with watched(0.4, Notice({})):
        await asyncio.sleep(0.6)
        if lives == 1:
            time.sleep(30)  # noqa: ASYNC251 - This is the stall.


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
