"""Recoveries: interrupted attempts whose last entries may still arrive from the node that ran them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from holdfast.core.events import TurnRecovered
from holdfast.core.journal import OUTPUT, DraftEntry
from holdfast.core.recovery import PendingRecovery, Sight
from holdfast.core.turns import Turn
from holdfast.errors import NotFound, Stale
from holdfast.ids import NodeId, SessionId
from holdfast.store import journal, locks, rows, turns
from holdfast.store.database import Add, Database, Lock, Params, Run, Transaction

_OUTPUT = ", ".join(f"'{kind}'" for kind in sorted(each.kind for each in OUTPUT))
_PENDING = "turn_id, attempt, session_id, node_id, home, tries, since"
_OPEN = """
    INSERT INTO recoveries (turn_id, attempt, session_id, node_id, home, tries, since)
    VALUES (:turn_id, :attempt, :session_id, :node_id, :home, 0, :since)
"""
_OF_SESSION = f"SELECT {_PENDING} FROM recoveries WHERE session_id = :id ORDER BY turn_id, attempt"
_OF_HOME = f"""
    SELECT {_PENDING} FROM recoveries WHERE home = :home
       AND NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = node_id AND n.state = 'alive')
     ORDER BY turn_id, attempt LIMIT :limit
"""
# What was written before the cut was there already when the search began.
_SIGHT = f"""
    SELECT EXISTS (SELECT 1 FROM entries e
                    WHERE e.turn_id = :turn_id AND e.attempt = :attempt AND e.nth IS NOT NULL AND e.kind IN ({_OUTPUT})
                      AND e.seq > (SELECT MAX(m.seq) FROM entries m WHERE m.turn_id = :turn_id AND m.attempt = :attempt
                                      AND m.kind = 'turn.interrupted')),
           EXISTS (SELECT 1 FROM nodes n WHERE n.home = :home AND n.state = 'alive')
"""
_CHARGE = """
    UPDATE recoveries SET tries = tries + 1 WHERE turn_id = :turn_id AND attempt = :attempt AND tries = :tries
 RETURNING tries
"""
_FIND = "SELECT 1 FROM recoveries WHERE turn_id = :turn_id AND attempt = :attempt"
_CLOSE = "DELETE FROM recoveries WHERE turn_id = :turn_id AND attempt = :attempt RETURNING turn_id"
_CLOSE_ALL = "DELETE FROM recoveries WHERE turn_id = :turn_id RETURNING attempt"
_COUNT = f"SELECT COUNT(*) FROM entries WHERE turn_id = :turn_id AND attempt = :attempt AND kind IN ({_OUTPUT})"


class RecoveryStore:
    """Every search that is not over."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of_session(self, session_id: SessionId) -> list[PendingRecovery]:
        """Return what is still awaited of a session."""
        return await self._database.read(lambda: _read(_OF_SESSION, {"id": session_id}))

    async def of_home(self, home: str, limit: int = 500) -> list[PendingRecovery]:
        """Return what is still awaited from the dead nodes of a home."""
        return await self._database.read(lambda: _read(_OF_HOME, {"home": home, "limit": limit}))

    async def sight(self, pending: PendingRecovery) -> Sight:
        """Return whether entries have arrived, and whether a node is alive that could still bring them."""
        return await self._database.read(lambda: _sight(pending))

    async def charge(self, pending: PendingRecovery) -> bool:
        """Count a look that found no entries; False when another node was faster."""
        place = {**_place(pending), "tries": pending.tries}
        return await self._database.write(lambda: locks.locked(locks.UNNAMED, _found(_CHARGE, place)))

    async def resolve(self, pending: PendingRecovery, now_ms: int) -> bool:
        """End a search, and say in the journal how much there is; False when it is over already."""
        try:
            return await self._database.write(
                lambda: _resolve(pending, now_ms),
                wakes=lambda _: (f"session:{pending.session_id}",),
            )
        except (Stale, NotFound):
            return False


def open_all(cut: Sequence[Turn], node_id: NodeId, home: str, now_ms: int) -> Transaction[None]:
    """Begin to wait for what a dead node may have left in its home of the attempts that were just cut off."""
    common = {"node_id": node_id, "home": home, "since": now_ms}
    if cut:
        yield Add(_OPEN, [{**common, "turn_id": t.id, "attempt": t.attempt, "session_id": t.session_id} for t in cut])


def close_all(turn: Turn, now_ms: int) -> Transaction[None]:
    """End every recovery of a turn that accepts no more entries.  This transaction has locked its session."""
    for attempt in sorted(attempt for (attempt,) in (yield Run(_CLOSE_ALL, {"turn_id": turn.id}))):
        yield from _say_ended(replace(turn, attempt=attempt), now_ms)


def _read(sql: str, params: Params) -> Transaction[list[PendingRecovery]]:
    found = yield Run(sql, params)
    return [_pending(row) for row in found]


_pending = rows.reader(PendingRecovery, _PENDING)


def _sight(pending: PendingRecovery) -> Transaction[Sight]:
    ((found, lives),) = yield Run(_SIGHT, {**_place(pending), "home": pending.home})
    return Sight.FOUND if found else Sight.ARRIVING if lives else Sight.SEALED


def _resolve(pending: PendingRecovery, now_ms: int) -> Transaction[bool]:
    yield Lock([locks.session(pending.session_id)])
    place = _place(pending)
    if not (yield Run(_FIND, place)):
        return False
    # The session before the search, as a prune takes them: else the two could wait for each other.
    yield from _say_ended(replace((yield from turns.get(pending.turn_id)), attempt=pending.attempt), now_ms)
    if not (yield Run(_CLOSE, place)):
        raise Stale(f"the search for attempt {pending.attempt} of turn {pending.turn_id} is over")
    return True


def _say_ended(turn: Turn, now_ms: int) -> Transaction[None]:
    """Say in the journal how much there is of one attempt of a turn."""
    ((found,),) = yield Run(_COUNT, {"turn_id": turn.id, "attempt": turn.attempt})
    draft = DraftEntry(at=now_ms, event=TurnRecovered(attempt=turn.attempt, found=found))
    yield from journal.number(turn, None, [draft])


def _found(sql: str, params: Params) -> Transaction[bool]:
    return bool((yield Run(sql, params)))


def _place(pending: PendingRecovery) -> dict[str, str | int | None]:
    return {"turn_id": pending.turn_id, "attempt": pending.attempt}
