"""Tells the operator in the home chat what happened that they should know of, and would not see otherwise."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from holdfast.channels.chat.account import Home
from holdfast.clock import Clock
from holdfast.core import delivery
from holdfast.core.chats import AccountState
from holdfast.core.delivery import Delivery
from holdfast.core.keys import LOCAL
from holdfast.core.news import News
from holdfast.errors import Stale, Unavailable
from holdfast.store.store import Store

log = logging.getLogger(__name__)

LOOK_MS = 10_000


class HomeNews:
    """Looks for news, and writes one message about all of it.  Every node looks, and one of them writes."""

    def __init__(self, store: Store, homes: Mapping[str, Home], clock: Clock) -> None:
        """`homes` are the home chats by the accounts that have them, the first that can be reached is used."""
        self._store = store
        self._homes = homes
        self._clock = clock

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            try:
                await self.look()
            except Stale as stale:
                log.debug("the operator is told elsewhere: %s", stale)
            except Unavailable as error:
                log.warning("cannot look for news: %s", error)
            await self._clock.sleep_ms(LOOK_MS)

    async def look(self) -> Sequence[Delivery]:
        """Write a message where there is news and a home chat that can be reached; returns its parts.

        Raises `Stale` where another node writes one now.
        """
        now = self._clock.now_ms()
        if not await self._store.news.is_due(now) or (home := await self._reachable()) is None:
            return ()

        def compose(news: News) -> Sequence[Delivery]:
            text = news.text(now)
            return delivery.notice(f"news:{now}", LOCAL, home.target, home.split(text), now) if text else ()

        return await self._store.news.tell(compose, now)

    async def _reachable(self) -> Home | None:
        """Return the first home chat whose account is connected.  Without one the news waits."""
        connected = {each.name for each in await self._store.channels.list() if each.state is AccountState.CONNECTED}
        return next((home for account, home in self._homes.items() if account in connected), None)
