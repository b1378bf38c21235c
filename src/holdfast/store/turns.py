"""Turns from acceptance to claim; how they end is in settlement.py."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from holdfast.core import sessions
from holdfast.core.intake import QUEUE_MAX, Cursor, Inbound, Receipt
from holdfast.core.journal import Draft, Entry, Kind
from holdfast.core.turns import Event, State, Turn
from holdfast.errors import KeyReused, NotFound, QueueFull, Stale
from holdfast.ids import NodeId, SessionId, TurnId
from holdfast.store import journal, rows
from holdfast.store.database import Database, Dialect, Params, Run, Transaction

_REMEMBER_KEY = """
    INSERT INTO dedupe (key, body_hash, turn_id, session_id, accepted_at)
    VALUES (:key, :body_hash, :turn_id, :session_id, :now)
    ON CONFLICT (key) DO NOTHING RETURNING key
"""
_KEY = "SELECT body_hash, turn_id, session_id, accepted_at FROM dedupe WHERE key = :key"
_KEY_SESSION = "UPDATE dedupe SET session_id = :session_id WHERE key = :key"
_JOIN_SESSION = """
    UPDATE sessions SET seq = seq + 1, turns = turns + 1, updated_at = :now
     WHERE owner = :owner AND key = :key AND state = 'open'
 RETURNING id, seq, turns,
           (SELECT COUNT(*) FROM turns t WHERE t.session_id = sessions.id AND t.state IN ('queued', 'running', 'waiting'))
"""
# The suspended session that no other has followed yet; which one is the latest, no clock could tell for certain.
_SUSPENDED = """
    (SELECT s.id FROM sessions s
      WHERE s.owner = :owner AND s.key = :key AND s.state = 'suspended'
        AND NOT EXISTS (SELECT 1 FROM sessions next WHERE next.owner = :owner AND next.key = :key AND next.parent_id = s.id)
      ORDER BY s.id DESC LIMIT 1)
"""
_OPEN_SESSION = f"""
    INSERT INTO sessions
        (id, key, channel, owner, one_shot, source, parent_id, auto_reset_reason, created_at, updated_at, seq, turns)
    VALUES (:id, :key, :channel, :owner, :one_shot, :source, {_SUSPENDED},
            CASE WHEN {_SUSPENDED} IS NOT NULL THEN CAST(:reset_reason AS TEXT) END, :now, :now, 1, 1)
    ON CONFLICT (owner, key) WHERE state = 'open' DO NOTHING RETURNING id
"""
_INSERT = """
    INSERT INTO turns (id, session_id, ordinal, accepted_at, mode, delivers_later, remembers, reply_to)
    VALUES (:id, :session_id, :ordinal, :now, :mode, :delivers_later, :remembers, :reply_to)
"""
_SAVE_CURSOR = """
    INSERT INTO cursors (channel, position) VALUES (:channel, :position)
    ON CONFLICT (channel) DO UPDATE SET position = excluded.position
"""
_CURSOR = "SELECT position FROM cursors WHERE channel = :channel"
# A turn is claimable when it is the oldest of its session that is still in flight: acceptance order, one at a time.
_CLAIM = f"""
    WITH heads AS MATERIALIZED (
        SELECT t.id AS head FROM turns t
         WHERE t.state = 'queued' AND t.node_id IS NULL AND {rows.NOT_GIVEN_UP}
           AND NOT EXISTS (SELECT 1 FROM turns o WHERE o.session_id = t.session_id AND o.ordinal < t.ordinal
                              AND o.state IN ('queued', 'running', 'waiting'))
         ORDER BY t.accepted_at, t.id LIMIT :limit {{skip_locked}})
    UPDATE turns SET node_id = :node_id, fence = fence + 1
      FROM heads WHERE turns.id = heads.head AND turns.state = 'queued' AND turns.node_id IS NULL
 RETURNING {rows.qualified(rows.TURN, "turns")}
"""
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
_UNPARK = "UPDATE turns SET state = 'queued', fence = fence + 1 WHERE id = :id AND state = 'waiting' RETURNING id"
# Writing the session first keeps a message that arrives at the same moment from running before the turn it follows.
_HOLD_SESSION = f"""
    UPDATE sessions SET updated_at = :now
     WHERE id = :id AND strikes < {sessions.STRIKES_MAX} AND (state = 'open' OR one_shot = 1)
 RETURNING id
