"""The janitor deletes what has outlived its retention."""

from __future__ import annotations

import logging

from holdfast.clock import Clock
from holdfast.engine.settings import Settings
from holdfast.errors import Unavailable
from holdfast.ports import Store

log = logging.getLogger(__name__)


class Janitor:
    """Retention, now and then."""

    def __init__(self, store: Store, settings: Settings, clock: Clock) -> None:
        self._store = store
        self._settings = settings
        self._clock = clock

    async def run(self) -> None:
        """Prune until cancelled."""
        while True:
            try:
                pruned = await self._store.enforce_retention(self._settings.one_shot_days, self._clock.now_ms())
            except Unavailable as error:
                log.warning("cannot prune: %s", error)
            else:
                if pruned:
                    log.info("pruned %d ended sessions", pruned)
            await self._clock.sleep_ms(self._settings.retention_ms)
