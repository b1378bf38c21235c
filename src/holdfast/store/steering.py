"""Messages that join a running turn."""

from __future__ import annotations

from holdfast.core.events import MessageJoined, TurnCompleted
from holdfast.core.journal import DraftEntry, Entry
from holdfast.core.turns import Turn, TurnEvent, TurnState
from holdfast.store import journal, locks, messages, rows, turns
from holdfast.store.database import Database, Lock, Params, Run, Transaction

# What a message needs to join a running turn: the wish, and an answer that goes where the turn's goes.
_MAY_JOIN = """({0}.steers = 1 AND {0}.mode = :mode AND {0}.delivers_later = :delivers_later
            AND COALESCE({0}.reply_to, '') = COALESCE(CAST(:reply_to AS TEXT), ''))"""
# In the order of their acceptance, up to the first that wants a turn of its own.
_JOINING = f"""
    SELECT {rows.TURN} FROM turns t
     WHERE t.session_id = :session_id AND t.ordinal > :ordinal AND t.state = 'queued' AND t.node_id IS NULL
       AND {_MAY_JOIN.format("t")}
       AND NOT EXISTS (SELECT 1 FROM turns o WHERE o.session_id = t.session_id AND o.ordinal > :ordinal
                          AND o.ordinal < t.ordinal AND o.state = 'queued' AND NOT {_MAY_JOIN.format("o")})
     ORDER BY t.ordinal
"""
_JOIN = """
    UPDATE turns SET state = :state, joined_to = :host, answered_at = :now, fence = fence + 1
     WHERE id = :id AND fence = :fence AND state = 'queued' AND node_id IS NULL
 RETURNING id
"""


class SteeringStore:
    """Messages that steer, and the turns that they join."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def heed(self, turn: Turn, now_ms: int) -> tuple[Turn, list[Entry]]:
        """Let the messages that steer a running turn join it; they share its outcome from here on.

        Raises `Stale` when the turn is not the caller's any more.  Repeating it after a lost answer is safe.
        """
        return await self._database.write(
            lambda: _heed(turn, now_ms),
            wakes=lambda _: ("turns", f"session:{turn.session_id}"),
        )

    async def is_wanted(self, turn: Turn) -> bool:
        """Return whether a message waits to join a running turn."""
        return bool(await self._database.read(lambda: _joining(turn)))


def _joining(turn: Turn) -> Transaction[list[Turn]]:
    return [rows.turn(row) for row in (yield Run(_JOINING, _place(turn)))]


def _place(turn: Turn) -> Params:
    return {
        "session_id": turn.session_id,
        "ordinal": turn.ordinal,
        "mode": turn.mode.value,
        "delivers_later": int(turn.delivers_later),
        "reply_to": turn.reply_to,
    }


def _heed(turn: Turn, now_ms: int) -> Transaction[tuple[Turn, list[Entry]]]:
    yield Lock([locks.session(turn.session_id)])
    stands = yield from turns.unmoved(turn, TurnState.RUNNING, None)
    if stands.nth != turn.nth:
        # Only this worker writes here, so these entries belong to an answer that was lost.
        return stands, (yield from journal.written(stands, turn.nth))
    joined: list[DraftEntry] = []
    for each in (yield from _joining(turn)):
        text = yield from _join(each, turn, now_ms)
        if text is not None:
            joined.append(DraftEntry(at=now_ms, event=MessageJoined(text=text, turn_id=each.id)))
    if not joined:
        return turn, []
    yield from journal.hold(turn, len(joined))
    return (yield from journal.write_held(turn, joined))


def _join(message: Turn, host: Turn, now_ms: int) -> Transaction[str | None]:
    """Make a waiting message part of a running turn; None when it was moved elsewhere first."""
    state = message.on(TurnEvent.JOIN).state
    place = {"id": message.id, "fence": message.fence, "state": state.value, "host": host.id, "now": now_ms}
    moved = yield Run(_JOIN, place)
    if not moved:
        return None
    yield from journal.number(message, None, [DraftEntry(at=now_ms, event=TurnCompleted(joined=host.id))])
    return (yield from messages.accepted(message.id)).text
