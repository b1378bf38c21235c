"""Requests without a key that their clients repeat: each try finds the turn of the one before."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.core.retries import Candidate, Try, chosen
from holdfast.core.turns import TurnState
from holdfast.ids import SessionId, TurnId
from holdfast.store import locks, rows
from holdfast.store.database import Dialect, Lock, Run, Transaction

_FIND = """
    SELECT id, session_id, state, accepted_at, answered_at, request_tries FROM turns
     WHERE request_digest = :digest AND owner = :owner
"""
# Of two tries with the same number only one gets the turn, whichever node they come to.
_JOIN = """
    UPDATE turns SET request_tries = :number WHERE id = :id AND request_tries < :number AND request_digest IS NOT NULL
 RETURNING id
"""
_FORGET = "UPDATE turns SET request_digest = NULL WHERE id IN {ids} AND request_digest IS NOT NULL"


def join(this: Try, owner: str, now_ms: int) -> Transaction[Candidate | None]:
    """Return the turn that a repeated request belongs to; None where there is none, so that it is a new one."""
    if not this.joins:
        return None
    found = yield Run(_FIND, {"digest": this.digest, "owner": owner})
    for each in chosen([_candidate(*row) for row in found], this, now_ms):
        # Its turn may go on, and a session is locked before its turns.
        yield Lock([locks.session(each.session_id)])
        if (yield Run(_JOIN, {"id": each.turn_id, "number": this.number})):
            return each
    return None


def forget(dialect: Dialect, turn_ids: Sequence[TurnId]) -> Transaction[None]:
    """Let no request join these turns any more: their clients have the answer."""
    yield Run(_FORGET.format(ids=dialect.each("ids")), {"ids": rows.encode(list(turn_ids))})


def _candidate(
    turn_id: str, session_id: str, state: str, accepted_at: int, answered_at: int | None, tries: int
) -> Candidate:
    return Candidate(
        turn_id=TurnId(turn_id),
        session_id=SessionId(session_id),
        state=TurnState(state),
        accepted_at=accepted_at,
        answered_at=answered_at,
        tries=tries,
    )
