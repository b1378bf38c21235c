"""When a conversation that has rested long enough gives way to a new one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

# The end reason of a session that gave way is the reason and this: idle_reset, daily_reset.
RESET_SUFFIX = "_reset"


class When(StrEnum):
    NONE = "none"
    IDLE = "idle"
    DAILY = "daily"
    BOTH = "both"


class Reason(StrEnum):
    """Why a session gave way; the one that follows names it."""

    IDLE = "idle"
    DAILY = "daily"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reset:
    """The operator's choice, as it stands for one message.  `day_began_at` is the last daily reset that has passed."""

    when: When = When.NONE
    idle_ms: int = 24 * 3_600_000
    day_began_at: int = 0

    def due(self, *, last_used_at: int, now_ms: int, held: bool) -> Reason | None:
        """Return why a session last used then gives way now.

        One that is `held` never does: a turn of it is in flight or waits to be resumed.
        """
        if held:
            return None
        if self.when in (When.IDLE, When.BOTH) and now_ms - last_used_at >= self.idle_ms:
            return Reason.IDLE
        if self.when in (When.DAILY, When.BOTH) and last_used_at < self.day_began_at <= now_ms:
            return Reason.DAILY
        return None
