"""The committer pays memory debt in the background; no reply ever waits for it."""

from __future__ import annotations

import asyncio
import logging

from holdfast.clock import Clock
from holdfast.core.delivery import backoff_ms
from holdfast.core.memory import Event, Segment
from holdfast.core.recovery import orphans
from holdfast.core.redaction import Redaction
from holdfast.engine.persistence import persist
from holdfast.engine.settings import Settings
from holdfast.engine.wake import Wake
from holdfast.errors import Stale, Unavailable
from holdfast.ids import NodeId, SegmentId
from holdfast.ports import MemoryProvider, Store

log = logging.getLogger(__name__)


class Committer:
    """Segments that this node is committing."""

    def __init__(
        self,
        node_id: NodeId,
        store: Store,
        provider: MemoryProvider | None,
        settings: Settings,
        redaction: Redaction,
        clock: Clock,
    ) -> None:
        self.wake = Wake()
        self._node_id = node_id
        self._store = store
        self._provider = provider
        self._settings = settings
        self._redaction = redaction
        self._clock = clock
        self._committing: set[SegmentId] = set()
        self._suspected: set[SegmentId] = set()

    async def run(self) -> None:
        """Commit what is due until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                if self._provider is not None:
                    await self._claim(group, self._provider)
                await self.wake.wait(self._settings.poll_ms)

    async def reconcile(self) -> None:
        """Let go of segments that were claimed here in a transaction whose answer was lost, and undo clock jumps."""
        if self._provider is not None:
            await self._store.segments.hasten(self._provider.owner, self._clock.now_ms())
        held = {each.id: each for each in await self._store.segments.held(self._node_id)}
        lost, self._suspected = orphans(held.keys(), self._committing, self._suspected)
        for segment_id in lost:
            await self._settle(held[segment_id], Event.FAIL, error="the store went away before it was committed")

    async def _claim(self, group: asyncio.TaskGroup, provider: MemoryProvider) -> None:
        free = self._settings.commits_max - len(self._committing)
        if free <= 0:
            return
        try:
            claimed = await self._store.segments.claim(self._node_id, provider.owner, self._clock.now_ms(), free)
        except (Unavailable, Stale) as error:
            log.warning("cannot claim memory segments: %s", error)
            return
        for segment in claimed:
            self._committing.add(segment.id)
            task = group.create_task(self._commit(provider, segment), name=segment.id)
            task.add_done_callback(lambda _, done=segment.id: self._forget(done))

    def _forget(self, segment_id: SegmentId) -> None:
        self._committing.discard(segment_id)
        self.wake.set()

    async def _commit(self, provider: MemoryProvider, segment: Segment) -> None:
        try:
            async with asyncio.timeout(self._settings.commit_timeout_ms / 1000):
                await provider.commit(segment, await self._store.journal.read_segment(segment))
        except TimeoutError:
            await self._settle(segment, Event.FAIL, error="the provider did not answer in time")
        except Exception as error:  # The edge to a provider: whatever it raises is a failed commit.
            log.warning("committing %s failed: %s", segment.id, error)
            await self._settle(segment, Event.FAIL, error=self._redaction.text(str(error)) or type(error).__name__)
        else:
            await self._settle(segment, Event.SUCCEED)

    async def _settle(self, segment: Segment, event: Event, error: str | None = None) -> None:
        wait_ms = backoff_ms(segment.attempt, 0) if event is Event.FAIL else 0
        due_at = self._clock.now_ms() + wait_ms
        try:
            await persist(self._clock, lambda: self._store.segments.settle(segment, event, due_at, error))
        except Stale as stale:
            log.info("segment %s: %s", segment.id, stale)
