"""The life of a gateway: ready, draining, over; and the wish to end it, which anyone may have and a later one replaces."""

from __future__ import annotations

import asyncio
import secrets

from holdfast.clock import Clock
from holdfast.operations.gateway import Drain, Phase, Stop


class Lifecycle:
    """What a running gateway knows of its own beginning and end."""

    def __init__(self, clock: Clock, *, home: str, store: str, url: str = "") -> None:
        self.home = home
        self.store = store
        # Different in every process.
        self.process = secrets.token_urlsafe(16)
        self.url = url
        self.phase = Phase.STARTING
        self.started_at = clock.now_ms()
        # Set when a later wish came: what runs is interrupted now.
        self.forced = asyncio.Event()
        # Set when the last answer has been given, so that open streams end.
        self.closing = asyncio.Event()
        self._clock = clock
        self._born_ms = clock.monotonic_ms()
        self._wish: Stop | None = None
        self._wished = asyncio.Event()
        self._deadline_ms: int | None = None

    @property
    def uptime_s(self) -> float:
        return (self._clock.monotonic_ms() - self._born_ms) / 1000

    def ready(self) -> None:
        self.phase = Phase.READY

    def ask(self, stop: Stop) -> None:
        """Wish for an end.  A later wish replaces the first and ends its timeout."""
        if self._wish:
            self.forced.set()
        self._wish = stop
        self._wished.set()

    @property
    def is_asked(self) -> bool:
        """Whether anyone wishes for an end yet."""
        return self._wish is not None

    @property
    def wish(self) -> Stop:
        """The last wish; call it after `asked` has returned, because before that there is none."""
        return self._wish or Stop()

    async def asked(self) -> Stop:
        """Return the wish once there is one."""
        await self._wished.wait()
        return self.wish

    def begin_drain(self, timeout_s: float) -> None:
        self.phase = Phase.DRAINING
        self._deadline_ms = self._clock.monotonic_ms() + int(timeout_s * 1000)

    def drain(self, running: int) -> Drain | None:
        """Return how the drain is going; None while there is none."""
        if self._deadline_ms is None:
            return None
        left = max(self._deadline_ms - self._clock.monotonic_ms(), 0) / 1000
        return Drain(restart=self.wish.restart, running=running, seconds_left=0 if self.forced.is_set() else left)
