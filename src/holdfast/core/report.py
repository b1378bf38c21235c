"""The boot report: what a gateway found when it started, and why each of it is as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.core.recovery import Standing, Swept
from holdfast.core.sessions import STRIKES_MAX
from holdfast.ids import TurnId

# So many are named; who wants to see more asks for the list of turns.
NAMED_MAX = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class BootReport:
    """What was taken over from earlier nodes, and what stood waiting then."""

    at: int
    swept: Swept
    standing: Standing

    def lines(self) -> list[str]:
        """Return the report for people, a line for each kind of thing that was found."""
        return self._taken_over() + self._waiting() or ["Nothing was left over from an earlier run."]

    def news(self) -> list[str]:
        """Return what of it the operator should hear of; nothing after a clean stop that left no work behind."""
        waits = self.standing.waiting or self.standing.resumable
        return self._taken_over() + self._waiting() if self.swept.total or waits else []

    def _taken_over(self) -> list[str]:
        cut, swept = self.swept.turns, self.swept
        found = [
            _named(cut.continued, "cut off by a crash: continued without waiting for anyone"),
            _named(cut.rested, "cut off by a crash: resumed by the next message, or by /resume"),
            _named(cut.suspended, "cut off by a crash: session suspended, as gateway.on_crash says"),
            _named(cut.given_up, f"interrupted {STRIKES_MAX} times in a row: given up, session suspended"),
            _counted(swept.released, "message", "taken up and not begun: queued again"),
            _counted(swept.deliveries, "delivery", "on the way: may or may not have arrived", "deliveries"),
            _counted(swept.segments, "memory commit", "under way: repeated under the same id"),
        ]
        return [line for line in found if line]

    def _waiting(self) -> list[str]:
        standing = self.standing
        found = [
            _counted(standing.queued, "message", "waiting to be answered"),
            _counted(standing.waiting, "turn", "waiting for an answer from a person"),
            _counted(standing.resumable, "conversation", "to be resumed by the next message"),
        ]
        return [line for line in found if line]


def _named(turns: Sequence[TurnId], what: str) -> str:
    if not turns:
        return ""
    more = f", and {len(turns) - NAMED_MAX:,} more" if len(turns) > NAMED_MAX else ""
    return f"{_counted(len(turns), 'turn', what)} ({', '.join(turns[:NAMED_MAX])}{more})"


def _counted(count: int, noun: str, what: str, nouns: str | None = None) -> str:
    if not count:
        return ""
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'} {what}"