"""
_RESUME = """
    UPDATE turns SET state = 'queued', cause = NULL WHERE id = :id AND state = 'interrupted'
       AND NOT EXISTS (SELECT 1 FROM turns later WHERE later.session_id = turns.session_id
                          AND later.ordinal > turns.ordinal)
 RETURNING id
"""
_GET = f"SELECT {rows.TURN} FROM turns WHERE id = :id"
_LIST = f"""
    SELECT {rows.TURN} FROM turns WHERE session_id = :session_id AND ordinal > :after ORDER BY ordinal LIMIT :limit
"""
_DELIVERED = """
    SELECT CASE WHEN COUNT(*) > 0 AND COUNT(*) = COUNT(CASE WHEN state = 'delivered' THEN 1 END)
                THEN MAX(settled_at) END
      FROM deliveries WHERE turn_id = :id
"""
_HELD = f"SELECT {rows.TURN} FROM turns WHERE node_id = :node_id"
_TALLY = "SELECT state, COUNT(*) FROM turns GROUP BY state"


class Turns:
    """Every turn that was ever accepted."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._claim = _CLAIM.format(skip_locked=database.dialect.skip_locked)

    async def accept(self, message: Inbound, turn_id: TurnId, session_id: SessionId, now_ms: int) -> Receipt:
        """Make a message durable as a queued turn; the ids are used only if a new turn or session is needed.

        A repeated key returns the first receipt.  Raises `KeyReused` where its body differs, `QueueFull` on a flood.
        """
        return await self._database.write(
            lambda: accept(message, turn_id, session_id, now_ms),
            touches=_touched(message),
            wakes=lambda receipt: ("turns", f"session:{receipt.session_id}"),
        )

    async def claim(self, node_id: NodeId, limit: int) -> list[Turn]:
        """Take the oldest claimable turns for a node; they stay queued until they start."""
        sql = self._claim
        return await self._database.write(lambda: _claim(sql, node_id, limit))

    async def release(self, turn: Turn) -> None:
        """Give a claimed turn back that was not started."""
        await self._database.write(lambda: _move(_RELEASE, {"id": turn.id, "fence": turn.fence}), wakes=lambda _: ("turns",))

    async def start(self, turn: Turn, now_ms: int) -> tuple[Turn, list[Entry]]:
        """Begin a claimed turn.  Raises `Stale` when it is not ours, or its session has a live turn already."""
        return await self._database.write(
            lambda: _start(turn, now_ms), wakes=lambda _: (f"appended:{turn.session_id}",), touches=(turn.session_id,)
        )

    async def park(self, turn: Turn, drafts: list[Draft]) -> tuple[Turn, list[Entry]]:
        """Leave a running turn waiting for a person; it costs nothing until they answer."""
        dialect = self._database.dialect
        return await self._database.write(
            lambda: _park(dialect, turn, drafts), wakes=lambda _: (f"appended:{turn.session_id}",)
        )

    async def answer(self, turn_id: TurnId, draft: Draft) -> Turn:
        """Put the person's answer in the journal and queue the turn again.  Raises `IllegalMove` unless it waits."""
        return await self._database.write(
            lambda: _answer(turn_id, draft), wakes=lambda turn: ("turns", f"session:{turn.session_id}")
        )

    async def get(self, turn_id: TurnId) -> Turn:
        """Return one turn.  Raises `NotFound`."""
        return await self._database.read(lambda: get(turn_id))

    async def list(self, session_id: SessionId, after: int = 0, limit: int = 100) -> list[Turn]:
        """Return turns of a session in acceptance order."""
        params = {"session_id": session_id, "after": after, "limit": limit}
        return await self._database.read(lambda: _turns(_LIST, params))

    async def delivered_at(self, turn_id: TurnId) -> int | None:
        """Return when the last part of the answer was confirmed; None while it was not."""
        return await self._database.read(lambda: _scalar(_DELIVERED, {"id": turn_id}))

    async def held(self, node_id: NodeId) -> list[Turn]:
        """Return the turns a node has claimed or runs."""
        return await self._database.read(lambda: _turns(_HELD, {"node_id": node_id}))

    async def cursor(self, channel: str) -> str | None:
        """Return how far a channel has been read."""
        return await self._database.read(lambda: _scalar(_CURSOR, {"channel": channel}))

    async def tally(self) -> dict[State, int]:
        """Count turns by state."""
        return await self._database.read(_tally)


