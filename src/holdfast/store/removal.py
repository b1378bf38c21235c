"""Removal: a session goes out of sight in one small transaction, and its rows go in many.

A removed session has the owner NO_OWNER, so no person finds it, and its rows are deleted step by step.  After a crash the
next sweep goes on with the sessions of that owner.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

from holdfast.core.sessions import NO_OWNER
from holdfast.ids import SessionId
from holdfast.store import locks
from holdfast.store.database import Database, Dialect, Lock, Params, Row, Run, RunMany, Transaction
from holdfast.store.rows import encode

# A write that deletes stops after so long, so that no other one waits for it.  Its commit takes some time, too.
STEP_S = 0.01
# Bounds what the commit has to write, however fast the rows went.
ROWS_MAX = 1_000
# Between two looks at the clock.
CHUNK = 32
# A picture may be megabytes, so that even a few take long.
PICTURES = 1
PAUSE_MAX_S = 0.1
HIDE_MAX = 100
# Of rows that are small, in tables with few indexes.
FORGET_MAX = 500

# A session at rest: no turn, child turn, delivery, memory segment or process of it is still under way.
_AT_REST = """
        s.state = 'ended' AND s.ended_at <= :ended_before
    AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.session_id = s.id AND t.state IN ('queued', 'running', 'waiting'))
    AND NOT EXISTS (SELECT 1 FROM deliveries d JOIN turns t ON t.id = d.turn_id
                     WHERE t.session_id = s.id AND (d.state IN ('pending', 'sending', 'retry')
                                                    OR (d.state = 'unknown' AND d.repeats = 0)))
    AND NOT EXISTS (SELECT 1 FROM segments m WHERE m.session_id = s.id AND m.state IN ('open', 'sealed', 'committing'))
    AND NOT EXISTS (SELECT 1 FROM processes p WHERE p.session_id = s.id AND p.state = 'running')
    AND NOT EXISTS (SELECT 1 FROM turns t JOIN turns c ON c.parent_turn_id = t.id
                     WHERE t.session_id = s.id AND c.state IN ('queued', 'running', 'waiting'))
"""
_PRUNABLE = f"""
    SELECT s.id, s.owner, s.ended_at FROM sessions s
     WHERE s.channel = :channel AND s.ended_at >= :ended_since AND {_AT_REST}
     ORDER BY s.ended_at LIMIT :limit
"""
# Without its channel, too, so that a look for others does not pass it by again and again.  The channel is compared in a way
# that no index knows: SQLite would look for these few among all sessions of the channel that have ended.
_HIDE_PRUNABLE = f"""
    UPDATE sessions AS s SET owner = '{NO_OWNER}', channel = ''
     WHERE s.id IN {{ids}} AND s.channel || '' = :channel AND {_AT_REST} RETURNING id
"""
_HIDE = f"UPDATE sessions SET owner = '{NO_OWNER}', channel = '' WHERE id = :id AND owner <> '{NO_OWNER}' RETURNING id"
# What would still act by itself goes with the session, at once.
_UNSENT = """
    DELETE FROM deliveries
     WHERE turn_id IN (SELECT id FROM turns WHERE session_id = :id) AND state IN ('pending', 'sending', 'retry', 'unknown')
