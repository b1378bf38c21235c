"""The keyring: which keys open something just now, known by their digests."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from contextlib import AbstractContextManager

from holdfast.clock import Clock
from holdfast.core.keys import Key, digest
from holdfast.ids import KeyId
from holdfast.operations.keys import opens_api
from holdfast.store.access import KeyStore
from holdfast.store.cache import REFRESH_S, Cache
from holdfast.store.database import Wakes
from holdfast.web.open_connections import OpenConnections
from holdfast.web.principal import OPERATOR, Principal
from holdfast.web.protocol import Connection
from holdfast.web.throttle import Bucket

TOPIC = "keys"


class Keyring(Cache):
    """The key of the configuration and those of the store.  While the store is away, what was last known counts."""

    def __init__(self, keys: KeyStore, wakes: Wakes, clock: Clock, api_key: str = "", refresh_s: float = REFRESH_S) -> None:
        super().__init__(TOPIC, wakes, refresh_s)
        self._keys = keys
        self._clock = clock
        self._own = digest(api_key) if api_key else ""
        self._live: Mapping[str, Key] = {}
        self._buckets: dict[KeyId, Bucket] = {}
        self._connections = OpenConnections[KeyId]()

    @property
    def closes(self) -> bool:
        """Whether there is a key for the API, so that one is asked for."""
        return bool(self._own) or any(map(opens_api, self._live.values()))

    def find(self, shown: str) -> Principal | None:
        """Return the principal of a key; None when the key is not valid.

        It looks up and compares digests, so that the time it takes says nothing about any key.
        """
        looked_up = digest(shown)
        if hmac.compare_digest(looked_up, self._own):
            return OPERATOR
        key = self._live.get(looked_up)
        if key is None or not hmac.compare_digest(looked_up, key.digest):
            return None
        return Principal(owner=key.owner, scopes=frozenset(key.scopes), key_id=key.id)

    def admit(self, principal: Principal) -> int:
        """Count a request of a key; return 0, or how many seconds it has to wait."""
        bucket = self._buckets.get(principal.key_id) if principal.key_id else None
        return bucket.take() if bucket else 0

    def held(self, key_id: KeyId, connection: Connection) -> AbstractContextManager[None]:
        """Let a connection be used by the right of a key: it is closed when the key opens nothing any more."""
        return self._connections.held(key_id, connection)

    async def _look(self) -> None:
        live = {key.digest: key for key in await self._keys.list() if key.revoked_at is None}
        limited = {key.id: key.rate_limit for key in live.values() if key.rate_limit}
        # The limit of a key never changes, so its bucket stays, with what is used of it.
        self._buckets = {
            key_id: self._buckets.get(key_id) or Bucket(rate, self._clock) for key_id, rate in limited.items()
        }  # fmt: skip
        self._live = live
        for key_id in self._connections.rights - {key.id for key in live.values()}:
            self._connections.withdraw(key_id)
