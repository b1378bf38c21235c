"""Throttles: how often somebody may do something, and exactly how long they have to wait when they may not."""

from __future__ import annotations

import math
from collections import deque

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


class Window:
    """At most so many in any minute.  What turns out not to count is given back."""

    def __init__(self, most: int, clock: Clock) -> None:
        self.most = most
        self._clock = clock
        self._taken: deque[int] = deque()

    def take(self) -> int:
        """Count one and return 0, or return how many seconds to wait until there is room for one."""
        now = self._clock.monotonic_ms()
        while self._taken and self._taken[0] <= now - MINUTE_MS:
            self._taken.popleft()
        if len(self._taken) >= self.most:
            return max(1, math.ceil((self._taken[0] + MINUTE_MS - now) / 1000))
        self._taken.append(now)
        return 0

    def give_back(self) -> None:
        if self._taken:
            self._taken.pop()
