"""The heartbeat shows the other nodes that this one is alive, and reconciles what it runs with what the store says."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence

from holdfast.clock import Clock
from holdfast.engine.tuning import Tuning
from holdfast.errors import Stale, Unavailable
from holdfast.ids import NodeId
from holdfast.store.store import Store

log = logging.getLogger(__name__)


class Heartbeat:
    """Raises the beat of this node, and calls the reconcilers of its components."""

    def __init__(
        self,
        node_id: NodeId,
        store: Store,
        reconcilers: Sequence[Callable[[], Awaitable[None]]],
        tuning: Tuning,
        clock: Clock,
    ) -> None:
        self._node_id = node_id
        self._store = store
        self._reconcilers = reconcilers
        self._tuning = tuning
        self._clock = clock

    async def run(self) -> None:
        """Beat until cancelled.  Raises `NodeLost` when the others have given our turns away."""
        while True:
            try:
                await self._store.nodes.beat(self._node_id)
                for reconcile in self._reconcilers:
                    await reconcile()
            except (Unavailable, Stale) as error:
                log.warning("missed a beat: %s", error)
            await self._clock.sleep_ms(self._tuning.beat_ms)
