"""Triage: where many old messages wait in one chat, its people decide what becomes of them.

They come after a time in which the gateway was down, or from before its very first start.  What is decided is the press of
a button `b:<backlog>:<choice>`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from enum import StrEnum

from holdfast.channels.chat.account import ChatAccount, ChatServices
from holdfast.core.chats import Place, StagedEvent, place_of
from holdfast.core.delivery import Button, Delivery, Extra
from holdfast.core.keys import LOCAL
from holdfast.store.channels import ChannelStore

_PREFIX = "bkl_"


class BacklogChoice(StrEnum):
    ALL = "all"
    LAST = "last"
    DROP = "drop"


_LABELS = {
    BacklogChoice.ALL: "Answer all",
    BacklogChoice.LAST: "Answer the last",
    BacklogChoice.DROP: "Drop them",
}


async def settle(channels: ChannelStore, backlog_id: str, choice: BacklogChoice) -> str:
    """Do what a person decided about a backlog, and return what to tell them.  A second press changes nothing."""
    if not backlog_id.startswith(_PREFIX):
        return "I do not know these messages."
    match choice:
        case BacklogChoice.ALL:
            count, done = await channels.release_held(backlog_id), "I answer all of them"
        case BacklogChoice.LAST:
            count, done = await channels.release_held(backlog_id, last=True), "I answer the last one"
        case BacklogChoice.DROP:
            count, done = await channels.drop_held(backlog_id), "I leave them alone"
    return f"{done}." if count else "That was decided before."


class Triage:
    """The backlogs of one account."""

    def __init__(self, account: ChatAccount, services: ChatServices) -> None:
        self._account = account
        self._services = services

    async def park(self, staged: Sequence[StagedEvent]) -> None:
        """Let messages of one chat wait for a decision, and ask for it."""
        place = place_of(staged[0].event)
        backlog_id = _backlog_id(self._account.name, place, staged[0].number)
        numbers = [each.number for each in staged]
        asking = self._asking(backlog_id, place, len(staged))
        await self._services.store.channels.hold(self._account.name, numbers, backlog_id, asking)

    def _asking(self, backlog_id: str, place: Place, count: int) -> Sequence[Delivery]:
        text = f"{count} messages came here while I was away, over an hour ago. What shall I do with them?"
        buttons = tuple((Button(label=label, value=f"b:{backlog_id}:{choice}"),) for choice, label in _LABELS.items())
        return self._services.notice(LOCAL, self._account.target(place), text, backlog_id, Extra(buttons=buttons))


def _backlog_id(account: str, place: Place, number: int) -> str:
    """Return the id of a backlog, the same each time that its first message is found."""
    named = f"{account}\0{place.chat_id}\0{number}"
    return _PREFIX + hashlib.sha256(named.encode("utf-8", "surrogatepass")).hexdigest()[:20]
