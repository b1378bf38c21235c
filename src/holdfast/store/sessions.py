"""Sessions: looked up by key or id, listed, searched, and pruned when they are over."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.core.recovery import Standing
from holdfast.core.sessions import EXPIRED, Activity, Event, Glance, Hit, Session, Source, State, reset_reason
from holdfast.core.turns import Turn
from holdfast.errors import NotFound
from holdfast.ids import SessionId, TurnId
from holdfast.store import cancellation, forks, rows
from holdfast.store.database import Database, Dialect, Params, Run, Transaction

_GET = f"SELECT {rows.SESSION} FROM sessions WHERE id = :id"
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
# A session has one turn at most that runs or waits, and what is in line behind it comes first in the alphabet.  Its model is
# looked for from the last turn backwards, because a long conversation has many calls: `CROSS` makes SQLite keep to that.
# Attempt 0 is what was used after a turn, as to remember it.
_GLANCES = f"""
    SELECT {rows.qualified(rows.SESSION, "s")},
           (SELECT MAX(t.state) FROM turns t WHERE t.session_id = s.id AND t.state IN ('queued', 'running', 'waiting')),
           (SELECT {{opening}} FROM entries e WHERE e.session_id = s.id AND e.seq = 1),
           CASE WHEN EXISTS (SELECT 1 FROM spending p WHERE p.session_id = s.id) THEN
               (SELECT p.model FROM turns t CROSS JOIN spending p
                 WHERE t.session_id = s.id AND p.turn_id = t.id AND p.attempt > 0
                 ORDER BY t.ordinal DESC, p.attempt DESC, p.nth DESC LIMIT 1) END
      FROM sessions s WHERE s.id IN {{ids}}
"""
# Of a first message: enough for a line behind a few that are empty.
OPENING_MAX_CHARS = 400
# No title is given by none, and taken away by an empty one.
_CHANGE = f"""
    UPDATE sessions
       SET title = CASE WHEN CAST(:title AS TEXT) IS NULL THEN title ELSE NULLIF(CAST(:title AS TEXT), '') END,
           pinned = COALESCE(CAST(:pinned AS BIGINT), pinned), archived = COALESCE(CAST(:archived AS BIGINT), archived)
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
# A session at rest: nothing of it is still on its way, neither a turn of its own or of a task that it gave away, nor a
# delivery nor a memory nor a process.
_PRUNE = """
    DELETE FROM sessions WHERE id IN (
        SELECT s.id FROM sessions s
         WHERE s.channel = :channel AND s.state = 'ended' AND s.ended_at <= :ended_before
           AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.session_id = s.id AND t.state IN ('queued', 'running', 'waiting'))
           AND NOT EXISTS (SELECT 1 FROM deliveries d JOIN turns t ON t.id = d.turn_id
                            WHERE t.session_id = s.id AND (d.state IN ('pending', 'sending', 'retry')
                                                           OR (d.state = 'unknown' AND d.repeats = 0)))
           AND NOT EXISTS (SELECT 1 FROM segments m
                            WHERE m.session_id = s.id AND m.state IN ('open', 'sealed', 'committing'))
           AND NOT EXISTS (SELECT 1 FROM processes p WHERE p.session_id = s.id AND p.state = 'running')
           AND NOT EXISTS (SELECT 1 FROM turns t JOIN turns c ON c.parent_turn_id = t.id
                            WHERE t.session_id = s.id AND c.state IN ('queued', 'running', 'waiting'))
         LIMIT :limit)
 RETURNING id, owner
"""
# What somebody has pinned they want to keep.
_IDLE = """
    SELECT s.id, s.updated_at FROM sessions s
     WHERE s.state IN ('open', 'suspended') AND s.channel = :channel AND s.updated_at <= :idle_before
       AND s.one_shot = 0 AND s.pinned = 0
       AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.session_id = s.id AND t.state IN ('queued', 'running', 'waiting'))
       AND NOT EXISTS (SELECT 1 FROM processes p WHERE p.session_id = s.id AND p.state = 'running')
       AND NOT EXISTS (SELECT 1 FROM turns t JOIN turns c ON c.parent_turn_id = t.id
                        WHERE t.session_id = s.id AND c.state IN ('queued', 'running', 'waiting'))
     LIMIT :limit
"""
# Everything that uses a session writes the time into it, so that one which another node has just used is not held.
_HOLD_IDLE = "UPDATE sessions SET updated_at = updated_at WHERE id = :id AND updated_at = :used_at RETURNING id"
_SEARCH = """
    SELECT e.session_id, e.turn_id, e.seq, e.kind, e.at, e.data
      FROM entries e JOIN sessions s ON s.id = e.session_id
     WHERE s.owner = :owner AND {matches}
     ORDER BY e.at DESC, e.session_id, e.seq DESC LIMIT :limit
"""
# By name, so that what was only just journalled is written first, and goes too.
_DELETE_ENTRIES = "DELETE FROM entries WHERE session_id = :id"
_DELETE = "DELETE FROM sessions WHERE id = :id RETURNING id, owner"
# The whole list of states is named as well, because that is what the index holds.
_STANDING = f"""
    SELECT (SELECT COUNT(*) FROM turns WHERE state IN ('queued', 'running', 'waiting') AND state = 'queued'),
           (SELECT COUNT(*) FROM turns WHERE state IN ('queued', 'running', 'waiting') AND state = 'waiting'),
           (SELECT COUNT(DISTINCT t.session_id) FROM turns t JOIN sessions s ON s.id = t.session_id
             WHERE t.state = 'interrupted' AND s.state = 'open' AND s.strikes > 0 AND {_UNCLEARED})
"""
_FORGET_KEYS = "DELETE FROM dedupe WHERE accepted_at <= :before RETURNING key"
PRUNE_BATCH = 100


