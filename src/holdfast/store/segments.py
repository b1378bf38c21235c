"""The memory ledger: what each session owes to which provider binding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from holdfast.core.delivery import BACKOFF_MAX_MS
from holdfast.core.ending import Ending
from holdfast.core.segments import Segment, SegmentEvent, SegmentState, SegmentStep, Unpaid, next_to_commit
from holdfast.core.segments import record as decide
from holdfast.errors import IllegalMove, NotFound, Stale
from holdfast.ids import NodeId, SegmentId, SessionId, TurnId
from holdfast.store import locks, rows
from holdfast.store.database import Add, Database, Dialect, Lock, Params, Row, Run, Transaction

# As the indexes name them; what was waived is owed no more than what was committed.
_OWED = "('open', 'sealed', 'committing')"

_OPEN_OWNER = "SELECT owner FROM segments WHERE session_id = :session_id AND state = 'open'"
_EXTEND = """
    UPDATE segments
       SET last_generation = (SELECT s.generation FROM sessions s WHERE s.id = segments.session_id), due_at = :now
     WHERE session_id = :session_id AND state = 'open' AND owner = :owner
 RETURNING id
"""
_SEAL = """
    UPDATE segments SET state = 'sealed', due_at = :due_at WHERE session_id = :session_id AND state = 'open' RETURNING id
"""
_SEAL_ALL = "UPDATE segments SET state = 'sealed', due_at = :now WHERE session_id IN {ids} AND state = 'open' RETURNING id"
# A turn in flight will write to its session when it ends, so a session with one is not idle, however long it takes.  Should
# one end at this very moment it opens the next segment, as beside any other boundary.  They are looked for once: a subquery
# with a limit may be run again for every row, and find others each time.
_SEAL_IDLE = """
    WITH idle (id) AS MATERIALIZED (
        SELECT m.id FROM segments m JOIN sessions s ON s.id = m.session_id
         WHERE m.state = 'open' AND m.due_at <= :used_before AND s.updated_at <= :used_before
           AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.session_id = s.id AND t.state IN ('queued', 'running', 'waiting'))
         ORDER BY m.due_at LIMIT :limit {skip_locked})
    UPDATE segments SET state = 'sealed', due_at = :now
     WHERE state = 'open' AND id IN (SELECT idle.id FROM idle)
 RETURNING id
"""
_INSERT = """
    INSERT INTO segments (id, session_id, person, owner, first_generation, last_generation, created_at, due_at)
    SELECT CAST(:id AS TEXT), s.id, s.owner, CAST(:owner AS TEXT), CAST(:generation AS BIGINT), CAST(:generation AS BIGINT),
           CAST(:now AS BIGINT), CAST(:now AS BIGINT)
      FROM sessions s WHERE s.id = :session_id
"""
_DIRTY = f"""
    SELECT {rows.SEGMENT} FROM segments
     WHERE session_id = :session_id AND state IN {_OWED} AND {rows.NOT_GIVEN_UP} ORDER BY first_generation
"""
_CLOSED_OFF = f"""
    SELECT {rows.SEGMENT} FROM segments
     WHERE session_id = :session_id AND state IN {_OWED} AND state <> 'open' ORDER BY first_generation
"""
_OLDEST_DIRTY = f"{_CLOSED_OFF} LIMIT 1"
_GET = f"SELECT {rows.SEGMENT} FROM segments WHERE id = :id"
_ALL = f"SELECT {rows.SEGMENT} FROM segments WHERE session_id = :session_id ORDER BY first_generation"
_OF_TURN = f"""
    SELECT {rows.qualified(rows.SEGMENT, "m")} FROM turns t
      JOIN segments m ON m.session_id = t.session_id AND t.generation BETWEEN m.first_generation AND m.last_generation
     WHERE t.id = :turn_id
"""
_TURNS_OF = """
    SELECT m.id, t.id FROM segments m
      JOIN turns t ON t.session_id = m.session_id AND t.generation BETWEEN m.first_generation AND m.last_generation
     WHERE m.id IN {ids} ORDER BY t.generation
"""
_FIRST_OF_ITS_SESSION = f"""
    NOT EXISTS (SELECT 1 FROM segments o WHERE o.session_id = s.session_id AND o.state IN {_OWED}
                   AND o.first_generation < s.first_generation)
"""
_DUE = f"""
    SELECT s.session_id FROM segments s
     WHERE s.owner = :owner AND s.state = 'sealed' AND s.due_at <= :now AND {_FIRST_OF_ITS_SESSION}
     ORDER BY s.due_at LIMIT :limit {{skip_locked}}
