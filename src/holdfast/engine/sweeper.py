"""The sweeper watches the other nodes and takes over from those that fell silent."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping

from holdfast.core.leases import Sighting, lapsed, watch
from holdfast.core.recovery import Standing, Swept
from holdfast.core.report import BootReport
from holdfast.core.turns import Cause
from holdfast.engine.node_context import NodeContext
from holdfast.errors import Unavailable
from holdfast.ids import NodeId

log = logging.getLogger(__name__)


class Sweeper:
    """Recovery is an ordinary component: it runs from the start of the node to its end."""

    def __init__(self, node: NodeContext, dedupes: Collection[str] = ()) -> None:
        self._node_id, self._store, self._tuning, self._clock = node.id, node.store, node.tuning, node.clock
        self._policy = node.policy
        self._home = node.home
        self._dedupes = dedupes
        self._seen: Mapping[NodeId, Sighting] = {}
        # Set once the first sweep is over: from then on nothing of an earlier boot is left half done.
        self.recovered = asyncio.Event()
        self.report: BootReport | None = None

    async def run(self) -> None:
        """Watch and sweep until cancelled."""
        while True:
            try:
                buried = await self.bury_silent()
                swept = await self.sweep()
                if self.report is None:
                    standing = await self._store.sessions.standing()
                    report = BootReport(at=self._clock.now_ms(), swept=swept, standing=standing)
                    await self._store.nodes.note_found(self._node_id, report.news())
                    self.report = report
                    # The report is shown at the start; only what is found later is logged.
                    self.recovered.set()
                elif swept.total or buried:
                    _log(swept)
                    later = BootReport(at=self._clock.now_ms(), swept=swept, standing=Standing())
                    await self._store.nodes.note_found(self._node_id, later.news())
            except Unavailable as error:
                # While the store was away no node could beat, so their silence in that time means nothing.
                self._seen = {}
                log.warning("cannot sweep: %s", error)
            await self._clock.sleep_ms(self._tuning.beat_ms)

    async def bury_silent(self) -> bool:
        """Declare nodes dead that have been silent for a whole lease of our own clock; returns whether there were any."""
        before = self._clock.monotonic_ms()
        beats = await self._store.nodes.beats()
        beats.pop(self._node_id, None)
        self._seen = watch(self._seen, beats, self._clock.monotonic_ms())
        buried = False
        for node_id, beat in lapsed(self._seen, before, self._tuning.lease_ms).items():
            if await self._store.nodes.bury(node_id, beat):
                log.warning("node %s is silent; taking over its turns", node_id)
                buried = True
        return buried

    async def sweep(self) -> Swept:
        """Take over everything that dead nodes hold, and return it."""
        total = Swept()
        while True:
            swept = await self._store.nodes.sweep(
                Cause.CRASH, self._policy, self._clock.now_ms(), home=self._home, dedupes=self._dedupes
            )
            if swept.total == 0:
                return total
            total += swept


def _log(swept: Swept) -> None:
    log.info(
        "took over from dead nodes: %d turns continue, %d rest, %d suspended, %d given up, "
        "%d released, %d deliveries, %d segments",
        len(swept.turns.continued),
        len(swept.turns.rested),
        len(swept.turns.suspended),
        len(swept.turns.given_up),
        swept.released,
        swept.deliveries,
        swept.segments,
    )
