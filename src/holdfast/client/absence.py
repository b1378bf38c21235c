"""The absence of a gateway: it is waited for, and the user is told what the command waits for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from holdfast.errors import Unavailable

# A gateway that restarts is back within this; a client waits for it.
ABSENCE_MAX_S = 60
# A user who waits longer than this wants to know what for.
NOTICED_AFTER_S = 2
_RETRY_S = 0.2


def unnoticed() -> None:
    """Say nothing while a gateway is away."""


class Absence:
    """How long the gateway has been away.  The user is told once that it is not there."""

    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell = tell
        self._told = False
        self._since: float | None = None

    def over(self) -> None:
        self._told = False
        self._since = None

    async def wait(self) -> None:
        """Wait before the next try.  Raises `Unavailable` when it has been away for too long."""
        now = time.monotonic()
        self._since = self._since or now
        if now - self._since > ABSENCE_MAX_S:
            raise Unavailable("the gateway has not come back")
        if now - self._since > NOTICED_AFTER_S and not self._told:
            self._told = True
            self._tell()
        await asyncio.sleep(_RETRY_S)
