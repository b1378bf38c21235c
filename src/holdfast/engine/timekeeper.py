"""The timekeeper has this node follow the database's clock, or its machine's, and says when its machine's is off."""

from __future__ import annotations

import logging
from typing import Protocol

from holdfast.clock import Clock
from holdfast.core.timekeeping import OFF_MAX_MS, BootClock, Steady, follow, off_ms
from holdfast.engine.tuning import Tuning
from holdfast.errors import Unavailable
from holdfast.ids import NodeId
from holdfast.store.nodes import NodeStore

log = logging.getLogger(__name__)

# An answer that took longer says too little about the time.
ANSWER_MAX_MS = 5_000


class Machine(Clock, Protocol):
    """The clocks of a machine."""

    def passed_ms(self) -> int:
        """Return the milliseconds that have passed since the machine was started, also while it slept."""
        ...

    def boot(self) -> str:
        """Return what identifies this start of the machine; nothing where that cannot be known."""
        ...


class SteadyClock:
    """A time that cannot be set: everything that expires, or is due, goes by it."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._steady = follow(None, machine.now_ms(), machine.passed_ms())
        # What to add to the time that has passed for the database's clock; None where the machine's own is followed.
        self._database_ms: int | None = None

    def now_ms(self) -> int:
        return self._steady.at(self.machine.passed_ms())

    def monotonic_ms(self) -> int:
        return self.machine.monotonic_ms()

    async def sleep_ms(self, duration_ms: float) -> None:
        await self.machine.sleep_ms(duration_ms)

    @property
    def offset_ms(self) -> int:
        """The time at the start of the machine."""
        return self._steady.offset_ms

    @property
    def off_ms(self) -> int:
        """How far the machine's own clock is ahead, or, below zero, behind."""
        passed, machine = self.machine.passed_ms(), self.machine.now_ms()
        followed = machine if self._database_ms is None else passed + self._database_ms
        return off_ms(machine, followed, self._steady.at(passed))

    def remember(self, offset_ms: int) -> None:
        """Begin with the time as it was known in an earlier process since the same start of the machine."""
        self._steady = Steady(offset_ms=offset_ms)
        self.look()

    def look(self) -> None:
        """Follow the machine's own clock, unless the database's is known."""
        if self._database_ms is None:
            self._steady = follow(self._steady, self.machine.now_ms(), self.machine.passed_ms())

    def tell(self, database_ms: int, passed_ms: int) -> None:
        """Follow the database's clock from now on, which said this at a moment of the time that has passed."""
        before = None if self._database_ms is None else self._steady
        self._database_ms = database_ms - passed_ms
        self._steady = follow(before, database_ms, passed_ms)


async def steady_clock(machine: Machine, nodes: NodeStore) -> SteadyClock:
    """Return a clock that knows what the store knows of the time."""
    clock = SteadyClock(machine)
    if not await ask(nodes, clock) and (boot := machine.boot()):
        known = await nodes.boot_clock(boot)
        if known is not None:
            clock.remember(known)
    return clock


async def ask(nodes: NodeStore, clock: SteadyClock) -> bool:
    """Have a clock follow the database's; False where that has none, or took too long to answer."""
    before = clock.machine.passed_ms()
    told = await nodes.database_ms()
    after = clock.machine.passed_ms()
    if told is None or after - before > ANSWER_MAX_MS:
        clock.look()
        return False
    clock.tell(told, (before + after) // 2)
    return True


class Timekeeper:
    """Looks at the clocks for as long as the node lives, so that a jump is seen when it happens."""

    def __init__(self, node_id: NodeId, nodes: NodeStore, clock: SteadyClock, tuning: Tuning) -> None:
        self._node_id = node_id
        self._nodes = nodes
        self._clock = clock
        self._tuning = tuning
        self._told: BootClock | None = None

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            try:
                await self.look()
            except Unavailable as error:
                # Time goes on by itself.
                log.debug("cannot ask the store for the time: %s", error)
            await self._clock.sleep_ms(self._tuning.beat_ms)

    async def look(self) -> None:
        """Look at the clocks once, and let the store know what is new."""
        await ask(self._nodes, self._clock)
        off = self._clock.off_ms
        seen = BootClock(
            boot=self._clock.machine.boot(), offset_ms=self._clock.offset_ms, off_ms=off if abs(off) > OFF_MAX_MS else 0
        )
        if self._told and _alike(self._told, seen):
            return
        if seen.off_ms and not (self._told and self._told.off_ms):
            log.warning("the clock of this machine is off by %d s; jobs and expiry go by steady time", seen.off_ms // 1000)
        await self._nodes.note_clock(self._node_id, seen)
        self._told = seen


def _alike(one: BootClock, other: BootClock) -> bool:
    """Return whether two looks say the same, but for what clocks drift."""
    steady = abs(one.offset_ms - other.offset_ms) <= OFF_MAX_MS
    return steady and bool(one.off_ms) == bool(other.off_ms) and abs(one.off_ms - other.off_ms) <= OFF_MAX_MS
