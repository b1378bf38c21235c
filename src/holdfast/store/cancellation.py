"""Cancelling: a turn with all its child turns, and a session with every turn that is still in flight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from holdfast.core import sessions
from holdfast.core.turns import Cause, Turn, TurnEvent, TurnState
from holdfast.errors import IllegalMove
from holdfast.ids import SessionId, TurnId
from holdfast.store import closing, journal, locks, questions, recoveries, rows, segments, turns
from holdfast.store.database import Dialect, Lock, Run, Transaction

_CANCEL = """
    UPDATE turns SET state = 'cancelled', cause = :cause, fence = fence + 1, node_id = NULL, retry_at = NULL
     WHERE id = :id AND fence = :fence AND state = :before
 RETURNING id
"""
_MOVE_SESSION = """
    UPDATE sessions SET state = :state, end_reason = :end_reason, ended_at = :ended_at, updated_at = :now
     WHERE id = :id AND state = :before
 RETURNING id
"""
_MOVE_SESSIONS = """
    UPDATE sessions
       SET state = :state, updated_at = :now,
           end_reason = CASE WHEN CAST(:ends AS BIGINT) = 1 THEN channel || CAST(:suffix AS TEXT) END,
           ended_at = CASE WHEN CAST(:ends AS BIGINT) = 1 THEN CAST(:now AS BIGINT) END
     WHERE id IN {ids} AND state <> :state AND state <> 'ended'
 RETURNING id
"""
_IN_FLIGHT = """
    SELECT id FROM turns WHERE session_id = :id AND state IN ('queued', 'running', 'waiting') ORDER BY ordinal
"""
_WORKING_FOR = """
    SELECT id FROM turns WHERE parent_turn_id = :id AND state IN ('queued', 'running', 'waiting') ORDER BY id
"""
_WORKING_FOR_SESSION = """
    SELECT c.id FROM turns t JOIN turns c ON c.parent_turn_id = t.id
     WHERE t.session_id = :id AND c.state IN ('queued', 'running', 'waiting') ORDER BY c.id
