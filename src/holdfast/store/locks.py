"""The one order in which transactions take locks on a shared database, so that no two can wait for each other.

1. The conversations in which it may open a session, by their numbers.  While it holds one, no other transaction opens a
   session there, so the next step finds every session that it will touch.
2. The sessions that it touches, by their ids, before anything that belongs to them.  A transaction yields a `Lock` that
   names them, by an id, a turn or a conversation, and the driver takes it in front of the first statement.  Sessions that
   a transaction finds later are those of child turns.  They are younger than the sessions they work for, and so come
   later in this order too.
3. The keys of messages, then tenants, then sessions that are only just opened, then cursors.
4. What belongs to a session that is locked: turns, entries, tool calls, questions, segments, recoveries, deliveries.

Work that looks for its rows itself (a claim, a sweep, a prune) skips those that are locked, and so never waits.  Work that
locks a single row of one table (a beat, a delivery that was sent) waits for nothing else, and may come at any time.  Both
yield `UNNAMED`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import TypeVar

from holdfast.ids import SessionId, TurnId
from holdfast.store.database import Lock, Name, Params, Run, Transaction, clean

T = TypeVar("T")

UNNAMED = Lock(alone=True)

# A statement of its own: the one that looks for sessions has to begin after it, to see those that were opened meanwhile.
_RESERVE = """
    SELECT pg_advisory_xact_lock(CAST(:kind AS INTEGER), CAST(number AS INTEGER))
      FROM json_array_elements_text(CAST(:numbers AS json)) AS number
"""
# Tells these locks apart from others in the same database.
_CONVERSATIONS = 1701
# The weakest lock that an update takes: rows that only refer to the session can still be added.
_LOCK = """
    SELECT s.id FROM sessions s
     WHERE s.id IN (SELECT json_array_elements_text(CAST(:sessions AS json))
                     UNION SELECT t.session_id FROM turns t
                            WHERE t.id IN (SELECT json_array_elements_text(CAST(:turns AS json)))
                     UNION SELECT d.session_id FROM dedupe d
                            WHERE d.key IN (SELECT json_array_elements_text(CAST(:keys AS json)))
                     UNION SELECT o.id FROM json_to_recordset(CAST(:conversations AS json)) AS c (owner TEXT, key TEXT)
                             JOIN sessions o ON o.owner = c.owner AND o.key = c.key AND o.state = 'open')
     ORDER BY s.id FOR NO KEY UPDATE OF s
"""


def session(session_id: SessionId) -> Name:
    return ("session", session_id)


def turn(turn_id: TurnId) -> Name:
    """Name the session of a turn.  Others may name the same session by its id, so a transaction that does this is alone."""
    return ("turn", turn_id)


def conversation(owner: str, key: str) -> Name:
    """Name the open session of a key, or the one that will be."""
    return ("conversation", owner, key)


def key(key: str) -> Name:
    """Name the session of the message that a key was first used for.  A request that is repeated may let its turn go on."""
    return ("key", key)


def is_alone(lock: Lock) -> bool:
    """Return whether a transaction shares its commit with no other."""
    return lock.alone or not lock.names or any(kind == "turn" for kind, *_ in lock.names)


def in_front(names: Sequence[Name]) -> list[Run]:
    """Return the statements that lock the conversations and sessions among these names; none where there are none."""
    names = [tuple(map(clean, name)) for name in names]
    sessions = [name[1] for name in names if name[0] == "session"]
    turns = [name[1] for name in names if name[0] == "turn"]
    keys = [name[1] for name in names if name[0] == "key"]
    conversations = [{"owner": name[1], "key": name[2]} for name in names if name[0] == "conversation"]
    found = {"sessions": sessions, "turns": turns, "keys": keys, "conversations": conversations}
    if not any(found.values()):
        return []
    params: Params = {name: json.dumps(each) for name, each in found.items()}
    numbers = sorted({_number(each["owner"], each["key"]) for each in conversations})
    reserve = [Run(_RESERVE, {"kind": _CONVERSATIONS, "numbers": json.dumps(numbers)})] if numbers else []
    return [*reserve, Run(_LOCK, params)]


def _number(owner: str, key: str) -> int:
    """Return the number of a conversation, the same on every node.  Two that share one only wait for each other."""
    return int.from_bytes(
        hashlib.blake2s(f"{owner}\0{key}".encode("utf-8", "surrogatepass"), digest_size=4).digest(), signed=True
    )


def locked(lock: Lock, transaction: Transaction[T]) -> Transaction[T]:
    """Return a transaction that locks what it touches, made of one that other transactions run as a part of theirs."""
    yield lock
    return (yield from transaction)
