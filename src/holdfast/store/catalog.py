"""What an operator may look up across all sessions: the outbox, and what is still owed."""

from __future__ import annotations

from holdfast.core.delivery import Delivery, State
from holdfast.core.obligations import Obligations
from holdfast.ids import SessionId
from holdfast.store import rows
from holdfast.store.database import Database, Params, Run, Transaction

_DELIVERIES = f"""
    SELECT {rows.qualified(rows.DELIVERY, "d")} FROM deliveries d JOIN sessions s ON s.id = d.session_id
     WHERE s.owner = :owner AND (d.created_at < :before_at OR (d.created_at = :before_at AND d.id < :before_id))
       AND (CAST(:state AS TEXT) = '' OR d.state = :state) {{narrowed}}
     ORDER BY d.created_at DESC, d.id DESC LIMIT :limit
"""
_ALL_DELIVERIES = _DELIVERIES.format(narrowed="")
# By way of its turns, because those are what deliveries are found by.
_OF_SESSION = _DELIVERIES.format(narrowed="AND d.turn_id IN (SELECT id FROM turns WHERE session_id = :session_id)")
# Each count reads a partial index, so that looking is cheap however much lies behind us.
_OWED_TURNS = "SELECT COUNT(*) FROM turns WHERE state IN ('queued', 'running', 'waiting')"
_OWED_DELIVERIES = """
    SELECT (SELECT COUNT(*) FROM deliveries WHERE state IN ('pending', 'retry') OR (state = 'unknown' AND repeats = 0))
         + (SELECT COUNT(*) FROM deliveries WHERE node_id IS NOT NULL)
"""
_OWED_SEGMENTS = """
    SELECT (SELECT COUNT(*) FROM segments WHERE state = 'open') + (SELECT COUNT(*) FROM segments WHERE state = 'sealed')
         + (SELECT COUNT(*) FROM segments WHERE state = 'committing')
"""


class Catalog:
    """Looking across sessions, never changing them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def deliveries(
        self,
        owner: str,
        before: tuple[int, str] | None = None,
        limit: int = 50,
        state: State | None = None,
        session_id: SessionId | None = None,
    ) -> list[Delivery]:
        """Return deliveries, the newest first; `before` is the (created_at, id) of the last one seen."""
        at, id_ = before or (2**62, "")
        params: Params = {
            "owner": owner,
            "before_at": at,
            "before_id": id_,
            "state": state.value if state else "",
            "limit": limit,
        }
        if session_id is not None:
            return await self._database.read(lambda: _deliveries(_OF_SESSION, {**params, "session_id": session_id}))
        return await self._database.read(lambda: _deliveries(_ALL_DELIVERIES, params))

    async def obligations(self) -> Obligations:
        """Count everything that is not settled yet."""
        return await self._database.read(_obligations)


def _deliveries(sql: str, params: Params) -> Transaction[list[Delivery]]:
    found = yield Run(sql, params)
    return [rows.delivered(row) for row in found]


def _obligations() -> Transaction[Obligations]:
    turns = yield Run(_OWED_TURNS)
    deliveries = yield Run(_OWED_DELIVERIES)
    segments = yield Run(_OWED_SEGMENTS)
    return Obligations(turns=turns[0][0], deliveries=deliveries[0][0], segments=segments[0][0])
