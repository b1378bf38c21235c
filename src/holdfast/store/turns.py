"""Turns under way.

intake.py accepts them, claims.py takes them to run, steering.py lets messages join them, and settlement.py ends them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from holdfast.core import delegation, outages, sessions
from holdfast.core.admission import Load
from holdfast.core.delivery import Delivery
from holdfast.core.effects import Call
from holdfast.core.events import ApprovalAnswered
from holdfast.core.intake import Image, Once
from holdfast.core.journal import DraftEntry, Entry
from holdfast.core.questions import Question
from holdfast.core.turns import Turn, TurnEvent, TurnState
from holdfast.errors import IllegalMove, NotFound, Stale
from holdfast.ids import NodeId, SessionId, TurnId
from holdfast.store import claims, dedupe, deliveries, journal, locks, messages, questions, rows
from holdfast.store.claims import Claims
from holdfast.store.database import Database, Dialect, Lock, Params, Run, Together, Transaction

_RELEASE = """
    UPDATE turns SET node_id = NULL, fence = fence + 1 WHERE id = :id AND fence = :fence AND state = 'queued'
 RETURNING id
"""
_START = """
    UPDATE turns SET state = 'running', attempt = attempt + 1, nth = 1, started_at = COALESCE(started_at, :now)
     WHERE id = :id AND fence = :fence AND state = 'queued' AND node_id IS NOT NULL
 RETURNING attempt
"""
_PARK = """
    UPDATE turns SET state = 'waiting', node_id = NULL, nth = nth + :count
     WHERE id = :id AND fence = :fence AND state = 'running' AND nth = :nth
 RETURNING id
"""
_DEFER = """
    UPDATE turns SET state = 'queued', node_id = NULL, nth = nth + :count, fence = fence + 1, retry_at = :retry_at
     WHERE id = :id AND fence = :fence AND state = 'running' AND nth = :nth
 RETURNING id
"""
# A clock that was set back keeps no turn waiting for longer than any could have meant.
_RIPEN = """
    UPDATE turns SET retry_at = NULL
     WHERE id IN (SELECT id FROM turns WHERE retry_at IS NOT NULL AND (retry_at <= :now OR retry_at > :latest) {skip_locked})
 RETURNING id
"""
_UNPARK = "UPDATE turns SET state = 'queued', fence = fence + 1 WHERE id = :id AND state = 'waiting' RETURNING id"
# Writing the session first keeps a message that arrives at the same moment from running before the turn it follows.
_GOES_ON = f"strikes < {sessions.STRIKES_MAX} AND (sessions.state = 'open' OR one_shot = 1)"
_HOLD_SESSION = f"UPDATE sessions SET updated_at = :now WHERE id = :id AND {_GOES_ON} RETURNING id"
_RESUMABLE = """
    turns.id = :id AND turns.state = 'interrupted'
       AND NOT EXISTS (SELECT 1 FROM turns later WHERE later.session_id = turns.session_id
                          AND later.ordinal > turns.ordinal)
       AND NOT EXISTS (SELECT 1 FROM turns parent WHERE parent.id = turns.parent_turn_id AND parent.state = 'cancelled')
"""
_RESUME = f"UPDATE turns SET state = 'queued', cause = NULL WHERE {_RESUMABLE} RETURNING id"
_MAY_RESUME = f"""
    SELECT 1 FROM turns
     WHERE {_RESUMABLE} AND EXISTS (SELECT 1 FROM sessions WHERE sessions.id = turns.session_id AND {_GOES_ON})
"""
_GET = f"SELECT {rows.TURN} FROM turns WHERE id = :id"
_LIST = f"""
    SELECT {rows.TURN} FROM turns WHERE session_id = :session_id AND ordinal > :after ORDER BY ordinal LIMIT :limit
"""
LAST = f"""
    SELECT {rows.TURN} FROM turns
     WHERE session_id = :id AND joined_to IS NULL
       AND NOT EXISTS (SELECT 1 FROM entries e WHERE e.turn_id = turns.id AND e.kind = 'turn.undone')
     ORDER BY ordinal DESC LIMIT 1
