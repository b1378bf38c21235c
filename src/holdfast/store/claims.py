"""Claims: how a node takes queued turns to run, in which order, and how they are shared between their owners."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.core import sessions
from holdfast.core.admission import Load
from holdfast.core.events import TurnStarted
from holdfast.core.journal import DraftEntry, Entry
from holdfast.core.turns import Turn, TurnState
from holdfast.ids import NodeId, SessionId
from holdfast.store import journal, locks, rows
from holdfast.store.database import Database, Dialect, Params, Row, Run, Together, Transaction

# A turn is claimable when it is the oldest of its session that is still in flight: acceptance order, one at a time.
_IS_FIRST = """NOT EXISTS (SELECT 1 FROM turns o WHERE o.session_id = t.session_id AND o.ordinal < t.ordinal
                              AND o.state IN ('queued', 'running', 'waiting'))"""
_FIRST_COME = "t.accepted_at, t.id"


def claiming(which: str, changes: str = "", unless: str = "", order: str = _FIRST_COME) -> str:
    """Return the statement that takes the oldest turns; it leaves open how others are passed over that are being taken."""
    return f"""
    WITH heads AS MATERIALIZED (
        SELECT t.id AS head FROM turns t
         WHERE t.state = 'queued' AND t.node_id IS NULL AND t.retry_at IS NULL {which} AND {rows.NOT_GIVEN_UP}
           AND {_IS_FIRST}
         ORDER BY {order} LIMIT :limit {{skip_locked}})
    UPDATE turns SET node_id = :node_id, fence = fence + 1 {changes}
      FROM heads WHERE turns.id = heads.head AND turns.state = 'queued' AND turns.node_id IS NULL
       {unless}
 RETURNING {rows.qualified(rows.TURN, "turns")}
"""


_SUSPECT = f"EXISTS (SELECT 1 FROM sessions s WHERE s.id = t.session_id AND s.strikes >= {sessions.STRIKES_SUSPECT})"
# The last one to begin before a crash first: the others had run for longer without one.
_LAST_BEGUN = f"""
    COALESCE((SELECT MAX(e.at) FROM entries e WHERE e.turn_id = t.id AND e.kind = 'turn.started'), 0) DESC, {_FIRST_COME}
"""
_OF_OWNER = f"AND t.owner = :owner AND NOT {_SUSPECT}"
# The condition of an index, so that turns with a waiting client are not searched for among thousands without one.
_WAITED_FOR = f"{_OF_OWNER} AND t.mode <> 'detached'"
# One step of the index for each owner, however many turns of one wait.
_OWNERS = """
    WITH RECURSIVE owners (owner) AS (
        SELECT MIN(owner) FROM turns WHERE state = 'queued' AND node_id IS NULL AND retry_at IS NULL
         UNION ALL
        SELECT (SELECT MIN(t.owner) FROM turns t
                 WHERE t.state = 'queued' AND t.node_id IS NULL AND t.retry_at IS NULL AND t.owner > owners.owner)
          FROM owners WHERE owners.owner IS NOT NULL)
    SELECT owner FROM owners WHERE owner IS NOT NULL
"""
_STARTS = ", state = 'running', attempt = attempt + 1, nth = 1, started_at = COALESCE(started_at, :now)"
_LIVE = """
    AND NOT EXISTS (SELECT 1 FROM turns l WHERE l.session_id = turns.session_id AND l.state IN ('running', 'waiting'))
"""
_CLAIM_OF_OWNER = claiming(_OF_OWNER)
_CLAIM_WAITED_FOR = claiming(_WAITED_FOR)
_TAKE = claiming(_OF_OWNER, _STARTS, _LIVE)
_TAKE_WAITED_FOR = claiming(_WAITED_FOR, _STARTS, _LIVE)
_CLAIM_SUSPECT = claiming(f"AND {_SUSPECT}", order=_LAST_BEGUN)
_TAKE_SUSPECT = claiming(f"AND {_SUSPECT}", _STARTS, _LIVE, order=_LAST_BEGUN)
NEXT_SUSPECT = f"""
    SELECT {rows.qualified(rows.TURN, "t")} FROM turns t
     WHERE t.state = 'queued' AND t.node_id IS NULL AND t.retry_at IS NULL AND {_SUSPECT} AND {_IS_FIRST}
     ORDER BY {_LAST_BEGUN} LIMIT 1
