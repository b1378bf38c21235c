"""Admission: how many turns may begin on a node now, and whose.

The dispatcher measures and claims; what it may claim is decided here.  There are four rules:

- A node runs so many turns at once.  A tenant has a share of these places, and a part of them is kept for the operator.
- A place goes to the owner with the fewest running turns.
- Detached turns, which no client waits for, begin a few at a time, and one after the other while the process is busy.
- A suspect runs alone, so that the next crash shows whether it is the cause.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field

from holdfast.core.keys import LOCAL
from holdfast.core.sessions import alone_ms
from holdfast.core.turns import Turn
from holdfast.ids import TurnId

# One place in this many is kept for the operator.
OPERATORS_PART = 4
# Few at a time, so that a flood of detached turns does not delay the clients that wait.
DETACHED_AT_ONCE = 8
# The process is busy while one round of its event loop takes longer, or while it uses more of a core.  The number of running
# turns says nothing: most of a turn is waiting for a model.
ROUND_MAX_S = 0.008
CORE_SHARE_MAX = 0.7
# Processor time is measured over at least this long.
SHARE_OVER_S = 0.1
# While the process is busy, one detached turn begins after each pause.
BUSY_PAUSE_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How many turns of each owner run on a node, and how many may.  0 is any number."""

    running: Mapping[str, int] = field(default_factory=dict[str, int])
    # Turns of one tenant, and of all tenants together.
    tenant_max: int = 0
    tenants_max: int = 0

    @property
    def is_capped(self) -> bool:
        """Whether a tenant may be kept waiting although there is room."""
        tenants = [count for owner, count in self.running.items() if owner != LOCAL]
        return bool(tenants) and (
            (self.tenant_max > 0 and max(tenants) >= self.tenant_max)
            or (self.tenants_max > 0 and sum(tenants) >= self.tenants_max)
        )

    def and_(self, owner: str, count: int) -> Load:
        """Return the load with more turns of an owner."""
        running = {**self.running, owner: self.running.get(owner, 0) + count}
        return Load(running=running, tenant_max=self.tenant_max, tenants_max=self.tenants_max)

    def shares(self, owners: Iterable[str], room: int) -> dict[str, int]:
        """Return how many places each owner gets: one after the other goes to the owner with the fewest."""
        tenants_left = self._tenants_left(room)
        fewest = [(self.running.get(owner, 0), place, owner) for place, owner in enumerate(owners)]
        heapq.heapify(fewest)
        shares: Counter[str] = Counter()
        while fewest and shares.total() < room:
            count, place, owner = heapq.heappop(fewest)
            if owner != LOCAL:
                if tenants_left <= 0 or 0 < self.tenant_max <= count:
                    continue
                tenants_left -= 1
            shares[owner] += 1
            heapq.heappush(fewest, (count + 1, place, owner))
        return dict(shares)

    def _tenants_left(self, room: int) -> int:
        if not self.tenants_max:
            return room
        return self.tenants_max - sum(count for owner, count in self.running.items() if owner != LOCAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """How many turns may run on a node at once; `tenant_max` is the share of one tenant, 0 is any number."""

    total: int
    tenant_max: int = 0

    def load(self, owners: Iterable[str]) -> Load:
        """Return the load of a node on which turns of these owners run."""
        tenants_max = max(self.total - self.total // OPERATORS_PART, 1)
        return Load(running=Counter(owners), tenant_max=self.tenant_max, tenants_max=tenants_max)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pressure:
    """How busy the process is.  Times are seconds of a monotonic clock; `cpu_s` is the processor time it has used."""

    is_busy: bool = False
    uses_core: bool = False
    measured_s: float = 0.0
    cpu_s: float = 0.0

    def after(self, round_s: float, now_s: float, cpu_s: float) -> Pressure:
        """Return the pressure after another round of the event loop."""
        uses_core, measured_s, cpu_before_s = self.uses_core, self.measured_s, self.cpu_s
        if now_s - measured_s >= SHARE_OVER_S:
            uses_core = cpu_s - cpu_before_s > CORE_SHARE_MAX * (now_s - measured_s)
            measured_s, cpu_before_s = now_s, cpu_s
        is_busy = uses_core or round_s > ROUND_MAX_S
        return Pressure(is_busy=is_busy, uses_core=uses_core, measured_s=measured_s, cpu_s=cpu_before_s)

    def detached_max(self, since_last_s: float) -> int:
        """Return how many detached turns may begin now, when the last one began so long ago."""
        if not self.is_busy:
            return DETACHED_AT_ONCE
        return int(since_last_s >= BUSY_PAUSE_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolation:
    """Keeps a suspect alone: it waits for the node to be empty, though not for ever, and runs alone for a while."""

    # The suspect that waits, and since when.
    waiting: Turn | None = None
    since_ms: int = 0
    # The suspect that runs, and until when nothing begins beside it.
    running: TurnId | None = None
    until_ms: int = 0

    def holds(self, working: Container[TurnId], now_ms: int) -> bool:
        """Return whether a suspect runs alone.  One that only waits for others does not work, and so holds nothing up."""
        return self.running is not None and self.running in working and now_ms < self.until_ms

    def wait(self, suspect: Turn, now_ms: int) -> Isolation:
        """Let a suspect wait; the time counts from when it was first seen."""
        return self if self.waiting == suspect else Isolation(waiting=suspect, since_ms=now_ms)

    def may_begin(self, working: int, now_ms: int) -> bool:
        """Return whether the suspect that waits may begin beside so many working turns."""
        return self.waiting is not None and (not working or now_ms - self.since_ms >= alone_ms(self.waiting.attempt))

    def begin(self, now_ms: int) -> Isolation:
        """Let the suspect that waits run alone."""
        if self.waiting is None:
            return self
        return Isolation(running=self.waiting.id, until_ms=now_ms + alone_ms(self.waiting.attempt))
