"""Sessions: looked up by key or id, listed, and pruned when they are over."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Sequence

from holdfast.core.intake import Once
from holdfast.core.keys import LOCAL
from holdfast.core.quotas import Quota
from holdfast.core.recovery import Standing
from holdfast.core.sessions import (
    EXPIRED,
    NO_OWNER,
    Activity,
    Glance,
    Session,
    SessionEvent,
    SessionState,
    Source,
    reset_reason,
)
from holdfast.core.turns import Turn
from holdfast.errors import Damaged, NotFound
from holdfast.ids import SessionId, TurnId
from holdfast.store import cancellation, dedupe, forks, locks, passages, quotas, removal, rows
from holdfast.store.database import Database, Dialect, Lock, Params, Run, Transaction

_GET = f"SELECT {rows.SESSION} FROM sessions WHERE id = :id AND owner <> '{NO_OWNER}'"
_FIND = f"SELECT {rows.SESSION} FROM sessions WHERE owner = :owner AND key = :key AND state = 'open'"
_OF_KEY = f"""
    SELECT {rows.SESSION} FROM sessions
     WHERE owner = :owner AND key = :key AND (CAST(:before_id AS TEXT) = '' OR id < :before_id)
       AND (CAST(:state AS TEXT) = '' OR state = :state)
     ORDER BY id DESC LIMIT :limit
"""
_OPEN = """
    INSERT INTO sessions (id, key, channel, owner, one_shot, source, parent_id, auto_reset_reason, created_at, updated_at)
    VALUES (:id, :key, :channel, :owner, 0, :source, :parent_id, :reset_reason, :now, :now)
    ON CONFLICT (owner, key) WHERE state = 'open' DO NOTHING
"""


def _page(narrowed: str) -> str:
    return f"""
        SELECT {rows.SESSION} FROM sessions
         WHERE owner = :owner AND (updated_at, id) < (:before_at, :before_id) AND {narrowed}
           AND (CAST(:state AS TEXT) = '' OR state = :state) AND (CAST(:archived AS BIGINT) < 0 OR archived = :archived)
           AND (CAST(:pinned AS BIGINT) < 0 OR pinned = :pinned)
         ORDER BY updated_at DESC, id DESC LIMIT :limit
    """


# What narrows a list most has an index of its own; the rest is looked at row by row.
_OF_ANY_CHANNEL = "(CAST(:channel AS TEXT) = '' OR channel = :channel)"
_LIST = _page(_OF_ANY_CHANNEL)
_LIST_CHANNEL = _page("channel = :channel")
_LIST_ARCHIVED = _page(f"archived = 1 AND {_OF_ANY_CHANNEL}")
_LIST_PINNED = _page(f"pinned = 1 AND {_OF_ANY_CHANNEL}")
_LIST_IN_USE = _page(f"state IN ('open', 'suspended') AND {_OF_ANY_CHANNEL}")
# A session has one turn at most that runs, waits or is retried, and what is in line behind it comes first in the alphabet.
# Its model is looked for from the last turn backwards, because a long conversation has many calls: `CROSS` makes SQLite keep
# to that.
# Attempt 0 is what was used after a turn, as to remember it.
_GLANCES = f"""
    SELECT {rows.qualified(rows.SESSION, "s")},
           (SELECT MAX(CASE WHEN t.retry_at IS NULL THEN t.state ELSE 'retrying' END) FROM turns t
             WHERE t.session_id = s.id AND t.state IN ('queued', 'running', 'waiting')),
           (SELECT {{opening}} FROM entries e WHERE e.session_id = s.id AND e.seq = 1),
           CASE WHEN EXISTS (SELECT 1 FROM spending p WHERE p.session_id = s.id) THEN
               (SELECT p.model FROM turns t CROSS JOIN spending p
                 WHERE t.session_id = s.id AND p.turn_id = t.id AND p.attempt > 0
                 ORDER BY t.ordinal DESC, p.attempt DESC, p.nth DESC LIMIT 1) END
      FROM sessions s WHERE s.id IN {{ids}} AND s.owner <> '{NO_OWNER}'
"""
# Of a first message: enough for a line behind a few that are empty.
OPENING_MAX_CHARS = 400
# No title or model is given by none, and taken away by an empty one.
_CHANGE = f"""
    UPDATE sessions
       SET title = CASE WHEN CAST(:title AS TEXT) IS NULL THEN title ELSE NULLIF(CAST(:title AS TEXT), '') END,
           pinned = COALESCE(CAST(:pinned AS BIGINT), pinned), archived = COALESCE(CAST(:archived AS BIGINT), archived),
           model = CASE WHEN CAST(:model AS TEXT) IS NULL THEN model ELSE NULLIF(CAST(:model AS TEXT), '') END
     WHERE id = :id
 RETURNING {rows.SESSION}
