"""Quotas: what a tenant has used is counted in the transaction that uses more.

The count stops at the quota, so it costs no more than the quota allows.
"""

from __future__ import annotations

from holdfast.core.intake import Inbound
from holdfast.core.quotas import Quota
from holdfast.errors import OverQuota
from holdfast.ids import SessionId
from holdfast.store.database import Run, Transaction

# Held until the transaction ends, so that two at once cannot both take the last of a quota.
_HOLD = "INSERT INTO tenants (owner) VALUES (:owner) ON CONFLICT (owner) DO UPDATE SET owner = excluded.owner"
# By the two indexes of turns that wait: for a place, or for their model.
_QUEUED = """
    SELECT (SELECT COUNT(*) FROM (SELECT 1 FROM turns WHERE owner = :owner AND state = 'queued' AND node_id IS NULL
                                     AND retry_at IS NULL LIMIT :most) AS ready)
         + (SELECT COUNT(*) FROM (SELECT 1 FROM turns WHERE owner = :owner AND retry_at IS NOT NULL
                                   LIMIT :most) AS deferred)
"""
_USED = "SELECT COUNT(*), COALESCE(SUM(bytes), 0) FROM sessions WHERE owner = :owner AND owner <> 'local'"
_HAS_SESSION = "SELECT 1 FROM sessions WHERE owner = :owner AND key = :key AND state = 'open'"
_SIZE = "SELECT bytes FROM sessions WHERE id = :id"
_JOBS = "SELECT COUNT(*) FROM jobs WHERE owner = :owner"


def hold(owner: str) -> Transaction[None]:
    """Lock the quotas of a tenant until the transaction ends."""
    yield Run(_HOLD, {"owner": owner})


def check_message(quota: Quota, message: Inbound) -> Transaction[None]:
    """Refuse a message of a tenant who has used up a quota.  Raises `OverQuota`."""
    yield from hold(message.owner)
    if quota.queued:
        ((queued,),) = yield Run(_QUEUED, {"owner": message.owner, "most": quota.queued})
        if queued >= quota.queued:
            raise OverQuota(f"{quota.queued} messages wait to be answered already; wait for an answer")
    if not quota.sessions and not quota.bytes:
        # There is no limit to compare a count with.
        return
    ((sessions, used),) = yield Run(_USED, {"owner": message.owner})
    _check_bytes(quota, used, message.size)
    if quota.sessions and sessions >= quota.sessions:
        found = yield Run(_HAS_SESSION, {"owner": message.owner, "key": message.session_key})
        if not found:
            raise _too_many_sessions(quota)


def check_session(quota: Quota, owner: str, like: SessionId | None = None) -> Transaction[None]:
    """Refuse another session of a tenant, perhaps a copy, where that is more than they may have.  Raises `OverQuota`."""
    yield from hold(owner)
    ((sessions, used),) = yield Run(_USED, {"owner": owner})
    if quota.sessions and sessions >= quota.sessions:
        raise _too_many_sessions(quota)
    copied = (yield Run(_SIZE, {"id": like})) if like else []
    _check_bytes(quota, used, sum(size for (size,) in copied))


def _check_bytes(quota: Quota, used: int, more: int) -> None:
    if quota.bytes and used + more > quota.bytes:
        raise OverQuota(f"{used:,} of {quota.bytes:,} bytes are used; delete sessions that are not needed")


def _too_many_sessions(quota: Quota) -> OverQuota:
    return OverQuota(f"there are {quota.sessions:,} sessions already; delete some that are not needed")


def check_job(quota: Quota, owner: str) -> Transaction[None]:
    """Refuse another job of a tenant who has as many as they may.  Raises `OverQuota`."""
    yield from hold(owner)
    ((jobs,),) = yield Run(_JOBS, {"owner": owner})
    if quota.jobs and jobs >= quota.jobs:
        raise OverQuota(f"there are {quota.jobs:,} jobs already; remove one first")
