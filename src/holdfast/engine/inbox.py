"""The inbox: the one way in."""

from __future__ import annotations

from dataclasses import replace

from holdfast.clock import Clock
from holdfast.core.intake import Inbound, Receipt
from holdfast.core.redaction import Redaction
from holdfast.ids import new_session_id, new_turn_id
from holdfast.ports import Store


class Inbox:
    """What a channel may ask of the gateway."""

    def __init__(self, store: Store, redaction: Redaction, clock: Clock) -> None:
        self._store = store
        self._redaction = redaction
        self._clock = clock

    async def accept(self, message: Inbound) -> Receipt:
        """Return once durable, or refused for good; a repeated `dedupe_key` returns the first receipt."""
        now = self._clock.now_ms()
        safe = replace(message, text=self._redaction.text(message.text))
        return await self._store.intake.accept(safe, new_turn_id(now), new_session_id(now), now)
