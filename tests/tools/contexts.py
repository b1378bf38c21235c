"""Where the calls of these tests are made: a session, a turn, and a call of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from holdfast.agent.context_files import nothing_granted
from holdfast.agent.tools.hosts import Hosts
from holdfast.agent.tools.port import CallContext
from holdfast.clock import SystemClock
from holdfast.core.sessions import Session
from holdfast.core.turns import Turn
from holdfast.ids import CallId, SessionId, TurnId

START = 1_700_000_000_000
# Nobody has approved any host.
HOSTS = Hosts(nothing_granted, SystemClock())


class Resting:
    """Counts how often somebody rested, and whether they do now."""

    def __init__(self) -> None:
        self.times = 0
        self.now = 0

    @asynccontextmanager
    async def __call__(self) -> AsyncIterator[None]:
        self.times += 1
        self.now += 1
        try:
            yield
        finally:
            self.now -= 1


def call_context(
    session: dict[str, Any] | None = None,
    call_id: str = "call_1",
    rest: Any = None,
    private: tuple[str, ...] = (),
    **turn: Any,
) -> CallContext:
    """Return a place to call from; what is not said is a conversation on Telegram."""
    facts = {"id": SessionId("ses_1"), "key": "telegram:1", "channel": "telegram", "owner": "local", "one_shot": False}
    ids = {"id": TurnId("trn_1"), "session_id": SessionId("ses_1"), "ordinal": 1, "accepted_at": START}
    return CallContext(
        session=Session(**{**facts, "created_at": START, "updated_at": START, **(session or {})}),
        turn=Turn(**{**ids, **turn}),
        call_id=CallId(call_id),
        rest=rest or Resting(),
        private=private,
    )