"""
# From one owner to the next, because they are few and what they are owed may be much.
_OWNERS_DUE = f"""
    WITH RECURSIVE owners (owner) AS (
        SELECT MIN(m.owner) FROM segments m WHERE m.state = 'sealed'
         UNION ALL
        SELECT (SELECT MIN(m.owner) FROM segments m WHERE m.state = 'sealed' AND m.owner > owners.owner)
          FROM owners WHERE owners.owner IS NOT NULL)
    SELECT owners.owner FROM owners
     WHERE EXISTS (SELECT 1 FROM segments s WHERE s.owner = owners.owner AND s.state = 'sealed' AND s.due_at <= :now
                      AND {_FIRST_OF_ITS_SESSION})
"""
_MOVE = """
    UPDATE segments SET state = :state, attempt = :attempt, fence = fence + 1, node_id = :node_id, due_at = :due_at,
           error = :error, receipt = :receipt, settled_at = :settled_at
     WHERE id = :id AND fence = :fence AND state = :before
 RETURNING id
"""
_HASTEN = "UPDATE segments SET due_at = :now WHERE state = 'sealed' AND due_at > :furthest RETURNING id"
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
# One state at a time, because its index has each of them in the order of the list.
_LIST = f"""
    SELECT {rows.SEGMENT} FROM segments
     WHERE person = :person AND state = :state AND (created_at, id) < (:before_at, :before_id)
     ORDER BY created_at DESC, id DESC LIMIT :limit
"""
_LIST_SESSION = f"""
    SELECT {rows.SEGMENT} FROM segments
     WHERE session_id = :session_id AND person = :person AND state = :state
       AND (created_at, id) < (:before_at, :before_id)
     ORDER BY created_at DESC, id DESC LIMIT :limit
"""
_OWING = f"""
    SELECT DISTINCT session_id FROM segments
     WHERE person = :person AND state IN {_OWED} AND session_id > :after ORDER BY session_id LIMIT :limit
"""
_OF_PERSON_CLOSED_OFF = f"FROM segments WHERE person = :person AND state IN {_OWED} AND state <> 'open'"
# Those that have waited for longest come first, with how many there are of them altogether.
_LONGEST_OWING = f"""
    SELECT session_id, COUNT(*), (SELECT COUNT(DISTINCT session_id) {_OF_PERSON_CLOSED_OFF}) {_OF_PERSON_CLOSED_OFF}
     GROUP BY session_id ORDER BY MIN(created_at), session_id LIMIT :limit
"""
_SETTLED = "SELECT state, COUNT(*) FROM segments WHERE person = :person AND state IN ('committed', 'waived') GROUP BY state"
_SETTLED_OF_ALL = "SELECT state, COUNT(*) FROM segments WHERE state IN ('committed', 'waived') GROUP BY state"
_UNPAID_OF_ALL = f"""
    SELECT owner, state, CASE WHEN attempt > 0 THEN 1 ELSE 0 END, COUNT(*) FROM segments
     WHERE state IN {_OWED} GROUP BY 1, 2, 3
"""
_UNPAID = f"""
    SELECT owner, state, CASE WHEN attempt > 0 THEN 1 ELSE 0 END, COUNT(*) FROM segments
     WHERE person = :person AND state IN {_OWED} GROUP BY 1, 2, 3
"""
_UNREPLAYED = """
    person = :person AND state IN ('committed', 'waived') AND owner <> :provider
    AND NOT EXISTS (SELECT 1 FROM replays r WHERE r.segment_id = segments.id AND r.owner = :provider)
"""
_TO_REPLAY = f"SELECT {rows.SEGMENT} FROM segments WHERE {_UNREPLAYED} ORDER BY created_at, id LIMIT :limit"
_LEFT_TO_REPLAY = f"SELECT COUNT(*) FROM segments WHERE {_UNREPLAYED}"
_REPLAYED = """
    INSERT INTO replays (segment_id, owner, receipt, at)
    SELECT m.id, CAST(:provider AS TEXT), CAST(:receipt AS TEXT), CAST(:now AS BIGINT)
      FROM segments m WHERE m.id = :id AND m.owner <> :provider
    ON CONFLICT (segment_id, owner) DO NOTHING
