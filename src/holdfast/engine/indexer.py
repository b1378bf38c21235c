"""The indexer adds what was said to the index of words."""

from __future__ import annotations

import logging

from holdfast.clock import Clock
from holdfast.engine.tuning import Tuning
from holdfast.errors import Stale, Unavailable
from holdfast.store.passages import PassageStore

log = logging.getLogger(__name__)

# After a step it rests this many times as long as the step took, because turns come first; but at least this long.
REST_TIMES = 4
REST_MIN_MS = 2


class Indexer:
    """Indexes in small steps, at a fifth of its speed, because turns come first."""

    def __init__(self, passages: PassageStore, tuning: Tuning, clock: Clock) -> None:
        self._passages = passages
        self._tuning = tuning
        self._clock = clock

    async def run(self) -> None:
        """Index until cancelled."""
        while True:
            began = self._clock.monotonic_ms()
            if await self._step():
                rest_ms = max(REST_TIMES * (self._clock.monotonic_ms() - began), REST_MIN_MS)
            else:
                rest_ms = self._tuning.poll_ms
            await self._clock.sleep_ms(rest_ms)

    async def _step(self) -> int:
        try:
            return await self._passages.index()
        except (Stale, Unavailable) as error:
            log.warning("cannot index: %s", error)
            return 0
