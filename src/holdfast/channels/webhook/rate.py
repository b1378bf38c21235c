"""The rate of a route: at most so many deliveries in any minute."""

from __future__ import annotations

import math
from collections import deque

from holdfast.clock import Clock

MINUTE_MS = 60_000


class RateWindow:
    """The deliveries of the last minute.  One that turns out to be a duplicate is given back."""

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