"""
_UNPAID = "DELETE FROM segments WHERE session_id = :id AND state IN ('open', 'sealed', 'committing')"
_OWNER = f"SELECT owner FROM sessions WHERE id = :id AND owner <> '{NO_OWNER}'"
# Of two nodes that sweep, each takes other sessions.
_HIDDEN = f"SELECT id FROM sessions WHERE owner = '{NO_OWNER}' ORDER BY key, id LIMIT :limit {{skip_locked}}"


class _Part(NamedTuple):
    """One table of what a session has: how a few of its rows are found, and how one is deleted."""

    find: str
    delete: str
    key: Sequence[str]
    chunk: int


def _of_session(table: str, key: str) -> _Part:
    find = f"SELECT session_id, {key} FROM {table} WHERE session_id = :id LIMIT {CHUNK}"
    delete = f"DELETE FROM {table} WHERE session_id = :session_id AND {key} = :{key}"
    return _Part(find, delete, ("session_id", key), CHUNK)


def _of_turns(table: str, key: str, chunk: int = CHUNK) -> _Part:
    find = f"""
        SELECT r.turn_id, r.{key} FROM turns t JOIN {table} r ON r.turn_id = t.id WHERE t.session_id = :id LIMIT {chunk}
    """
    delete = f"DELETE FROM {table} WHERE turn_id = :turn_id AND {key} = :{key}"
    return _Part(find, delete, ("turn_id", key), chunk)


# First what an owner's lists show beside the session, then the rest from the leaves to the root, so that nothing is left to
# cascades, which know no limit.  Each row is deleted by its key: asked for more, PostgreSQL may read the whole table.
_PARTS = (
    _of_turns("status_lines", "target"),
    _of_turns("cards", "delivery_id"),
    _of_turns("deliveries", "id"),
    _of_session("processes", "id"),
    _of_session("segments", "id"),
    _of_turns("questions", "id"),
    _of_turns("images", "number", PICTURES),
    _of_turns("tool_calls", "id"),
    _of_turns("recoveries", "attempt"),
    _of_session("entries", "seq"),
    _of_session("turns", "id"),
    _of_session("grants", "fingerprint"),
    _Part("SELECT id FROM sessions WHERE id = :id", "DELETE FROM sessions WHERE id = :id", ("id",), CHUNK),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prunable:
    """Which sessions may be pruned.  Those that ended before `ended_since` were looked at already."""

    channel: str
    ended_before: int
    ended_since: int


class Found(NamedTuple):
    """A session that may be pruned."""

    id: SessionId
    owner: str
    ended_at: int


# The removed sessions, each with the owner that it had.
Gone = list[tuple[SessionId, str]]


def topics(gone: Gone) -> tuple[str, ...]:
    """Name what a removal concerns: those who watch, and the janitor, who removes the rows."""
    return tuple(f"gone:{session_id}:{owner}" for session_id, owner in gone)


def hide(session_id: SessionId) -> Transaction[Gone]:
    """Take one session out of sight, with all of it that would still act."""
    found = yield Run(_OWNER, {"id": session_id})
    if not found or not (yield Run(_HIDE, {"id": session_id})):
        return []
    yield Run(_UNSENT, {"id": session_id})
    yield Run(_UNPAID, {"id": session_id})
    return [(session_id, found[0][0])]


def find(prunable: Prunable) -> Transaction[list[Found]]:
    """Find sessions that may be pruned, in the order of their ends."""
    rows = yield Run(_PRUNABLE, {**_params(prunable), "limit": HIDE_MAX})
    return [Found(*row) for row in rows]


def hide_prunable(dialect: Dialect, prunable: Prunable, found: Sequence[Found]) -> Transaction[Gone]:
    """Take those of some sessions out of sight that are still at rest."""
    if not found:
        return []
    owners = {each.id: each.owner for each in found}
    ids = {"ids": encode(list(owners))}
    yield Lock(list(map(locks.session, owners)), alone=True)
    hidden = yield Run(_HIDE_PRUNABLE.format(ids=dialect.each("ids")), {**_params(prunable), **ids})
    return [(session_id, owners[session_id]) for (session_id,) in hidden]


def _params(prunable: Prunable) -> Params:
    return asdict(prunable)


async def sweep(database: Database) -> int:
    """Delete some rows of removed sessions; returns how many, and none once there are none left."""
    began = time.monotonic()
    hidden = _HIDDEN.format(skip_locked=database.dialect.skip_locked)
    removed = await database.write(lambda: _sweep(hidden, time.monotonic() + STEP_S))
    if removed:
        # Half of the time belongs to the others, whose writes would otherwise share every commit with ours.
        await asyncio.sleep(min(time.monotonic() - began, PAUSE_MAX_S))
    return removed


def _sweep(hidden: str, deadline_s: float) -> Transaction[int]:
    yield locks.UNNAMED
    removed = 0
    for (session_id,) in (yield Run(hidden, {"limit": HIDE_MAX})):
        for part in _PARTS:
            found = part.chunk
            while found == part.chunk:
                found = yield from _delete_few(part, session_id)
                removed += found
                if removed and (removed >= ROWS_MAX or time.monotonic() >= deadline_s):
                    return removed
    return removed


def _delete_few(part: _Part, session_id: SessionId) -> Transaction[int]:
    found = yield Run(part.find, {"id": session_id})
    if found:
        yield RunMany(part.delete, [dict(zip(part.key, key, strict=True)) for key in found])
    return len(found)


async def forget(database: Database, table: str, key: Sequence[str], condition: str, params: Params) -> int:
    """Delete the rows of a table that a condition finds, by the columns of their key; returns how many.

    They are looked for beside the writer, and deleted a few at a time.
    """
    find = f"SELECT {', '.join(key)} FROM {table} WHERE {condition} LIMIT {FORGET_MAX}"
    delete = f"DELETE FROM {table} WHERE {' AND '.join(f'{each} = :{each}' for each in key)} AND {condition}"
    total = 0
    while keys := await database.read(lambda: _keys(find, params)):
        await database.write(
            lambda keys=keys: _forget(delete, [{**params, **dict(zip(key, each, strict=True))} for each in keys])
        )
        total += len(keys)
    return total


def _keys(find: str, params: Params) -> Transaction[list[Row]]:
    return (yield Run(find, params))


def _forget(delete: str, params: Sequence[Params]) -> Transaction[None]:
    yield RunMany(delete, params)
