"""The owners whose turns may use what is the operator's: those of the configuration, and trusted people."""

from __future__ import annotations

from collections.abc import Collection

from holdfast.store.cache import Cache
from holdfast.store.database import Wakes
from holdfast.store.people import TOPIC, PeopleStore


class TrustedOwners(Cache):
    """Says of an owner whether the operator trusts them.  A change counts at once, without a restart."""

    def __init__(self, configured: Collection[str], people: PeopleStore, wakes: Wakes) -> None:
        super().__init__(TOPIC, wakes)
        self._configured = frozenset(configured)
        self._people = people
        self._owners = self._configured

    def __contains__(self, owner: object) -> bool:
        return owner in self._owners

    async def _look(self) -> None:
        self._owners = self._configured | await self._people.trusted()