def _touched(message: Inbound) -> list[str]:
    """Name what an accept depends on; with a worker of the same session it shares no more than two counters."""
    names = [f"conversation:{message.owner}:{message.conversation}"]
    if message.dedupe_key is not None:
        names.append(f"key:{message.dedupe_key}")
    if message.cursor:
        names.append(f"cursor:{message.cursor.channel}")
    return names


def accept(message: Inbound, turn_id: TurnId, session_id: SessionId, now_ms: int) -> Transaction[Receipt]:
    if message.dedupe_key is not None:
        first = yield from _first_receipt(message, turn_id, session_id, now_ms)
        if first:
            return first
    turn = yield from _join_or_open(message, turn_id, session_id, now_ms)
    if message.dedupe_key is not None and turn.session_id != session_id:
        yield Run(_KEY_SESSION, {"key": message.dedupe_key, "session_id": turn.session_id})
    if message.cursor:
        yield from _save_cursor(message.cursor)
    return Receipt(turn_id=turn_id, session_id=turn.session_id, state=State.QUEUED, accepted_at=now_ms)


def _first_receipt(message: Inbound, turn_id: TurnId, session_id: SessionId, now_ms: int) -> Transaction[Receipt | None]:
    key, body_hash = message.dedupe_key or "", message.body_hash()
    params = {"key": key, "body_hash": body_hash, "turn_id": turn_id, "session_id": session_id, "now": now_ms}
    if (yield Run(_REMEMBER_KEY, params)):
        return None
    ((first_hash, first_turn, first_session, accepted_at),) = yield Run(_KEY, {"key": key})
    if first_hash != body_hash:
        raise KeyReused(key, first_turn)
    if message.cursor:
        yield from _save_cursor(message.cursor)
    state = yield from _state_for_repeat(first_turn, now_ms)
    return Receipt(turn_id=first_turn, session_id=first_session, state=state, accepted_at=accepted_at, duplicate=True)


def _state_for_repeat(turn_id: TurnId, now_ms: int) -> Transaction[State]:
    found = yield Run(_GET, {"id": turn_id})
    if not found:
        return State.COMPLETED  # Pruned by retention: it was settled long ago.
    turn = rows.turn(found[0])
    if turn.state is State.INTERRUPTED and turn.mode.value == "synchronous":
        # Its client is back with the same request, so the turn goes on.
        held = yield Run(_HOLD_SESSION, {"id": turn.session_id, "now": now_ms})
        if held:
            yield Run(_RESUME, {"id": turn_id})
            turn = yield from get(turn_id)
    return turn.state


def _join_or_open(message: Inbound, turn_id: TurnId, session_id: SessionId, now_ms: int) -> Transaction[Turn]:
    # A one-shot message hardly ever finds a session to join, so it looks for one only where it cannot open its own.
    opened = message.one_shot and (yield from _open(message, session_id, now_ms))
    while not opened:
        joined = yield Run(_JOIN_SESSION, {"owner": message.owner, "key": message.conversation, "now": now_ms})
        if joined:
            ((joined_id, seq, ordinal, in_flight),) = joined
            if in_flight >= QUEUE_MAX:
                raise QueueFull(f"{QUEUE_MAX} messages are waiting in this conversation already; wait for an answer")
            return (yield from _insert(message, turn_id, joined_id, seq, ordinal, now_ms))
        opened = yield from _open(message, session_id, now_ms)
    return (yield from _insert(message, turn_id, session_id, 1, 1, now_ms))


def _open(message: Inbound, session_id: SessionId, now_ms: int) -> Transaction[bool]:
    opened = yield Run(
        _OPEN_SESSION,
        {
            "id": session_id,
            "owner": message.owner,
            "key": message.conversation,
            "channel": message.channel,
            "one_shot": int(message.one_shot),
            "source": rows.encode({name: getattr(message.source, name) for name in message.source.__slots__}),
            "reset_reason": sessions.reset_reason(sessions.State.SUSPENDED),
            "now": now_ms,
        },
    )
    return bool(opened)


def _insert(
    message: Inbound, turn_id: TurnId, session_id: SessionId, seq: int, ordinal: int, now_ms: int
) -> Transaction[Turn]:
    yield Run(
        _INSERT,
        {
            "id": turn_id,
            "session_id": session_id,
            "ordinal": ordinal,
            "now": now_ms,
            "mode": message.mode.value,
            "delivers_later": int(message.delivers_later),
            "remembers": int(message.remembers),
            "reply_to": message.reply_to,
        },
    )
    turn = Turn(id=turn_id, session_id=session_id, ordinal=ordinal, accepted_at=now_ms)
    entry = Entry(
        session_id=session_id,
        seq=seq,
        turn_id=turn_id,
        attempt=0,
        nth=None,
        kind=Kind.TURN_ACCEPTED,
        at=now_ms,
        data={"text": message.text},
    )
    yield from journal.insert([entry])
    return turn