"""
# Only a success clears what an interruption left open; one that joined another turn is none of its own.
_UNCLEARED = """
    NOT EXISTS (SELECT 1 FROM turns c WHERE c.session_id = t.session_id AND c.ordinal > t.ordinal
                   AND c.state = 'completed' AND c.joined_to IS NULL)
"""
_INTERRUPTION = f"""
    SELECT t.cause FROM turns t JOIN sessions s ON s.id = t.session_id
     WHERE s.id = :id AND s.state = 'open' AND s.strikes > 0
       AND t.state = 'interrupted' AND {_UNCLEARED}
       AND NOT EXISTS (SELECT 1 FROM entries e WHERE e.turn_id = t.id AND e.kind = 'turn.undone')
     ORDER BY t.ordinal DESC LIMIT 1
"""
# Pinned conversations are kept.  A transaction that uses a session locks it and writes the time, so a session that another
# node uses is skipped, or is no longer idle once it can be locked.
_IDLE = """
    SELECT s.id, s.updated_at FROM sessions s
     WHERE s.state IN ('open', 'suspended') AND s.channel = :channel AND s.updated_at <= :idle_before
       AND s.one_shot = 0 AND s.pinned = 0
       AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.session_id = s.id AND t.state IN ('queued', 'running', 'waiting'))
       AND NOT EXISTS (SELECT 1 FROM processes p WHERE p.session_id = s.id AND p.state = 'running')
       AND NOT EXISTS (SELECT 1 FROM turns t JOIN turns c ON c.parent_turn_id = t.id
                        WHERE t.session_id = s.id AND c.state IN ('queued', 'running', 'waiting'))
     LIMIT :limit {skip_locked}
"""
# The whole list of states is named as well, because that is what the index holds.
_STANDING = f"""
    SELECT (SELECT COUNT(*) FROM turns WHERE state IN ('queued', 'running', 'waiting') AND state = 'queued'),
           (SELECT COUNT(*) FROM turns WHERE state IN ('queued', 'running', 'waiting') AND state = 'waiting'),
           (SELECT COUNT(DISTINCT t.session_id) FROM turns t JOIN sessions s ON s.id = t.session_id
             WHERE t.state = 'interrupted' AND s.state = 'open' AND s.strikes > 0 AND {_UNCLEARED})