"""


class SegmentStore:
    """All memory debt, paid and unpaid.  A binding owns a debt; a person owns the session that made it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        skip_locked = database.dialect.skip_locked and "FOR UPDATE OF {} SKIP LOCKED"
        self._due = _DUE.format(skip_locked=skip_locked.format("s"))
        self._seal_idle = _SEAL_IDLE.format(skip_locked=skip_locked.format("m"))

    async def seal(self, session_id: SessionId, now_ms: int) -> bool:
        """Close the open segment at a boundary; False when there is none."""
        return await self._database.write(
            lambda: locks.locked(Lock([locks.session(session_id)]), seal(session_id, now_ms)), wakes=lambda _: ("segments",)
        )

    async def seal_all(self, session_ids: Sequence[SessionId], now_ms: int) -> int:
        """Close the open segments of sessions; returns how many there were."""
        dialect, ids = self._database.dialect, rows.encode(list(session_ids))
        lock = Lock(list(map(locks.session, session_ids)))
        return await self._database.write(lambda: locks.locked(lock, seal_all(dialect, ids, now_ms)), wakes=_if_any)

    async def seal_idle(self, used_before: int, now_ms: int, limit: int = 500) -> int:
        """Close the open segments of sessions that are idle since then; returns how many."""
        params = {"used_before": used_before, "now": now_ms, "limit": limit}
        return await self._database.write(lambda: _all(self._seal_idle, params), wakes=_if_any)

    async def close_off(self, session_id: SessionId, now_ms: int, due_at: int) -> Segment | None:
        """Close the open segment, and leave it to the caller until `due_at`; returns the oldest that is owed."""
        return await self._database.write(lambda: _close_off(session_id, max(now_ms, due_at)))

    async def closed_off(self, session_id: SessionId) -> Sequence[Segment]:
        """Return what a session owes behind its last boundary, oldest first."""
        return await self._database.read(lambda: _list(_CLOSED_OFF, {"session_id": session_id}))

    async def owners_due(self, now_ms: int) -> list[str]:
        """Return the bindings that something is due to and can be taken for."""
        found = await self._database.read(lambda: _run(_OWNERS_DUE, {"now": now_ms}))
        return [owner for (owner,) in found]

    async def claim(self, node_id: NodeId, owner: str, now_ms: int, limit: int) -> list[Segment]:
        """Take segments that fell due for `owner`: per session the oldest that is owed, and only its own."""
        sql = self._due
        return await self._database.write(lambda: _claim_due(sql, node_id, owner, now_ms, limit))

    async def claim_one(self, node_id: NodeId, session_id: SessionId, owner: str) -> Segment | None:
        """Take the oldest segment of one session, if it is sealed and owed to `owner`."""
        return await self._database.write(lambda: locks.locked(locks.UNNAMED, _claim(node_id, session_id, owner)))

    async def settle(
        self,
        segment: Segment,
        event: SegmentEvent,
        now_ms: int,
        *,
        due_at: int | None = None,
        error: str | None = None,
        receipt: str | None = None,
    ) -> Segment:
        """Record how a commit ended; one that failed is due again at `due_at`.

        Raises `Stale` when it was taken away meanwhile.
        """
        settled = _settled(segment.on(event), now_ms, due_at, error, receipt)
        return await self._database.write(lambda: _settle(segment, settled), wakes=lambda _: ("segments",), essential=True)

    async def waive(self, segment_id: SegmentId, now_ms: int) -> Segment:
        """Give a sealed debt up, so that later ones of its session go on.

        Raises `NotFound`, and `IllegalMove` unless it is sealed.
        """
        return await self._database.write(lambda: _waive(segment_id, now_ms), wakes=lambda _: ("segments",))

    async def held(self, node_id: NodeId) -> list[Segment]:
        """Return what a node is committing."""
        return await self._database.read(lambda: _list(_HELD, {"node_id": node_id}))

    async def hasten(self, now_ms: int) -> int:
        """Make due what is further away than any wait, because the clock that set it has jumped back since."""
        params = {"now": now_ms, "furthest": now_ms + BACKOFF_MAX_MS}
        return await self._database.write(lambda: _all(_HASTEN, params), wakes=_if_any, essential=True)

    async def get(self, segment_id: SegmentId) -> Segment:
        """Return one segment.  Raises `NotFound`."""
        return await self._database.read(lambda: _get(segment_id))

    async def of_turn(self, turn_id: TurnId) -> Segment | None:
        """Return the segment that a turn is in; None when it is in none."""
        found = await self._database.read(lambda: _list(_OF_TURN, {"turn_id": turn_id}))
        return found[0] if found else None

    async def of_session(self, session_id: SessionId) -> list[Segment]:
        """Return the segments of a session, oldest first."""
        return await self._database.read(lambda: _list(_ALL, {"session_id": session_id}))

    async def turns_of(self, segment_ids: Sequence[SegmentId]) -> dict[SegmentId, list[TurnId]]:
        """Return the turns of each segment, in their order."""
        sql = _TURNS_OF.format(ids=self._database.dialect.each("ids"))
        found = await self._database.read(lambda: _run(sql, {"ids": rows.encode(list(segment_ids))}))
        turns: dict[SegmentId, list[TurnId]] = {segment_id: [] for segment_id in segment_ids}
        for segment_id, turn_id in found:
            turns[segment_id].append(turn_id)
        return turns

    async def list(
        self,
        owner: str,
        *,
        session_id: SessionId | None = None,
        states: Sequence[SegmentState] = (),
        before: tuple[int, str] | None = None,
        limit: int = 50,
    ) -> list[Segment]:
        """Return the segments of a person, the newest first; `before` is the (created_at, id) of the last one seen."""
        at, id_ = before or (2**62, "")
        params = {"person": owner, "session_id": session_id, "before_at": at, "before_id": id_, "limit": limit}
        sql = _LIST if session_id is None else _LIST_SESSION
        found = await self._database.read(lambda: _list_states(sql, params, frozenset(states or SegmentState)))
        return sorted(found, key=lambda each: (each.created_at, each.id), reverse=True)[:limit]

    async def owing(self, owner: str, after: SessionId | None = None, limit: int = 500) -> list[SessionId]:
        """Return the sessions of a person that owe anything, by their id; `after` is the last one seen."""
        params = {"person": owner, "after": after or "", "limit": limit}
        found = await self._database.read(lambda: _run(_OWING, params))
        return [session_id for (session_id,) in found]

    async def longest_owing(self, owner: str, limit: int) -> tuple[list[tuple[SessionId, int]], int]:
        """Return the sessions of a person that wait for a provider and how many segments of each; and how many there are."""
        found = await self._database.read(lambda: _run(_LONGEST_OWING, {"person": owner, "limit": limit}))
        return [(session_id, segments) for session_id, segments, _ in found], found[0][2] if found else 0

    async def unpaid(self, owner: str | None = None) -> list[Unpaid]:
        """Count the unpaid segments of one person or of all, by binding and state."""
        sql, params = (_UNPAID_OF_ALL, {}) if owner is None else (_UNPAID, {"person": owner})
        found = await self._database.read(lambda: _run(sql, params))
        return [
            Unpaid(owner=binding, state=SegmentState(state), tried=bool(tried), count=count)
            for binding, state, tried, count in found
        ]

    async def settled(self, owner: str | None = None) -> dict[SegmentState, int]:
        """Count the committed and the waived segments of one person or of all."""
        sql, params = (_SETTLED_OF_ALL, {}) if owner is None else (_SETTLED, {"person": owner})
        found = await self._database.read(lambda: _run(sql, params))
        return {SegmentState.COMMITTED: 0, SegmentState.WAIVED: 0, **{SegmentState(state): count for state, count in found}}

    async def to_replay(self, owner: str, provider: str, limit: int) -> list[Segment]:
        """Return what a person's other providers were paid and `provider` was never given, oldest first."""
        params = {"person": owner, "provider": provider, "limit": limit}
        return await self._database.read(lambda: _list(_TO_REPLAY, params))

    async def replayed(self, segment_id: SegmentId, provider: str, receipt: str, now_ms: int) -> None:
        """Record that a provider was given a segment once more.  Repeating it changes nothing."""
        params = {"id": segment_id, "provider": provider, "receipt": receipt, "now": now_ms}
        await self._database.write(lambda: _run(_REPLAYED, params))

    async def left_to_replay(self, owner: str, provider: str) -> int:
        """Count what `to_replay` would return without its limit."""
        found = await self._database.read(lambda: _run(_LEFT_TO_REPLAY, {"person": owner, "provider": provider}))
        return found[0][0]


