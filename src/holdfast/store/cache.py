"""A cache of something in the store that is read with every request."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from abc import ABC, abstractmethod

from holdfast.errors import Unavailable
from holdfast.store.database import Wakes

log = logging.getLogger(__name__)

# A hint may be lost, and a change on another node should count here soon.
REFRESH_S = 3.0


class Cache(ABC):
    """Reads again when the store says that something has changed.  While the store is away, what was read last counts."""

    def __init__(self, topic: str, wakes: Wakes, refresh_s: float = REFRESH_S) -> None:
        self._topic = topic
        self._wakes = wakes
        self._refresh_s = refresh_s
        self._changed = asyncio.Event()
        self._looking = asyncio.Lock()
        # How many changes were announced, and how many of them have been read.
        self._heard = self._known = 0

    @abstractmethod
    async def _look(self) -> None:
        """Read the store, and keep what it says.  Raises `Unavailable`."""

    async def load(self) -> None:
        """Read how it is now.  Raises `Unavailable`."""
        # One after the other, so that a read from before a change cannot overwrite a later one.
        async with self._looking:
            await self._learn()

    async def catch_up(self) -> None:
        """Read every change that was announced: a change counts as soon as its request was answered."""
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
            # Requests should not each wait for a store that is away; it is read again soon.
            self._known = heard
            log.debug("keeping the %s that were read last: %s", self._topic, error)

    def _hear(self, topic: str) -> None:
        if topic == self._topic:
            self._heard += 1
            self._changed.set()
