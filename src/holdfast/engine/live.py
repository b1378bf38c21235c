"""The sessions that this node keeps at hand between their turns."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Sequence

from holdfast.engine.wake import Wake
from holdfast.ids import SessionId

# With this many times as many sessions as there should be, none waits for its provider: the debt is paid in the background.
PRESSED = 2


class LiveSessions:
    """Sessions at hand, the least recently used first."""

    def __init__(self, live_max: int) -> None:
        self.wake = Wake()
        self.live_max = live_max
        # Sessions that are being let go.
        self.leaving: set[SessionId] = set()
        # Each with the number of its last use, which tells whether it has been used since.
        self.uses: OrderedDict[SessionId, int] = OrderedDict()
        self._numbers = itertools.count()

    @property
    def sessions(self) -> Sequence[SessionId]:
        return tuple(self.uses)

    def enter(self, session_id: SessionId) -> None:
        """Say that a turn of a session begins."""
        self.uses[session_id] = next(self._numbers)
        self.uses.move_to_end(session_id)
        if self.over > 0:
            self.wake.set()

    @property
    def over(self) -> int:
        """How many more sessions have to be let go than already are."""
        return len(self.uses) - len(self.leaving) - self.live_max

    @property
    def is_pressed(self) -> bool:
        return len(self.uses) > PRESSED * self.live_max
