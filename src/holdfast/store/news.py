"""News: finds what the operator was not told yet, and marks it as told in the transaction that writes the message."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from holdfast.core.delivery import Delivery, is_banner
from holdfast.core.news import OUTAGE_MS, PAUSE_MS, SINCE_MS, DeadLetter, FailedJob, MissedJob, News, Outage
from holdfast.errors import Stale
from holdfast.ids import NodeId
from holdfast.store import deliveries, locks, rows
from holdfast.store.database import Database, Dialect, Params, Row, Run, RunMany, Transaction

# How many deliveries, and how many instants of jobs, are marked in one transaction.
LIMIT = 5_000

_DEAD = "d.state IN ('failed', 'expired') AND d.told_at IS NULL AND d.settled_at > :since"
_OVER = """
    s.told_at IS NULL AND s.instant > :since
    AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.id = s.turn_id AND t.state IN ('queued', 'running', 'waiting'))
"""
_TROUBLED = """
    c.trouble_at IS NOT NULL
    AND (c.state = 'connected'
         OR (c.trouble_told = 0
             AND (c.state IN ('taken', 'refused') OR (c.state = 'connecting' AND c.trouble_at <= :lasting))))
"""
_IS_THERE = f"""
    SELECT EXISTS (SELECT 1 FROM nodes n WHERE n.found IS NOT NULL)
        OR EXISTS (SELECT 1 FROM channel_accounts c WHERE {_TROUBLED})
        OR EXISTS (SELECT 1 FROM slots s WHERE {_OVER})
        OR EXISTS (SELECT 1 FROM deliveries d WHERE {_DEAD})
"""
# A clock that has jumped back since holds nothing up.
_WAITS = "(news.told_at > :pause_began AND news.told_at <= :now)"
_IS_TIME = f"SELECT NOT EXISTS (SELECT 1 FROM news WHERE id = 1 AND {_WAITS})"
# One message at a time, also of several nodes.
_TELL = f"""
    INSERT INTO news (id, told_at) VALUES (1, :now)
    ON CONFLICT (id) DO UPDATE SET told_at = excluded.told_at WHERE NOT {_WAITS}
 RETURNING id
"""
_FOUND = "SELECT n.id, n.found FROM nodes n WHERE n.found IS NOT NULL ORDER BY n.joined_at, n.id {skip_locked}"
_TELL_FOUND = "UPDATE nodes SET found = NULL WHERE id IN {ids}"
_OUTAGES = f"""
    SELECT c.name, c.trouble, c.trouble_at, c.state = 'connected', c.trouble_told = 1 FROM channel_accounts c
     WHERE {_TROUBLED} ORDER BY c.name {{skip_locked}}
"""
_TELL_OUTAGE = "UPDATE channel_accounts SET trouble_told = 1 WHERE name = :name"
_END_OUTAGE = "UPDATE channel_accounts SET trouble = '', trouble_at = NULL, trouble_told = 0 WHERE name = :name"
# A job that is paused misses what its operator wants missed.  A failure that has a target is told there.
_SLOTS = f"""
    SELECT s.job, s.instant, s.turn_id, j.paused, t.state IN ('failed', 'interrupted') AND t.reply_to IS NULL, t.error
      FROM slots s JOIN jobs j ON j.name = s.job LEFT JOIN turns t ON t.id = s.turn_id
     WHERE {_OVER} ORDER BY s.instant LIMIT :limit {{skip_locked}}
"""
_TELL_SLOT = "UPDATE slots SET told_at = :now WHERE job = :job AND instant = :instant"
_DEAD_LETTERS = f"""
    SELECT d.id, d.target, d.error, d.part FROM deliveries d
     WHERE {_DEAD} ORDER BY d.settled_at, d.number LIMIT :limit {{skip_locked}}
"""
_TELL_DELIVERIES = "UPDATE deliveries SET told_at = :now WHERE id IN {ids}"

# Writes a message about news, in parts; none where there is nothing to tell.
Compose = Callable[[News], Sequence[Delivery]]


class NewsStore:
    """The facts that the operator is told by itself."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def is_due(self, now_ms: int) -> bool:
        """Return whether there is anything to mark, and the last message is long enough ago."""
        return await self._database.read(lambda: _is_due(now_ms))

    async def tell(self, compose: Compose, now_ms: int) -> Sequence[Delivery]:
        """Write one message about everything new; returns its parts.  Raises `Stale` where another node does so now.

        No fact is told twice.  That this message itself cannot be delivered is told by no other one.
        """
        dialect = self._database.dialect
        return await self._database.write(
            lambda: _tell(dialect, compose, now_ms), wakes=lambda told: ("deliveries",) if told else ()
        )


