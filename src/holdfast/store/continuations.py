"""Continuations: a chat goes on with a conversation that began elsewhere, until it is left or over."""

from __future__ import annotations

from holdfast.core.intake import Once
from holdfast.core.keys import LOCAL
from holdfast.core.quotas import Quota
from holdfast.core.sessions import Session, SessionEvent
from holdfast.core.turns import Turn
from holdfast.ids import SessionId
from holdfast.store import cancellation, dedupe, forks, locks
from holdfast.store.database import Database, Dialect, Lock, Run, Transaction

_FIND = """
    SELECT s.key FROM continuations c JOIN sessions s ON s.id = c.session_id AND s.owner = c.owner AND s.state = 'open'
     WHERE c.owner = :owner AND c.key = :key
"""
_BEGIN = """
    INSERT INTO continuations (owner, key, session_id, at) VALUES (:owner, :key, :session_id, :now)
    ON CONFLICT (owner, key) DO UPDATE SET session_id = excluded.session_id, at = excluded.at
"""
_LEAVE = "DELETE FROM continuations WHERE owner = :owner AND key = :key RETURNING session_id"
_OPEN = "SELECT id FROM sessions WHERE owner = :owner AND key = :key AND state = 'open'"


class ContinuationStore:
    """Which chat goes on with which session."""

    def __init__(self, database: Database, quota: Quota | None = None) -> None:
        self._database = database
        self._quota = quota

    async def find(self, owner: str, key: str) -> str | None:
        """Return the key of the open session that the chat with a key goes on with; None where it has its own."""
        return await self._database.read(lambda: _find(owner, key))

    async def begin(self, owner: str, key: str, session_id: SessionId, now_ms: int, once: Once) -> None:
        """Let a chat go on with a session from now on.  Raises `Repeated` where the same request did so before."""
        await self._database.write(lambda: _begin(owner, key, session_id, now_ms, once))

    async def leave(self, owner: str, key: str, reason: str, now_ms: int, once: Once | None) -> None:
        """Begin anew in a chat: what it goes on with stays as it is, and its own open session ends for `reason`.

        Raises `Repeated` where the same request did so before.
        """
        dialect = self._database.dialect
        await self._database.write(
            lambda: _leave(dialect, owner, key, reason, now_ms, once), wakes=cancellation.topics, essential=True
        )

    async def copy(self, session_id: SessionId, copy: Session, reason: str, now_ms: int, once: Once) -> Session:
        """Go on with a session that is over, in a copy of it that takes the place of the open session of its key.

        That one ends for `reason`.  Raises `NotFound`, and `Repeated` where the same request did so before.
        """
        dialect, quota = self._database.dialect, self._quota if copy.owner != LOCAL else None
        made, _ = await self._database.write(
            lambda: _copy(dialect, quota, session_id, copy, reason, now_ms, once),
            wakes=lambda done: (f"session:{done[0].id}", *cancellation.topics(done[1])),
            essential=True,
        )
        return made


def _find(owner: str, key: str) -> Transaction[str | None]:
    found = yield Run(_FIND, {"owner": owner, "key": key})
    return found[0][0] if found else None


def _begin(owner: str, key: str, session_id: SessionId, now_ms: int, once: Once) -> Transaction[None]:
    yield Lock([locks.session(session_id)], alone=True)
    yield from dedupe.once(once, session_id, now_ms)
    yield Run(_BEGIN, {"owner": owner, "key": key, "session_id": session_id, "now": now_ms})


def _leave(dialect: Dialect, owner: str, key: str, reason: str, now_ms: int, once: Once | None) -> Transaction[list[Turn]]:
    yield Lock([locks.conversation(owner, key)], alone=True)
    left = yield Run(_LEAVE, {"owner": owner, "key": key})
    own = yield Run(_OPEN, {"owner": owner, "key": key})
    subject = own or left
    yield from dedupe.once(once, SessionId(subject[0][0]) if subject else SessionId(""), now_ms)
    cancelled: list[Turn] = []
    for (session_id,) in own:
        cancelled += yield from cancellation.leave(dialect, session_id, SessionEvent.END, reason, now_ms)
    return cancelled


def _copy(
    dialect: Dialect, quota: Quota | None, session_id: SessionId, copy: Session, reason: str, now_ms: int, once: Once
) -> Transaction[tuple[Session, list[Turn]]]:
    cancelled = yield from _leave(dialect, copy.owner, copy.key, reason, now_ms, None)
    yield from dedupe.once(once, copy.id, now_ms)
    return (yield from forks.fork(session_id, copy, None, None, quota)), cancelled