"""
_DELIVERED = """
    SELECT CASE WHEN COUNT(*) > 0 AND COUNT(*) = COUNT(CASE WHEN state = 'delivered' THEN 1 END)
                THEN MAX(settled_at) END
      FROM deliveries WHERE turn_id = :id AND part > 0
"""
_HELD = f"SELECT {rows.TURN} FROM turns WHERE node_id = :node_id"
# The index holds only child turns, so this is cheap.
_AT_WORK_FOR = f"""
    SELECT {rows.TURN} FROM turns WHERE parent_turn_id = :id AND state IN ('queued', 'running', 'waiting') ORDER BY id
"""
# A child that was cancelled with its parent needs no report, nor does one whose parent's session is being removed.
_UNREPORTED = f"""
    SELECT {rows.qualified(rows.TURN, "t")}
      FROM sessions s JOIN turns t ON t.session_id = s.id JOIN turns p ON p.id = t.parent_turn_id
      JOIN sessions home ON home.id = p.session_id AND home.owner <> '{sessions.NO_OWNER}'
     WHERE s.channel = :channel AND s.state = 'ended' AND s.ended_at > :since AND s.key LIKE CAST(:later AS TEXT) || '%'
       AND t.state IN ('completed', 'failed', 'cancelled', 'interrupted')
       AND NOT (t.state = 'cancelled' AND p.state = 'cancelled')
       AND NOT EXISTS (SELECT 1 FROM dedupe d WHERE d.key = CAST(:home AS TEXT) || t.id)
     ORDER BY s.ended_at, t.id LIMIT :limit
"""
# What people sent to the side.  A conversation that is gone needs no report; whether it is, the session's key tells.
_UNREPORTED_ASIDES = f"""
    SELECT {rows.qualified(rows.TURN, "t")} FROM sessions s JOIN turns t ON t.session_id = s.id
     WHERE s.channel = :channel AND s.state = 'ended' AND s.ended_at > :since
       AND t.state IN ('completed', 'failed', 'cancelled', 'interrupted')
       AND NOT EXISTS (SELECT 1 FROM dedupe d WHERE d.key = CAST(:home AS TEXT) || t.id)
     ORDER BY s.ended_at, t.id LIMIT :limit
"""
# Nearly all turns that ever were have completed.  They alone are not looked for by their state but are what is left of all,
# which a database counts without reading a single one.
_TALLY = """
    SELECT 'completed', COUNT(*) FROM turns
     UNION ALL SELECT state, COUNT(*) FROM turns WHERE state IN ('queued', 'running', 'waiting') GROUP BY state
     UNION ALL SELECT state, COUNT(*) FROM turns WHERE state = 'interrupted' GROUP BY state
     UNION ALL SELECT state, COUNT(*) FROM turns WHERE state IN ('failed', 'cancelled') GROUP BY state
