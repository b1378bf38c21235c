"""The raw limit: the rows of Holdfast's own transactions, written by hand with nothing around them but group commit.

No rule is looked at and no answer is read: every number is known beforehand.  Nothing that keeps the promises can be
faster than this on the same machine.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Mapping, Sequence
from typing import Protocol

import apsw
import asyncpg

Values = Sequence[str | int | None]
# What one operation writes: rows by the name of their statement.
Rows = Mapping[str, Sequence[Values]]

BATCH_MAX = 256
NODE = "nod_00000000000000000000000000"

_DEDUPE = "INSERT INTO dedupe (key, body_hash, turn_id, session_id, accepted_at) VALUES ($1, $2, $3, $4, $5)"
_SESSION = """
    INSERT INTO sessions (id, key, channel, owner, one_shot, source, created_at, updated_at, seq, turns)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 1, 1)
"""
_JOIN = "UPDATE sessions SET seq = seq + 1, turns = turns + 1, updated_at = $1 WHERE id = $2"
_TURN = """
    INSERT INTO turns (id, session_id, ordinal, accepted_at, mode, delivers_later, remembers)
    VALUES ($1, $2, $3, $4, 'detached', 1, 1)
"""
_CLAIM = "UPDATE turns SET node_id = $1, fence = fence + 1 WHERE id = $2"
_START = "UPDATE turns SET state = 'running', attempt = 1, nth = 1, started_at = $1 WHERE id = $2 AND fence = 1"
_HOLD = "UPDATE turns SET nth = $1 WHERE id = $2 AND fence = 1 AND state = 'running'"
_SETTLE = "UPDATE turns SET state = 'completed', nth = $1, node_id = NULL, answered_at = $2 WHERE id = $3 AND fence = 1"
_NUMBER = "UPDATE sessions SET seq = $1 WHERE id = $2"
_CLOSE = """
    UPDATE sessions SET seq = $1, updated_at = $2, ended_at = $3, state = 'ended', end_reason = 'webhook_complete'
     WHERE id = $4
"""
_ENTRY = """
    INSERT INTO entries (session_id, seq, turn_id, attempt, nth, kind, at, data) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
"""
# In an order that foreign keys allow, so that a whole batch can be written statement by statement.
STATEMENTS: Mapping[str, str] = {
    "small": "INSERT INTO small (key, text) VALUES ($1, $2)",
    "dedupe": _DEDUPE,
    "session": _SESSION,
    "join": _JOIN,
    "turn": _TURN,
    "claim": _CLAIM,
    "start": _START,
    "hold": _HOLD,
    "settle": _SETTLE,
    "number": _NUMBER,
    "close": _CLOSE,
    "entry": _ENTRY,
}


class Limit(Protocol):
    async def write(self, rows: Rows) -> None:
        """Return once durable."""
        ...

    async def close(self) -> None: ...


class SqliteLimit:
    """Plain apsw in one writer thread: all that waits shares one commit."""

    def __init__(self, path: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._connection = apsw.Connection(path)
        self._connection.execute("PRAGMA foreign_keys = ON; PRAGMA cache_size = -16384")
        self._connection.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
        self._connection.execute("CREATE TABLE IF NOT EXISTS small (key TEXT, text TEXT)")
        self._waiting: queue.SimpleQueue[tuple[Rows, asyncio.Future[None]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write_all, name="raw-writer", daemon=True)
        self._thread.start()

    async def write(self, rows: Rows) -> None:
        future: asyncio.Future[None] = self._loop.create_future()
        self._waiting.put((rows, future))
        await future

    async def close(self) -> None:
        self._waiting.put(None)
        await asyncio.to_thread(self._thread.join)
        self._connection.close()

    def _write_all(self) -> None:
        while (first := self._waiting.get()) is not None:
            batch = [first]
            while len(batch) < BATCH_MAX and not self._waiting.empty() and (more := self._waiting.get()) is not None:
                batch.append(more)
            self._connection.execute("BEGIN IMMEDIATE")
            for rows, _ in batch:
                self._write(rows)
            self._connection.execute("COMMIT")
            self._loop.call_soon_threadsafe(_resolve, [future for _, future in batch])

    def _write(self, rows: Rows) -> None:
        for name, values in rows.items():
            if len(values) == 1:
                self._connection.execute(STATEMENTS[name], values[0])
            else:
                self._connection.executemany(STATEMENTS[name], values)


class PostgresLimit:
    """Plain asyncpg on one connection: all that waits shares one commit, and one round trip for each statement."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection
        self._waiting: asyncio.Queue[tuple[Rows, asyncio.Future[None]] | None] = asyncio.Queue()
        self._task = asyncio.create_task(self._write_all())

    @classmethod
    async def open(cls, url: str) -> PostgresLimit:
        return cls(await asyncpg.connect(url))

    async def write(self, rows: Rows) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.put_nowait((rows, future))
        await future

    async def close(self) -> None:
        self._waiting.put_nowait(None)
        await self._task
        await self._connection.close()

    async def _write_all(self) -> None:
        while (first := await self._waiting.get()) is not None:
            batch = [first]
            while not self._waiting.empty() and (more := self._waiting.get_nowait()) is not None:
                batch.append(more)
            async with self._connection.transaction():
                for name, sql in STATEMENTS.items():
                    if values := [each for rows, _ in batch for each in rows.get(name, ())]:
                        await self._connection.executemany(sql, values)
            _resolve([future for _, future in batch])


