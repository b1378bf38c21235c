"""A gateway as users have it: `holdfast serve` in a process of its own."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

READY_MAX_S = 60
LOOK_S = 0.005


def cpu_s(pid: int) -> float:
    """Return the processor time of a process so far."""
    used = psutil.Process(pid).cpu_times()
    return used.user + used.system


class Gateway:
    """One process on one home, killed at its end; `url` names another store than the home's own."""

    def __init__(self, home: Path, url: str = "sqlite") -> None:
        self._home = home
        command = [sys.executable, "-m", "holdfast", "--home", str(home), "serve", "--port", "0", "--no-open"]
        with (home / "serve.log").open("w") as log:
            self.spawned_at = time.perf_counter()
            self._process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "HOLDFAST_STORE__URL": url})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill()

    async def ready(self) -> float:
        """Return how many seconds after its spawning the gateway said that it is ready."""
        while not await self._is_ready():
            if self._process.poll() is not None or time.perf_counter() - self.spawned_at > READY_MAX_S:
                raise RuntimeError(f"the gateway did not get ready:\n{(self._home / 'serve.log').read_text()}")
            await asyncio.sleep(LOOK_S)
        return time.perf_counter() - self.spawned_at

    @property
    def port(self) -> int:
        """Where it listens for the world."""
        listening = psutil.Process(self._process.pid).net_connections("tcp")
        return next(each.laddr.port for each in listening if each.status == psutil.CONN_LISTEN)

    @property
    def pid(self) -> int:
        return self._process.pid

    def cpu_s(self) -> float:
        """Return the processor time that it has used so far, of all its threads."""
        return cpu_s(self._process.pid)

    async def _is_ready(self) -> bool:
        try:
            reader, writer = await asyncio.open_unix_connection(str(self._home / "gateway.sock"))
        except OSError:
            return False
        try:
            writer.write(b"GET /ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return b" 200 " in await reader.readline()
        except ConnectionError:
            # It died meanwhile, and its log says why.
            return False
        finally:
            writer.close()

    def kill(self) -> None:
        """End it with SIGKILL: it gets no chance to put anything in order."""
        self._process.kill()
        self._process.wait()
