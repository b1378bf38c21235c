"""Many rows at once, in the real schema, by plain SQL that both databases take."""

from __future__ import annotations

from holdfast.ids import NodeId
from holdfast.store.database import Database, Run, Transaction

DEAD = NodeId("nod_dead")
# Numbers are written from here on, so that all have the same width and sort as text.
BASE = 1_000_000_000
CHUNK = 50_000

NUMBERS = """
    WITH RECURSIVE n (i) AS (SELECT CAST(:first AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < CAST(:last AS BIGINT))
"""
_DIGITS = " UNION ALL ".join(f"SELECT {digit} AS d" for digit in range(10))
_SESSIONS = f"""
    INSERT INTO sessions (id, key, channel, owner, one_shot, source, created_at, updated_at, seq, turns, generation)
    {NUMBERS} SELECT 'ses_' || i, 'chat:' || i, 'chat', 'local', 0, '{{}}', i, i, 3, 1, 0 FROM n
"""
_COMPLETED = f"""
    INSERT INTO turns (id, session_id, ordinal, accepted_at, mode, delivers_later, remembers, state, attempt, nth, fence,
                       answered_at)
    {NUMBERS} SELECT 'trn_' || i, 'ses_' || i, 1, i, 'conversation', 1, 1, 'completed', 1, 2, 1, i FROM n
"""
# A third each: conversations, webhook deliveries, and synchronous requests, which end when they are cut off.
_RUNNING_SESSIONS = f"""
    INSERT INTO sessions (id, key, channel, owner, one_shot, source, created_at, updated_at, seq, turns)
    {NUMBERS} SELECT 'ses_' || i, 'chat:' || i, 'chat', 'local', CASE WHEN i % 3 = 0 THEN 0 ELSE 1 END, '{{}}', i, i, 2, 1
      FROM n
"""
_RUNNING = f"""
    INSERT INTO turns (id, session_id, ordinal, accepted_at, mode, delivers_later, remembers, state, attempt, nth, fence,
                       node_id, started_at)
    {NUMBERS} SELECT 'trn_' || i, 'ses_' || i, 1, i,
                      CASE i % 3 WHEN 0 THEN 'conversation' WHEN 1 THEN 'detached' ELSE 'synchronous' END,
                      1, 1, 'running', 1, 1, 1, '{DEAD}', i FROM n
"""
_ENTRIES = f"""
    INSERT INTO entries (session_id, seq, turn_id, attempt, nth, kind, at, data)
    {NUMBERS} SELECT 'ses_' || i, 1, 'trn_' || i, 0, NULL, 'turn.accepted', i, '{{"text":"look at the build"}}' FROM n
"""
_STARTED = f"""
    INSERT INTO entries (session_id, seq, turn_id, attempt, nth, kind, at, data)
    {NUMBERS} SELECT 'ses_' || i, 2, 'trn_' || i, 1, 1, 'turn.started', i, '{{"attempt":1}}' FROM n
"""


# As webhooks leave them: a message, eighteen words of an answer, and its delivery.
_ENDED_SESSIONS = f"""
    INSERT INTO sessions (id, key, channel, owner, one_shot, source, state, created_at, updated_at, ended_at, end_reason,
                          seq, turns)
    {NUMBERS} SELECT 'ses_' || i, 'hook:' || i, 'webhook', 'local', 1, '{{}}', 'ended', i, i, i, 'webhook_complete', 20, 1
      FROM n
"""
_ENDED_TURNS = f"""
    INSERT INTO turns (id, session_id, ordinal, accepted_at, mode, delivers_later, remembers, state, attempt, nth, fence,
                       answered_at)
    {NUMBERS} SELECT 'trn_' || i, 'ses_' || i, 1, i, 'detached', 1, 0, 'completed', 1, 19, 1, i FROM n
"""
_ENDED_ENTRIES = f"""
    INSERT INTO entries (session_id, seq, turn_id, attempt, nth, kind, at, data)
    {NUMBERS} SELECT 'ses_' || n.i, o.seq, 'trn_' || n.i, CASE o.seq WHEN 1 THEN 0 ELSE 1 END,
                      CASE o.seq WHEN 1 THEN NULL ELSE o.seq - 1 END,
                      CASE o.seq WHEN 1 THEN 'turn.accepted' WHEN 20 THEN 'turn.completed' ELSE 'text' END, n.i,
                      '{{"text":"a few words of an answer that is long enough to be worth a line"}}'
      FROM n JOIN (SELECT 1 + ones.d + 10 * tens.d AS seq FROM ({_DIGITS}) ones, (SELECT 0 AS d UNION ALL SELECT 1) tens) o
        ON 1 = 1
"""
_ENDED_DELIVERIES = f"""
    INSERT INTO deliveries (id, turn_id, session_id, owner, target, part, text, created_at, due_at, state, settled_at)
    {NUMBERS} SELECT 'dlv_' || i, 'trn_' || i, 'ses_' || i, 'local', 'log', 1, 'done', i, i, 'delivered', i FROM n
"""

