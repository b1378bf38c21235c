"""What chats show of turns: status lines, and the messages that ask questions."""

from __future__ import annotations

import base64
import hashlib

from holdfast.core.showing import AtWork, Card, LineKind, SettledCard, StatusLine
from holdfast.core.turns import TurnState
from holdfast.errors import NotFound, Stale
from holdfast.ids import DeliveryId, TurnId
from holdfast.store import locks, removal, rows
from holdfast.store.database import Database, Params, Row, Run, Transaction

_IN_FLIGHT = "('queued', 'running', 'waiting')"
_LINE = "turn_id, target, kind, state, message_id"
_CARD = "delivery_id, turn_id, question_id, target, closed_at"
_UNSETTLED = "(d.state IN ('pending', 'sending', 'retry') OR (d.state = 'unknown' AND d.repeats = 0))"
_SHOWN = f"""
           t.id, t.session_id, COALESCE(l.target, t.reply_to), t.state, t.accepted_at, t.retry_at IS NOT NULL,
           EXISTS (SELECT 1 FROM turns o WHERE o.session_id = t.session_id AND o.ordinal < t.ordinal
                      AND o.state IN {_IN_FLIGHT}),
           (SELECT MIN(c.name) FROM tool_calls c WHERE c.turn_id = t.id AND c.state = 'started'),
           EXISTS (SELECT 1 FROM deliveries d WHERE d.turn_id = t.id AND d.part > 0 AND {_UNSETTLED}),
           EXISTS (SELECT 1 FROM deliveries d WHERE d.target = COALESCE(l.target, t.reply_to) AND {_UNSETTLED}),
           (SELECT s.source FROM sessions s WHERE s.id = t.session_id),
           l.kind, l.state, l.message_id
"""
# Turns at work, and those whose message was not removed yet.
_AT_WORK = f"""
    SELECT {_SHOWN} FROM turns t LEFT JOIN status_lines l ON l.turn_id = t.id
     WHERE t.state IN {_IN_FLIGHT} AND t.delivers_later = 1 AND substr(t.reply_to, 1, length(:prefix)) = :prefix
 UNION ALL
    SELECT {_SHOWN} FROM status_lines l JOIN turns t ON t.id = l.turn_id
     WHERE l.state <> 'closed' AND substr(l.target, 1, length(:prefix)) = :prefix AND t.state NOT IN {_IN_FLIGHT}
"""
# A turn that is over is shown by its answer.
_BEGIN = f"""
    INSERT INTO status_lines (turn_id, target, kind)
    SELECT t.id, CAST(:target AS TEXT), CAST(:kind AS TEXT) FROM turns t
     WHERE t.id = :turn_id AND t.state IN {_IN_FLIGHT}
    ON CONFLICT (turn_id) DO NOTHING
 RETURNING turn_id
"""
_SHOW = """
    UPDATE status_lines SET state = 'shown', message_id = :message_id WHERE turn_id = :turn_id AND state = 'sending'
 RETURNING turn_id
"""
_FORGET_UNSENT = "DELETE FROM status_lines WHERE turn_id = :turn_id AND state = 'sending'"
_FORGET = "DELETE FROM status_lines WHERE turn_id = :turn_id"
_CLOSE = "UPDATE status_lines SET state = 'closed' WHERE turn_id = :turn_id"
_FIND = f"SELECT {_LINE} FROM status_lines WHERE turn_id = :turn_id"
_CARDS_OF_TURN = f"SELECT {_CARD} FROM cards WHERE turn_id = :turn_id ORDER BY delivery_id"
_OPEN_AT = f"""
    SELECT {rows.qualified(_CARD, "c")} FROM cards c
      JOIN questions q ON q.turn_id = c.turn_id AND q.id = c.question_id AND q.answer IS NULL
     WHERE c.target = :target AND c.closed_at IS NULL ORDER BY q.asked_at DESC, c.delivery_id
"""
_SETTLED = f"""
    SELECT {rows.qualified(_CARD, "c")}, q.answer, {rows.qualified(rows.DELIVERY, "d")}
      FROM cards c JOIN questions q ON q.turn_id = c.turn_id AND q.id = c.question_id
      JOIN deliveries d ON d.id = c.delivery_id
     WHERE c.closed_at IS NULL AND substr(c.target, 1, length(:prefix)) = :prefix
       AND q.answer IS NOT NULL
       AND NOT {_UNSETTLED} LIMIT :limit
"""
_CLOSE_CARD = "UPDATE cards SET closed_at = :now WHERE delivery_id = :id AND closed_at IS NULL"
_KEEP = "INSERT INTO kept_files (id, data, kept_at) VALUES (:id, :data, :now) ON CONFLICT (id) DO UPDATE SET kept_at = :now"
_CARD_COLUMNS = len(_CARD.split(", "))