"""
_NUMBER_ALL = "UPDATE sessions SET seq = seq + 1 WHERE id IN {ids} RETURNING id, seq"
# A node with this many times the room that detached turns may have claims both kinds at once.
ROOMY = 4


class Claims:
    """The claims of one database.  On an exclusive one a turn starts with its claim, because no other node can interfere."""

    def __init__(self, database: Database) -> None:
        starts = database.exclusive
        skip_locked = database.dialect.skip_locked
        self._dialect = database.dialect
        self._waited_for = (_TAKE_WAITED_FOR if starts else _CLAIM_WAITED_FOR).format(skip_locked=skip_locked)
        self._any = (_TAKE if starts else _CLAIM_OF_OWNER).format(skip_locked=skip_locked)
        self._suspect = (_TAKE_SUSPECT if starts else _CLAIM_SUSPECT).format(skip_locked=skip_locked)

    def take(
        self, node_id: NodeId, room: int, now_ms: int, detached: int, load: Load
    ) -> Transaction[list[tuple[Turn, list[Entry]]]]:
        """Claim turns of all owners: first those with a waiting client, then at most `detached` of the others."""
        yield locks.UNNAMED
        taken: list[Turn] = []
        owners: list[str] = [owner for (owner,) in (yield Run(_OWNERS))]
        wanted = ((self._waited_for, room), (self._any, detached))
        if self._dialect.name == "postgres" and len(owners) == 1 and room >= ROOMY * detached:
            return [(turn, []) for turn in (yield from _claim_at_once(wanted, node_id, room, now_ms, load, owners[0]))]
        for sql, limit in wanted:
            waiting, left = owners, min(limit, room - len(taken))
            while shares := load.shares(waiting, left):
                waiting = list[str]()
                for owner, share in shares.items():
                    claimed = yield from claim(sql, node_id, share, now_ms, owner)
                    taken, left, load = taken + claimed, left - len(claimed), load.and_(owner, len(claimed))
                    # What one owner has no use for is shared between those who may have more.
                    waiting += [owner] if len(claimed) == share else []
        return (yield from _begun(self._dialect, taken, now_ms))

    def take_suspect(self, node_id: NodeId, now_ms: int) -> Transaction[list[tuple[Turn, list[Entry]]]]:
        """Claim one suspect."""
        yield locks.UNNAMED
        return (yield from _begun(self._dialect, (yield from claim(self._suspect, node_id, 1, now_ms)), now_ms))


def claim(sql: str, node_id: NodeId, limit: int, now_ms: int = 0, owner: str | None = None) -> Transaction[list[Turn]]:
    """Run a statement that claims turns; returns them in the order of their acceptance."""
    return _in_order((yield _claiming_of(sql, node_id, limit, now_ms, owner)))


def _claiming_of(sql: str, node_id: NodeId, limit: int, now_ms: int, owner: str | None) -> Run:
    params: Params = {"node_id": node_id, "limit": limit, "now": now_ms}
    return Run(sql, params if owner is None else {**params, "owner": owner})


def _in_order(claimed: Sequence[Row]) -> list[Turn]:
    return sorted((rows.turn(row) for row in claimed), key=lambda turn: (turn.accepted_at, turn.id))


def _begun(dialect: Dialect, taken: Sequence[Turn], now_ms: int) -> Transaction[list[tuple[Turn, list[Entry]]]]:
    """Write the first entry of what has started with its claim."""
    running = [turn for turn in taken if turn.state is TurnState.RUNNING]
    if not running:
        return [(turn, []) for turn in taken]
    ids = rows.encode([turn.session_id for turn in running])
    numbers: dict[SessionId, int] = dict((yield Run(_NUMBER_ALL.format(ids=dialect.each("ids")), {"ids": ids})))
    begun = [(turn, journal.numbered(turn, numbers[turn.session_id], 1, [started(turn, now_ms)])) for turn in running]
    yield from journal.insert([entry for _, entries in begun for entry in entries])
    return begun


def _claim_at_once(
    wanted: Sequence[tuple[str, int]], node_id: NodeId, room: int, now_ms: int, load: Load, owner: str
) -> Transaction[list[Turn]]:
    """Claim turns of the only owner in one round trip.  The few places of detached turns are set aside."""
    (waited_for, _), (any_, detached) = wanted
    share = load.shares([owner], room).get(owner, 0)
    claims = [(waited_for, share - detached), (any_, min(detached, share))]
    found = yield Together(
        [_claiming_of(sql, node_id, limit, now_ms, owner) for sql, limit in claims if limit > 0], last=True
    )
    return [turn for claimed in found for turn in _in_order(claimed)]


def started(turn: Turn, now_ms: int) -> DraftEntry:
    """Return the first entry of an attempt."""
    return DraftEntry(at=now_ms, event=TurnStarted(attempt=turn.attempt))
