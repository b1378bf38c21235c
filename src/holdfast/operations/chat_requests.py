"""Requests of chat platforms that send what people do, instead of being asked for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.clock import Clock
from holdfast.errors import NotFound

if TYPE_CHECKING:
    # A command that asks a running gateway does not import these.
    from holdfast.channels.chat.account import ChatAccount
    from holdfast.channels.chat.port import Posted
    from holdfast.store.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequests:
    """What platforms post to the accounts of this gateway.  The platform proves itself, so its sender needs no key."""

    store: Store
    clock: Clock
    accounts: Mapping[str, ChatAccount]

    async def receive(self, name: str, posted: Posted) -> int:
        """Return how many events were new in a request, once they are durable.

        Raises `NotFound` where there is no such account, `NotTrusted` where the platform did not send it, and `BadParameter`
        where it cannot be read.
        """
        if (account := self.accounts.get(name)) is None:
            raise NotFound(f"there is no account {name}")
        batch = await account.platform.receive(posted)
        if batch.events:
            await self.store.channels.stage_request(name, batch.events, self.clock.now_ms())
        await batch.acknowledge()
        return len(batch.events)
