"""What model calls have used: one row per `usage` entry, written with it, and kept when its conversation is gone."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.core.events import TokensUsed
from holdfast.core.journal import Entry
from holdfast.core.sessions import Session
from holdfast.core.turns import Turn
from holdfast.core.usage import CONTINUE, Scope, Spent, Usage, question_id
from holdfast.ids import SessionId, TurnId
from holdfast.store import removal, rows
from holdfast.store.database import Add, Database, Params, Row, Run, Transaction

_RECORD = """
    INSERT INTO spending
        (turn_id, attempt, nth, session_id, owner, at, model, input_tokens, output_tokens, cached_tokens, cost_micros)
    SELECT CAST(:turn_id AS TEXT), CAST(:attempt AS BIGINT), CAST(:nth AS BIGINT), s.id, s.owner, CAST(:at AS BIGINT),
           CAST(:model AS TEXT), CAST(:input_tokens AS BIGINT), CAST(:output_tokens AS BIGINT),
           CAST(:cached_tokens AS BIGINT), CAST(:cost_micros AS BIGINT)
      FROM sessions s WHERE s.id = :session_id
"""
# Beside every attempt of its turn: what was used for a conversation after it.
_EXTRA = """
    INSERT INTO spending
        (turn_id, attempt, nth, session_id, owner, at, model, input_tokens, output_tokens, cached_tokens, cost_micros)
    VALUES (:turn_id, 0, :nth, :session_id, :owner, :at, :model, :input_tokens, :output_tokens, :cached_tokens, :cost_micros)
    ON CONFLICT (turn_id, attempt, nth) DO NOTHING
"""
_AMOUNTS = ("input_tokens", "output_tokens", "cached_tokens", "cost_micros")
_SUMS = ", ".join(f"CAST(COALESCE(SUM({amount}), 0) AS BIGINT)" for amount in _AMOUNTS)
_BY_TURN = f"SELECT {_SUMS} FROM spending WHERE turn_id = :turn_id"
_BY_SESSION = f"SELECT {_SUMS} FROM spending WHERE session_id = :session_id"
# In one statement, so that both are of the same moment.
_UP_TO = (
    f"SELECT (SELECT s.seq FROM sessions s WHERE s.id = :session_id), {_SUMS} FROM spending WHERE session_id = :session_id"
)
_BY_OWNER = f"SELECT {_SUMS} FROM spending WHERE owner = :owner AND at >= :since"
# To go on was said in this session or today, and holds there for the turns that follow.
_ALLOWED = """
    SELECT id FROM questions
     WHERE owner = :owner AND about = 'budget' AND LOWER(TRIM(answer)) = :yes
       AND ((session_id = :session_id AND id LIKE :of_session) OR (asked_at >= :since AND id LIKE :of_day))
"""


class SpendingStore:
    """What model calls have used."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def spent(self, turn: Turn, owner: str, day_began_at: int) -> Spent:
        """Return what a turn has used, what its session has, and what its owner has since the day began."""
        return await self._database.read(lambda: _spent(turn, owner, day_began_at))

    async def of_session(self, session_id: SessionId) -> tuple[Usage, int]:
        """Return what all turns of a session have used, and up to which entry that is."""
        ((seq, *sums),) = await self._database.read(lambda: _run(_UP_TO, {"session_id": session_id}))
        return _usage(tuple(sums)), seq or 0

    async def of_owner(self, owner: str, since: int) -> Usage:
        """Return what all conversations of an owner have used since then."""
        (sums,) = await self._database.read(lambda: _run(_BY_OWNER, {"owner": owner, "since": since}))
        return _usage(sums)

    async def extra(self, session: Session, turn_id: TurnId, nth: int, used: Usage, now_ms: int) -> None:
        """Record what was used on behalf of a turn that has ended, as to remember it; its `nth` counts once."""
        amounts = {name: _amount(getattr(used, name)) for name in _AMOUNTS}
        named: Params = {"turn_id": turn_id, "nth": nth, "session_id": session.id, "owner": session.owner}
        params: Params = {**named, "at": now_ms, "model": used.model, **amounts}
        await self._database.write(lambda: _run(_EXTRA, params))

    async def forget(self, before: int) -> int:
        """Delete what is too old for any budget or report; returns how much."""
        key = ("turn_id", "attempt", "nth")
        return await removal.forget(self._database, "spending", key, "at <= :before", {"before": before})


def record(entries: Sequence[Entry]) -> Transaction[None]:
    """Write what new entries say was used."""
    if used := recording(entries):
        yield used[0]


def recording(entries: Sequence[Entry]) -> list[Add]:
    """Return the statement that records the usage in entries.  The place in the journal is its key, so none counts twice."""
    used = [
        _params(entry, entry.event) for entry in entries if isinstance(entry.event, TokensUsed) and entry.nth is not None
    ]
    return [Add(_RECORD, used)] if used else []


def _params(entry: Entry, used: TokensUsed) -> Params:
    return {
        "turn_id": entry.turn_id,
        "attempt": entry.attempt,
        "nth": entry.nth,
        "session_id": entry.session_id,
        "at": entry.at,
        "model": used.model,
        **{name: _amount(getattr(used, name)) for name in _AMOUNTS},
    }


def _amount(value: object) -> int:
    # A provider may report anything; what is not a positive number counts as 0.
    return value if isinstance(value, int) and value > 0 else 0


def _spent(turn: Turn, owner: str, day_began_at: int) -> Transaction[Spent]:
    by_turn = yield Run(_BY_TURN, {"turn_id": turn.id})
    by_session = yield Run(_BY_SESSION, {"session_id": turn.session_id})
    by_owner = yield Run(_BY_OWNER, {"owner": owner, "since": day_began_at})
    asked = {"of_session": question_id(Scope.SESSION, 0)[:-1] + "%", "of_day": question_id(Scope.DAY, 0)[:-1] + "%"}
    where = {"owner": owner, "session_id": turn.session_id, "since": day_began_at, "yes": CONTINUE}
    allowed = yield Run(_ALLOWED, {**where, **asked})
    return Spent(
        turn=_usage(by_turn[0]),
        session=_usage(by_session[0]),
        day=_usage(by_owner[0]),
        allowed=frozenset(str(id_) for (id_,) in allowed),
    )


_usage = rows.reader(Usage, ", ".join(_AMOUNTS))


def _run(sql: str, params: Params) -> Transaction[list[Row]]:
    return (yield Run(sql, params))
