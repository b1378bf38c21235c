"""Fairness: how the places for running turns are shared between owners, and how much of the gateway a tenant may use.

The operator has no quota, and part of the places is kept for them.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from holdfast.core.keys import LOCAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How many turns of each owner run on a node, and how many may.  0 is any number."""

    running: Mapping[str, int] = field(default_factory=dict[str, int])
    # Turns of one tenant, and of all of them together.
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
        """Return how many places each owner gets: one after the other goes to whoever has the fewest."""
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
class Quota:
    """How much of a store one tenant may use.  0 is any number."""

    # Turns that wait to be run.
    queued: int = 0
    sessions: int = 0
    # What was sent in messages, with their pictures.
    bytes: int = 0
    jobs: int = 0
