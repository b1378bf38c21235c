"""Time that cannot jump: a clock is followed while it agrees with the time that has passed, and doubted when it does not.

The clock that is followed is the database's, or the machine's own where the store is embedded.  Time that has passed is
counted by a clock that cannot be set, and that goes on while the machine sleeps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

# Time servers correct a clock in steps of seconds, and the answer of a database takes some time.
STEP_MAX_MS = 30_000
# A clock that stays where it jumped to is right after all: the machine had no time at its start, or stood still.
BELIEVED_AFTER_MS = 10 * 60_000
# 2025-01-01, before this was written.  A machine without a clock of its own wakes up long before that.
EARLIEST_MS = 1_735_689_600_000
# Of a clock that is this far off people are told.
OFF_MAX_MS = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Steady:
    """What the time is, as an offset to the milliseconds that have passed.

    `doubted_ms` is another offset that the clock has shown since `since_ms`, and that is not believed yet.
    """

    offset_ms: int
    doubted_ms: int | None = None
    since_ms: int = 0

    def at(self, passed_ms: int) -> int:
        """Return the time at a moment of the time that has passed."""
        return passed_ms + self.offset_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class BootClock:
    """What a node knows of the time.

    `offset_ms` is the time at the start of its machine, which `boot` identifies.  `off_ms` is how far the machine's clock is
    ahead.
    """

    boot: str
    offset_ms: int
    off_ms: int


def follow(before: Steady | None, clock_ms: int, passed_ms: int) -> Steady:
    """Return what the time is after a look at the clock.

    The first look is believed, and so is a correction of a time that cannot be.  A small step is followed at once.  A jump,
    in either direction, changes nothing until the clock has stayed there for long enough.
    """
    seen = clock_ms - passed_ms
    if before is None or before.at(passed_ms) < EARLIEST_MS <= clock_ms or _agree(seen, before.offset_ms):
        return Steady(offset_ms=seen)
    if before.doubted_ms is None or not _agree(seen, before.doubted_ms):
        return replace(before, doubted_ms=seen, since_ms=passed_ms)
    return Steady(offset_ms=seen) if passed_ms - before.since_ms >= BELIEVED_AFTER_MS else before


def off_ms(machine_ms: int, clock_ms: int, steady_ms: int) -> int:
    """Return how far a machine's clock is off: from the clock that is followed, or from the steady time if that is more."""
    return max(machine_ms - clock_ms, machine_ms - steady_ms, key=abs)


def lead(off_ms: int) -> str:
    """Return in words how far a clock is off."""
    return f"{span(abs(off_ms))} {'ahead' if off_ms > 0 else 'behind'}"


def span(duration_ms: float) -> str:
    """Return a duration in words, as exact as people want it."""
    minutes = duration_ms / 60_000
    return (
        f"{duration_ms / 1000:.0f} s" if minutes < 2 else f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.0f} h"
    )


def _agree(one_ms: int, other_ms: int) -> bool:
    return abs(one_ms - other_ms) <= STEP_MAX_MS