# A hundred messages each wait in their conversations, behind a turn that runs elsewhere.
_LIVE_SESSIONS = f"""
    INSERT INTO sessions (id, key, channel, owner, one_shot, source, created_at, updated_at, seq, turns)
    {NUMBERS} SELECT 'ses_live_' || i, 'live:' || i, 'chat', 'local', 0, '{{}}', i, i, 0, 101 FROM n
"""
_LIVE = f"""
    INSERT INTO turns (id, session_id, ordinal, accepted_at, mode, delivers_later, remembers, state, attempt, fence, node_id)
    {NUMBERS} SELECT 'trn_live_' || i, 'ses_live_' || i, 1, 0, 'conversation', 1, 1, 'running', 1, 1, 'elsewhere' FROM n
"""
_WAITING = f"""
    INSERT INTO turns (id, session_id, ordinal, accepted_at, mode, delivers_later, remembers)
    {NUMBERS} SELECT 'trn_waits_' || n.i || '_' || o.ordinal, 'ses_live_' || n.i, o.ordinal, 0, 'conversation', 1, 1
      FROM n JOIN (SELECT 2 + ones.d + 10 * tens.d AS ordinal FROM ({_DIGITS}) ones, ({_DIGITS}) tens) o ON 1 = 1
"""


async def completed(database: Database, first: int, last: int) -> None:
    """Add the conversations `first` to `last`, each with a completed turn."""
    await fill(database, first, last, (_SESSIONS, _COMPLETED))


async def ended(database: Database, count: int) -> None:
    """Add that many webhook sessions that are over, with all that belongs to them."""
    await fill(database, 1, count, (_ENDED_SESSIONS, _ENDED_TURNS, _ENDED_ENTRIES, _ENDED_DELIVERIES))


async def running(database: Database, count: int) -> None:
    """Add turns that a dead node was running."""
    await database.write(_bury)
    await fill(database, 1, count, (_RUNNING_SESSIONS, _RUNNING, _ENTRIES, _STARTED))


async def waiting(database: Database, count: int) -> None:
    """Add that many conversations in which a hundred messages wait behind a live turn."""
    await fill(database, 1, count, (_LIVE_SESSIONS, _LIVE, _WAITING))


async def fill(database: Database, first: int, last: int, statements: tuple[str, ...]) -> None:
    """Run statements for the numbers `first` to `last`, many at once."""
    for begin in range(first, last + 1, CHUNK):
        end = min(begin + CHUNK - 1, last)
        for sql in statements:
            params = {"first": BASE + begin, "last": BASE + end}
            await database.write(lambda sql=sql, params=params: _run(sql, params))


def _run(sql: str, params: dict[str, str | int | None]) -> Transaction[None]:
    yield Run(sql, params)


def _bury() -> Transaction[None]:
    yield Run(f"INSERT INTO nodes (id, state, joined_at) VALUES ('{DEAD}', 'alive', 0)")


def interrupt_all() -> Transaction[None]:
    """Write what a sweep of everything writes at the least: the turn, the session and the entry of each."""
    yield Run("UPDATE turns SET state = 'interrupted', cause = 'crash', fence = fence + 1, node_id = NULL")
    yield Run("UPDATE sessions SET seq = seq + 1, strikes = strikes + 1, updated_at = 1")
    yield Run("""
        INSERT INTO entries (session_id, seq, turn_id, attempt, nth, kind, at, data)
        SELECT session_id, 3, id, 1, NULL, 'turn.interrupted', 1, '{"cause":"crash"}' FROM turns
    """)
