"""Accounts of chat platforms: the lease of the node that receives, and the events that are not handled yet.

A batch of events becomes durable together with the cursor of its account.  Only the node that has the lease may move the
cursor, so that two nodes never receive for one account.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.core import chats
from holdfast.core.chats import (
    AccountRecord,
    AccountState,
    ChatEvent,
    ChatMoved,
    Consumed,
    Lease,
    MessagePart,
    Place,
    Pressed,
    StagedEvent,
    TurnOfMessage,
)
from holdfast.core.delivery import Delivery
from holdfast.core.events import TurnRevised
from holdfast.core.intake import Cursor, Once
from holdfast.core.journal import DraftEntry
from holdfast.core.turns import Cause, TurnState
from holdfast.errors import Stale
from holdfast.ids import NodeId, SessionId, TurnId
from holdfast.store import cancellation, dedupe, deliveries, journal, locks, messages, removal, rows, turns
from holdfast.store.database import Database, Dialect, Lock, Params, Row, Run, RunMany, Transaction

# Woken when an account changes, and when events of chats were staged or released.
ACCOUNTS_TOPIC = "accounts"
EVENTS_TOPIC = "chats"

_ACCOUNT = "name, kind, state, problem, node_id, fence, last_receive_at, bot_id, bot_name, bot_url, menu_digest"
_ALL = f"SELECT {_ACCOUNT} FROM channel_accounts ORDER BY name"
_FIND = f"SELECT {_ACCOUNT} FROM channel_accounts WHERE name = :name"
_ADD = (
    "INSERT INTO channel_accounts (name, kind) VALUES (:name, :kind) ON CONFLICT (name) DO UPDATE SET kind = excluded.kind"
)
# Free, ours, or left by a node that is not alive.
_CLAIM = """
    UPDATE channel_accounts SET node_id = :node_id, fence = fence + 1, state = 'connecting', problem = ''
     WHERE name = :name
       AND (node_id IS NULL OR node_id = :node_id
            OR NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = channel_accounts.node_id AND n.state = 'alive'))
       AND NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = :node_id AND n.state = 'dead')
 RETURNING fence
"""
_HELD = "WHERE name = :name AND node_id = :node_id AND fence = :fence"
_HOLDS = f"SELECT 1 FROM channel_accounts {_HELD}"
_RELEASE = f"UPDATE channel_accounts SET node_id = NULL, state = 'stopped' {_HELD} RETURNING name"
# The first problem begins an outage, which lasts until the account receives again and the operator knows.
_REPORT = f"""
    UPDATE channel_accounts SET state = :state, problem = :problem, trouble = :problem,
           trouble_at = COALESCE(trouble_at, CAST(:now AS BIGINT))
    {_HELD} RETURNING name
"""
_INTRODUCE = f"""
    UPDATE channel_accounts SET bot_id = :bot_id, bot_name = :bot_name, bot_url = :bot_url {_HELD} RETURNING name
"""
# What was read of another bot says nothing about the messages of this one, which count anew.
_IS_ANOTHER = "SELECT 1 FROM channel_accounts WHERE name = :name AND bot_id NOT IN ('', :bot_id)"
_FORGET_ANOTHER = (
    "DELETE FROM cursors WHERE channel = :name",
    "DELETE FROM chat_messages WHERE account = :name",
    "DELETE FROM dedupe WHERE substr(key, 1, length(:keys)) = :keys",
)
_OFFERED = f"UPDATE channel_accounts SET menu_digest = :digest {_HELD} RETURNING name"
_RECEIVED = f"""
    UPDATE channel_accounts SET state = 'connected', problem = '', last_receive_at = :now, seq = seq + :count {_HELD}
 RETURNING seq
"""
# A request of the platform may reach a node without the lease: it moves no cursor.
_RECEIVED_HERE = """
    UPDATE channel_accounts SET last_receive_at = :now, seq = seq + :count WHERE name = :name RETURNING seq
