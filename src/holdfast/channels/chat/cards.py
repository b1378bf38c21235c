"""Edits the messages that ask questions, so that each says how its question was settled."""

from __future__ import annotations

import logging

from holdfast.channels.chat.account import ChatAccount
from holdfast.channels.chat.budget import Budget
from holdfast.channels.chat.port import Outgoing
from holdfast.channels.chat.presses import how_settled
from holdfast.clock import Clock
from holdfast.core.chats import place_named
from holdfast.core.showing import SettledCard, closed
from holdfast.errors import OutcomeUnknown, Rejected, Unavailable
from holdfast.store.store import Store

log = logging.getLogger(__name__)


class Cards:
    """The question messages of one account.  An edit that is made twice changes nothing."""

    def __init__(self, account: ChatAccount, store: Store, budget: Budget, clock: Clock) -> None:
        self._account = account
        self._store = store
        self._budget = budget
        self._clock = clock

    async def look(self) -> None:
        """Edit the messages whose question was settled.  One that cannot be edited now is edited later."""
        for each in await self._store.cards.settled(self._account.name):
            try:
                await self._edit(each)
            except OutcomeUnknown:
                continue
            except Unavailable as error:
                log.info("%s cannot be edited now: %s", each.card.delivery_id, error)
                continue
            except Rejected as error:
                # The message is gone, or too old.
                log.info("%s cannot be edited: %s", each.card.delivery_id, error)
            except Exception:  # The edge to a platform: what fails here must not keep the account from working.
                log.exception("%s cannot be edited", each.card.delivery_id)
            await self._store.cards.close(each.card.delivery_id, self._clock.now_ms())

    async def _edit(self, settled: SettledCard) -> None:
        message_id = settled.delivery.receipt
        if message_id is None or not self._account.capabilities.edits:
            return
        # Where it was sent: a chat that has moved since counts its messages anew.
        place = place_named(settled.delivery.target.partition(":")[2])
        message = Outgoing(text=closed(settled.delivery.text, how_settled(settled.answer)))
        await self._budget.call(place, lambda: self._account.platform.edit(place, message_id, message))
