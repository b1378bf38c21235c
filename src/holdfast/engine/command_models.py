"""The command /model: which model answers in a conversation."""

from __future__ import annotations

import contextlib

from holdfast.clock import Clock
from holdfast.core.intake import Inbound
from holdfast.core.sessions import Session
from holdfast.engine.command_sessions import opened
from holdfast.errors import Repeated
from holdfast.ids import SessionId
from holdfast.ports import Models
from holdfast.store.store import Store

# With this name the configured model answers again.
DEFAULT = "default"
SHOWN_MAX = 20


class ModelCommand:
    """Shows and chooses the model of a conversation."""

    def __init__(self, store: Store, clock: Clock, models: Models) -> None:
        self._store = store
        self._clock = clock
        self._models = models

    async def run(self, session: Session | None, message: Inbound, wanted: str) -> tuple[Session | None, str]:
        """Do it; returns the session that it concerns, and what to tell.  Raises `Rejected` for an unknown name."""
        now = self._clock.now_ms()
        if not wanted:
            with contextlib.suppress(Repeated):
                await self._store.intake.remember(message.once(), session.id if session else SessionId(""), now)
            return session, await self._shown(session, is_operator=message.is_operator)
        found = "" if wanted.lower() == DEFAULT else await self._models.find(wanted, is_operator=message.is_operator)
        # The configured model is kept as none, so that the conversation goes along when the configuration changes.
        kept = "" if found == self._models.configured else found
        session = session or await opened(self._store, message, now)
        changed = await self._store.sessions.change(session.id, model=kept, once=message.once(), now_ms=now)
        return changed, f"{changed.model or self._models.configured} answers in this conversation from the next message on."

    async def _shown(self, session: Session | None, *, is_operator: bool) -> str:
        if not (configured := self._models.configured):
            return "No model is configured: the built-in demonstration answers. `holdfast init` sets one up."
        chosen = session.model if session else None
        names = [name for name in await self._models.offered(is_operator=is_operator) if name != configured]
        lines = [f"{chosen or configured} answers in this conversation. You can choose:", f"- {configured} (configured)"]
        lines += [f"- {name}" for name in names[:SHOWN_MAX]]
        if len(names) > SHOWN_MAX:
            lines.append(f"- and {len(names) - SHOWN_MAX} more")
        return "\n".join([*lines, "Choose with /model NAME, and go back with /model default."])