"""
EXPIRE_MAX = 20
# A deletion waits for this many sweeps; the janitor deletes the rest of the rows.
SWEEPS_MAX = 25


class SessionStore:
    """Every conversation that is kept."""

    def __init__(self, database: Database, quota: Quota | None = None) -> None:
        self._database = database
        self._quota = quota
        dialect = database.dialect
        self._idle = _IDLE.format(skip_locked=dialect.skip_locked and "FOR UPDATE OF s SKIP LOCKED")
        self._glances = _GLANCES.format(ids=dialect.each("ids"), opening=dialect.text("e.data", OPENING_MAX_CHARS))

    async def get(self, session_id: SessionId) -> Session:
        """Return one session.  Raises `NotFound`."""
        found = await self._database.read(lambda: _list(_GET, {"id": session_id}))
        if not found:
            raise NotFound(f"there is no session {session_id}")
        return found[0]

    async def find(self, owner: str, key: str) -> Session | None:
        """Return the open session of a key."""
        found = await self._database.read(lambda: _list(_FIND, {"owner": owner, "key": key}))
        return found[0] if found else None

    async def of_key(
        self, owner: str, key: str, limit: int = 50, before: SessionId | None = None, state: SessionState | None = None
    ) -> list[Session]:
        """Return the sessions that a key has had, the newest first; `before` is the last one seen."""
        params = {
            "owner": owner, "key": key, "limit": limit, "before_id": before or "", "state": state.value if state else ""
        }  # fmt: skip
        return await self._database.read(lambda: _list(_OF_KEY, params))

    async def open(
        self, owner: str, key: str, channel: str, session_id: SessionId, now_ms: int, source: Source | None = None
    ) -> Session:
        """Return the open session of a key; an empty one with the given id if it has none."""
        params: Params = {
            "owner": owner,
            "key": key,
            "channel": channel,
            "id": session_id,
            "source": rows.source(source or Source()),
            "now": now_ms,
        }
        quota = self._quota if owner != LOCAL else None
        return await self._database.write(
            lambda: _open(params, quota),
            wakes=lambda opened: (f"session:{opened.id}",),
        )

    async def list(
        self,
        owner: str,
        before: tuple[int, str] | None = None,
        limit: int = 50,
        state: SessionState | None = None,
        *,
        channel: str | None = None,
        archived: bool | None = None,
        pinned: bool | None = None,
    ) -> list[Session]:
        """Return sessions, last used first; `before` is the (updated_at, id) of the last one seen."""
        at, id_ = before or (2**62, "")
        params: Params = {
            "owner": owner,
            "before_at": at,
            "before_id": id_,
            "limit": limit,
            "state": state.value if state else "",
            "channel": channel or "",
            "archived": -1 if archived is None else int(archived),
            "pinned": -1 if pinned is None else int(pinned),
        }
        if pinned:
            sql = _LIST_PINNED
        elif state in (SessionState.OPEN, SessionState.SUSPENDED):
            sql = _LIST_IN_USE
        elif archived:
            sql = _LIST_ARCHIVED
        else:
            sql = _LIST_CHANNEL if channel else _LIST
        return await self._database.read(lambda: _list(sql, params))

    async def glances(self, session_ids: Sequence[SessionId]) -> dict[SessionId, Glance]:
        """Return sessions with what they are at and how they begin; those that are not there are left out."""
        try:
            return await self._database.read(lambda: _glance(self._glances, session_ids))
        except Damaged:
            # One that cannot be read must not hide the others.
            return {each: glance for each in session_ids for glance in await self._glimpse(each)}

    async def _glimpse(self, session_id: SessionId) -> list[Glance]:
        """Return what can still be read of a damaged session: all of it, only its own row, or no row."""
        with contextlib.suppress(Damaged):
            return list((await self._database.read(lambda: _glance(self._glances, [session_id]))).values())
        with contextlib.suppress(Damaged, NotFound):
            return [Glance(session=await self.get(session_id), activity=None, opening="", model=None)]
        return []

    async def change(
        self,
        session_id: SessionId,
        *,
        title: str | None = None,
        pinned: bool | None = None,
        archived: bool | None = None,
        model: str | None = None,
        once: Once | None = None,
        now_ms: int = 0,
    ) -> Session:
        """Change what a person decides about a session; what is None stays, and an empty title or model is none.

        Raises `NotFound`, and `Repeated` where the same request has changed it before.
        """
        params: Params = {
            "id": session_id,
            "title": title,
            "pinned": None if pinned is None else int(pinned),
            "archived": None if archived is None else int(archived),
            "model": model,
        }
        changed = await self._database.write(
            lambda: _change(params, once, now_ms), wakes=lambda changed: tuple(f"session:{each.id}" for each in changed)
        )
        if not changed:
            raise NotFound(f"there is no session {session_id}")
        return changed[0]

    async def fork(
        self, session_id: SessionId, fork: Session, through: TurnId | None = None, before: TurnId | None = None
    ) -> Session:
        """Copy a conversation, up to and with a turn or only before one, into a new one of its own.  Raises `NotFound`.

        What is still in flight is not copied.  Memory is not owed again, and no effect is remembered as the copy's own.
        """
        quota = self._quota if fork.owner != LOCAL else None
        return await self._database.write(
            lambda: forks.fork(session_id, fork, through, before, quota), wakes=lambda made: (f"session:{made.id}",)
        )

    async def delete(self, session_id: SessionId, now_ms: int) -> bool:
        """Delete a session with all that belongs to it, cancelling what it is at; False when there is none.

        It is gone at once.  Of a long one some rows may still be there, which the janitor sweeps.
        """
        dialect = self._database.dialect
        deleted, _ = await self._database.write(
            lambda: _delete(dialect, session_id, now_ms),
            wakes=lambda done: (f"session:{session_id}", *removal.topics(done[0]), *cancellation.topics(done[1])),
            essential=True,
        )
        for _ in range(SWEEPS_MAX):
            if not await self.sweep():
                break
        return bool(deleted)

    async def standing(self) -> Standing:
        """Return what waits in all sessions: a cheap look, however many there are."""
        return await self._database.read(_standing)

    async def resume_cause(self, session_id: SessionId) -> str | None:
        """Return why a session is resume pending: open, and interrupted since its last completed turn; else None."""
        found = await self._database.read(lambda: _run(_INTERRUPTION, {"id": session_id}))
        return found[0][0] if found else None

    async def expire(self, channel: str, idle_before: int) -> int:
        """End the conversations of a channel that are idle since then and not pinned; returns how many.

        What is still at something stays.  Each has ended when it was last used, so that retention counts from there.
        """
        dialect, sql = self._database.dialect, self._idle
        params = {"channel": channel, "idle_before": idle_before, "limit": EXPIRE_MAX}
        total = 0
        while expired := await self._database.write(
            lambda: _expire(dialect, sql, params),
            wakes=lambda ended: ("segments", *(f"session:{session_id}" for session_id in ended)),
        ):
            total += len(expired)
        return total

    async def prune(self, channel: str, ended_before: int) -> int:
        """Delete the ended sessions of a channel with all that belongs to them; returns how many."""
        return sum([pruned async for pruned in self.pruning(channel, ended_before)])

    async def pruning(self, channel: str, ended_before: int) -> AsyncGenerator[int]:
        """Prune in steps that keep no other write waiting; yields after each how many sessions are gone by it.

        A caller may stop after any step: the next call or `sweep` goes on from there.
        """
        database, ended_since = self._database, 0
        while True:
            while await self.sweep():
                yield 0
            # Looked for beside the writer: many may have to be passed by that are not at rest yet.
            prunable = removal.Prunable(channel=channel, ended_before=ended_before, ended_since=ended_since)
            found = await database.read(lambda prunable=prunable: removal.find(prunable))
            gone = await database.write(
                lambda prunable=prunable, found=found: removal.hide_prunable(database.dialect, prunable, found),
                wakes=removal.topics,
            )
            if not gone:
                return
            yield len(gone)
            ended_since = found[-1].ended_at

    async def sweep(self) -> int:
        """Delete some rows of removed sessions; returns how many, and 0 once all are deleted."""
        return await removal.sweep(self._database)

    async def forget_keys(self, before: int) -> int:
        """Delete dedupe keys that no sender will repeat any more."""
        return await removal.forget(self._database, "dedupe", ("key",), "accepted_at <= :before", {"before": before})


def _open(params: Params, quota: Quota | None) -> Transaction[Session]:
    of_key = {"owner": params["owner"], "key": params["key"]}
    yield Lock([locks.conversation(str(params["owner"]), str(params["key"]))], alone=quota is not None)
    if quota and not (yield from _list(_FIND, of_key)):
        yield from quotas.check_session(quota, str(params["owner"]))
    latest = yield from _list(_OF_KEY, {**of_key, "limit": 1, "before_id": "", "state": ""})
    reason = reset_reason(latest[0].state) if latest else None
    parent_id = latest[0].id if reason else None
    yield Run(_OPEN, {**params, "parent_id": parent_id, "reset_reason": reason})
    return (yield from _list(_FIND, of_key))[0]


def _list(sql: str, params: Params) -> Transaction[list[Session]]:
    found = yield Run(sql, params)
    return [rows.session(row) for row in found]


def _change(params: Params, once: Once | None, now_ms: int) -> Transaction[list[Session]]:
    yield locks.UNNAMED
    yield from dedupe.once(once, SessionId(str(params["id"])), now_ms)
    changed = yield from _list(_CHANGE, params)
    if params["title"] is not None:
        for session in changed:
            yield from passages.name(session.id, session.owner, session.title)
    return changed


def _glance(sql: str, session_ids: Sequence[SessionId]) -> Transaction[dict[SessionId, Glance]]:
    found: dict[SessionId, Glance] = {}
    for *row, at, opening, model in (yield Run(sql, {"ids": rows.encode(list(session_ids))})):
        session, activity = rows.session(tuple(row)), at and Activity(at)
        found[session.id] = Glance(session=session, activity=activity, opening=opening or "", model=model or None)
    return found


def _run(sql: str, params: Params) -> Transaction[list[rows.Row]]:
    return (yield Run(sql, params))


def _delete(dialect: Dialect, session_id: SessionId, now_ms: int) -> Transaction[tuple[removal.Gone, list[Turn]]]:
    yield Lock([locks.session(session_id)], alone=True)
    cancelled = yield from cancellation.leave(dialect, session_id, SessionEvent.END, "deleted", now_ms)
    # What was given away in the background would have nowhere to come home to.
    cancelled += yield from cancellation.cancel_delegated(dialect, session_id, now_ms)
    return (yield from removal.hide(session_id)), cancelled


def _expire(dialect: Dialect, sql: str, params: Params) -> Transaction[list[SessionId]]:
    yield locks.UNNAMED
    expired: list[SessionId] = []
    for session_id, used_at in (yield Run(sql, params)):
        yield from cancellation.leave(dialect, session_id, SessionEvent.END, EXPIRED, used_at)
        expired.append(session_id)
    return expired


def _standing() -> Transaction[Standing]:
    ((queued, waiting, resumable),) = yield Run(_STANDING)
    return Standing(queued=queued, waiting=waiting, resumable=resumable)