"""
# What became a turn, and commands that were done, are known already.
_STAGE = """
    INSERT INTO chat_inbox (account, number, key, chat_id, thread_id, event, received_at)
    SELECT CAST(:account AS TEXT), CAST(:number AS BIGINT), CAST(:key AS TEXT), CAST(:chat_id AS TEXT),
           CAST(:thread_id AS TEXT), CAST(:event AS TEXT), CAST(:now AS BIGINT)
     WHERE NOT EXISTS (SELECT 1 FROM chat_messages m
                        WHERE m.account = :account AND m.chat_id = :chat_id AND m.message_id = CAST(:message_id AS TEXT))
       AND NOT EXISTS (SELECT 1 FROM dedupe d WHERE d.key = CAST(:command_key AS TEXT))
    ON CONFLICT (account, key) DO NOTHING
"""
_STAGED = "number, key, event, received_at, holder"
_FREE = f"""
    SELECT {_STAGED} FROM chat_inbox
     WHERE account = :account AND COALESCE(holder, '') = '' AND number > :after ORDER BY number LIMIT :limit
"""
_OF_HOLDER = f"SELECT account, {_STAGED} FROM chat_inbox WHERE holder = :holder ORDER BY account, number"
_HOLD = """
    UPDATE chat_inbox SET holder = :holder WHERE account = :account AND number IN {numbers} RETURNING number
"""
_RELEASE_HELD = "UPDATE chat_inbox SET holder = '' WHERE holder = :holder RETURNING number"
_DROP_BUT_LAST = """
    DELETE FROM chat_inbox
     WHERE holder = :holder AND number < (SELECT MAX(l.number) FROM chat_inbox l WHERE l.holder = :holder) RETURNING number
"""
_ANSWERED = """
    SELECT COUNT(DISTINCT turn_id) FROM chat_messages WHERE account = :account AND user_id = :user_id AND at > :since
"""
_IS_HELD = """
    SELECT 1 FROM channel_accounts c JOIN nodes n ON n.id = c.node_id AND n.state = 'alive'
     WHERE c.name = :name AND c.node_id <> :node_id
"""
_MOVES = "SELECT from_chat_id, to_chat_id FROM chat_moves WHERE account = :account"
_MOVE = """
    INSERT INTO chat_moves (account, from_chat_id, to_chat_id, at) VALUES (:account, :from_chat_id, :to_chat_id, :now)
    ON CONFLICT DO NOTHING
"""
_DROP_HELD = "DELETE FROM chat_inbox WHERE holder = :holder RETURNING number"
_CHOOSE = "UPDATE chat_inbox SET event = :event WHERE account = :account AND number = :number RETURNING number"
_REMOVE = "DELETE FROM chat_inbox WHERE account = :account AND number IN {numbers} RETURNING number"
_RECORD = """
    INSERT INTO chat_messages (account, chat_id, message_id, user_id, turn_id, session_id, position, length, at)
    VALUES (:account, :chat_id, :message_id, :user_id, :turn_id, :session_id, :position, :length, :now)
    ON CONFLICT (account, chat_id, message_id) DO NOTHING RETURNING message_id
"""
_MESSAGE = """
    SELECT turn_id, session_id, user_id, message_id, position, length FROM chat_messages
     WHERE account = :account AND chat_id = :chat_id AND message_id = :message_id
"""
_MESSAGES_OF_TURN = """
    SELECT m.chat_id, m.message_id, m.position, m.length FROM chat_messages m
     WHERE m.turn_id = :turn_id ORDER BY m.position, m.message_id
"""


_SHIFT = """
    UPDATE chat_messages SET position = position + :longer
     WHERE turn_id = :turn_id AND account = :account AND position > :position
"""
_RESIZE = """
    UPDATE chat_messages SET length = :length
     WHERE account = :account AND chat_id = :chat_id AND message_id = :message_id
