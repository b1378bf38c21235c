"""Messages that come in over a channel or the OpenAI API, which parse and authorise them first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.operations.caller import Caller

if TYPE_CHECKING:
    # A command that asks a running gateway does not import these.
    from holdfast.clock import Clock
    from holdfast.core.intake import Inbound, Receipt
    from holdfast.core.retries import Try
    from holdfast.engine.engine import Engine
    from holdfast.ids import TurnId
    from holdfast.store.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Messages:
    """The way in.  None of it is an operation: the endpoints of the OpenAI API and of webhooks are written by hand."""

    store: Store
    caller: Caller
    clock: Clock
    engine: Engine

    async def accept(self, message: Inbound) -> Receipt:
        """Return once a message is durable.  The channel has parsed and authorised it."""
        return await self.engine.inbox.accept(message)

    async def seen(self, key: str) -> Receipt | None:
        """Return the receipt of the message that a key was first used for; None if it never was."""
        return await self.store.intake.seen(key)

    async def rejoin(self, this: Try) -> Receipt | None:
        """Return the receipt of the request that a try repeats; one that was cut off goes on.  None if there is none."""
        return await self.store.intake.rejoin(this, self.caller.owner, self.clock.now_ms())

    async def heard(self, turn_ids: Sequence[TurnId]) -> None:
        """Remember that clients have read these answers: no request joins them any more."""
        await self.store.intake.heard(turn_ids)
