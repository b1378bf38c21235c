"""How the lives of a scratch gateway end."""

from __future__ import annotations

import math
import signal
import time
from collections import Counter
from dataclasses import dataclass, field

# Every so many lives one ends by SIGTERM, with less time than its turns would need; all others by SIGKILL.
LIVES_PER_STOP = 3


@dataclass(slots=True)
class Ends:
    """How all lives of a drill ended."""

    # How many turns the stops cut, as the lives said.
    drained: int = 0
    ends: Counter[int] = field(default_factory=Counter[int])
    odd_ends: list[str] = field(default_factory=list[str])
    # When each life was over, in milliseconds since 1970.
    ends_ms: list[int] = field(default_factory=list[int])

    def end(self, life: int, by: signal.Signals, status: int) -> None:
        """Record how a life ended: by a kill at once, or by a stop after a drain."""
        self.ends[by] += 1
        self.ends_ms.append(math.ceil(time.time() * 1000))
        if status != (0 if by is signal.SIGTERM else -by):
            self.odd_ends.append(f"life {life} was sent {by.name} and ended with {status}")


def end_of(life: int) -> signal.Signals:
    """Return what ends a life."""
    return signal.SIGTERM if life % LIVES_PER_STOP == LIVES_PER_STOP - 1 else signal.SIGKILL