"""


class ChannelStore:
    """Every account by its name."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list(self) -> list[AccountRecord]:
        """Return all accounts by name."""
        return [_account(row) for row in await self._database.read(lambda: _run(_ALL, {}))]

    async def find(self, name: str) -> AccountRecord | None:
        """Return the account of a name."""
        found = await self._database.read(lambda: _run(_FIND, {"name": name}))
        return _account(found[0]) if found else None

    async def is_held(self, name: str, node_id: NodeId) -> bool:
        """Return whether another node that is alive has the lease of an account."""
        return bool(await self._database.read(lambda: _run(_IS_HELD, {"name": name, "node_id": node_id})))

    async def holds(self, lease: Lease) -> bool:
        """Return whether a lease still counts."""
        return bool(await self._database.read(lambda: _run(_HOLDS, _held(lease))))

    async def claim(self, name: str, kind: str, node_id: NodeId) -> Lease | None:
        """Take the lease of an account; None while another node that is alive has it."""
        # What waits for the chats of the account leaves from here now.
        wakes = (ACCOUNTS_TOPIC, "deliveries")
        fence = await self._database.write(lambda: _claim(name, kind, node_id), wakes=lambda _: wakes)
        return None if fence is None else Lease(account=name, node_id=node_id, fence=fence)

    async def release(self, lease: Lease) -> None:
        """Give a lease back; nothing happens where another node has it."""
        await self._database.write(lambda: _run(_RELEASE, _held(lease)), wakes=lambda _: (ACCOUNTS_TOPIC,), essential=True)

    async def report(self, lease: Lease, state: AccountState, problem: str, now_ms: int) -> None:
        """Record what keeps an account from receiving.  Raises `Stale` where another node has the lease."""
        await self._fenced(_REPORT, {**_held(lease), "state": state.value, "problem": problem, "now": now_ms})

    async def introduce(self, lease: Lease, *, bot_id: str, bot_name: str, bot_url: str) -> None:
        """Record who the account is at its platform; what was read of an earlier bot of that name is forgotten.

        Raises `Stale` where another node has the lease.
        """
        params = {**_held(lease), "bot_id": bot_id, "bot_name": bot_name, "bot_url": bot_url}
        await self._database.write(lambda: _introduce(params), wakes=lambda _: (ACCOUNTS_TOPIC,))

    async def offered(self, lease: Lease, digest: str) -> None:
        """Record which menu of commands the platform has.  Raises `Stale` where another node has the lease."""
        await self._fenced(_OFFERED, {**_held(lease), "digest": digest})

    async def position(self, account: str) -> str | None:
        """Return how far an account has been read."""
        return await self._database.read(lambda: dedupe.cursor(account))

    async def stage(self, lease: Lease, events: Sequence[ChatEvent], position: str | None, now_ms: int) -> None:
        """Make a batch durable and move the cursor behind it.  Raises `Stale` where another node has the lease.

        An empty batch records that the platform answered.
        """
        await self._database.write(
            lambda: _stage(lease, events, position, now_ms),
            wakes=lambda _: (EVENTS_TOPIC,) if events else (),
        )

    async def stage_request(self, account: str, events: Sequence[ChatEvent], now_ms: int) -> None:
        """Make durable what the platform reported in a request, which any node may get."""
        await self._database.write(lambda: _stage_request(account, events, now_ms), wakes=lambda _: (EVENTS_TOPIC,))

    async def staged(self, account: str, after: int = 0, limit: int = 500) -> list[StagedEvent]:
        """Return events that nothing holds, oldest first."""
        params: Params = {"account": account, "after": after, "limit": limit}
        return [_staged(account, row) for row in await self._database.read(lambda: _run(_FREE, params))]

    async def held(self, holder: str) -> list[StagedEvent]:
        """Return the events that something holds, oldest first."""
        return [_staged(row[0], row[1:]) for row in await self._database.read(lambda: _run(_OF_HOLDER, {"holder": holder}))]

    async def hold(self, account: str, numbers: Sequence[int], holder: str, notices: Sequence[Delivery] = ()) -> None:
        """Let events wait for something, and tell people so.  Raises `Stale` where one is handled already."""
        dialect = self._database.dialect
        await self._database.write(
            lambda: _hold_and_tell(dialect, account, numbers, holder, notices), wakes=lambda _: ("deliveries",)
        )

    async def release_held(self, holder: str, *, last: bool = False) -> int:
        """Let the events go on that something held, or only the last of them; returns how many."""
        released = await self._database.write(lambda: _release_held(holder, last), wakes=lambda _: (EVENTS_TOPIC,))
        return len(released)

    async def drop_held(self, holder: str) -> int:
        """Delete the events that something held; returns how many."""
        return len(await self._database.write(lambda: _run(_DROP_HELD, {"holder": holder})))

    async def remove(self, account: str, numbers: Sequence[int]) -> None:
        """Delete events that are handled.  Raises `Stale` where one is gone already."""
        dialect = self._database.dialect
        await self._database.write(lambda: remove(dialect, account, numbers))

    async def choose(self, account: str, number: int, pressed: Pressed, once: Once, now_ms: int) -> None:
        """Let a message that stands for a button become the press of that button, once however often it comes.

        Raises `Repeated` where the message was taken before, and `Stale` where it is handled already.
        """
        await self._database.write(lambda: _choose(account, number, pressed, once, now_ms))

    async def answered(self, account: str, user_id: str, since: int) -> int:
        """Return how many turns the messages of a person became since a time."""
        params: Params = {"account": account, "user_id": user_id, "since": since}
        return (await self._database.read(lambda: _run(_ANSWERED, params)))[0][0]

    async def moves(self, account: str) -> dict[str, str]:
        """Return the chats that got another id: the new id by the old."""
        return dict(await self._database.read(lambda: _run(_MOVES, {"account": account})))

    async def move(self, account: str, moved: ChatMoved, now_ms: int) -> None:
        """Remember that a chat got another id.  The same again changes nothing."""
        params: Params = {"account": account, "from_chat_id": moved.from_chat_id, "to_chat_id": moved.to_chat_id}
        await self._database.write(lambda: _run(_MOVE, {**params, "now": now_ms}))

    async def turn_of(self, account: str, place: Place, message_id: str) -> TurnOfMessage | None:
        """Return the turn that a message became part of."""
        params = {"account": account, "chat_id": place.chat_id, "message_id": message_id}
        found = await self._database.read(lambda: _run(_MESSAGE, params))
        if not found:
            return None
        turn_id, session_id, user_id, *part = found[0]
        return TurnOfMessage(turn_id=turn_id, session_id=session_id, user_id=user_id, part=_part((place.chat_id, *part)))

    async def revise(self, account: str, found: TurnOfMessage, text: str, now_ms: int) -> bool:
        """Let a message say something else, if its turn has not begun.  Returns False if it has.

        A turn of which nothing is left is cancelled.
        """
        dialect = self._database.dialect
        return await self._database.write(
            lambda: _revise(dialect, account, found, text, now_ms),
            wakes=lambda _: ("turns", f"session:{found.session_id}", f"cancelled:{found.turn_id}"),
        )

    async def messages_of(self, turn_id: TurnId) -> list[MessagePart]:
        """Return the messages that became a turn, in their order."""
        return [_part(row) for row in await self._database.read(lambda: _run(_MESSAGES_OF_TURN, {"turn_id": turn_id}))]

    async def forget_messages(self, before: int) -> int:
        """Delete the records of messages that are older than their retention."""
        keys = ("account", "chat_id", "message_id")
        return await removal.forget(self._database, "chat_messages", keys, "at <= :before", {"before": before})

    async def _fenced(self, sql: str, params: Params) -> None:
        await self._database.write(lambda: _fenced(sql, params), wakes=lambda _: (ACCOUNTS_TOPIC,))


