"""The way in: a message becomes a queued turn of its session, or a repeat of one, in one transaction."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Sequence
from dataclasses import replace

from msgspec import UNSET

from holdfast.core import resets, sessions
from holdfast.core.events import Picture, TurnAccepted
from holdfast.core.intake import QUEUE_MAX, Busy, Inbound, Once, Receipt
from holdfast.core.journal import Entry
from holdfast.core.keys import LOCAL
from holdfast.core.quotas import Quota
from holdfast.core.retries import Try
from holdfast.core.turns import Cause, Mode, TurnState
from holdfast.errors import IllegalMove, NotFound, QueueFull, SessionBusy
from holdfast.ids import SessionId, TurnId, new_session_id, new_turn_id
from holdfast.store import cancellation, channels, dedupe, journal, locks, messages, quotas, retries, rows, settlement, turns
from holdfast.store.database import Add, Database, Dialect, Lock, Params, Run, Together, Transaction

_KEY_SESSION = "UPDATE dedupe SET session_id = :session_id WHERE key = :key"
# A transaction that decides about a session locks it first, so that no other node accepts a message in between.
_HOLD = "UPDATE sessions SET updated_at = updated_at WHERE owner = :owner AND key = :key AND state = 'open' RETURNING id"
_COUNT = "SELECT COUNT(*) FROM turns WHERE session_id = :id AND state IN ('queued', 'running', 'waiting')"
_LAST_USED = """
    SELECT s.id, s.updated_at,
           s.strikes > 0 OR EXISTS (SELECT 1 FROM turns t WHERE t.session_id = s.id
                                       AND t.state IN ('queued', 'running', 'waiting'))
                        OR EXISTS (SELECT 1 FROM processes p WHERE p.session_id = s.id AND p.state = 'running')
      FROM sessions s WHERE s.owner = :owner AND s.key = :key AND s.state = 'open'
"""
# The suspended session that no other has followed yet; which one is the latest, no clock could tell for certain.
_SUSPENDED = """
    (SELECT s.id FROM sessions s
      WHERE s.owner = :owner AND s.key = :key AND s.state = 'suspended'
        AND NOT EXISTS (SELECT 1 FROM sessions next WHERE next.owner = :owner AND next.key = :key AND next.parent_id = s.id)
      ORDER BY s.id DESC LIMIT 1)
"""
# Locked while its child is accepted, so that a later cancel finds the child.
_HOLD_PARENT = "UPDATE turns SET nth = nth WHERE id = :id RETURNING session_id, state"
# Opens a session, or uses the open one: either way the turn gets numbers that no other turn gets.
_ENTER = f"""
    INSERT INTO sessions
        (id, key, channel, owner, one_shot, source, parent_id, auto_reset_reason, created_at, updated_at, seq, turns, bytes)
    VALUES (:id, :key, :channel, :owner, :one_shot, :source,
            COALESCE(CAST(:before AS TEXT), CAST(:parent AS TEXT), {_SUSPENDED}),
            CASE WHEN CAST(:before AS TEXT) IS NOT NULL THEN CAST(:reset AS TEXT)
                 WHEN CAST(:parent AS TEXT) IS NOT NULL THEN NULL
                 WHEN {_SUSPENDED} IS NOT NULL THEN CAST(:suspended AS TEXT) END, :now, :now, 1, 1, :bytes)
    ON CONFLICT (owner, key) WHERE state = 'open' DO UPDATE
       SET seq = sessions.seq + 1, turns = sessions.turns + 1, updated_at = excluded.updated_at,
           bytes = sessions.bytes + excluded.bytes
 RETURNING id, seq, turns,
           (SELECT COUNT(*) FROM turns t WHERE t.session_id = sessions.id AND t.state IN ('queued', 'running', 'waiting'))