def _if_any(count: int) -> Sequence[str]:
    return ("segments",) if count else ()


def looking(session_id: SessionId, ending: Ending) -> tuple[Run, Run]:
    """Return what finds the open segment of a session, and what extends it where it is owed to the same owner."""
    extend = Run(_EXTEND, {"session_id": session_id, "owner": ending.memory_owner, "now": ending.at})
    return Run(_OPEN_OWNER, {"session_id": session_id}), extend


def record(
    session_id: SessionId, generation: int, ending: Ending, opened: Sequence[Row], extended: Sequence[Row]
) -> Transaction[None]:
    """Enter a completed turn into the ledger, given what `looking` has found."""
    owner = ending.memory_owner or ""
    choice = decide(opened[0][0] if opened else None, owner)
    # On a shared database a boundary may seal it between the look and the write: then the turn opens the next one.
    if choice is SegmentStep.EXTEND and extended:
        return
    if choice is SegmentStep.SEAL_AND_OPEN:
        yield sealing(session_id, ending.at)
    params: Params = {"id": ending.segment_id, "session_id": session_id, "owner": owner, "generation": generation}
    yield Add(_INSERT, [{**params, "now": ending.at}])


def sealing(session_id: SessionId, now_ms: int) -> Add:
    """Return the statement that closes the open segment of a session, if there is one."""
    return Add(_SEAL, [{"session_id": session_id, "due_at": now_ms}])


