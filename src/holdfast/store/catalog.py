"""What an operator may look up across all sessions: the outbox, and what is still owed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from holdfast.core.delivery import Delivery, DeliveryState
from holdfast.core.obligations import Obligations
from holdfast.ids import SessionId
from holdfast.store import rows
from holdfast.store.database import Database, Params, Row, Run, Transaction


def _page(narrowed: str) -> str:
    return f"""
        SELECT {rows.DELIVERY} FROM deliveries
         WHERE owner = :owner AND (created_at, id) < (:before_at, :before_id) AND {narrowed}
         ORDER BY created_at DESC, id DESC LIMIT :limit
    """


_DELIVERIES = _page("CAST(:state AS TEXT) = ''")
_OF_STATE = _page("state = :state")
# By way of its turns, because those are what deliveries are found by.  `CROSS` makes SQLite keep to that order.
_OF_SESSION = f"""
    SELECT {rows.qualified(rows.DELIVERY, "d")} FROM sessions s CROSS JOIN turns t CROSS JOIN deliveries d
     WHERE s.id = :session_id AND s.owner = :owner AND t.session_id = s.id AND d.turn_id = t.id
       AND (d.created_at, d.id) < (:before_at, :before_id) AND (CAST(:state AS TEXT) = '' OR d.state = :state)
     ORDER BY d.created_at DESC, d.id DESC LIMIT :limit
"""
# Each count reads a partial index, so that looking is cheap however much lies behind us.
_OWED_TURNS = "SELECT COUNT(*) FROM turns WHERE state IN ('queued', 'running', 'waiting')"
_RETRYING = "SELECT COUNT(*) FROM turns WHERE retry_at IS NOT NULL"
_OWED_DELIVERIES = """
    SELECT (SELECT COUNT(*) FROM deliveries WHERE state IN ('pending', 'retry') OR (state = 'unknown' AND repeats = 0))
         + (SELECT COUNT(*) FROM deliveries WHERE node_id IS NOT NULL)
"""
# By their targets, which begin with the name of a channel.
_OWED_BY_TARGET = """
    SELECT target, COUNT(*) FROM deliveries
     WHERE state IN ('pending', 'retry') OR (state = 'unknown' AND repeats = 0) GROUP BY target
 UNION ALL
    SELECT target, COUNT(*) FROM deliveries WHERE node_id IS NOT NULL GROUP BY target
"""


class Catalog:
    """Looking across sessions, never changing them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def pending_by_channel(self) -> Mapping[str, int]:
        """Return how many deliveries each channel has still to send."""
        found: Counter[str] = Counter()
        for target, count in await self._database.read(_owed_by_target):
            found[target.partition(":")[0]] += count
        return found

    async def deliveries(
        self,
        owner: str,
        before: tuple[int, str] | None = None,
        limit: int = 50,
        state: DeliveryState | None = None,
        session_id: SessionId | None = None,
    ) -> list[Delivery]:
        """Return deliveries, the newest first; `before` is the (created_at, id) of the last one seen."""
        at, id_ = before or (2**62, "")
        params: Params = {
            "owner": owner,
            "before_at": at,
            "before_id": id_,
            "state": state.value if state else "",
            "session_id": session_id,
            "limit": limit,
        }
        sql = _OF_SESSION if session_id is not None else _OF_STATE if state else _DELIVERIES
        return await self._database.read(lambda: _deliveries(sql, params))

    async def obligations(self) -> Obligations:
        """Count the answers and the messages that are owed; what memory is owed the ledger counts."""
        return await self._database.read(_obligations)


def _owed_by_target() -> Transaction[list[Row]]:
    return (yield Run(_OWED_BY_TARGET))


def _deliveries(sql: str, params: Params) -> Transaction[list[Delivery]]:
    found = yield Run(sql, params)
    return [rows.delivered(row) for row in found]


def _obligations() -> Transaction[Obligations]:
    turns = yield Run(_OWED_TURNS)
    retrying = yield Run(_RETRYING)
    deliveries = yield Run(_OWED_DELIVERIES)
    return Obligations(turns=turns[0][0], retrying=retrying[0][0], deliveries=deliveries[0][0])
