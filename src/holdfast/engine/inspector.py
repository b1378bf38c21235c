"""The inspector reads the whole store now and then, so that damage is known before the damaged rows are needed."""

from __future__ import annotations

import logging

from holdfast.clock import Clock
from holdfast.engine.tuning import Tuning
from holdfast.engine.wake import Wake
from holdfast.errors import Unavailable
from holdfast.store.store import Store

log = logging.getLogger(__name__)


class Inspector:
    """One look some time after the start, one each day, and one when damage was met."""

    def __init__(self, store: Store, tuning: Tuning, clock: Clock) -> None:
        self._store = store
        self._tuning = tuning
        self._clock = clock
        self.wake = Wake()

    async def run(self) -> None:
        """Look until cancelled."""
        known: tuple[str, ...] = ()
        await self.wake.wait(self._tuning.inspection_first_ms)
        while True:
            try:
                found = tuple(await self._store.inspect())
            except Unavailable as error:
                log.warning("cannot inspect the store: %s", error)
            else:
                if found and found != known:
                    log.error("the store is damaged: %s; run: holdfast doctor", "; ".join(found))
                known = found
            # However often the same damage is met, one look at the whole in a while is enough.
            await self._clock.sleep_ms(self._tuning.inspection_pause_ms)
            await self.wake.wait(self._tuning.inspection_ms)