"""
_SESSION = f"SELECT {rows.SESSION} FROM sessions WHERE id = :id"


def topics(cancelled: Sequence[Turn]) -> tuple[str, ...]:
    """Return the topics to wake after turns were cancelled: their workers, their readers, and the turns behind them."""
    told = (topic for turn in cancelled for topic in (f"session:{turn.session_id}", f"cancelled:{turn.id}"))
    return ("turns", "deliveries", "segments", *told)


def cancel(dialect: Dialect, turn_id: TurnId, cause: Cause, now_ms: int) -> Transaction[list[Turn]]:
    """Cancel a turn and its child turns, and return them all.  Raises `IllegalMove` when it is at rest already."""
    cancelled = [(yield from _cancel_one(dialect, turn_id, cause, now_ms))]
    for (child_id,) in (yield Run(_WORKING_FOR, {"id": turn_id})):
        cancelled += yield from _cancel_unless_at_rest(dialect, child_id, cause, now_ms)
    return cancelled


def _cancel_unless_at_rest(dialect: Dialect, turn_id: TurnId, cause: Cause, now_ms: int) -> Transaction[list[Turn]]:
    try:
        return (yield from cancel(dialect, turn_id, cause, now_ms))
    except IllegalMove:
        return []  # Its worker has ended it, or another request has cancelled it.


def _cancel_one(dialect: Dialect, turn_id: TurnId, cause: Cause, now_ms: int) -> Transaction[Turn]:
    # Its session may not be locked yet: it is a child turn, or its session was opened a moment ago.
    yield Lock([locks.turn(turn_id)])
    while True:
        turn = yield from turns.get(turn_id)
        cancelled = replace(turn.on(TurnEvent.CANCEL), cause=cause.value, fence=turn.fence + 1, node_id=None, retry_at=None)
        before = {"id": turn_id, "fence": turn.fence, "before": turn.state.value, "cause": cause.value}
        # On a shared database its holder may move it between our look and our write: then look again.
        if (yield Run(_CANCEL, before)):
            break
    yield from journal.decide_calls(dialect, [turn], now_ms)
    if turn.state is TurnState.WAITING:
        yield from questions.withdraw(turn_id, now_ms)
    last, _, ended, owes = yield from closing.move_session(turn.session_id, 1, 0, False, now_ms)
    draft = closing.draft(TurnState.CANCELLED, now_ms, cause=cause.value)
    yield from journal.insert(journal.numbered(turn, last, None, [draft]))
    # Entries of a lost attempt that arrive from now on are not accepted, so readers need not wait for them.
    yield from recoveries.close_all(turn, now_ms)
    if ended and owes:
        yield from segments.seal(turn.session_id, now_ms)
    return cancelled


def cancel_in_flight(dialect: Dialect, session_id: SessionId, cause: Cause, now_ms: int) -> Transaction[list[Turn]]:
    """Cancel every turn of a session that is not at rest, with its child turns; returns the cancelled turns."""
    cancelled: list[Turn] = []
    for (turn_id,) in (yield Run(_IN_FLIGHT, {"id": session_id})):
        cancelled += yield from _cancel_unless_at_rest(dialect, turn_id, cause, now_ms)
    return cancelled


def cancel_delegated(dialect: Dialect, session_id: SessionId, now_ms: int) -> Transaction[list[Turn]]:
    """Cancel the child turns of a session, also those of turns that have ended; returns the cancelled turns."""
    cancelled: list[Turn] = []
    for (turn_id,) in (yield Run(_WORKING_FOR_SESSION, {"id": session_id})):
        cancelled += yield from _cancel_unless_at_rest(dialect, turn_id, Cause.SESSION_ENDED, now_ms)
    return cancelled


def leave(
    dialect: Dialect, session_id: SessionId, event: sessions.SessionEvent, reason: str | None, now_ms: int
) -> Transaction[list[Turn]]:
    """Suspend or end a session, and cancel the turns in flight, so that every accepted message has an outcome."""
    cause = yield from _move_session(session_id, event, reason, now_ms)
    if cause is None:
        return []
    cancelled = yield from cancel_in_flight(dialect, session_id, cause, now_ms)
    yield from segments.seal(session_id, now_ms)
    return cancelled


def leave_all(
    dialect: Dialect, session_ids: Sequence[SessionId], event: sessions.SessionEvent, now_ms: int
) -> Transaction[None]:
    """Move sessions out of use that this transaction has locked already: all with each statement, since they may be many.

    Messages that wait in them are still answered: none of them is the reason.
    """
    state = sessions.MOVES[sessions.SessionState.OPEN, event]
    ends = state is sessions.SessionState.ENDED
    params = {"state": state.value, "ends": int(ends), "suffix": sessions.COMPLETE_SUFFIX, "now": now_ms}
    found = yield Run(_MOVE_SESSIONS.format(ids=dialect.each("ids")), {**params, "ids": rows.encode(list(session_ids))})
    moved = rows.encode([session_id for (session_id,) in found])
    yield from segments.seal_all(dialect, moved, now_ms)


def _move_session(
    session_id: SessionId, event: sessions.SessionEvent, reason: str | None, now_ms: int
) -> Transaction[Cause | None]:
    """Suspend or end a session; returns what that means for its turns, or None where it is too late."""
    while True:
        found = yield Run(_SESSION, {"id": session_id})
        if not found:
            return None
        session = rows.session(found[0])
        # No next message follows in a one-shot session, so suspending it would keep it for ever.
        event = sessions.SessionEvent.END if session.one_shot else event
        if (session.state, event) not in sessions.MOVES:
            return None  # Ended is ended: the first reason wins.
        state = session.on(event)
        ended = state is sessions.SessionState.ENDED
        moved = yield Run(
            _MOVE_SESSION,
            {
                "id": session_id,
                "before": session.state.value,
                "state": state.value,
                "end_reason": (reason or session.channel + sessions.COMPLETE_SUFFIX) if ended else None,
                "ended_at": now_ms if ended else None,
                "now": now_ms,
            },
        )
        # On a shared database another node may move it between our look and our write: then look again.
        if moved:
            return Cause.SESSION_ENDED if ended else Cause.SESSION_SUSPENDED
