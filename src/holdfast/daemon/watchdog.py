"""The watchdog: the gateway's side of the watchdog process, which watches it from outside.

When the event loop stalls, the stacks are logged and the gateway restarts; its turns recover as after a crash.  A gateway
that cannot restart, or does not stop in time, is killed.  A watchdog process that ends before the gateway is replaced.
"""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from pathlib import Path

from holdfast.daemon import watchdog_process
from holdfast.daemon.watchdog_process import BEAT, LOOK_MAX_S, LOOKS, SHOWING_MAX_S, STALLED, STOP

log = logging.getLogger(__name__)

# The watchdog process shows the stacks before it ends.
CLOSE_MAX_S = SHOWING_MAX_S + 1
# Where the watchdog process cannot run, the gateway is not kept busy with starting it.
REPLACED_EVERY_S = 10.0


class Watchdog:
    """A watchdog process for this process, from now on until this one ends."""

    def __init__(self, stall_s: float, drain_s: float) -> None:
        self._pause_s = min(stall_s / LOOKS, LOOK_MAX_S) if stall_s else LOOK_MAX_S
        # A signal handler writes the stacks, so they go where a write cannot wait for a reader.
        self._stacks = tempfile.TemporaryFile()  # noqa: SIM115 - It is open for as long as the process.
        # This process keeps both ends, so that the next watchdog process reads on where the last one stopped.
        self._heard, self._pipe = os.pipe()
        os.set_blocking(self._pipe, False)
        self._numbers = (str(stall_s), str(drain_s), str(self._stacks.fileno()))
        self._process = self._started()
        self._replaced_s = -REPLACED_EVERY_S
        # When the turns of a gateway that stops have had their time.
        self._ends_s: float | None = None

    @contextlib.asynccontextmanager
    async def watching(self, stalled: Callable[[], object]) -> AsyncGenerator[None]:
        """Have this loop watched for as long as the context lasts; `stalled` is called when it has stalled."""

        def begin_anew(_number: int, _frame: object) -> None:
            self.close()
            stalled()

        signal.signal(STALLED, begin_anew)
        # This handler writes first, even while something holds the interpreter; the one above runs once it is free.
        faulthandler.register(STALLED, self._stacks, all_threads=True, chain=True)
        beating = asyncio.create_task(self._beat(), name="watchdog")
        try:
            yield
        finally:
            beating.cancel()
            # Only closing is left, so the turns get no more time.
            self.stopping(0)

    @contextlib.contextmanager
    def hearing(self, numbers: Sequence[signal.Signals]) -> Generator[None]:
        """Tell the watchdog process of signals that stop the gateway, also while the loop is stalled."""
        for number in numbers:
            # A signal handler can only be told to write a stack; the watchdog process need only know that something came.
            faulthandler.register(number, self._pipe, all_threads=False, chain=True)
        try:
            yield
        finally:
            for number in numbers:
                faulthandler.unregister(number)

    def stopping(self, seconds: float) -> None:
        """Say that the gateway stops, and how many seconds its turns have."""
        self._ends_s = time.monotonic() + seconds
        self._tell(b"%b%d%b" % (STOP, seconds, STOP))

    def close(self) -> None:
        """Let the watchdog process end."""
        os.close(self._pipe)
        os.close(self._heard)
        try:
            self._process.wait(CLOSE_MAX_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        faulthandler.unregister(STALLED)
        self._stacks.close()

    async def _beat(self) -> None:
        while True:
            if self._process.poll() is not None:
                self._replace()
            self._tell(BEAT)
            await asyncio.sleep(self._pause_s)

    def _replace(self) -> None:
        """Start another watchdog process, and tell it by when the gateway must have stopped; not often."""
        if time.monotonic() - self._replaced_s < REPLACED_EVERY_S:
            return
        self._replaced_s = time.monotonic()
        ended = self._process.returncode
        try:
            self._process = self._started()
        except OSError as error:
            log.warning(
                "the watchdog process has ended (%d) and cannot be started again, so nothing watches the loop: %s",
                ended,
                error,
            )
            return
        log.warning("the watchdog process, which watches the gateway, has ended (%d) and was started again", ended)
        if self._ends_s is not None:
            self.stopping(max(self._ends_s - self._replaced_s, 0))

    def _started(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 - Our own program.
            [sys.executable, "-I", "-S", str(Path(watchdog_process.__file__)), *self._numbers],
            stdin=self._heard,
            stdout=subprocess.DEVNULL,
            pass_fds=(self._stacks.fileno(),),
            start_new_session=True,
            env={},
        )

    def _tell(self, words: bytes) -> None:
        # Where the watchdog process is gone or does not read, the gateway goes on.
        with contextlib.suppress(OSError):
            os.write(self._pipe, words)
