"""Replays: a signature that comes again is the delivery that it came with first, with any id beside it."""

from __future__ import annotations

from holdfast.channels.webhook.signatures import TOLERANCE_S
from holdfast.clock import Clock

# An older signature, or one from further ahead, is refused for its time.
REPLAY_MS = 2 * TOLERANCE_S * 1_000
REPLAYS_MAX = 100_000


class Replays:
    """The delivery id that each signature came with first.

    An attacker who overheard a signed delivery can send it again with any id that the signature does not cover.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._first: dict[tuple[str, str], tuple[str, int]] = {}

    def __len__(self) -> int:
        return len(self._first)

    def first(self, route: str, mark: str, delivery: str) -> str:
        """Return the id with which a route saw a signature for the first time."""
        now = self._clock.monotonic_ms()
        while self._first and (len(self) >= REPLAYS_MAX or self._oldest_ms <= now - REPLAY_MS):
            del self._first[next(iter(self._first))]
        return self._first.setdefault((route, mark), (delivery, now))[0]

    @property
    def _oldest_ms(self) -> int:
        return next(iter(self._first.values()))[1]