"""


class TurnStore:
    """Every turn that was ever accepted."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._claims = Claims(database)
        self._ripen = _RIPEN.format(skip_locked=database.dialect.skip_locked)

    async def take(
        self, node_id: NodeId, limit: int, now_ms: int, *, detached: int | None = None, load: Load | None = None
    ) -> list[tuple[Turn, list[Entry]]]:
        """Claim turns: first those with a waiting client, then at most `detached` of the others.

        They are shared between their owners, by what runs already.  Suspects are left out.
        On an exclusive store they have started already; elsewhere they are still queued.
        """
        detached = limit if detached is None else detached
        return await self._database.write(
            lambda: self._claims.take(node_id, limit, now_ms, detached, load or Load()),
            wakes=lambda taken: [f"appended:{turn.session_id}" for turn, entries in taken if entries],
            heeds=("turns",),
        )

    async def suspect(self) -> Turn | None:
        """Return the suspect that is taken next: a turn that may have crashed its nodes, so that it has to run alone."""
        found = await self._database.read(lambda: _turns(claims.NEXT_SUSPECT, {}))
        return found[0] if found else None

    async def take_suspect(self, node_id: NodeId, now_ms: int) -> list[tuple[Turn, list[Entry]]]:
        """Claim one suspect, as `take` does the others."""
        return await self._database.write(
            lambda: self._claims.take_suspect(node_id, now_ms),
            wakes=lambda taken: [f"appended:{turn.session_id}" for turn, entries in taken if entries],
            heeds=("turns",),
        )

    async def release(self, turn: Turn) -> None:
        """Give a claimed turn back that was not started."""
        await self._database.write(lambda: _release(turn), wakes=lambda _: ("turns",))

    async def start(self, turn: Turn, now_ms: int) -> tuple[Turn, list[Entry]]:
        """Begin a claimed turn.  Raises `Stale` when it is not ours, or its session has a live turn already."""
        return await self._database.write(
            lambda: _start(turn, now_ms),
            wakes=lambda _: (f"appended:{turn.session_id}",),
        )

    async def park(
        self,
        turn: Turn,
        drafts: list[DraftEntry],
        question: Question,
        calls: Sequence[tuple[Call, Call]] = (),
        asking: Sequence[Delivery] = (),
    ) -> tuple[Turn, list[Entry]]:
        """Leave a running turn waiting for a person; it costs nothing until they answer.

        `calls` are the moves of the tool calls that the answer is about, or that wait with them.  `asking` are the messages
        that take the question to a chat.
        """
        dialect = self._database.dialect
        return await self._database.write(
            lambda: _park(dialect, turn, drafts, question, calls, asking),
            wakes=lambda _: (f"appended:{turn.session_id}", *(("deliveries",) if asking else ())),
        )

    async def defer(self, turn: Turn, drafts: list[DraftEntry], retry_at: int, now_ms: int) -> tuple[Turn, list[Entry]]:
        """Queue a running turn again, to be tried later.  Raises `Stale` when it is not ours."""
        dialect = self._database.dialect
        return await self._database.write(
            lambda: _defer(dialect, turn, drafts, retry_at, now_ms),
            wakes=lambda _: (f"appended:{turn.session_id}",),
        )

    async def ripen(self, now_ms: int) -> int:
        """Let the turns be claimed whose time has come; returns how many."""
        times = {"now": now_ms, "latest": now_ms + outages.RETRY_AFTER_MAX_MS}
        sql = self._ripen
        return await self._database.write(lambda: _ripen(sql, times), wakes=lambda ripe: ("turns",) if ripe else ())

    async def answer(self, turn_id: TurnId, given: ApprovalAnswered, at: int, once: Once | None = None) -> Turn:
        """Put the person's answer in the journal, grant what it grants, and queue the turn again.

        Raises `IllegalMove` unless the turn waits with the question that the answer names, and it has not expired, and
        `Repeated` where the same request answered it before.
        """
        return await self._database.write(
            lambda: _answer(turn_id, given, at, once),
            wakes=lambda turn: ("turns", f"session:{turn.session_id}"),
        )

    async def resume(self, turn_id: TurnId, now_ms: int, once: Once | None = None) -> Turn:
        """Let an interrupted turn go on.  Raises `IllegalMove` unless it is interrupted and the last of an open session.

        Raises `Repeated` where the same request had let it go on before.
        """
        return await self._database.write(
            lambda: _resume(turn_id, now_ms, once),
            wakes=lambda turn: ("turns", f"session:{turn.session_id}"),
        )

    async def may_resume(self, turn_id: TurnId) -> bool:
        """Return whether `resume` would let a turn go on."""
        return bool(await self._database.read(lambda: _scalar(_MAY_RESUME, {"id": turn_id})))

    async def asked(self, turn_id: TurnId) -> str:
        """Return what a turn was asked: its message, and those that joined it."""
        return await self._database.read(lambda: messages.text(turn_id))

    async def images(self, turn_id: TurnId) -> list[Image]:
        """Return the pictures that came with what a turn was asked."""
        return await self._database.read(lambda: messages.images(turn_id))

    async def image(self, turn_id: TurnId, place: int) -> Image:
        """Return one of the pictures that came with the message of a turn, counted from 0.  Raises `NotFound`."""
        return await self._database.read(lambda: messages.image(turn_id, place))

    async def get(self, turn_id: TurnId) -> Turn:
        """Return one turn.  Raises `NotFound`."""
        return await self._database.read(lambda: get(turn_id))

    async def list(self, session_id: SessionId, after: int = 0, limit: int = 100) -> list[Turn]:
        """Return turns of a session in acceptance order."""
        params = {"session_id": session_id, "after": after, "limit": limit}
        return await self._database.read(lambda: _turns(_LIST, params))

    async def last(self, session_id: SessionId) -> Turn | None:
        """Return the last turn of a session that stands in its transcript by itself, and was not undone."""
        found = await self._database.read(lambda: _turns(LAST, {"id": session_id}))
        return found[0] if found else None

    async def delivered_at(self, turn_id: TurnId) -> int | None:
        """Return when the last part of the answer was confirmed; None while it was not."""
        return await self._database.read(lambda: _scalar(_DELIVERED, {"id": turn_id}))

    async def held(self, node_id: NodeId) -> list[Turn]:
        """Return the turns a node has claimed or runs."""
        return await self._database.read(lambda: _turns(_HELD, {"node_id": node_id}))

    async def at_work_for(self, turn_id: TurnId) -> list[Turn]:
        """Return the turns that work for another one and are not at rest."""
        return await self._database.read(lambda: _turns(_AT_WORK_FOR, {"id": turn_id}))

    async def unreported(self, since: int, limit: int) -> list[Turn]:
        """Return turns that have ended since then, and whose end is still to come home to the conversation behind them."""
        names = {"channel": delegation.CHANNEL, "later": delegation.LATER, "home": delegation.HOME}
        return await self._database.read(lambda: _turns(_UNREPORTED, {**names, "since": since, "limit": limit}))

    async def unreported_asides(self, since: int, limit: int) -> list[Turn]:
        """Return turns that people sent to the side, have ended since then, and are still to be reported."""
        params = {"channel": delegation.BACKGROUND, "home": delegation.HOME, "since": since, "limit": limit}
        return await self._database.read(lambda: _turns(_UNREPORTED_ASIDES, params))

    async def tally(self) -> dict[TurnState, int]:
        """Count turns by state."""
        return await self._database.read(_tally)