def _is_due(now_ms: int) -> Transaction[bool]:
    ((is_time,),) = yield Run(_IS_TIME, _pause(now_ms))
    if not is_time:
        return False
    ((is_there,),) = yield Run(_IS_THERE, _times(now_ms))
    return bool(is_there)


def _tell(dialect: Dialect, compose: Compose, now_ms: int) -> Transaction[Sequence[Delivery]]:
    yield locks.UNNAMED
    missed, failed = yield from _take_slots(dialect, now_ms)
    news = News(
        found=(yield from _take_found(dialect)),
        outages=(yield from _take_outages(dialect, now_ms)),
        missed=missed,
        failed=failed,
        dead_letters=(yield from _take_dead_letters(dialect, now_ms)),
    )
    message = compose(news)
    if message:
        if not (yield Run(_TELL, _pause(now_ms))):
            raise Stale("another node has just told the operator")
        yield from deliveries.insert_notice(message)
        yield from _mark_deliveries(dialect, [each.id for each in message], now_ms)
    return message


def _take_found(dialect: Dialect) -> Transaction[list[str]]:
    found = yield Run(_FOUND.format(skip_locked=_skipping(dialect, "n")))
    ids: list[NodeId] = [node_id for node_id, _ in found]
    if ids:
        yield Run(_TELL_FOUND.format(ids=dialect.each("ids")), {"ids": rows.encode(ids)})
    return [text for _, text in found]


def _take_outages(dialect: Dialect, now_ms: int) -> Transaction[list[Outage]]:
    found = yield Run(_OUTAGES.format(skip_locked=_skipping(dialect, "c")), {"lasting": now_ms - OUTAGE_MS})
    outages = [
        Outage(account=name, problem=problem, since=since, is_over=bool(is_over), was_told=bool(was_told))
        for name, problem, since, is_over, was_told in found
    ]
    for each in outages:
        yield Run(_END_OUTAGE if each.is_over else _TELL_OUTAGE, {"name": each.account})
    return outages


def _take_slots(dialect: Dialect, now_ms: int) -> Transaction[tuple[list[MissedJob], list[FailedJob]]]:
    found = yield Run(_SLOTS.format(skip_locked=_skipping(dialect, "s")), {**_times(now_ms), "limit": LIMIT})
    if found:
        yield RunMany(_TELL_SLOT, [{"job": job, "instant": instant, "now": now_ms} for job, instant, *_ in found])
    missed: dict[str, list[int]] = {}
    failed: list[FailedJob] = []
    for job, instant, turn_id, is_paused, has_failed, error in found:
        if turn_id is None:
            if not is_paused:
                missed.setdefault(job, []).append(instant)
        elif has_failed:
            failed.append(FailedJob(name=job, instant=instant, turn_id=turn_id, error=error or ""))
    return [_missed(*each) for each in missed.items()], failed


def _missed(job: str, instants: Sequence[int]) -> MissedJob:
    return MissedJob(name=job, count=len(instants), last_instant=max(instants))


def _take_dead_letters(dialect: Dialect, now_ms: int) -> Transaction[list[DeadLetter]]:
    found = yield Run(_DEAD_LETTERS.format(skip_locked=_skipping(dialect, "d")), {**_times(now_ms), "limit": LIMIT})
    yield from _mark_deliveries(dialect, [row[0] for row in found], now_ms)
    return [_dead_letter(row) for row in found if _is_told_apart(row)]


def _is_told_apart(row: Row) -> bool:
    """Return whether a delivery is named: no banner of a stop that is over, nor what failed with an earlier part."""
    _, _, error, part = row
    return error != deliveries.EARLIER_FAILED and not is_banner(part)


def _dead_letter(row: Row) -> DeadLetter:
    id_, target, error, _ = row
    return DeadLetter(id=id_, target=target, error=error or "")


def _mark_deliveries(dialect: Dialect, ids: Sequence[str], now_ms: int) -> Transaction[None]:
    if ids:
        yield Run(_TELL_DELIVERIES.format(ids=dialect.each("ids")), {"ids": rows.encode(ids), "now": now_ms})


def _pause(now_ms: int) -> Params:
    return {"now": now_ms, "pause_began": now_ms - PAUSE_MS}


def _times(now_ms: int) -> Params:
    return {"since": now_ms - SINCE_MS, "lasting": now_ms - OUTAGE_MS}


def _skipping(dialect: Dialect, table: str) -> str:
    """Return what leaves the rows of a table to another node that marks them at the same moment."""
    return dialect.skip_locked and f"FOR UPDATE OF {table} SKIP LOCKED"
