"""The memory ledger: what each session owes to which provider binding."""

from __future__ import annotations

from dataclasses import replace

from holdfast.core.delivery import BACKOFF_MAX_MS
from holdfast.core.ending import Ending
from holdfast.core.memory import Event, Record, Segment, next_to_commit
from holdfast.core.memory import record as decide
from holdfast.errors import Stale
from holdfast.ids import NodeId, SessionId
from holdfast.store import rows
from holdfast.store.database import Database, Dialect, Params, Run, Transaction

_OPEN_OWNER = "SELECT owner FROM segments WHERE session_id = :session_id AND state = 'open'"
_EXTEND = """
    UPDATE segments SET last_generation = :generation WHERE session_id = :session_id AND state = 'open' RETURNING id
"""
_SEAL = """
    UPDATE segments SET state = 'sealed', due_at = :now WHERE session_id = :session_id AND state = 'open' RETURNING id
"""
_SEAL_ALL = "UPDATE segments SET state = 'sealed', due_at = :now WHERE session_id IN {ids} AND state = 'open'"
_INSERT = """
    INSERT INTO segments (id, session_id, owner, first_generation, last_generation, created_at, due_at)
    VALUES (:id, :session_id, :owner, :generation, :generation, :now, :now)
"""
_DIRTY = f"""
    SELECT {rows.SEGMENT} FROM segments
     WHERE session_id = :session_id AND state <> 'committed' AND {rows.NOT_GIVEN_UP} ORDER BY first_generation
"""
_ALL = f"SELECT {rows.SEGMENT} FROM segments WHERE session_id = :session_id ORDER BY first_generation"
_DUE = """
    SELECT s.session_id FROM segments s
     WHERE s.owner = :owner AND s.state = 'sealed' AND s.due_at <= :now
       AND NOT EXISTS (SELECT 1 FROM segments o WHERE o.session_id = s.session_id AND o.state <> 'committed'
                          AND o.first_generation < s.first_generation)
     ORDER BY s.due_at LIMIT :limit {skip_locked}
"""
_MOVE = """
    UPDATE segments SET state = :state, attempt = :attempt, fence = fence + 1, node_id = :node_id, due_at = :due_at,
           error = :error
     WHERE id = :id AND fence = :fence AND state = :before
 RETURNING id
"""
_HASTEN = "UPDATE segments SET due_at = :now WHERE owner = :owner AND state = 'sealed' AND due_at > :furthest RETURNING id"
_HELD = f"SELECT {rows.SEGMENT} FROM segments WHERE node_id = :node_id"
_HELD_BY_DEAD = """
    SELECT s.id FROM segments s
     WHERE s.node_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = s.node_id AND n.state = 'alive')
     ORDER BY s.node_id LIMIT :limit {skip_locked}
"""
_RETURN = """
    UPDATE segments SET state = 'sealed', node_id = NULL, fence = fence + 1, error = 'the gateway stopped while committing'
     WHERE id IN {ids}
"""