def _release(turn: Turn) -> Transaction[None]:
    yield locks.UNNAMED
    yield Run(_RELEASE, {"id": turn.id, "fence": turn.fence})


def _start(turn: Turn, now_ms: int) -> Transaction[tuple[Turn, list[Entry]]]:
    yield Lock([locks.session(turn.session_id)])
    # Every attempt numbers its entries from 1.
    running = replace(turn.on(TurnEvent.START), attempt=turn.attempt + 1, nth=0, started_at=turn.started_at or now_ms)
    writes, entries = journal.writing_next(running, 1, [claims.started(running, now_ms)])
    start = Run(_START, {"id": turn.id, "fence": turn.fence, "now": now_ms}, needed=True)
    started, *found = yield Together((start, *writes), last=True)
    if not started:
        return (yield from _already_started(turn))
    return replace(running, nth=1), entries(found[0])


def _already_started(turn: Turn) -> Transaction[tuple[Turn, list[Entry]]]:
    """Answer a repeated start like the first, if the turn has not moved on."""
    started = yield from unmoved(turn, TurnState.RUNNING, 1)
    return started, (yield from journal.written(started, 0))


def unmoved(turn: Turn, state: TurnState, nth: int | None) -> Transaction[Turn]:
    """Return a turn that only the caller has moved.  `nth` is compared unless it is None.

    Raises `Stale`, also when it was pruned meanwhile.
    """
    stands = yield from find(turn.id)
    if stands is None or (stands.fence, stands.state) != (turn.fence, state) or nth not in (None, stands.nth):
        raise Stale(f"turn {turn.id} is not held with fence {turn.fence} any more")
    return stands


def _park(
    dialect: Dialect,
    turn: Turn,
    drafts: list[DraftEntry],
    question: Question,
    calls: Sequence[tuple[Call, Call]],
    asking: Sequence[Delivery],
) -> Transaction[tuple[Turn, list[Entry]]]:
    yield Lock([locks.session(turn.session_id)])
    parked = turn.on(TurnEvent.ASK)
    hold = {"id": turn.id, "fence": turn.fence, "nth": turn.nth, "count": len(drafts)}
    if not (yield Run(_PARK, hold)):
        return (yield from _already_parked(turn, len(drafts)))
    # Calls that the worker has started are decided now, because its next attempt does not know of them.
    yield from journal.decide_calls(dialect, [turn], drafts[-1].at)
    for before, after in calls:
        yield from journal.save_call(before, after)
    yield from questions.ask(turn, question, drafts[-1].at)
    yield from deliveries.insert_asides(turn, asking)
    return (yield from journal.write_held(replace(parked, node_id=None), drafts))


