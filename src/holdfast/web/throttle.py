"""Throttles: how often a client may do something, and how long it has to wait."""

from __future__ import annotations

from holdfast.clock import Clock

MINUTE_MS = 60_000


class Bucket:
    """Tokens that come back evenly: `per_minute` of them in a minute, and no more at once.  A refusal takes none."""

    def __init__(self, per_minute: int, clock: Clock) -> None:
        self._rate = per_minute
        self._clock = clock
        # Whole parts of a token, of which one is worth a minute and every millisecond brings as many as the rate says.
        self._left = per_minute * MINUTE_MS
        self._at_ms = clock.monotonic_ms()

    def wait_s(self) -> int:
        """Return in how many whole seconds there will be a token; 0 when there is one."""
        now = self._clock.monotonic_ms()
        self._left = min(self._rate * MINUTE_MS, self._left + (now - self._at_ms) * self._rate)
        self._at_ms = now
        missing = max(0, MINUTE_MS - self._left)
        return -(-missing // (self._rate * 1000))

    def take(self) -> int:
        """Take a token and return 0, or return how many seconds to wait for one."""
        wait_s = self.wait_s()
        if not wait_s:
            self._left -= MINUTE_MS
        return wait_s
