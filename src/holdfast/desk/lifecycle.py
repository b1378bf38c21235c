"""The life of a gateway: ready, draining, over; and the wish to end it, which anyone may have and a second one hastens."""

from __future__ import annotations

import asyncio

from holdfast.clock import Clock
from holdfast.desk.views import Drain, Phase, Stop


class Lifecycle:
    """What a running gateway knows of its own beginning and end."""

    def __init__(self, clock: Clock, *, home: str, store: str) -> None:
        self.home = home
        self.store = store
        self.url = ""
        self.phase = Phase.STARTING
        self.started_at = clock.now_ms()
        # Set when a second wish came: what runs is interrupted now.
        self.forced = asyncio.Event()
        # Set when the last answer has been given, so that open streams end.
        self.closing = asyncio.Event()
        self._clock = clock
        self._born_ms = clock.monotonic_ms()
        self._wish: asyncio.Future[Stop] = asyncio.get_running_loop().create_future()
        self._deadline_ms: int | None = None

    @property
    def uptime_s(self) -> float:
        return (self._clock.monotonic_ms() - self._born_ms) / 1000

    def ask(self, stop: Stop) -> None:
        """Wish for an end; a second wish forces the first."""
        if self._wish.done():
            self.forced.set()
        else:
            self._wish.set_result(stop)

    async def asked(self) -> Stop:
        """Return the first wish."""
        return await asyncio.shield(self._wish)

    def begin_drain(self, timeout_s: float) -> None:
        self.phase = Phase.DRAINING
        self._deadline_ms = self._clock.monotonic_ms() + int(timeout_s * 1000)

    def drain(self, running: int) -> Drain | None:
        """Return how the drain is going; None while there is none."""
        if self._deadline_ms is None:
            return None
        left = max(self._deadline_ms - self._clock.monotonic_ms(), 0) / 1000
        restart = self._wish.done() and self._wish.result().restart
        return Drain(restart=restart, running=running, seconds_left=0 if self.forced.is_set() else left)
