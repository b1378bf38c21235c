"""The outbox: what must leave Holdfast, and what is known of its arrival."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from holdfast.core.delivery import (
    ASIDE_FIRST,
    ASIDE_LAST,
    BACKOFF_MAX_MS,
    GIVEN_UP,
    NO_EXTRA,
    SETTLED,
    SKEW_MAX_MS,
    Delivery,
    DeliveryEvent,
    DeliveryState,
    Extra,
    after_loss,
    banner_part,
    is_banner,
    lifetime_ms,
)
from holdfast.core.turns import Turn
from holdfast.errors import IllegalMove, NotFound, Stale
from holdfast.ids import DeliveryId, NodeId, TurnId, new_delivery_id
from holdfast.store import locks, removal, rows
from holdfast.store.database import Add, Database, Dialect, Params, Run, Transaction

_INSERT = """
    INSERT INTO deliveries (id, turn_id, session_id, owner, target, part, text, created_at, due_at, extra)
    VALUES (:id, :turn_id, :session_id, COALESCE((SELECT s.owner FROM sessions s WHERE s.id = :session_id), :owner), :target,
            :part, :text, :created_at, :due_at, :extra)
"""
_INSERT_NOTICE = f"{_INSERT} ON CONFLICT (id) DO NOTHING"
_BANNER = f"(part < 0 AND part > {ASIDE_LAST})"
# The turn is held, so that no two get the same number, and none gets one once the turn has ended.
_HOLD_TURN = "UPDATE turns SET nth = nth WHERE id = :turn_id AND state = 'running' RETURNING id"
_NEXT_ASIDE = f"""
    SELECT COALESCE(MAX(part), {ASIDE_FIRST} - 1) + 1 FROM deliveries
     WHERE turn_id = :turn_id AND target = :target AND part <= {ASIDE_LAST}
"""
# Parts leave in order: a later one waits while an earlier one may still be sent.  So do the messages that a turn sends while
# it is at work, but the answer does not wait for them.  In a chat everything leaves in the order in which it was written.
# It leaves from the node with the lease of the account, which alone knows what the chat shows and when it may be called.
_SENDABLE = f"""
    (d.state IN ('pending', 'retry') OR (d.state = 'unknown' AND d.repeats = 0))
    AND NOT (EXISTS (SELECT 1 FROM deliveries e WHERE e.target = d.target AND e.number < d.number
                        AND (e.state IN ('pending', 'sending', 'retry') OR (e.state = 'unknown' AND e.repeats = 0)))
             AND {{kind}} IN {{in_line}})
    AND ({{kind}} NOT IN {{in_line}}
         OR EXISTS (SELECT 1 FROM channel_accounts a WHERE a.name = {{kind}} AND a.node_id = :node_id))
    AND NOT EXISTS (SELECT 1 FROM deliveries e WHERE e.turn_id = d.turn_id AND e.target = d.target AND e.part < d.part
                       AND (e.part > 0 OR d.part <= {ASIDE_LAST})
                       AND (e.state IN ('pending', 'sending', 'retry') OR (e.state = 'unknown' AND e.repeats = 0)))
"""
_DUE = f"""
    SELECT {rows.qualified(rows.DELIVERY, "d")} FROM deliveries d WHERE {_SENDABLE} AND d.due_at <= :now
       AND {rows.NOT_GIVEN_UP}
     ORDER BY d.due_at LIMIT :limit {{skip_locked}}
"""
_MOVE = """
    UPDATE deliveries
       SET state = :state, attempt = :attempt, repeats = :repeats, fence = fence + 1, node_id = :node_id, due_at = :due_at,
           receipt = :receipt, error = :error, settled_at = :settled_at, refused_at = :refused_at
     WHERE id = :id AND fence = :fence AND state = :before
 RETURNING id
"""
EARLIER_FAILED = "an earlier part did not arrive"
# What is no part of the answer says nothing about what is behind it.
_FAIL_REST = f"""
    UPDATE deliveries SET state = 'failed', error = '{EARLIER_FAILED}', settled_at = :now
     WHERE turn_id = :turn_id AND target = :target AND part > :part
       AND state IN ('pending', 'retry') AND CAST(:part AS BIGINT) > 0
