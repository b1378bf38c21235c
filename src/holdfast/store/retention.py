"""How long each table keeps its rows.  A table that is not named here fails the suite."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from holdfast.store.access import LoginStore
from holdfast.store.deliveries import DeliveryStore
from holdfast.store.jobs import JobStore
from holdfast.store.nodes import NodeStore
from holdfast.store.sessions import SessionStore
from holdfast.store.spending import SpendingStore

DAY_MS = 24 * 3_600_000
# Senders repeat a delivery for days; one without timestamps could be replayed for longer.
DEDUPE_DAYS = 30
NODE_DAYS = 7
SLOT_DAYS = 90
NOTICE_DAYS = 30
# A delivery expires after a day, and an operator may send it again.
FILE_DAYS = 3
# A year with its reports, and a month to write them.
SPENDING_DAYS = 400


# Their clients name them and never end them, so that they end by themselves.
EXPIRING = frozenset({"responses"})


class Keep(StrEnum):
    SCHEMA = "as long as the store"
    SESSION = "as long as its session"
    RETENTION = "ended one-shot sessions, and responses without a successor, by channel; conversations until deleted"
    OPERATOR = "until an operator removes it"
    AGE = "for a number of days"
    HANDLED = "until it is handled"


TABLES: Mapping[str, Keep] = MappingProxyType(
    {
        "schema_versions": Keep.SCHEMA,
        "nodes": Keep.AGE,
        "news": Keep.SCHEMA,
        "sessions": Keep.RETENTION,
        "continuations": Keep.SESSION,
        "turns": Keep.SESSION,
        "entries": Keep.SESSION,
        "passages": Keep.SESSION,
        "unsearched": Keep.SESSION,
        "title_words": Keep.SESSION,
        "tool_calls": Keep.SESSION,
        # Notices, which have no session, are kept for a number of days.
        "deliveries": Keep.SESSION,
        "status_lines": Keep.SESSION,
        "cards": Keep.SESSION,
        "kept_files": Keep.AGE,
        "segments": Keep.SESSION,
        "absorbed": Keep.SESSION,
        "replays": Keep.SESSION,
        "recoveries": Keep.SESSION,
        "questions": Keep.SESSION,
        "images": Keep.SESSION,
        "processes": Keep.SESSION,
        "dedupe": Keep.AGE,
        "tenants": Keep.OPERATOR,
        "cursors": Keep.OPERATOR,
        "jobs": Keep.OPERATOR,
        "grants": Keep.OPERATOR,
        "memories": Keep.OPERATOR,
        "memory_words": Keep.OPERATOR,
        "spending": Keep.AGE,
        "slots": Keep.AGE,
        "keys": Keep.OPERATOR,
        "logins": Keep.AGE,
        "webhooks": Keep.OPERATOR,
        "secrets": Keep.OPERATOR,
        "channel_accounts": Keep.OPERATOR,
        "chat_inbox": Keep.HANDLED,
        "chat_messages": Keep.AGE,
        "people": Keep.OPERATOR,
        "pairings": Keep.AGE,
        "chat_moves": Keep.OPERATOR,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """What one round of retention removed."""

    sessions: int
    keys: int
    slots: int


async def enforce(
    sessions: SessionStore,
    jobs: JobStore,
    nodes: NodeStore,
    spending: SpendingStore,
    logins: LoginStore,
    deliveries: DeliveryStore,
    one_shot_days: Mapping[str, int],
    now_ms: int,
) -> Pruned:
    """Delete what has outlived its retention."""
    # The rows of removed sessions that a crash or a large session has left.
    while await sessions.sweep():
        pass
    for channel in EXPIRING & one_shot_days.keys():
        await sessions.expire(channel, now_ms - one_shot_days[channel] * DAY_MS)
    removed = [await sessions.prune(channel, now_ms - days * DAY_MS) for channel, days in one_shot_days.items()]
    await nodes.forget(now_ms - NODE_DAYS * DAY_MS)
    await spending.forget(now_ms - SPENDING_DAYS * DAY_MS)
    await logins.forget(now_ms)
    await deliveries.forget_notices(now_ms - NOTICE_DAYS * DAY_MS)
    return Pruned(
        sessions=sum(removed),
        keys=await sessions.forget_keys(now_ms - DEDUPE_DAYS * DAY_MS),
        slots=await jobs.forget_slots(now_ms - SLOT_DAYS * DAY_MS),
    )