class Segments:
    """All memory debt, paid and unpaid."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._due = _DUE.format(skip_locked=database.dialect.skip_locked and "FOR UPDATE OF s SKIP LOCKED")

    async def seal(self, session_id: SessionId, now_ms: int) -> bool:
        """Close the open segment at a boundary; False when nothing is owed in it."""
        return await self._database.write(lambda: seal(session_id, now_ms), wakes=lambda _: ("segments",))

    async def claim(self, node_id: NodeId, owner: str, now_ms: int, limit: int) -> list[Segment]:
        """Take segments that fell due for `owner`: per session the oldest that is owed, and only its own."""
        sql = self._due
        return await self._database.write(lambda: _claim_due(sql, node_id, owner, now_ms, limit))

    async def claim_one(self, node_id: NodeId, session_id: SessionId, owner: str) -> Segment | None:
        """Take the oldest segment of one session, if it is sealed and owed to `owner`."""
        return await self._database.write(lambda: _claim(node_id, session_id, owner))

    async def settle(self, segment: Segment, event: Event, due_at: int, error: str | None = None) -> Segment:
        """Record how a commit ended.  Raises `Stale` when it was taken away meanwhile."""
        return await self._database.write(
            lambda: _settle(segment, event, due_at, error), wakes=lambda _: ("segments",), essential=True
        )

    async def held(self, node_id: NodeId) -> list[Segment]:
        """Return what a node is committing."""
        return await self._database.read(lambda: _list(_HELD, {"node_id": node_id}))

    async def hasten(self, owner: str, now_ms: int) -> int:
        """Make due what is further away than any wait, because the clock that set it has jumped back since."""
        params = {"owner": owner, "now": now_ms, "furthest": now_ms + BACKOFF_MAX_MS}
        return await self._database.write(
            lambda: _count(_HASTEN, params), wakes=lambda hastened: ("segments",) if hastened else (), essential=True
        )

    async def of_session(self, session_id: SessionId) -> list[Segment]:
        """Return the segments of a session, oldest first."""
        return await self._database.read(lambda: _list(_ALL, {"session_id": session_id}))


def record(session_id: SessionId, generation: int, ending: Ending) -> Transaction[None]:
    """Enter a completed turn into the ledger."""
    owner = ending.memory_owner or ""
    found = yield Run(_OPEN_OWNER, {"session_id": session_id})
    choice = decide(found[0][0] if found else None, owner)
    # On a shared database a boundary may seal it between our look and our write: then the turn opens the next one.
    if choice is Record.EXTEND and (yield Run(_EXTEND, {"session_id": session_id, "generation": generation})):
        return
    if choice is Record.SEAL_AND_OPEN:
        yield from seal(session_id, ending.at)
    yield Run(
        _INSERT,
        {
            "id": ending.segment_id,
            "session_id": session_id,
            "owner": owner,
            "generation": generation,
            "now": ending.at,
        },
    )


def seal(session_id: SessionId, now_ms: int) -> Transaction[bool]:
    sealed = yield Run(_SEAL, {"session_id": session_id, "now": now_ms})
    return bool(sealed)


def seal_all(dialect: Dialect, session_ids: str, now_ms: int) -> Transaction[None]:
    """Close the open segments of all sessions in a JSON array."""
    yield Run(_SEAL_ALL.format(ids=dialect.each("ids")), {"ids": session_ids, "now": now_ms})


def _claim_due(sql: str, node_id: NodeId, owner: str, now_ms: int, limit: int) -> Transaction[list[Segment]]:
    due = yield Run(sql, {"owner": owner, "now": now_ms, "limit": limit})
    claimed: list[Segment] = []
    for (session_id,) in due:
        segment = yield from _claim(node_id, session_id, owner)
        if segment:
            claimed.append(segment)
    return claimed


def _claim(node_id: NodeId, session_id: SessionId, owner: str) -> Transaction[Segment | None]:
    segment = next_to_commit((yield from _list(_DIRTY, {"session_id": session_id, "node_id": node_id})), owner)
    if segment is None:
        return None
    # None as well where another committer was faster.
    return (yield from _move(segment, replace(segment.on(Event.COMMIT), attempt=segment.attempt + 1), node_id))


def _settle(segment: Segment, event: Event, due_at: int, error: str | None) -> Transaction[Segment]:
    settled = yield from _move(segment, replace(segment.on(event), due_at=due_at, error=error), None)
    if settled is None:
        raise Stale(f"segment {segment.id} is not {segment.state} with fence {segment.fence} any more")
    return settled


def _move(before: Segment, after: Segment, node_id: NodeId | None) -> Transaction[Segment | None]:
    moved = yield Run(
        _MOVE,
        {
            "id": before.id,
            "fence": before.fence,
            "before": before.state.value,
            "state": after.state.value,
            "attempt": after.attempt,
            "node_id": node_id,
            "due_at": after.due_at,
            "error": after.error,
        },
    )
    return replace(after, fence=before.fence + 1) if moved else None


def return_held(dialect: Dialect, limit: int) -> Transaction[int]:
    """Give back what dead nodes were committing; the provider sees the same segment id again."""
    free = _HELD_BY_DEAD.format(skip_locked=dialect.skip_locked and "FOR UPDATE OF s SKIP LOCKED")
    held = [segment_id for (segment_id,) in (yield Run(free, {"limit": limit}))]
    if held:
        yield Run(_RETURN.format(ids=dialect.each("ids")), {"ids": rows.encode(held)})
    return len(held)


def _count(sql: str, params: Params) -> Transaction[int]:
    return len((yield Run(sql, params)))


def _list(sql: str, params: Params) -> Transaction[list[Segment]]:
    found = yield Run(sql, params)
    return [rows.segment(row) for row in found]