async def open_limit(kind: str, where: str) -> Limit:
    """Open the raw limit on a database that has Holdfast's schema."""
    return SqliteLimit(where) if kind == "sqlite" else await PostgresLimit.open(where)


def accept(number: int, now_ms: int) -> Rows:
    """Return the rows of a message that opens a one-shot session."""
    session, turn, key = f"ses_{number:026}", f"trn_{number:026}", f"webhook:bench:{number:012}"
    return {
        "dedupe": [(key, f"{number:064}", turn, session, now_ms)],
        "session": [(session, key, "webhook", "local", 1, _SOURCE, now_ms, now_ms)],
        "turn": [(turn, session, 1, now_ms)],
        "entry": [(session, 1, turn, 0, None, "turn.accepted", now_ms, _MESSAGE)],
    }


def join(number: int, session: str, ordinal: int, now_ms: int) -> Rows:
    """Return the rows of a message that continues a conversation."""
    turn = f"trn_{number:026}"
    return {
        "dedupe": [(f"chat:bench:{number:012}", f"{number:064}", turn, session, now_ms)],
        "join": [(now_ms, session)],
        "turn": [(turn, session, ordinal, now_ms)],
        "entry": [(session, ordinal, turn, 0, None, "turn.accepted", now_ms, _MESSAGE)],
    }


def claim(number: int) -> Rows:
    return {"claim": [(NODE, f"trn_{number:026}")]}


def start(number: int, now_ms: int) -> Rows:
    session, turn = f"ses_{number:026}", f"trn_{number:026}"
    return {
        "start": [(now_ms, turn)],
        "number": [(2, session)],
        "entry": [(session, 2, turn, 1, 1, "turn.started", now_ms, '{"attempt":1}')],
    }


def append(number: int, nth: int, count: int, now_ms: int) -> Rows:
    """Return the rows of `count` entries behind the `nth` of a turn."""
    session, turn = f"ses_{number:026}", f"trn_{number:026}"
    return {
        "hold": [(nth + count, turn)],
        "number": [(nth + count + 1, session)],
        "entry": _entries(session, turn, nth, count, now_ms),
    }


def finish(number: int, nth: int, count: int, now_ms: int) -> Rows:
    """Return the rows of a completed turn with the last `count` entries of its answer."""
    session, turn = f"ses_{number:026}", f"trn_{number:026}"
    last = nth + count + 1
    closing = (session, last + 1, turn, 1, last, "turn.completed", now_ms, _ANSWER)
    return {
        "settle": [(last, now_ms, turn)],
        "close": [(last + 1, now_ms, now_ms, session)],
        "entry": [*_entries(session, turn, nth, count, now_ms), closing],
    }


def _entries(session: str, turn: str, nth: int, count: int, now_ms: int) -> list[Values]:
    kinds = ("reasoning", "text")
    return [
        (session, at + 1, turn, 1, at, kinds[at % 2], now_ms, '{"text":"a few words "}')
        for at in range(nth + 1, nth + count + 1)
    ]


_SOURCE = '{"chat_id":"webhook:bench","chat_name":"","chat_type":"webhook","thread_id":"","user":"webhook:bench"}'
_MESSAGE = '{"text":"the build of main failed, please look at it"}'
_ANSWER = '{"text":"' + "a few words " * 10 + '"}'


def _resolve(futures: Sequence[asyncio.Future[None]]) -> None:
    for future in futures:
        future.set_result(None)