def _already_parked(turn: Turn, count: int) -> Transaction[tuple[Turn, list[Entry]]]:
    """Answer a repeated park like the first, while the question is open."""
    waiting = yield from unmoved(turn, TurnState.WAITING, turn.nth + count)
    return waiting, (yield from journal.written(waiting, turn.nth))


def _defer(
    dialect: Dialect, turn: Turn, drafts: list[DraftEntry], retry_at: int, now_ms: int
) -> Transaction[tuple[Turn, list[Entry]]]:
    yield Lock([locks.session(turn.session_id)])
    deferred = replace(turn.on(TurnEvent.DEFER), fence=turn.fence + 1, node_id=None, retry_at=retry_at)
    hold = {"id": turn.id, "fence": turn.fence, "nth": turn.nth, "count": len(drafts), "retry_at": retry_at}
    if not (yield Run(_DEFER, hold)):
        raise Stale(f"turn {turn.id} is not held with fence {turn.fence} any more")
    yield from journal.decide_calls(dialect, [turn], now_ms)
    return (yield from journal.write_held(deferred, drafts)) if drafts else (deferred, [])


def _ripen(sql: str, times: Params) -> Transaction[int]:
    yield locks.UNNAMED
    return len((yield Run(sql, times)))


def _answer(turn_id: TurnId, given: ApprovalAnswered, at: int, once: Once | None = None) -> Transaction[Turn]:
    yield Lock([locks.turn(turn_id)])
    turn = yield from get(turn_id)
    yield from dedupe.once(once, turn.session_id, at)
    queued = turn.on(TurnEvent.ANSWER)
    if not (yield Run(_UNPARK, {"id": turn_id})):
        raise Stale(f"turn {turn_id} was moved while it was answered")
    yield from questions.answer(turn, given, at)
    yield from journal.number(turn, None, [DraftEntry(at=at, event=given)])
    return replace(queued, fence=turn.fence + 1)


def _resume(turn_id: TurnId, now_ms: int, once: Once | None) -> Transaction[Turn]:
    yield Lock([locks.turn(turn_id)])
    turn = yield from get(turn_id)
    yield from dedupe.once(once, turn.session_id, now_ms)
    resumed = yield from resume(turn, now_ms)
    if resumed.state is not turn.on(TurnEvent.RESUME).state:
        raise IllegalMove(turn_id, f"{turn.state}, and its session has moved on", TurnEvent.RESUME)
    return resumed


def resume(turn: Turn, now_ms: int) -> Transaction[Turn]:
    """Queue an interrupted turn again where its session allows it; returns the turn as it is then."""
    if (yield Run(_HOLD_SESSION, {"id": turn.session_id, "now": now_ms})):
        yield Run(_RESUME, {"id": turn.id})
    return (yield from get(turn.id))


def find(turn_id: TurnId) -> Transaction[Turn | None]:
    """Read one turn inside a transaction."""
    found = yield Run(_GET, {"id": turn_id})
    return rows.turn(found[0]) if found else None


def get(turn_id: TurnId) -> Transaction[Turn]:
    """Read one turn inside a transaction.  Raises `NotFound`."""
    turn = yield from find(turn_id)
    if turn is None:
        raise NotFound(f"there is no turn {turn_id}")
    return turn


def _turns(sql: str, params: Params) -> Transaction[list[Turn]]:
    found = yield Run(sql, params)
    return [rows.turn(row) for row in found]


def _scalar(sql: str, params: Params) -> Transaction[Any]:
    found = yield Run(sql, params)
    return found[0][0] if found else None


def _tally() -> Transaction[dict[TurnState, int]]:
    tally = {TurnState(state): count for state, count in (yield Run(_TALLY))}
    tally[TurnState.COMPLETED] -= sum(count for state, count in tally.items() if state is not TurnState.COMPLETED)
    return {state: count for state, count in tally.items() if count}
