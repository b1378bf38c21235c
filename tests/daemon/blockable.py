"""A whole gateway whose event loop can be made to stand still by a signal; run by the watchdog's test."""

from __future__ import annotations

import asyncio
import logging
import re
import signal
import sys
import time
from pathlib import Path

from holdfast.app.gateway import serve
from holdfast.config import Config, GatewayConfig, ServerConfig
from holdfast.daemon.handover import inherit
from holdfast.daemon.watchdog import Watchdog
from holdfast.operations.gateway import Drain, Status, Stop
from holdfast.operations.logins import SignInLink


class Announcer:
    def ready(self, status: Status, link: SignInLink | None, key: str = "") -> None:
        print(status.url, flush=True)

    def draining(self, drain: Drain) -> None: ...
    def drained(self, stop: Stop, interrupted: int) -> None: ...


def hold_the_interpreter() -> None:
    """Do what no other thread can interrupt, and no signal handler of Python: sum for minutes in one call."""
    sum(range(10**13))


BLOCKS = {"sleep": lambda: time.sleep(600), "hold": hold_the_interpreter, "search": lambda: re.search("(a|a)*b", "a" * 100)}


async def main(home: Path, how: str, stall_s: float) -> None:
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, BLOCKS[how])
    config = Config(server=ServerConfig(port=0), gateway=GatewayConfig(stall_timeout=stall_s, drain_timeout=1))
    await serve(config, home, Announcer(), inherit(), watchdog=Watchdog(stall_s, 1))


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])))
