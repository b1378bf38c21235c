"""The keyring: which keys open something just now, known by their digests."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
from collections.abc import Mapping

from holdfast.clock import Clock
from holdfast.core.keys import ADMIN, API, Key, digest
from holdfast.errors import Unavailable
from holdfast.ids import KeyId
from holdfast.ports import Keys, Wakes
from holdfast.web.principal import OPERATOR, Principal
from holdfast.web.throttle import Bucket

log = logging.getLogger(__name__)

TOPIC = "keys"
# A hint may be lost, and a key that was revoked on another node must not stay good for long.
REFRESH_S = 3.0


class Keyring:
    """The key of the configuration and those of the store.  While the store is away, what was last known counts."""

    def __init__(self, keys: Keys, wakes: Wakes, clock: Clock, api_key: str = "", refresh_s: float = REFRESH_S) -> None:
        self._keys = keys
        self._wakes = wakes
        self._clock = clock
        self._refresh_s = refresh_s
        self._own = digest(api_key) if api_key else ""
        self._live: Mapping[str, Key] = {}
        self._buckets: dict[KeyId, Bucket] = {}
        self._changed = asyncio.Event()
        self._loading = asyncio.Lock()
        # How many changes were heard of, and how many of them are known by now.
        self._heard = self._known = 0

    @property
    def closes(self) -> bool:
        """Whether there is a key for the API, so that one is asked for."""
        return bool(self._own) or any(API in key.scopes or ADMIN in key.scopes for key in self._live.values())

    def find(self, shown: str) -> Principal | None:
        """Return whose key it is; None when it is nobody's.

        What is looked up and compared are digests, so that how long it takes tells nothing about any key.
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

    async def catch_up(self) -> None:
        """Learn of every change that was heard of: whoever was told of a new key may use it at once."""
        while self._known != self._heard:
            async with self._loading:
                if self._known != self._heard:
                    await self._try_to_load()

    async def _try_to_load(self) -> None:
        heard = self._heard
        try:
            await self.load()
        except Unavailable as error:
            # Nobody should wait for a store that is away, once for every request; it is looked at again soon.
            self._known = heard
            log.debug("the keys are as they were: %s", error)

    async def load(self) -> None:
        """Learn which keys there are now."""
        heard = self._heard
        live = {key.digest: key for key in await self._keys.list() if key.revoked_at is None}
        limited = {key.id: key.rate_limit for key in live.values() if key.rate_limit}
        # The limit of a key never changes, so whoever has used some of it keeps that.
        self._buckets = {
            key_id: self._buckets.get(key_id) or Bucket(rate, self._clock) for key_id, rate in limited.items()
        }  # fmt: skip
        self._live = live
        self._known = heard

    async def run(self) -> None:
        """Keep up with the store, for ever."""
        forget = self._wakes.listen(self._hear)
        try:
            while True:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._refresh_s):
                        await self._changed.wait()
                self._changed.clear()
                await self._try_to_load()
        finally:
            forget()

    def _hear(self, topic: str) -> None:
        if topic == TOPIC:
            self._heard += 1
            self._changed.set()
