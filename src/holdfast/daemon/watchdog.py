"""The watchdog: an event loop that stands still is shown on the log, and the process begins anew.

Its turns recover as after a crash, which is better than a gateway that neither answers nor dies.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
import time
import traceback
from collections.abc import AsyncGenerator, Callable, Iterator

# How many looks fit into the time that a loop may stand still.
LOOKS = 8
STDERR = 2
SHOWING_MAX_S = 2


class Watchdog:
    """A thread that watches the loop.  `stalled` is called once, from that thread."""

    def __init__(
        self, stall_s: float, stalled: Callable[[], object], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._stall_s = stall_s
        self._stalled = stalled
        self._monotonic = monotonic
        self._seen = monotonic()
        self._over = threading.Event()

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncGenerator[None]:
        """Watch this loop for as long as the context lasts."""
        self._seen = self._monotonic()
        showing = asyncio.create_task(self._show(), name="watchdog")
        thread = threading.Thread(target=self._watch, name="holdfast-watchdog", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            showing.cancel()

    async def _show(self) -> None:
        while True:
            self._seen = self._monotonic()
            await asyncio.sleep(self._stall_s / LOOKS)

    def _watch(self) -> None:
        pause = self._stall_s / LOOKS
        looked = self._monotonic()
        while not self._over.wait(pause):
            now = self._monotonic()
            # A machine that slept stops this thread too, and then the loop's silence means nothing.
            if now - looked > 2 * pause:
                self._seen = now
            looked = now
            if now - self._seen > self._stall_s:
                self._stalled()
                return


def show_stacks(stall_s: float, output: int = STDERR) -> None:
    """Show where every thread stands, if anybody takes it.

    A loop that stands still because nobody reads what it writes holds the locks of its streams and its log, so nothing here
    may touch those, and a thread of its own waits for the reader.
    """
    head = f"holdfast: the event loop has not moved for {stall_s:g} s; every stack follows, then the gateway starts again\n"
    showing = threading.Thread(target=lambda: _write(output, head + "".join(_stacks())), daemon=True)
    showing.start()
    showing.join(SHOWING_MAX_S)


def _stacks() -> Iterator[str]:
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, frame in sys._current_frames().items():  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - The only way.
        yield f"thread {names.get(ident, ident)}:\n"
        yield from traceback.format_stack(frame)


def _write(output: int, text: str) -> None:
    left = text.encode(errors="replace")
    with contextlib.suppress(OSError):
        while left:
            left = left[os.write(output, left) :]
