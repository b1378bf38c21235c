"""A DNS resolver whose lookups block nothing else: each runs in a thread of its own, up to a limit.

The event loop's own resolver runs few lookups at a time, and a hanging lookup cannot be cancelled: two hosts named by a
model could delay every model request.  So hosts that models name are looked up here.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

LOOK_UPS_MAX = 32
# A lookup waits at most this long for a thread, which is as long as a connection may take.
WAIT_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _LookUp:
    host: str
    port: int
    loop: asyncio.AbstractEventLoop
    answer: asyncio.Future[list[str]]

    def run(self) -> None:
        """Ask the system's resolver.  Runs in a thread."""
        try:
            found = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
        except Exception as error:  # Every error is the caller's, and must not end the thread.
            self._tell(error)
        else:
            self._tell([str(place[0]) for *_, place in found])

    def settle(self, told: list[str] | Exception) -> None:
        """Give the caller its answer, unless it has been cancelled."""
        if self.answer.done():
            return
        if isinstance(told, Exception):
            self.answer.set_exception(told)
        else:
            self.answer.set_result(told)

    def _tell(self, told: list[str] | Exception) -> None:
        # The loop may be closed by now.
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self.settle, told)


class ThreadedResolver:
    """Looks up names, `most` at a time.  The threads are daemons, so they do not delay the end of the process."""

    def __init__(self, most: int = LOOK_UPS_MAX, wait_timeout_s: float = WAIT_TIMEOUT_S) -> None:
        self._most = most
        self._wait_timeout_s = wait_timeout_s
        self._lock = threading.Lock()
        self._running = 0
        self._waiting: deque[_LookUp] = deque()

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        """Return the addresses of a host.  Raises `OSError` if it has none, or if too many lookups hang."""
        loop = asyncio.get_running_loop()
        look_up = _LookUp(host=host, port=port, loop=loop, answer=loop.create_future())
        timer = loop.call_later(self._wait_timeout_s, self._refuse, look_up)
        try:
            self._start(look_up)
            return await look_up.answer
        finally:
            timer.cancel()
            self._withdraw(look_up)

    def _start(self, look_up: _LookUp) -> None:
        with self._lock:
            if self._running >= self._most:
                self._waiting.append(look_up)
                return
            self._running += 1
        try:
            threading.Thread(target=self._run, args=(look_up,), name="holdfast-look-up", daemon=True).start()
        except RuntimeError as error:
            with self._lock:
                self._running -= 1
            raise OSError("no thread can be started to look it up") from error

    def _run(self, look_up: _LookUp | None) -> None:
        """Look up a name, then the names that wait.  Runs in a thread."""
        while look_up:
            look_up.run()
            with self._lock:
                look_up = self._waiting.popleft() if self._waiting else None
                if look_up is None:
                    self._running -= 1

    def _refuse(self, look_up: _LookUp) -> None:
        if self._withdraw(look_up):
            look_up.settle(OSError(f"{self._most} other lookups have no answer yet; try again later"))

    def _withdraw(self, look_up: _LookUp) -> bool:
        """Remove a lookup from the queue.  Return whether it was still there."""
        with self._lock, contextlib.suppress(ValueError):
            self._waiting.remove(look_up)
            return True
        return False