class StatusLineStore:
    """The message of each turn that shows it at work."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def at_work(self, account: str) -> list[AtWork]:
        """Return the turns of an account that a chat may see at work, and those whose message still shows."""
        return [_at_work(row) for row in await self._database.read(lambda: _run(_AT_WORK, {"prefix": f"{account}:"}))]

    async def find(self, turn_id: TurnId) -> StatusLine | None:
        """Return the message of a turn."""
        found = await self._database.read(lambda: _run(_FIND, {"turn_id": turn_id}))
        return _line(found[0]) if found else None

    async def begin(self, turn_id: TurnId, target: str, kind: LineKind) -> bool:
        """Record that the message of a turn is about to be sent; False where one was before, or the turn is over."""
        params = {"turn_id": turn_id, "target": target, "kind": kind.value}
        return bool(await self._database.write(lambda: _write(_BEGIN, params)))

    async def show(self, turn_id: TurnId, message_id: str) -> None:
        """Keep the id of the message.  Raises `Stale` where it is not being sent any more."""
        params = {"turn_id": turn_id, "message_id": message_id}
        if not await self._database.write(lambda: _write(_SHOW, params)):
            raise Stale(f"the status line of turn {turn_id} is not being sent any more")

    async def withdraw(self, turn_id: TurnId) -> None:
        """Forget a message that certainly was not sent, so that it may be tried again."""
        await self._database.write(lambda: _write(_FORGET_UNSENT, {"turn_id": turn_id}))

    async def forget(self, turn_id: TurnId) -> None:
        """Forget the message of a turn that is at rest and may go on later, when it gets another one."""
        await self._database.write(lambda: _write(_FORGET, {"turn_id": turn_id}))

    async def close(self, turn_id: TurnId) -> None:
        """Record that the message shows no work any more."""
        await self._database.write(lambda: _write(_CLOSE, {"turn_id": turn_id}))


class CardStore:
    """The messages that ask questions."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of_turn(self, turn_id: TurnId) -> list[Card]:
        """Return the messages that ask the questions of a turn."""
        return [_card(row) for row in await self._database.read(lambda: _run(_CARDS_OF_TURN, {"turn_id": turn_id}))]

    async def open_at(self, target: str) -> list[Card]:
        """Return the messages of a chat whose question is open, the last that was asked first."""
        return [_card(row) for row in await self._database.read(lambda: _run(_OPEN_AT, {"target": target}))]

    async def settled(self, account: str, limit: int = 50) -> list[SettledCard]:
        """Return the messages of an account whose question is settled, and which do not say so yet."""
        params: Params = {"prefix": f"{account}:", "limit": limit}
        return [_settled(row) for row in await self._database.read(lambda: _run(_SETTLED, params))]

    async def close(self, delivery_id: DeliveryId, now_ms: int) -> None:
        """Record that a message says how its question was settled."""
        await self._database.write(lambda: _write(_CLOSE_CARD, {"id": delivery_id, "now": now_ms}))


def kept_id(content: bytes) -> str:
    """Return what a content is kept under."""
    return hashlib.sha256(content).hexdigest()


class KeptFileStore:
    """The content of files on their way out.  It is kept beside the outbox, so that every node can send it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def keep(self, content: bytes, now_ms: int) -> str:
        """Keep a content and return its id, which is the same for the same content."""
        id_ = kept_id(content)
        params: Params = {"id": id_, "data": base64.b64encode(content).decode(), "now": now_ms}
        await self._database.write(lambda: _write(_KEEP, params))
        return id_

    async def read(self, file_id: str) -> bytes:
        """Return a content.  Raises `NotFound` once it is not kept any more."""
        found = await self._database.read(lambda: _run("SELECT data FROM kept_files WHERE id = :id", {"id": file_id}))
        if not found:
            raise NotFound("the file is not kept any more; send it anew")
        return base64.b64decode(found[0][0])

    async def forget(self, before: int) -> int:
        """Delete what was kept before a time; returns how many."""
        return await removal.forget(self._database, "kept_files", ("id",), "kept_at <= :before", {"before": before})


def _run(sql: str, params: Params) -> Transaction[list[Row]]:
    return (yield Run(sql, params))


def _write(sql: str, params: Params) -> Transaction[list[Row]]:
    yield locks.UNNAMED
    return (yield Run(sql, params))


_line = rows.reader(StatusLine, _LINE)


def _at_work(row: Row) -> AtWork:
    id_, session_id, target, state, accepted_at, deferred, behind, tool, unsent, sending, source, *line = row
    kind, line_state, message_id = line
    return AtWork(
        turn_id=id_,
        session_id=session_id,
        target=target,
        state=TurnState(state),
        accepted_at=accepted_at,
        waits_behind=bool(behind),
        is_deferred=bool(deferred),
        tool=tool or "",
        is_unsent=bool(unsent),
        chat_is_sending=bool(sending),
        in_group=rows.data(source).get("chat_type") == "group",
        line=None if kind is None else _line((id_, target, kind, line_state, message_id)),
    )


_card = rows.reader(Card, _CARD)


def _settled(row: Row) -> SettledCard:
    card, answer, sent = row[:_CARD_COLUMNS], row[_CARD_COLUMNS], row[_CARD_COLUMNS + 1 :]
    return SettledCard(card=_card(card), delivery=rows.delivered(sent), answer=answer)