def consume(dialect: Dialect, consumed: Consumed, turn_id: TurnId, session_id: SessionId, now_ms: int) -> Transaction[None]:
    """Remove the events that became a turn, and record their messages.  Raises `Stale` where one was taken before."""
    yield from remove(dialect, consumed.account, consumed.numbers)
    for part in consumed.parts:
        params: Params = {
            "account": consumed.account,
            "chat_id": part.chat_id,
            "message_id": part.message_id,
            "user_id": consumed.user_id,
            "turn_id": turn_id,
            "session_id": session_id,
            "position": part.position,
            "length": part.length,
            "now": now_ms,
        }
        if not (yield Run(_RECORD, params)):
            raise Stale(f"message {part.message_id} of {consumed.account} was taken before")


def hold(dialect: Dialect, account: str, numbers: Sequence[int], holder: str) -> Transaction[None]:
    """Let events wait for something.  Raises `Stale` where one is handled already."""
    yield from _all_of(dialect, _HOLD, account, numbers, {"holder": holder})


def _hold_and_tell(
    dialect: Dialect, account: str, numbers: Sequence[int], holder: str, notices: Sequence[Delivery]
) -> Transaction[None]:
    yield from hold(dialect, account, numbers, holder)
    yield from deliveries.insert_notice(notices)


