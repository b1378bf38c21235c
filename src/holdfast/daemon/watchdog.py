"""The watchdog: the gateway's side of the sentry, which watches it from outside.

An event loop that stands still is shown on the log, and the process begins anew; its turns recover as after a crash.  A
process that cannot begin anew, or does not stop in time, is killed.  A sentry that ends before the gateway is replaced.
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

from holdfast.daemon import sentry

log = logging.getLogger(__name__)

# The sentry shows the stacks before it ends.
LETTING_GO_MAX_S = sentry.SHOWING_MAX_S + 1
# A sentry that cannot live here must not keep the gateway busy with starting it.
REPLACED_EVERY_S = 10.0


class Watchdog:
    """A sentry for this process, from now on until the process ends."""

    def __init__(self, stall_s: float, drain_s: float) -> None:
        self._pause_s = min(stall_s / sentry.LOOKS, sentry.LOOK_MAX_S) if stall_s else sentry.LOOK_MAX_S
        # A signal handler writes the stacks, so they go where a write cannot wait for a reader.
        self._stacks = tempfile.TemporaryFile()  # noqa: SIM115 - It is open for as long as the process.
        # This process keeps both ends: the next sentry goes on reading where the last one stopped.
        self._heard, self._pipe = os.pipe()
        os.set_blocking(self._pipe, False)
        self._numbers = (str(stall_s), str(drain_s), str(self._stacks.fileno()))
        self._sentry = self._started()
        self._replaced_s = -REPLACED_EVERY_S
        # When the turns of a gateway that stops have had their time.
        self._ends_s: float | None = None

    @contextlib.asynccontextmanager
    async def watching(self, stalled: Callable[[], object]) -> AsyncGenerator[None]:
        """Have this loop watched for as long as the context lasts; `stalled` is called when it has stood still."""

        def begin_anew(_number: int, _frame: object) -> None:
            self.close()
            stalled()

        signal.signal(sentry.STALLED, begin_anew)
        # It writes first, whatever holds the interpreter; what was registered above comes when that lets go.
        faulthandler.register(sentry.STALLED, self._stacks, all_threads=True, chain=True)
        beating = asyncio.create_task(self._beat(), name="watchdog")
        try:
            yield
        finally:
            beating.cancel()
            # Whatever ended the context, only closing is left.
            self.stopping(0)

    @contextlib.contextmanager
    def hearing(self, numbers: Sequence[signal.Signals]) -> Generator[None]:
        """Have the sentry hear the signals that stop the gateway, also while the loop stands still."""
        for number in numbers:
            # A signal handler can only be told to write a stack; that anything comes is all the sentry has to know.
            faulthandler.register(number, self._pipe, all_threads=False, chain=True)
        try:
            yield
        finally:
            for number in numbers:
                faulthandler.unregister(number)

    def stopping(self, seconds: float) -> None:
        """Say that the gateway stops, and how many seconds its turns have."""
        self._ends_s = time.monotonic() + seconds
        self._tell(b"%b%d%b" % (sentry.STOP, seconds, sentry.STOP))

    def close(self) -> None:
        """Let the sentry end."""
        os.close(self._pipe)
        os.close(self._heard)
        try:
            self._sentry.wait(LETTING_GO_MAX_S)
        except subprocess.TimeoutExpired:
            self._sentry.kill()
            self._sentry.wait()
        faulthandler.unregister(sentry.STALLED)
        self._stacks.close()

    async def _beat(self) -> None:
        while True:
            if self._sentry.poll() is not None:
                self._replace()
            self._tell(sentry.BEAT)
            await asyncio.sleep(self._pause_s)

    def _replace(self) -> None:
        """Start another sentry, which also has to know when the gateway must have stopped; never often."""
        if time.monotonic() - self._replaced_s < REPLACED_EVERY_S:
            return
        self._replaced_s = time.monotonic()
        ended = self._sentry.returncode
        try:
            self._sentry = self._started()
        except OSError as error:
            log.warning(
                "the sentry has ended (%d) and cannot be started again, so nothing watches the loop: %s", ended, error
            )
            return
        log.warning("the sentry, which watches the gateway, has ended (%d) and was started again", ended)
        if self._ends_s is not None:
            self.stopping(max(self._ends_s - self._replaced_s, 0))

    def _started(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 - Our own program.
            [sys.executable, "-I", "-S", str(Path(sentry.__file__)), *self._numbers],
            stdin=self._heard,
            stdout=subprocess.DEVNULL,
            pass_fds=(self._stacks.fileno(),),
            start_new_session=True,
            env={},
        )

    def _tell(self, words: bytes) -> None:
        # A sentry that is gone, or that does not read, is no reason to stop.
        with contextlib.suppress(OSError):
            os.write(self._pipe, words)
