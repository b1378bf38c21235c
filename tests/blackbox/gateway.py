"""A gateway: the real `holdfast serve`, started, signalled and ended from outside."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import httpx2

from tests import scratch
from tests.warm import Started

PATIENCE_S = 40.0
LOOK_S = 0.02
# Below what the system hands out by itself, so that nobody else takes the port while its gateway is down.
_PORTS = range(20_000, 30_000)
_chance = random.SystemRandom()
# Runs `holdfast` in a new interpreter.
ANEW = (sys.executable, "-m", "holdfast")


class Gateway:
    """One home with one address, and the process that serves it at the moment.  Each start may bring other settings."""

    # What runs `holdfast`; where nothing is said, a fork of the warm process does.
    command: Sequence[str] = ()

    def __init__(self, home: Path, **settings: str) -> None:
        self.home = home
        self.settings = settings
        # What its process finds around it, beside its settings.
        self.environment: dict[str, str] = {}
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.notes = home / "demonstration-notes.txt"
        self.log = home.with_suffix(".log")
        # How long anything about it may take.
        self.patience_s = PATIENCE_S
        self._process: subprocess.Popen[bytes] | Started | None = None

    @property
    def process(self) -> subprocess.Popen[bytes] | Started:
        assert self._process is not None, "the gateway was never started"
        return self._process

    async def start(self, **settings: str) -> None:
        """Start a process and return when it is ready."""
        self.launch(**settings)
        await self.ready()

    def launch(self, **settings: str) -> None:
        """Start a process, which may end before it is ever ready."""
        assert self._process is None or self._process.poll() is not None, "the gateway runs already"
        self.settings |= settings
        self._process = self._spawn()

    async def ready(self) -> None:
        async with httpx2.AsyncClient(base_url=self.url, verify=False, trust_env=False) as web:
            await until(lambda: self._is_ready(web), f"the gateway gets ready:\n{self.tail()}", self.patience_s)

    async def _is_ready(self, web: httpx2.AsyncClient) -> bool:
        assert self.process.poll() is None, f"the gateway ended by itself:\n{self.tail()}"
        try:
            return (await web.get("/ready")).status_code == 200
        except httpx2.TransportError:
            return False

    async def node(self) -> str:
        """Return as which node the gateway answers; nothing while it does not."""
        async with httpx2.AsyncClient(base_url=self.url, verify=False, trust_env=False) as web:
            try:
                return (await web.get("/health")).json()["node"]
            except httpx2.TransportError:
                return ""

    async def begins_anew(self, after: str) -> None:
        """Return when the same process is ready as another node."""

        async def has_begun() -> bool:
            return await self.node() not in ("", after)

        await until(has_begun, f"the gateway is another node:\n{self.tail()}", self.patience_s)
        await self.ready()

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    async def ended(self) -> int:
        """Return how the process ended, once it has."""
        return await asyncio.to_thread(self.process.wait, self.patience_s)

    async def kill(self) -> None:
        """End it without warning."""
        self.signal(signal.SIGKILL)
        assert await self.ended() == -signal.SIGKILL

    async def says(self, words: str, since: int = 0) -> None:
        """Return when the log has these words behind a position."""
        await until(lambda: words in self.written()[since:], f"the log says {words!r}:\n{self.tail()}")

    async def run(self, *words: str) -> str:
        """Run a command on the same home in a process of its own; it must succeed."""
        status, output, errors = await self.attempt(*words)
        assert status == 0, f"{words}: {errors}"
        return output

    async def attempt(self, *words: str) -> tuple[int, str, str]:
        """Run a command on the same home; returns its exit code, its output and its errors."""
        with scratch.folder() as folder:
            process = self._run(words, output := folder / "output", errors := folder / "errors")
            status = await asyncio.to_thread(process.wait, self.patience_s)
            return status, output.read_text(), errors.read_text()

    def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def written(self) -> str:
        """Return the log, which the process creates after its start."""
        return self.log.read_text() if self.log.exists() else ""

    def tail(self) -> str:
        return self.written()[-6_000:]

    def _spawn(self) -> subprocess.Popen[bytes] | Started:
        return self._run(["serve", "--port", str(self.port), "--no-open"], self.log, self.log)

    def _run(self, words: Sequence[str], output: Path, errors: Path) -> subprocess.Popen[bytes] | Started:
        words = ["--home", str(self.home), *words]
        if not self.command:
            return Started(words, self._environment(), output, errors)
        with output.open("ab") as out, errors.open("ab") as err:
            return subprocess.Popen([*self.command, *words], stdout=out, stderr=err, env=self._environment())

    def _environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
        inherited["HOLDFAST_TOOLS__TERMINAL__SANDBOX"] = "off"
        return inherited | self.environment | {f"HOLDFAST_{name.upper()}": value for name, value in self.settings.items()}


@contextlib.contextmanager
def gateways(count: int = 1, **settings: str) -> Iterator[list[Gateway]]:
    """Give out homes for gateways, not started yet; whatever runs in them at the end is killed."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(scratch.folder())
        made = [Gateway(folder / f"home-{number}", **settings) for number in range(count)]
        for each in made:
            stack.callback(each.close)
        yield made


async def until(reached: Callable[[], object], what: str, patience_s: float = PATIENCE_S) -> None:
    """Look again and again until something outside of this process is so; there is no event to wait for."""
    deadline = time.monotonic() + patience_s
    while True:
        answer = reached()
        if asyncio.iscoroutine(answer):
            answer = await answer
        if answer:
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited in vain until {what}")
        await asyncio.sleep(LOOK_S)


def free_port() -> int:
    """Return a port that nobody uses, and that stays so for as long as its owner is away."""
    while True:
        port = _chance.choice(_PORTS)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
