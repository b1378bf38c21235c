"""The mirror: something in the store that is looked at with every request, and so known here as well."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from abc import ABC, abstractmethod

from holdfast.errors import Unavailable
from holdfast.store.database import Wakes

log = logging.getLogger(__name__)

# A hint may be lost, and what was changed on another node should count here soon.
REFRESH_S = 3.0


class Mirror(ABC):
    """Looks again whenever the store says that something has changed.  While it is away, what was last known counts."""

    def __init__(self, topic: str, wakes: Wakes, refresh_s: float = REFRESH_S) -> None:
        self._topic = topic
        self._wakes = wakes
        self._refresh_s = refresh_s
        self._changed = asyncio.Event()
        self._looking = asyncio.Lock()
        # How many changes were heard of, and how many of them are known by now.
        self._heard = self._known = 0

    @abstractmethod
    async def _look(self) -> None:
        """Ask the store, and know it from now on.  Raises `Unavailable`."""

    async def load(self) -> None:
        """Learn how it is now.  Raises `Unavailable`."""
        # One after the other, so that nobody who looked before a change has the last word about it.
        async with self._looking:
            await self._learn()

    async def catch_up(self) -> None:
        """Learn of every change that was heard of: what somebody was told of counts from then on."""
        while self._known != self._heard:
            async with self._looking:
                if self._known != self._heard:
                    await self._try_to_learn()

    async def run(self) -> None:
        """Keep up with the store, for ever."""
        forget = self._wakes.listen(self._hear)
        try:
            while True:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._refresh_s):
                        await self._changed.wait()
                self._changed.clear()
                async with self._looking:
                    await self._try_to_learn()
        finally:
            forget()

    async def _learn(self) -> None:
        heard = self._heard
        await self._look()
        self._known = heard

    async def _try_to_learn(self) -> None:
        heard = self._heard
        try:
            await self._learn()
        except Unavailable as error:
            # Nobody should wait for a store that is away, once for every request; it is looked at again soon.
            self._known = heard
            log.debug("the %s are as they were: %s", self._topic, error)

    def _hear(self, topic: str) -> None:
        if topic == self._topic:
            self._heard += 1
            self._changed.set()
