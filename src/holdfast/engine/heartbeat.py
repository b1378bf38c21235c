"""The heartbeat shows the other nodes that this one is alive, and reconciles what it runs with what the store says."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence

from holdfast.engine.node_context import NodeContext
from holdfast.errors import Stale, Unavailable

log = logging.getLogger(__name__)


class Heartbeat:
    """Raises the beat of this node, and calls the reconcilers of its components."""

    def __init__(self, node: NodeContext, reconcilers: Sequence[Callable[[], Awaitable[None]]]) -> None:
        self._node_id, self._store, self._tuning, self._clock = node.id, node.store, node.tuning, node.clock
        self._reconcilers = reconcilers

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