"""
_INSERT_CARD = """
    INSERT INTO cards (delivery_id, turn_id, question_id, target) VALUES (:id, :turn_id, :question_id, :target)
    ON CONFLICT (delivery_id) DO NOTHING
"""
_INSERT_BANNER = f"{_INSERT} ON CONFLICT (turn_id, target, part) DO NOTHING"
# Whether the next send is a possible repeat was decided when it was given up.  It counts as tried once, so that it is
# given a new chance, and is not taken for a part that has never been sent.
_REVIVE = """
    UPDATE deliveries
       SET state = 'retry', attempt = 1, created_at = :now, due_at = :now, settled_at = NULL, error = NULL, told_at = NULL,
           fence = fence + 1
     WHERE (id = :id OR (turn_id = :turn_id AND target = :target AND part > :part AND CAST(:part AS BIGINT) > 0))
       AND state IN ('failed', 'expired')
 RETURNING id
"""
_INSTEAD = {
    DeliveryState.PENDING: "it leaves by itself",
    DeliveryState.SENDING: "it is on its way",
    DeliveryState.RETRY: "it is tried again by itself",
    DeliveryState.UNKNOWN: "it is repeated once, with a label; ask the recipient whether it arrived",
    DeliveryState.DELIVERED: "it has arrived",
}
# What another node sweeps at the same moment is left to it.
_HELD_BY_DEAD = f"""
    SELECT {rows.qualified(rows.DELIVERY, "d")} FROM deliveries d
     WHERE d.node_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = d.node_id AND n.state = 'alive')
     ORDER BY d.node_id LIMIT :limit {{skip_locked}}
"""
# A banner counts as repeated already, because its stop is over.
_LOSE = f"""
    UPDATE deliveries
       SET state = 'unknown', repeats = CASE WHEN {_BANNER} THEN 1 ELSE repeats END, node_id = NULL, fence = fence + 1,
           due_at = :now, settled_at = :now,
           error = 'the sender stopped while sending'
     WHERE id IN {{ids}}
"""
_RESEND = """
    UPDATE deliveries
       SET state = 'retry', repeats = 1, node_id = NULL, fence = fence + 1, due_at = :now, refused_at = :now,
           error = 'the sender stopped while sending'
     WHERE id IN {ids}
"""
_EXPIRE_BANNERS = f"""
    UPDATE deliveries SET state = 'expired', settled_at = :now, error = 'the gateway was back before it was sent'
     WHERE {_BANNER} AND (state IN ('pending', 'retry') OR (state = 'unknown' AND repeats = 0))
"""
# A far side may want to be left alone for longer than any back-off, but only a clock that has jumped back since can have
# heard so in the future.
_HASTEN = """
    UPDATE deliveries SET due_at = :now
     WHERE (state IN ('pending', 'retry') OR (state = 'unknown' AND repeats = 0)) AND due_at > :furthest
       AND (state <> 'retry' OR created_at > :now OR refused_at > :skewed)
 RETURNING id
"""
_HELD = f"SELECT {rows.DELIVERY} FROM deliveries WHERE node_id = :node_id"
_GET = f"SELECT {rows.DELIVERY} FROM deliveries WHERE id = :id"
_OF_TURN = f"SELECT {rows.DELIVERY} FROM deliveries WHERE turn_id = :id ORDER BY target, part"
# A question is asked where its card is, because a chat may have got another id since.  What has never left was not read.
_CHOICES = f"""
    SELECT {rows.DELIVERY} FROM deliveries
     WHERE ((target = :target AND extra <> '{{}}')
            OR id IN (SELECT c.delivery_id FROM cards c WHERE c.target = :target AND c.closed_at IS NULL))
       AND attempt > 0 AND created_at <= :before
     ORDER BY number DESC LIMIT :limit
"""
_NEXT_DUE = f"SELECT MIN(d.due_at) FROM deliveries d WHERE {_SENDABLE}"
# What is at rest stays where it went.
_REDIRECT = """
    UPDATE deliveries SET target = :to
     WHERE target = :from AND (state IN ('pending', 'sending', 'retry') OR (state = 'unknown' AND repeats = 0))
 RETURNING id