class Sessions:
    """Every conversation that is kept."""

    def __init__(self, database: Database) -> None:
        self._database = database
        dialect = database.dialect
        self._search = _SEARCH.format(matches=dialect.matches("words"))
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
        self, owner: str, key: str, limit: int = 50, before: SessionId | None = None, state: State | None = None
    ) -> list[Session]:
        """Return the sessions that a key has had, the newest first; `before` is the last one seen."""
        params = {
            "owner": owner, "key": key, "limit": limit, "before_id": before or "", "state": state.value if state else ""
        }  # fmt: skip
        return await self._database.read(lambda: _list(_OF_KEY, params))

    async def open(self, owner: str, key: str, channel: str, session_id: SessionId, now_ms: int) -> Session:
        """Return the open session of a key; an empty one with the given id if it has none."""
        params = {"owner": owner, "key": key, "channel": channel, "id": session_id, "now": now_ms}
        return await self._database.write(
            lambda: _open(params), touches=(f"conversation:{owner}:{key}",), wakes=lambda opened: (f"session:{opened.id}",)
        )

    async def list(
        self,
        owner: str,
        before: tuple[int, str] | None = None,
        limit: int = 50,
        state: State | None = None,
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
        elif state in (State.OPEN, State.SUSPENDED):
            sql = _LIST_IN_USE
        elif archived:
            sql = _LIST_ARCHIVED
        else:
            sql = _LIST_CHANNEL if channel else _LIST
        return await self._database.read(lambda: _list(sql, params))

    async def glances(self, session_ids: Sequence[SessionId]) -> dict[SessionId, Glance]:
        """Return sessions with what they are at and how they begin; those that are not there are left out."""
        sql = self._glances
        return await self._database.read(lambda: _glance(sql, {"ids": rows.encode(list(session_ids))}))

    async def change(
        self,
        session_id: SessionId,
        *,
        title: str | None = None,
        pinned: bool | None = None,
        archived: bool | None = None,
    ) -> Session:
        """Change what a person calls a session and where they keep it; what is None stays.  Raises `NotFound`."""
        params: Params = {
            "id": session_id,
            "title": title,
            "pinned": None if pinned is None else int(pinned),
            "archived": None if archived is None else int(archived),
        }
        changed = await self._database.write(
            lambda: _list(_CHANGE, params), wakes=lambda changed: tuple(f"session:{each.id}" for each in changed)
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
        return await self._database.write(
            lambda: forks.fork(session_id, fork, through, before), wakes=lambda made: (f"session:{made.id}",)
        )

    async def delete(self, session_id: SessionId, now_ms: int) -> bool:
        """Delete a session with all that belongs to it, cancelling what it is at; False when there is none."""
        dialect = self._database.dialect
        deleted, _ = await self._database.write(
            lambda: _delete(dialect, session_id, now_ms),
            wakes=lambda done: (f"session:{session_id}", *_gone(done[0]), *cancellation.topics(done[1])),
            essential=True,
        )
        return bool(deleted)

    async def standing(self) -> Standing:
        """Return what waits in all sessions: a cheap look, however many there are."""
        return await self._database.read(_standing)

    async def resume_cause(self, session_id: SessionId) -> str | None:
        """Return why a session is resume pending: open, and interrupted since its last completed turn; else None."""
        found = await self._database.read(lambda: _run(_INTERRUPTION, {"id": session_id}))
        return found[0][0] if found else None

    async def search(self, owner: str, query: str, limit: int = 50) -> list[Hit]:
        """Find messages and answers that contain all words of a query, newest first."""
        words = self._database.dialect.words(query)
        sql = self._search
        found = await self._database.read(lambda: _run(sql, {"owner": owner, "words": words, "limit": limit}))
        return [
            Hit(session_id=session_id, turn_id=turn_id, seq=seq, kind=kind, at=at, text=str(rows.data(data).get("text", "")))
            for session_id, turn_id, seq, kind, at, data in found
        ]

    async def expire(self, channel: str, idle_before: int) -> int:
        """End the conversations of a channel that nobody has used since, nor pinned; returns how many.

        What is still at something stays.  Each has ended when it was last used, so that retention counts from there.
        """
        dialect = self._database.dialect
        params = {"channel": channel, "idle_before": idle_before, "limit": PRUNE_BATCH}
        total = 0
        while expired := await self._database.write(
            lambda: _expire(dialect, params),
            wakes=lambda ended: ("segments", *(f"session:{session_id}" for session_id in ended)),
        ):
            total += len(expired)
        return total

    async def prune(self, channel: str, ended_before: int) -> int:
        """Delete the ended sessions of a channel with all that belongs to them; returns how many."""
        params = {"channel": channel, "ended_before": ended_before, "limit": PRUNE_BATCH}
        total = 0
        # In batches, so that a large prune never keeps other writers waiting.
        while pruned := await self._database.write(lambda: _run(_PRUNE, params), wakes=_gone):
            total += len(pruned)
        return total

    async def forget_keys(self, before: int) -> int:
        """Delete dedupe keys that no sender will repeat any more."""
        return len(await self._database.write(lambda: _run(_FORGET_KEYS, {"before": before})))


def _open(params: Params) -> Transaction[Session]:
    of_key = {"owner": params["owner"], "key": params["key"]}
    latest = yield from _list(_OF_KEY, {**of_key, "limit": 1, "before_id": "", "state": ""})
    reason = reset_reason(latest[0].state) if latest else None
    source = rows.encode({name: getattr(Source(), name) for name in Source.__slots__})
    parent_id = latest[0].id if reason else None
    yield Run(_OPEN, {**params, "source": source, "parent_id": parent_id, "reset_reason": reason})
    return (yield from _list(_FIND, of_key))[0]


def _list(sql: str, params: Params) -> Transaction[list[Session]]:
    found = yield Run(sql, params)
    return [rows.session(row) for row in found]


def _glance(sql: str, params: Params) -> Transaction[dict[SessionId, Glance]]:
    found: dict[SessionId, Glance] = {}
    for *row, at, opening, model in (yield Run(sql, params)):
        session, activity = rows.session(tuple(row)), at and Activity(at)
        found[session.id] = Glance(session=session, activity=activity, opening=opening or "", model=model or None)
    return found


def _run(sql: str, params: Params) -> Transaction[list[rows.Row]]:
    return (yield Run(sql, params))


def _gone(deleted: Sequence[rows.Row]) -> tuple[str, ...]:
    # With its owner, whom nobody could look up any more.
    return tuple(f"gone:{session_id}:{owner}" for session_id, owner in deleted)


def _delete(dialect: Dialect, session_id: SessionId, now_ms: int) -> Transaction[tuple[list[rows.Row], list[Turn]]]:
    cancelled = yield from cancellation.leave(dialect, session_id, Event.END, "deleted", now_ms)
    # What was given away in the background would have nowhere to come home to.
    cancelled += yield from cancellation.cancel_errands(dialect, session_id, now_ms)
    yield Run(_DELETE_ENTRIES, {"id": session_id})
    return (yield Run(_DELETE, {"id": session_id})), cancelled


def _expire(dialect: Dialect, params: Params) -> Transaction[list[SessionId]]:
    expired: list[SessionId] = []
    for session_id, used_at in (yield Run(_IDLE, params)):
        if (yield Run(_HOLD_IDLE, {"id": session_id, "used_at": used_at})):
            yield from cancellation.leave(dialect, session_id, Event.END, EXPIRED, used_at)
            expired.append(session_id)
    return expired


def _standing() -> Transaction[Standing]:
    ((queued, waiting, resumable),) = yield Run(_STANDING)
    return Standing(queued=queued, waiting=waiting, resumable=resumable)
