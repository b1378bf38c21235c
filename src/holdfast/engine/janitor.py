"""The janitor deletes what has outlived its retention, and gives the space back."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from holdfast.clock import Clock
from holdfast.engine.tuning import Tuning
from holdfast.engine.wake import Wake
from holdfast.errors import Unavailable
from holdfast.store.store import Store

log = logging.getLogger(__name__)


class Janitor:
    """Retention, now and then; and the rows of removed sessions, as soon as it is told of them."""

    def __init__(self, store: Store, kept_days: Mapping[str, int], tuning: Tuning, clock: Clock) -> None:
        self._store = store
        self._kept_days = kept_days
        self._tuning = tuning
        self._clock = clock
        self.wake = Wake()

    async def run(self) -> None:
        """Prune until cancelled."""
        due_ms = self._clock.monotonic_ms()
        while True:
            try:
                if self._clock.monotonic_ms() >= due_ms:
                    await self._retain()
                    due_ms = self._clock.monotonic_ms() + self._tuning.retention_ms
                while await self._store.sessions.sweep() or await self._store.give_back():
                    pass
            except Unavailable as error:
                log.warning("cannot prune: %s", error)
            await self.wake.wait(self._tuning.retention_ms)

    async def _retain(self) -> None:
        pruned = await self._store.enforce_retention(self._kept_days, self._clock.now_ms())
        if pruned:
            log.info("pruned %d ended sessions", pruned)