"""
_REDIRECT_CARDS = "UPDATE cards SET target = :to WHERE target = :from AND closed_at IS NULL"
_OLD_NOTICE = "turn_id IS NULL AND settled_at <= :before"


class DeliveryStore:
    """The outbox: deliveries that wait, are being sent, or were sent."""

    def __init__(self, database: Database) -> None:
        self._database = database
        dialect = database.dialect
        chat = {"kind": dialect.before_colon("d.target"), "in_line": dialect.each("in_line")}
        self._due = _DUE.format(skip_locked=dialect.skip_locked and "FOR UPDATE OF d SKIP LOCKED", **chat)
        self._next_due = _NEXT_DUE.format(**chat)

    async def claim(self, node_id: NodeId, now_ms: int, limit: int, in_line: Collection[str] = ()) -> list[Delivery]:
        """Take due deliveries; each is durably `sending` before anyone sends it.  What is too old expires instead.

        `in_line` names the accounts of chats.  There a delivery waits for all that were written to its chat before it, and
        leaves from the node that has the lease.
        """
        params = {"node_id": node_id, "now": now_ms, "limit": limit, "in_line": rows.encode(sorted(in_line))}
        return await self._database.write(lambda: _claim(self._due, params, node_id, now_ms))

    async def settle(
        self, sent: Delivery, event: DeliveryEvent, now_ms: int, *, due_at: int | None = None, receipt: str | None = None,
        error: str | None = None,
    ) -> Delivery:  # fmt: skip
        """Record how a send ended.  Raises `Stale` if it was decided elsewhere meanwhile."""
        return await self._database.write(
            lambda: _settle(sent, event, now_ms, due_at, receipt, error),
            wakes=lambda _: ("deliveries", *((f"session:{sent.session_id}",) if sent.session_id else ())),
            essential=True,
        )

    async def notify(self, parts: Sequence[Delivery]) -> list[Delivery]:
        """Send a notice, as `delivery.notice` makes it; a repeated id returns the first."""
        return await self._database.write(lambda: _notify(parts), wakes=lambda _: ("deliveries",))

    async def choices(self, target: str, before: int, limit: int = 20) -> list[Delivery]:
        """Return the messages of a chat that offer choices, and were written before a time; the last comes first."""
        found = await self._database.read(lambda: _list(_CHOICES, {"target": target, "before": before, "limit": limit}))
        return [each for each in found if each.extra.buttons]

    async def redirect(self, from_target: str, to_target: str) -> int:
        """Send what has not left yet to another target, because a chat has got another name; returns how many.

        What is open there is answered at the other target too.
        """
        params = {"from": from_target, "to": to_target}
        return await self._database.write(lambda: _redirect(params), wakes=lambda _: ("deliveries",))

    async def forget_notices(self, before: int) -> int:
        """Delete the notices that came to rest before a time; returns how many."""
        return await removal.forget(self._database, "deliveries", ("id",), _OLD_NOTICE, {"before": before})

    async def enqueue(self, sent: Delivery) -> Delivery:
        """Let a message of a running turn leave before its answer; a repeated id returns the first.

        It gets a new part number; its own `part` is ignored.  Raises `Stale` when the turn does not run any more.
        """
        return await self._database.write(lambda: _enqueue(sent), wakes=lambda _: ("deliveries",))

    async def held(self, node_id: NodeId) -> list[Delivery]:
        """Return what a node is sending."""
        return await self._database.read(lambda: _list(_HELD, {"node_id": node_id}))

    async def next_due_at(self, node_id: NodeId | None = None, in_line: Collection[str] = ()) -> int | None:
        """Return when the next delivery falls due that a node may send."""
        params = {"node_id": node_id, "in_line": rows.encode(sorted(in_line))}
        return await self._database.read(lambda: _scalar(self._next_due, params))

    async def hasten(self, now_ms: int) -> int:
        """Make due what is further away than any wait, because the clock that set it has jumped back since."""
        params = {"now": now_ms, "furthest": now_ms + BACKOFF_MAX_MS, "skewed": now_ms + SKEW_MAX_MS}
        return await self._database.write(
            lambda: _count(_HASTEN, params), wakes=lambda hastened: ("deliveries",) if hastened else (), essential=True
        )

    async def get(self, delivery_id: DeliveryId) -> Delivery:
        """Return one delivery.  Raises `NotFound`."""
        return await self._database.read(lambda: _get(delivery_id))

    async def retry(self, delivery_id: DeliveryId, now_ms: int) -> Delivery:
        """Send a delivery again that was given up, with the parts behind it.  Raises `IllegalMove` for any other."""
        return await self._database.write(lambda: _retry(delivery_id, now_ms), wakes=lambda _: ("deliveries",))

    async def of_turn(self, turn_id: TurnId) -> list[Delivery]:
        """Return the deliveries of a turn, parts in order."""
        return await self._database.read(lambda: _list(_OF_TURN, {"id": turn_id}))


def insert(created: Sequence[Delivery]) -> Transaction[None]:
    """Write the deliveries of a turn that ends."""
    if created:
        yield Add(_INSERT, list(map(_row, created)))


def insert_notice(parts: Sequence[Delivery]) -> Transaction[None]:
    """Write a notice inside a transaction, unless it is there already."""
    yield Add(_INSERT_NOTICE, list(map(_row, parts)))


def _row(created: Delivery) -> Params:
    return {
        "id": created.id,
        "turn_id": created.turn_id,
        "session_id": created.session_id,
        "owner": created.owner,
        "target": created.target,
        "part": created.part,
        "text": created.text,
        "created_at": created.created_at,
        "due_at": created.due_at,
        "extra": rows.encode(created.extra),
    }


def _notify(parts: Sequence[Delivery]) -> Transaction[list[Delivery]]:
    yield locks.UNNAMED
    yield from insert_notice(parts)
    written: list[Delivery] = []
    for each in parts:
        written += yield from _list(_GET, {"id": each.id})
    return written


def _enqueue(sent: Delivery) -> Transaction[Delivery]:
    yield locks.UNNAMED
    place = {"turn_id": sent.turn_id, "target": sent.target}
    running = yield Run(_HOLD_TURN, {"turn_id": sent.turn_id})
    first = yield from _list(_GET, {"id": sent.id})
    if first:
        return first[0]
    if not running:
        raise Stale(f"turn {sent.turn_id} does not run any more: it sends nothing but its answer")
    ((part,),) = yield Run(_NEXT_ASIDE, place)
    yield from insert([replace(sent, part=part)])
    return (yield from _get(sent.id))


def insert_asides(turn: Turn, asides: Sequence[Delivery]) -> Transaction[None]:
    """Write messages of a turn that are no part of its answer, such as those with which it asks its question."""
    for each in asides:
        ((part,),) = yield Run(_NEXT_ASIDE, {"turn_id": turn.id, "target": each.target})
        yield Run(_INSERT_NOTICE, _row(replace(each, part=part)))
        if each.extra.question_id:
            card = {"id": each.id, "turn_id": turn.id, "question_id": each.extra.question_id, "target": each.target}
            yield Run(_INSERT_CARD, card)


def insert_banner(turn: Turn, target: str, text: str, now_ms: int, extra: Extra = NO_EXTRA) -> Transaction[None]:
    """Write the banner of a stop; there is never more than one for an attempt and a target."""
    banner = Delivery(
        id=new_delivery_id(now_ms),
        turn_id=turn.id,
        session_id=turn.session_id,
        target=target,
        part=banner_part(turn.attempt),
        text=text,
        created_at=now_ms,
        due_at=now_ms,
        extra=extra,
    )
    yield Run(_INSERT_BANNER, _row(banner))


def _retry(delivery_id: DeliveryId, now_ms: int) -> Transaction[Delivery]:
    yield locks.UNNAMED
    given_up = yield from _get(delivery_id)
    if given_up.state not in GIVEN_UP:
        raise IllegalMove(delivery_id, given_up.state, f"be sent again: {_INSTEAD[given_up.state]}")
    if is_banner(given_up.part):
        raise IllegalMove(delivery_id, "the banner of a stop that is over", DeliveryEvent.REVIVE)
    place = {"turn_id": given_up.turn_id, "target": given_up.target, "part": given_up.part, "now": now_ms}
    yield Run(_REVIVE, {"id": delivery_id, **place})
    return (yield from _get(delivery_id))


def _get(delivery_id: DeliveryId) -> Transaction[Delivery]:
    found = yield from _list(_GET, {"id": delivery_id})
    if not found:
        raise NotFound(f"there is no delivery {delivery_id}")
    return found[0]


def _claim(sql: str, params: Params, node_id: NodeId, now_ms: int) -> Transaction[list[Delivery]]:
    yield locks.UNNAMED
    due = yield Run(sql, params)
    claimed: list[Delivery] = []
    for each in map(rows.delivered, due):
        if now_ms - each.created_at > lifetime_ms(each.part):
            # If it is revived, it may arrive twice.
            repeats = 1 if each.state is DeliveryState.UNKNOWN else each.repeats
            late = "too old to send again; the first may have arrived" if repeats else "too old to send"
            late = f"{late}; the last try: {each.error}" if each.error else late
            yield from _move(
                each, replace(each.on(DeliveryEvent.EXPIRE), settled_at=now_ms, error=late, repeats=repeats), None
            )
            continue
        event = DeliveryEvent.REPEAT if each.state is DeliveryState.UNKNOWN else DeliveryEvent.SEND
        sending = replace(each.on(event), attempt=each.attempt + 1)
        claimed.append((yield from _move(each, sending, node_id)))
    return claimed


def _settle(
    sent: Delivery, event: DeliveryEvent, now_ms: int, due_at: int | None, receipt: str | None, error: str | None
) -> Transaction[Delivery]:
    yield locks.UNNAMED
    after = sent.on(event)
    at_rest = after.state in SETTLED
    after = replace(
        after,
        due_at=now_ms if due_at is None else due_at,
        receipt=receipt,
        error=error,
        settled_at=now_ms if at_rest else None,
    )
    moved = yield from _move(sent, after, None, now_ms if after.state is DeliveryState.RETRY else None)
    if after.state is DeliveryState.FAILED:
        yield Run(_FAIL_REST, {"turn_id": sent.turn_id, "target": sent.target, "part": sent.part, "now": now_ms})
    return moved


def _move(before: Delivery, after: Delivery, node_id: NodeId | None, refused_at: int | None = None) -> Transaction[Delivery]:
    moved = yield Run(
        _MOVE,
        {
            "id": before.id,
            "fence": before.fence,
            "before": before.state.value,
            "state": after.state.value,
            "attempt": after.attempt,
            "repeats": after.repeats,
            "node_id": node_id,
            "due_at": after.due_at,
            "receipt": after.receipt,
            "error": after.error,
            "settled_at": after.settled_at,
            "refused_at": refused_at,
        },
    )
    if not moved:
        raise Stale(f"delivery {before.id} is not {before.state} with fence {before.fence} any more")
    return replace(after, fence=before.fence + 1)


def expire_banners(now_ms: int) -> Transaction[None]:
    """Give up the banners of stops that are over: the gateway is back."""
    yield Run(_EXPIRE_BANNERS, {"now": now_ms})


def lose_held(dialect: Dialect, now_ms: int, limit: int, dedupes: Collection[str]) -> Transaction[int]:
    """Decide about deliveries that dead nodes were sending; `dedupes` names the kinds of targets that drop repeats."""
    free = _HELD_BY_DEAD.format(skip_locked=dialect.skip_locked and "FOR UPDATE OF d SKIP LOCKED")
    held = yield from _list(free, {"limit": limit})
    for event, sql in ((DeliveryEvent.LOSE, _LOSE), (DeliveryEvent.RESEND, _RESEND)):
        ids = [each.id for each in held if after_loss(each, dedupes=each.kind in dedupes) is event]
        if ids:
            yield Run(sql.format(ids=dialect.each("ids")), {"ids": rows.encode(ids), "now": now_ms})
    return len(held)


def _redirect(params: Params) -> Transaction[int]:
    redirected = yield from _count(_REDIRECT, params)
    yield Run(_REDIRECT_CARDS, params)
    return redirected


def _count(sql: str, params: Params) -> Transaction[int]:
    yield locks.UNNAMED
    return len((yield Run(sql, params)))


def _scalar(sql: str, params: Params) -> Transaction[int | None]:
    ((found,),) = yield Run(sql, params)
    return found


def _list(sql: str, params: dict[str, str | int | None]) -> Transaction[list[Delivery]]:
    found = yield Run(sql, params)
    return [rows.delivered(row) for row in found]