def seal(session_id: SessionId, now_ms: int) -> Transaction[bool]:
    sealed = yield Run(_SEAL, {"session_id": session_id, "due_at": now_ms})
    return bool(sealed)


def seal_all(dialect: Dialect, session_ids: str, now_ms: int) -> Transaction[int]:
    """Close the open segments of all sessions in a JSON array; returns how many there were."""
    return (yield from _count(_SEAL_ALL.format(ids=dialect.each("ids")), {"ids": session_ids, "now": now_ms}))


def _close_off(session_id: SessionId, due_at: int) -> Transaction[Segment | None]:
    yield Lock([locks.session(session_id)])
    yield from seal(session_id, due_at)
    # What a turn opens at this moment is behind the boundary.
    found = yield from _list(_OLDEST_DIRTY, {"session_id": session_id})
    return found[0] if found else None


def _claim_due(sql: str, node_id: NodeId, owner: str, now_ms: int, limit: int) -> Transaction[list[Segment]]:
    yield locks.UNNAMED
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
    return (yield from _move(segment, replace(segment.on(SegmentEvent.COMMIT), attempt=segment.attempt + 1), node_id))


def _settled(segment: Segment, now_ms: int, due_at: int | None, error: str | None, receipt: str | None) -> Segment:
    settled = replace(segment, due_at=segment.due_at if due_at is None else due_at, error=error)
    return (
        replace(settled, settled_at=now_ms, error=None, receipt=receipt)
        if segment.state is SegmentState.COMMITTED
        else settled
    )


def _settle(before: Segment, after: Segment) -> Transaction[Segment]:
    yield locks.UNNAMED
    return (yield from _replace(before, after))


def _replace(before: Segment, after: Segment) -> Transaction[Segment]:
    moved = yield from _move(before, after, None)
    if moved is None:
        raise Stale(f"segment {before.id} is not {before.state} with fence {before.fence} any more")
    return moved


def _waive(segment_id: SegmentId, now_ms: int) -> Transaction[Segment]:
    yield locks.UNNAMED
    segment = yield from _get(segment_id)
    try:
        waived = segment.on(SegmentEvent.WAIVE)
    except IllegalMove as error:
        raise IllegalMove(segment.id, segment.state, "be waived; only what is owed can be") from error
    return (yield from _replace(segment, replace(waived, settled_at=now_ms)))


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
            "receipt": after.receipt,
            "settled_at": after.settled_at,
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


def _all(sql: str, params: Params) -> Transaction[int]:
    """Move all segments that a statement finds; returns how many."""
    yield locks.UNNAMED
    return (yield from _count(sql, params))


def _count(sql: str, params: Params) -> Transaction[int]:
    return len((yield Run(sql, params)))


def _get(segment_id: SegmentId) -> Transaction[Segment]:
    found = yield from _list(_GET, {"id": segment_id})
    if not found:
        raise NotFound(f"there is no memory segment {segment_id}")
    return found[0]


def _list(sql: str, params: Params) -> Transaction[list[Segment]]:
    found = yield Run(sql, params)
    return [rows.segment(row) for row in found]


def _list_states(sql: str, params: Params, states: frozenset[SegmentState]) -> Transaction[list[Segment]]:
    found: list[Segment] = []
    for state in sorted(states):
        found += yield from _list(sql, {**params, "state": state.value})
    return found


def _run(sql: str, params: Params) -> Transaction[list[Row]]:
    return (yield Run(sql, params))