def remove(dialect: Dialect, account: str, numbers: Sequence[int]) -> Transaction[None]:
    """Delete events that are handled.  Raises `Stale` where one is gone already."""
    yield from _all_of(dialect, _REMOVE, account, numbers, {})


def _choose(account: str, number: int, pressed: Pressed, once: Once, now_ms: int) -> Transaction[None]:
    yield locks.UNNAMED
    # What a button does need not belong to a session.
    yield from dedupe.once(once, SessionId(""), now_ms)
    if not (yield Run(_CHOOSE, {"account": account, "number": number, "event": rows.encode(pressed)})):
        raise Stale(f"event {number} of {account} is handled already")


def _claim(name: str, kind: str, node_id: NodeId) -> Transaction[int | None]:
    yield Run(_ADD, {"name": name, "kind": kind})
    claimed = yield Run(_CLAIM, {"name": name, "node_id": node_id})
    return claimed[0][0] if claimed else None


def _held(lease: Lease) -> Params:
    return {"name": lease.account, "node_id": lease.node_id, "fence": lease.fence}


def _fenced(sql: str, params: Params) -> Transaction[Row]:
    found = yield Run(sql, params)
    if not found:
        raise Stale(f"another node receives for {params['name']}")
    return found[0]


def _introduce(params: Params) -> Transaction[None]:
    yield locks.UNNAMED
    another = yield Run(_IS_ANOTHER, {"name": params["name"], "bot_id": params["bot_id"]})
    yield from _fenced(_INTRODUCE, params)
    if another:
        name = str(params["name"])
        for sql in _FORGET_ANOTHER:
            yield Run(sql, {"name": name} if ":name" in sql else {"keys": chats.command_keys(name)})


def _stage(lease: Lease, events: Sequence[ChatEvent], position: str | None, now_ms: int) -> Transaction[None]:
    (seq,) = yield from _fenced(_RECEIVED, {**_held(lease), "now": now_ms, "count": len(events)})
    yield from _insert(lease.account, events, seq - len(events), now_ms)
    if position is not None:
        yield from dedupe.save_cursor(Cursor(channel=lease.account, position=position))


def _stage_request(account: str, events: Sequence[ChatEvent], now_ms: int) -> Transaction[None]:
    (seq,) = yield from _fenced(_RECEIVED_HERE, {"name": account, "now": now_ms, "count": len(events)})
    yield from _insert(account, events, seq - len(events), now_ms)


