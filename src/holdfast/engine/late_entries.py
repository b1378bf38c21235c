"""Recovers late entries: what turns of this home left on its disk is handed in to the store."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Container, Sequence

from holdfast.core.journal import Entry
from holdfast.core.recovery import GIVE_UP_AGE_MS
from holdfast.core.turns import TurnState
from holdfast.engine.node_context import NodeContext
from holdfast.engine.spool import Left, Spool
from holdfast.errors import NotFound, Unavailable
from holdfast.ids import NodeId

log = logging.getLogger(__name__)

# So that a long file does not keep other writers waiting.
BATCH_MAX = 200


class LateEntries:
    """Hands in files from the first sweep on, when the turns of earlier nodes are at rest; there may always be more."""

    def __init__(self, node: NodeContext, spool: Spool, swept: asyncio.Event) -> None:
        self._node_id, self._store, self._tuning, self._clock = node.id, node.store, node.tuning, node.clock
        self._spool = spool
        self._swept = swept

    async def run(self) -> None:
        """Look for files until cancelled."""
        await self._swept.wait()
        while True:
            try:
                await self.hand_in()
            except (Unavailable, OSError) as error:
                log.warning("cannot hand in what was left on disk: %s", error)
            await self._clock.sleep_ms(self._tuning.beat_ms)

    async def hand_in(self) -> None:
        """Hand in every file that is not written any more; then end every search that only this home can end."""
        # This node may leave more for as long as it runs, even if the others take it for dead.
        unfinished = {self._node_id}
        if left := await asyncio.to_thread(self._spool.left):
            living = await self._store.nodes.beats()
            for node_id, files in left.items():
                if not await self._empty(node_id, files, living):
                    unfinished.add(node_id)
        for pending in await self._store.recoveries.of_home(self._spool.home_id):
            if pending.node_id not in unfinished:
                await self._store.recoveries.resolve(pending, self._clock.now_ms())

    async def _empty(self, node_id: NodeId, files: Sequence[Left], living: Container[NodeId]) -> bool:
        """Return whether nothing of a node is left."""
        is_mine = node_id == self._node_id
        if node_id in living and not is_mine:
            return False
        handed_in = [await self._take(file) for file in files]
        if not is_mine and all(handed_in):
            await asyncio.to_thread(self._spool.forget, node_id)
        return all(handed_in)

    async def _take(self, file: Left) -> bool:
        """Hand one file in and remove it; False while its attempt is not over, so that it must wait."""
        try:
            turn = await self._store.turns.get(file.turn_id)
        except NotFound:
            # Pruned, or in another store than the one that this home is pointed at today.
            if await asyncio.to_thread(file.age_ms, self._clock.now_ms()) > GIVE_UP_AGE_MS:
                await asyncio.to_thread(file.remove)
            return True
        if turn.attempt <= file.attempt and turn.state is TurnState.RUNNING:
            return False
        entries = [
            Entry(
                session_id=turn.session_id,
                seq=0,
                turn_id=turn.id,
                attempt=file.attempt,
                nth=nth,
                at=draft.at,
                event=draft.event,
            )
            for nth, draft in await asyncio.to_thread(file.read)
        ]
        new = 0
        for first in range(0, len(entries), BATCH_MAX):
            new += await self._store.journal.append_late(entries[first : first + BATCH_MAX])
        await asyncio.to_thread(file.remove)
        if new:
            log.info("recovered %d entries of turn %s from the disk", new, turn.id)
        return True
