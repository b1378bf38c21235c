"""A whole gateway whose event loop can be made to stand still by a signal; run by the watchdog's test."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import time
from pathlib import Path

from holdfast import app
from holdfast.config import Config, GatewayConfig, ServerConfig
from holdfast.daemon.succession import inherit
from holdfast.desk.views import Drain, SignInLink, Status, Stop


class Announcer:
    def ready(self, status: Status, link: SignInLink | None) -> None:
        print(status.url, flush=True)

    def draining(self, drain: Drain) -> None: ...
    def drained(self, stop: Stop, interrupted: int) -> None: ...


async def main(home: Path) -> None:
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, time.sleep, 600)
    config = Config(server=ServerConfig(port=0), gateway=GatewayConfig(stall_timeout=1))
    await app.serve(config, home, Announcer(), inherit())


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    asyncio.run(main(Path(sys.argv[1])))