"""
_INSERT = """
    INSERT INTO turns
        (id, session_id, ordinal, accepted_at, mode, delivers_later, remembers, reply_to, steers, parent_turn_id, verbatim,
         owner, request_digest, request_tries)
    VALUES (:id, :session_id, :ordinal, :now, :mode, :delivers_later, :remembers, :reply_to, :steers, :parent_turn_id,
            :verbatim, :owner, :request_digest, :request_tries)
"""
_INSERT_IMAGE = "INSERT INTO images (turn_id, number, media_type, data) VALUES (:turn_id, :number, :media_type, :data)"


class _TakenBack(Exception):
    """Ends a transaction that is not to be committed."""


class Intake:
    """Messages on their way to becoming turns."""

    def __init__(self, database: Database, quota: Quota | None = None) -> None:
        self._database = database
        self._quota = quota

    async def accept(self, message: Inbound, turn_id: TurnId, session_id: SessionId, now_ms: int) -> Receipt:
        """Make a message durable as a queued turn; the ids are used only if a new turn or session is needed.

        A repeated key returns the first receipt, and so does a repeated try.  Raises `KeyReused` where the body of a key
        differs, `QueueFull` on a flood, `OverQuota` where its owner has used up a quota, `SessionBusy` where the message is
        not to wait, `IllegalMove` where it would work for a turn that was cancelled, `Stale` where the events of a chat that
        it is made of were taken before.
        """
        dialect, quota = self._database.dialect, self._quota
        return await self._database.write(
            lambda: locks.locked(_touched(message), accept(dialect, message, turn_id, session_id, now_ms, quota)),
            heralds=("turns",),
            wakes=lambda receipt: (
                "turns",
                f"session:{receipt.session_id}",
                *(f"cancelled:{turn_id}" for turn_id in receipt.superseded),
            ),
        )

    async def rehearse(self, now_ms: int) -> None:
        """Accept a message in a new session and take it back.  Raises what a message would be refused with."""
        dialect, turn_id, session_id = self._database.dialect, new_turn_id(now_ms), new_session_id(now_ms)
        message = Inbound(conversation=session_id, text="", channel="rehearsal", dedupe_key=session_id)

        def accept_nothing() -> Transaction[None]:
            yield _touched(message)
            yield from accept(dialect, message, turn_id, session_id, now_ms)
            raise _TakenBack

        with contextlib.suppress(_TakenBack):
            await self._database.write(accept_nothing)

    async def seen(self, key: str) -> Receipt | None:
        """Return the receipt of the message that a key was first used for; None if the key is new.  This only reads."""
        return await self._database.read(lambda: _seen(key))

    async def rejoin(self, this: Try, owner: str, now_ms: int) -> Receipt | None:
        """Return the receipt of the request that a try repeats; one that was cut off goes on.  None where there is none."""
        return await self._database.write(
            lambda: locks.locked(locks.UNNAMED, _rejoin(this, owner, now_ms)),
            wakes=lambda receipt: ("turns", f"session:{receipt.session_id}") if receipt else (),
        )

    async def heard(self, turn_ids: Sequence[TurnId]) -> None:
        """Remember that clients have read these answers, and so will not repeat what they asked."""
        dialect = self._database.dialect
        await self._database.write(lambda: locks.locked(locks.UNNAMED, retries.forget(dialect, turn_ids)))

    async def cursor(self, channel: str) -> str | None:
        """Return how far a channel has been read."""
        return await self._database.read(lambda: dedupe.cursor(channel))

    async def redo(
        self, message: Inbound, session_id: SessionId, turn_id: TurnId, new_session_id: SessionId, now_ms: int
    ) -> Receipt | None:
        """Leave the last exchange of a session out and accept its message anew, as `message` would be.

        Returns None when there is none.  Raises `IllegalMove` while it is in flight.
        """
        dialect = self._database.dialect
        return await self._database.write(
            lambda: _redo(dialect, message, session_id, turn_id, new_session_id, now_ms),
            wakes=lambda receipt: ("turns", f"session:{receipt.session_id}") if receipt else (),
        )

    async def remember(self, request: Once, session_id: SessionId, now_ms: int) -> None:
        """Remember that something was done that left no other trace.  Raises `Repeated` if it was done before."""
        await self._database.write(lambda: dedupe.once(request, session_id, now_ms))


def _touched(message: Inbound) -> Lock:
    """Return what an accept touches; with a worker of the same session it shares no more than two counters."""
    names = [locks.conversation(message.owner, message.session_key)]
    if message.dedupe_key is not None:
        names.append(locks.key(message.dedupe_key))
    if message.tried is not None:
        # A retry stands behind the try before it.
        names.append(("request", message.tried.digest))
    if message.cursor:
        names.append(("cursor", message.cursor.channel))
    if message.consumed:
        names.append(("chats", message.consumed.account))
    if message.parent_turn_id is not None:
        names.append(locks.turn(message.parent_turn_id))
    # The quotas of an owner are counted over all their sessions.
    return Lock(names, alone=_may_move_more(message) or message.owner != LOCAL)


def _may_move_more(message: Inbound) -> bool:
    """Return whether an accept may move turns and sessions that it cannot name yet."""
    joins = message.tried is not None and message.tried.joins
    return joins or message.busy is Busy.INTERRUPT or message.reset is not None or message.parent_turn_id is not None


def accept(
    dialect: Dialect,
    message: Inbound,
    turn_id: TurnId,
    session_id: SessionId,
    now_ms: int,
    quota: Quota | None = None,
) -> Transaction[Receipt]:
    superseded: list[TurnId] = []
    if message.dedupe_key is not None and not quota and not _may_move_more(message):
        entering = _entering(message, session_id, None, None, now_ms)
        remembered, entered = yield Together((_remembering(message, turn_id, session_id, now_ms), entering))
        if not remembered:
            return (yield from _repeated(message, now_ms))
    else:
        first = yield from _first_receipt(message, turn_id, session_id, now_ms)
        if first:
            return first
        if message.tried and (joined := (yield from _rejoin(message.tried, message.owner, now_ms))):
            return joined
        if quota and message.owner != LOCAL:
            yield from quotas.check_message(quota, message)
        if message.busy is Busy.INTERRUPT:
            superseded = yield from _supersede(dialect, message, now_ms)
        parent = yield from _hold_parent(message)
        before = yield from _give_way(dialect, message, now_ms)
        entered = yield _entering(message, session_id, before, parent, now_ms)
    ((found_id, seq, ordinal, in_flight),) = entered
    if found_id != session_id:
        yield from _meet(message.busy, found_id, in_flight)
    yield from _insert(message, turn_id, found_id, seq, ordinal, now_ms)
    if message.dedupe_key is not None and found_id != session_id:
        yield Add(_KEY_SESSION, [{"key": message.dedupe_key, "session_id": found_id}])
    if message.cursor:
        yield from dedupe.save_cursor(message.cursor)
    if message.consumed:
        yield from channels.consume(dialect, message.consumed, turn_id, found_id, now_ms)
    return Receipt(
        turn_id=turn_id, session_id=found_id, state=TurnState.QUEUED, accepted_at=now_ms, superseded=tuple(superseded)
    )


def _hold_parent(message: Inbound) -> Transaction[SessionId | None]:
    """Return the session of the turn that a message works for.  Raises `IllegalMove` where that was cancelled."""
    if message.parent_turn_id is None:
        return None
    found = yield Run(_HOLD_PARENT, {"id": message.parent_turn_id})
    if not found:
        raise NotFound(f"there is no turn {message.parent_turn_id} to work for")
    ((session_id, state),) = found
    if state == TurnState.CANCELLED:
        raise IllegalMove(message.parent_turn_id, state, "let others work for it")
    return session_id


def _remembering(message: Inbound, turn_id: TurnId, session_id: SessionId, now_ms: int) -> Run:
    return dedupe.remembering(message.dedupe_key or "", message.body_hash(), turn_id, session_id, now_ms)


def _first_receipt(message: Inbound, turn_id: TurnId, session_id: SessionId, now_ms: int) -> Transaction[Receipt | None]:
    if message.dedupe_key is None or (yield _remembering(message, turn_id, session_id, now_ms)):
        return None
    return (yield from _repeated(message, now_ms))


def _repeated(message: Inbound, now_ms: int) -> Transaction[Receipt]:
    """Answer a message that came before like the first time.  Raises `KeyReused` where its body differs."""
    first = yield from dedupe.first(message.dedupe_key or "", message.body_hash())
    if message.cursor:
        yield from dedupe.save_cursor(message.cursor)
    state = yield from _state_for_repeat(first.turn_id, now_ms)
    return Receipt(
        turn_id=first.turn_id, session_id=first.session_id, state=state, accepted_at=first.accepted_at, duplicate=True
    )


def _rejoin(this: Try, owner: str, now_ms: int) -> Transaction[Receipt | None]:
    first = yield from retries.join(this, owner, now_ms)
    if first is None:
        return None
    state = yield from _state_for_repeat(first.turn_id, now_ms)
    return Receipt(
        turn_id=first.turn_id, session_id=first.session_id, state=state, accepted_at=first.accepted_at, duplicate=True
    )


def _seen(key: str) -> Transaction[Receipt | None]:
    first = yield from dedupe.find(key)
    if first is None:
        return None
    turn = yield from turns.find(first.turn_id)
    # One that retention has pruned was settled long ago.
    state = turn.state if turn else TurnState.COMPLETED
    return Receipt(
        turn_id=first.turn_id, session_id=first.session_id, state=state, accepted_at=first.accepted_at, duplicate=True
    )


def _state_for_repeat(turn_id: TurnId, now_ms: int) -> Transaction[TurnState]:
    turn = yield from turns.find(turn_id)
    if turn is None:
        return TurnState.COMPLETED  # Pruned by retention: it was settled long ago.
    if turn.state is TurnState.INTERRUPTED and turn.mode is Mode.SYNCHRONOUS:
        # Its client is back with the same request, so the turn goes on.
        turn = yield from turns.resume(turn, now_ms)
    return turn.state


def _meet(busy: Busy | None, session_id: SessionId, in_flight: int) -> Transaction[None]:
    """Refuse a message that must not wait behind so many others."""
    if busy is Busy.REJECT:
        # What another node accepted a moment ago shows only now that the session is held.
        ((others,),) = yield Run(_COUNT, {"id": session_id})
        in_flight = max(in_flight, others)
    if in_flight >= QUEUE_MAX:
        raise QueueFull(f"{QUEUE_MAX} messages are waiting in this conversation already; wait for an answer")
    if in_flight and busy is Busy.REJECT:
        raise SessionBusy(f"session {session_id} is still at an earlier message; wait for its answer, or cancel it")


def _supersede(dialect: Dialect, message: Inbound, now_ms: int) -> Transaction[list[TurnId]]:
    """Cancel what the session is at, and what waits in it: a newer message takes its place."""
    found = yield Run(_LAST_USED, {"owner": message.owner, "key": message.session_key})
    cancelled: list[TurnId] = []
    for session_id, *_ in found:
        at_work = yield from cancellation.cancel_in_flight(dialect, session_id, Cause.SUPERSEDED, now_ms)
        cancelled.extend(turn.id for turn in at_work)
    return cancelled


def _give_way(dialect: Dialect, message: Inbound, now_ms: int) -> Transaction[tuple[SessionId, resets.Reason] | None]:
    """End a conversation that has rested long enough; returns which one, and why."""
    if message.reset is None or message.one_shot:
        return None
    place = {"owner": message.owner, "key": message.session_key}
    yield Run(_HOLD, place)
    for session_id, last_used_at, held in (yield Run(_LAST_USED, place)):
        reason = message.reset.due(last_used_at=last_used_at, now_ms=now_ms, held=bool(held))
        if reason is not None:
            yield from cancellation.leave(
                dialect, session_id, sessions.SessionEvent.END, reason + resets.RESET_SUFFIX, now_ms
            )
            return session_id, reason
    return None


def _entering(
    message: Inbound,
    session_id: SessionId,
    before: tuple[SessionId, resets.Reason] | None,
    parent: SessionId | None,
    now_ms: int,
) -> Run:
    """Return the statement that finds the session of a message a number, in the open session of its key or in a new one."""
    return Run(
        _ENTER,
        {
            "id": session_id,
            "owner": message.owner,
            "key": message.session_key,
            "channel": message.channel,
            "one_shot": int(message.one_shot),
            "source": rows.source(message.source),
            "before": before[0] if before else None,
            "parent": parent,
            "reset": before[1].value if before else None,
            "suspended": sessions.reset_reason(sessions.SessionState.SUSPENDED),
            "now": now_ms,
            "bytes": message.size,
        },
    )


def _insert(
    message: Inbound, turn_id: TurnId, session_id: SessionId, seq: int, ordinal: int, now_ms: int
) -> Transaction[None]:
    params: Params = {
        "id": turn_id,
        "session_id": session_id,
        "ordinal": ordinal,
        "now": now_ms,
        "mode": message.mode.value,
        "delivers_later": int(message.delivers_later),
        "remembers": int(message.remembers),
        "reply_to": message.reply_to,
        "steers": int(message.busy is Busy.STEER),
        "parent_turn_id": message.parent_turn_id,
        "verbatim": int(message.verbatim),
        "owner": message.owner,
        "request_digest": message.tried.digest if message.tried else None,
        "request_tries": message.tried.number if message.tried else 0,
    }
    yield Add(_INSERT, [params])
    if message.images:
        yield Add(_INSERT_IMAGE, _image_params(message, turn_id))
    entry = Entry(
        session_id=session_id,
        seq=seq,
        turn_id=turn_id,
        attempt=0,
        nth=None,
        at=now_ms,
        event=rows.storable(_shown(message)),
    )
    yield from journal.insert([entry])


def _shown(message: Inbound) -> TurnAccepted:
    """Return what the entry of an acceptance says, which is all that is kept of the message but its pictures."""
    return TurnAccepted(
        text=message.text,
        key=message.sent_as or "",
        images=tuple(Picture(media_type=image.media_type, bytes=len(image.data)) for image in message.images),
        prior=message.prior,
        sent_at=message.sent_at,
        request=dict(message.request) or UNSET,
    )


def _image_params(message: Inbound, turn_id: TurnId) -> list[Params]:
    return [
        {
            "turn_id": turn_id,
            "number": number,
            "media_type": image.media_type,
            "data": base64.b64encode(image.data).decode(),
        }
        for number, image in enumerate(message.images, 1)
    ]


def _redo(
    dialect: Dialect, message: Inbound, session_id: SessionId, turn_id: TurnId, new_session_id: SessionId, now_ms: int
) -> Transaction[Receipt | None]:
    yield Lock([locks.session(session_id), *_touched(message).names], alone=True)
    first = yield from _first_receipt(message, turn_id, session_id, now_ms)
    if first:
        return first
    undone = yield from settlement.undo(session_id, now_ms)
    if undone is None:
        return None
    text = yield from messages.text(undone.id)
    images = yield from messages.images(undone.id)
    shown = yield from messages.accepted(undone.id)
    again = replace(
        message,
        text=text,
        images=tuple(images),
        prior=shown.said_before,
        request=shown.request or {},
        verbatim=undone.verbatim,
        dedupe_key=None,
        sent_as=None,
    )
    return (yield from accept(dialect, again, turn_id, new_session_id, now_ms))