def _save_cursor(cursor: Cursor) -> Transaction[None]:
    yield Run(_SAVE_CURSOR, {"channel": cursor.channel, "position": cursor.position})


def _claim(sql: str, node_id: NodeId, limit: int) -> Transaction[list[Turn]]:
    claimed = yield Run(sql, {"node_id": node_id, "limit": limit})
    return sorted((rows.turn(row) for row in claimed), key=lambda turn: (turn.accepted_at, turn.id))


def _move(sql: str, params: Params) -> Transaction[bool]:
    moved = yield Run(sql, params)
    return bool(moved)


def _start(turn: Turn, now_ms: int) -> Transaction[tuple[Turn, list[Entry]]]:
    started = yield Run(_START, {"id": turn.id, "fence": turn.fence, "now": now_ms})
    if not started:
        return (yield from _already_started(turn))
    # Every attempt numbers its own entries, whatever an earlier one had written.
    running = replace(turn.on(Event.START), attempt=started[0][0], nth=0, started_at=turn.started_at or now_ms)
    draft = Draft(kind=Kind.TURN_STARTED, at=now_ms, data={"attempt": running.attempt})
    return (yield from journal.write_held(running, [draft]))


def _already_started(turn: Turn) -> Transaction[tuple[Turn, list[Entry]]]:
    """Answer a repeated start like the first, if nothing came after it."""
    started = yield from unmoved(turn, State.RUNNING, 1)
    return started, (yield from journal.written(started, 0))


def unmoved(turn: Turn, state: State, nth: int) -> Transaction[Turn]:
    """Return a turn that nobody but the caller has moved.  Raises `Stale`, also when it was pruned meanwhile."""
    found = yield Run(_GET, {"id": turn.id})
    stands = rows.turn(found[0]) if found else None
    if stands is None or (stands.fence, stands.state, stands.nth) != (turn.fence, state, nth):
        raise Stale(f"turn {turn.id} is not held with fence {turn.fence} any more")
    return stands


def _park(dialect: Dialect, turn: Turn, drafts: list[Draft]) -> Transaction[tuple[Turn, list[Entry]]]:
    parked = turn.on(Event.ASK)
    hold = {"id": turn.id, "fence": turn.fence, "nth": turn.nth, "count": len(drafts)}
    if not (yield Run(_PARK, hold)):
        return (yield from _already_parked(turn, len(drafts)))
    # What the worker leaves in the middle of is decided now: after the answer nobody would know of it.
    yield from journal.decide_calls(dialect, [turn], drafts[-1].at)
    return (yield from journal.write_held(replace(parked, node_id=None), drafts))


def _already_parked(turn: Turn, count: int) -> Transaction[tuple[Turn, list[Entry]]]:
    """Answer a repeated park like the first, while nobody has answered the question."""
    waiting = yield from unmoved(turn, State.WAITING, turn.nth + count)
    return waiting, (yield from journal.written(waiting, turn.nth))


def _answer(turn_id: TurnId, draft: Draft) -> Transaction[Turn]:
    turn = yield from get(turn_id)
    queued = turn.on(Event.ANSWER)
    if not (yield Run(_UNPARK, {"id": turn_id})):
        raise Stale(f"turn {turn_id} was moved while it was answered")
    yield from journal.number(turn, None, [draft])
    return replace(queued, fence=turn.fence + 1)


def get(turn_id: TurnId) -> Transaction[Turn]:
    """Read one turn inside a transaction.  Raises `NotFound`."""
    found = yield Run(_GET, {"id": turn_id})
    if not found:
        raise NotFound(f"there is no turn {turn_id}")
    return rows.turn(found[0])


def _turns(sql: str, params: Params) -> Transaction[list[Turn]]:
    found = yield Run(sql, params)
    return [rows.turn(row) for row in found]


def _scalar(sql: str, params: Params) -> Transaction[Any]:
    found = yield Run(sql, params)
    return found[0][0] if found else None


def _tally() -> Transaction[dict[State, int]]:
    counted = yield Run(_TALLY)
    return {State(state): count for state, count in counted}
