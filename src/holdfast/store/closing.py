"""What every end of a turn writes: its closing entry, and its session moved along."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.core import sessions
from holdfast.core.journal import CLOSING, DraftEntry
from holdfast.core.turns import TurnState
from holdfast.ids import SessionId
from holdfast.store.database import Params, Row, Run, Transaction

_ENDS = "one_shot = 1 AND state = 'open'"
_CLOSE = f"""
    UPDATE sessions
       SET seq = seq + :count, generation = generation + :remembered, updated_at = :now,
           strikes = CASE WHEN CAST(:completed AS BIGINT) = 1 THEN 0 ELSE strikes END,
           state = CASE WHEN {_ENDS} THEN 'ended' ELSE state END,
           end_reason = CASE WHEN {_ENDS} THEN channel || CAST(:suffix AS TEXT) ELSE end_reason END,
           ended_at = CASE WHEN {_ENDS} THEN CAST(:now AS BIGINT) ELSE ended_at END
     WHERE id = :id
 RETURNING seq, generation, state, EXISTS (SELECT 1 FROM segments m WHERE m.session_id = sessions.id AND m.state = 'open')
"""


def draft(state: TurnState, at: int, text: str = "", error: str | None = None, cause: str | None = None) -> DraftEntry:
    """Return the entry that closes a turn."""
    return DraftEntry(at=at, event=CLOSING[state](text=text, error=error or "", cause=cause or ""))


def move_session(
    session_id: SessionId, count: int, remembered: int, completed: bool, now_ms: int
) -> Transaction[tuple[int, int, bool, bool]]:
    """Move a session along with its turn; also returns whether it has ended, and whether it has an open segment."""
    return moved((yield moving(session_id, count, remembered, completed, now_ms)))


def moving(session_id: SessionId, count: int, remembered: int, completed: bool, now_ms: int) -> Run:
    params: Params = {"id": session_id, "count": count, "remembered": remembered, "completed": int(completed)}
    return Run(_CLOSE, {**params, "now": now_ms, "suffix": sessions.COMPLETE_SUFFIX})


def moved(found: Sequence[Row]) -> tuple[int, int, bool, bool]:
    ((seq, generation, state, owes),) = found
    return seq, generation, state == "ended", bool(owes)
