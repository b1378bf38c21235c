"""Reports the results of delegated tasks, and of what people sent to the background.

Each end becomes one message in the conversation that it came from.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Awaitable, Callable

from holdfast.clock import Clock
from holdfast.core.delegation import aside_report, home_of, result_message
from holdfast.core.intake import Inbound, Receipt
from holdfast.core.turns import Turn
from holdfast.engine.tuning import Tuning
from holdfast.errors import NotFound, Rejected, Unavailable
from holdfast.store.store import Store

log = logging.getLogger(__name__)

AT_ONCE_MAX = 100
# Keys are kept for longer, so that the key of a result found within this time tells that it was reported.
LOOK_BACK_MS = 14 * 24 * 3_600_000
# Most looks go only this far back; the first one, and every sixtieth, goes all the way.
RECENT_MS = 10 * 60_000
WHOLE_EVERY = 60


class ChildResults:
    """Every node runs one.  A reported result is known by its key, so a crash at any point repeats nothing."""

    def __init__(self, store: Store, accept: Callable[[Inbound], Awaitable[Receipt]], tuning: Tuning, clock: Clock) -> None:
        self._store = store
        self._accept = accept
        self._tuning = tuning
        self._clock = clock

    async def run(self) -> None:
        """Report results until cancelled."""
        for look in itertools.count():
            try:
                await self.report(RECENT_MS if look % WHOLE_EVERY else LOOK_BACK_MS)
            except Unavailable as error:
                log.warning("cannot look for tasks that have ended: %s", error)
            await self._clock.sleep_ms(self._tuning.poll_ms)

    async def report(self, look_back_ms: int = LOOK_BACK_MS) -> int:
        """Report all results that were not reported yet; return how many."""
        reported = 0
        since = self._clock.now_ms() - look_back_ms
        for child in await self._store.turns.unreported(since, AT_ONCE_MAX):
            reported += await self._report(child)
        for child in await self._store.turns.unreported_asides(since, AT_ONCE_MAX):
            reported += await self._report(child)
        return reported

    async def _report(self, child: Turn) -> bool:
        try:
            await self._accept(await self._message(child))
        except NotFound:
            # The conversation that it came from was deleted.
            return False
        except Rejected as error:
            log.warning("the result of %s cannot be reported yet: %s", child.id, error)
            return False
        return True

    async def _message(self, child: Turn) -> Inbound:
        store = self._store
        entries, asked = await store.journal.read_turn(child.id), await store.turns.asked(child.id)
        if child.parent_turn_id is None:
            aside = await store.sessions.get(child.session_id)
            return aside_report(child, entries, asked, aside, await store.sessions.get(home_of(aside)))
        parent = await store.turns.get(child.parent_turn_id)
        return result_message(child, entries, asked, await store.sessions.get(parent.session_id), parent)