def _insert(account: str, events: Sequence[ChatEvent], last: int, now_ms: int) -> Transaction[None]:
    if events:
        staged = [_event_params(account, event, number, now_ms) for number, event in enumerate(events, last + 1)]
        yield RunMany(_STAGE, staged)


def _event_params(account: str, event: ChatEvent, number: int, now_ms: int) -> Params:
    place, message_id = chats.place_of(event), event.message_id if isinstance(event, chats.ChatMessage) else ""
    return {
        "account": account,
        "number": number,
        "key": chats.event_key(event),
        "chat_id": place.chat_id,
        "thread_id": place.thread_id,
        "event": rows.encode(event),
        "message_id": message_id,
        "command_key": chats.command_key(account, place, message_id) if message_id else "",
        "now": now_ms,
    }


def _all_of(dialect: Dialect, sql: str, account: str, numbers: Sequence[int], params: Params) -> Transaction[None]:
    """Run a statement on events of an account.  Raises `Stale` unless all of them are there."""
    wanted = sql.format(numbers=dialect.each_number("numbers"))
    found = yield Run(wanted, {**params, "account": account, "numbers": rows.encode(list(numbers))})
    if len(found) != len(numbers):
        raise Stale(f"events of {account} were handled before")


def _revise(dialect: Dialect, account: str, found: TurnOfMessage, text: str, now_ms: int) -> Transaction[bool]:
    yield Lock([locks.session(found.session_id)], alone=True)
    turn = yield from turns.find(found.turn_id)
    if turn is None or turn.state is not TurnState.QUEUED or turn.attempt or turn.node_id is not None:
        return False
    before = yield from messages.accepted(turn.id)
    place: Params = {"account": account, "chat_id": found.part.chat_id, "message_id": found.part.message_id}
    # It may have been changed since it was looked up.
    part = _part((found.part.chat_id, *(yield Run(_MESSAGE, place))[0][3:]))
    after = chats.revised(before.text, part, text)
    if after != before.text:
        yield Run(_RESIZE, {**place, "length": len(text)})
        longer = len(text) - part.length
        yield Run(_SHIFT, {"account": account, "turn_id": turn.id, "position": part.position, "longer": longer})
        yield from journal.number(turn, None, [DraftEntry(at=now_ms, event=TurnRevised(text=after))])
    parts = [_part(row) for row in (yield Run(_MESSAGES_OF_TURN, {"turn_id": turn.id}))]
    if chats.is_empty(after, parts):
        yield from cancellation.cancel(dialect, turn.id, Cause.USER, now_ms)
    return True


def _release_held(holder: str, last: bool) -> Transaction[list[Row]]:
    if last:
        yield Run(_DROP_BUT_LAST, {"holder": holder})
    return (yield Run(_RELEASE_HELD, {"holder": holder}))


def _run(sql: str, params: Params) -> Transaction[list[Row]]:
    return (yield Run(sql, params))


def _account(row: Row) -> AccountRecord:
    name, kind, state, problem, node_id, fence, last_receive_at, bot_id, bot_name, bot_url, menu_digest = row
    return AccountRecord(
        name=name,
        kind=kind,
        state=AccountState(state),
        problem=problem,
        node_id=node_id,
        fence=fence,
        last_receive_at=last_receive_at,
        bot_id=bot_id,
        bot_name=bot_name,
        bot_url=bot_url,
        menu_digest=menu_digest,
    )


def _staged(account: str, row: Row) -> StagedEvent:
    number, key, event, received_at, holder = row
    return StagedEvent(
        account=account,
        number=number,
        key=key,
        event=chats.decoded(event),
        received_at=received_at,
        holder=holder,
    )


def _part(row: Row) -> MessagePart:
    chat_id, message_id, position, length = row
    return MessagePart(chat_id=chat_id, message_id=message_id, position=position, length=length)
