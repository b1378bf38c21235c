"""A breaker remembers whether a service answers, so that a caller who can do without it need not wait to find out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

PAUSE_FIRST_MS = 30_000
PAUSE_MAX_MS = 300_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """What is known of the far side: how often in a row it failed, and until when it is not asked again.

    Until it is proven, one caller at a time asks, on behalf of all, and may wait longer than the others would.  Times
    are monotonic milliseconds.
    """

    failures: int = 0
    open_until: int = 0
    is_proven: bool = False
    is_tried: bool = False

    def may_ask(self, now_ms: int) -> bool:
        """Return whether a caller may ask now."""
        return not self.is_tried and now_ms >= self.open_until

    @property
    def is_unknown(self) -> bool:
        """Whether it has neither answered nor failed yet."""
        return not self.is_proven and not self.failures

    def asked(self) -> Self:
        """Return the breaker when a caller asks; until it is proven, no other caller may ask meanwhile."""
        return self if self.is_proven else self.tried()

    def tried(self) -> Self:
        """Return the breaker when one waits for all."""
        return replace(self, is_tried=True)

    def answered(self) -> Self:
        """Return the breaker after an answer, however late."""
        return type(self)(is_proven=True)

    def failed(self, now_ms: int) -> Self:
        """Return the breaker after a failure; those that were under way together count as one."""
        if now_ms < self.open_until:
            return self
        failures = self.failures + 1
        return type(self)(failures=failures, open_until=now_ms + pause_ms(failures))


def pause_ms(failures: int) -> int:
    """Return for how long it is not asked after this many failures in a row."""
    return min(PAUSE_FIRST_MS << min(failures - 1, 8), PAUSE_MAX_MS)
