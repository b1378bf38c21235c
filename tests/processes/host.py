"""A gateway's side of background commands in a process of its own, which may kill itself beside any of its writes.

    python -m tests.processes.host HOME COMMAND [NTH before|after]

With a COMMAND it starts that one, unless the home has a row already; then it watches until nothing runs any more.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from holdfast.agent.processes.background import BackgroundCommand, BackgroundProcesses
from holdfast.agent.processes.monitor import ProcessMonitor
from tests.engine.world import Altered, until
from tests.processes.scene import ENVIRONMENT, HOME_ID, opened


class Killer:
    """Counts writes, and kills this process beside one of them."""

    def __init__(self, nth: int, when: str) -> None:
        self._nth, self._when, self._count = nth, when, 0

    def __call__(self, write: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def wrapped(*args: Any) -> Any:
            self._count += 1
            now = self._count == self._nth
            if now and self._when == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            answer = await write(*args)
            if now:
                os.kill(os.getpid(), signal.SIGKILL)
            return answer

        return wrapped


async def main(home: Path, command: str, killer: Killer) -> None:
    async with opened(home) as here:
        rows = here.store.processes
        processes: Any = Altered(
            rows, add=killer(rows.add), began=killer(rows.began), watched=killer(rows.watched), end=killer(rows.end)
        )
        here.background = BackgroundProcesses(processes, home, HOME_ID, pool=here.background.pool)
        monitor = ProcessMonitor(processes, here.store.sessions, here.background, killer(here.accept))
        running = asyncio.create_task(monitor.run())
        if command and not await rows.list("local"):
            argv = ["/bin/sh", "-c", command]
            spec = BackgroundCommand(
                text=command, argv=argv, workdir=home, environment=ENVIRONMENT, notifies=True, patterns=("ERROR",)
            )
            await here.background.start(spec, here.session, here.turn)

        async def over() -> bool:
            return not await rows.running(HOME_ID)

        await until(over)
        running.cancel()
        await asyncio.wait([running])


if __name__ == "__main__":
    asyncio.run(
        main(Path(sys.argv[1]), sys.argv[2], Killer(int(sys.argv[3]), sys.argv[4]) if sys.argv[3:] else Killer(0, ""))
    )
