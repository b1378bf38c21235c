"""A claim as a node on a shared database makes it: its turns are still queued.  An embedded store starts them at once."""

from __future__ import annotations

from holdfast.core.turns import Turn
from holdfast.ids import NodeId
from holdfast.store import claims, locks
from holdfast.store.store import Store


async def claim(store: Store, node_id: NodeId, limit: int) -> list[Turn]:
    """Take the oldest turns that can be claimed, whoever owns them."""
    sql = claims.claiming("").format(skip_locked=store.database.dialect.skip_locked)
    return await store.database.write(
        lambda: locks.locked(locks.UNNAMED, claims.claim(sql, node_id, limit)), heeds=("turns",)
    )
