"""An embedded store that fails every transaction that writes rows of a session it has not locked.

SQLite needs no locks, so it can be asked what a transaction really wrote: triggers note the session of every row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar, Unpack

from holdfast.core.redaction import Redaction
from holdfast.store import locks
from holdfast.store.database import Database, Lock, Name, Run, Transaction, Work, Writing
from holdfast.store.masked import MaskedDatabase
from holdfast.store.store import Store

T = TypeVar("T")

# Each table whose rows belong to a session, and the column that says to which.
OF_SESSIONS = {
    "sessions": "id",
    **dict.fromkeys(("turns", "entries", "tool_calls", "questions", "segments", "recoveries", "deliveries"), "session_id"),
}
ROWS = {"INSERT": "NEW", "UPDATE": "NEW", "DELETE": "OLD"}
# A notice belongs to no session.
WRITTEN = """
    SELECT DISTINCT session_id FROM written
     WHERE session_id IS NOT NULL AND session_id NOT IN (SELECT session_id FROM opened)
"""
OF_TURN = "SELECT session_id FROM turns WHERE id = :turn"
OF_KEY = "SELECT session_id FROM dedupe WHERE key = :key"
OF_CONVERSATION = "SELECT id FROM sessions WHERE owner = :owner AND key = :key AND state = 'open'"


class Undeclared(AssertionError):
    """A transaction wrote rows of sessions that it had not locked."""


class WatchedDatabase(MaskedDatabase):
    """Another database, in which every write is compared with what it has locked."""

    def __init__(self, database: Database) -> None:
        super().__init__(database, Redaction(()))

    async def write(self, work: Work[T], **how: Unpack[Writing[T]]) -> T:
        return await self._database.write(lambda: _watched(work()), **how)


async def watched(store: Store) -> Store:
    """Return a store on the same database that is watched."""
    await store.database.write(_notes)
    return Store(WatchedDatabase(store.database))


def _notes() -> Transaction[None]:
    yield Run("CREATE TEMP TABLE written (session_id TEXT)")
    yield Run("CREATE TEMP TABLE opened (session_id TEXT)")
    for table, column in OF_SESSIONS.items():
        for verb, row in ROWS.items():
            note = f"INSERT INTO written VALUES ({row}.{column})"
            yield Run(f"CREATE TEMP TRIGGER {table}_{verb} AFTER {verb} ON main.{table} BEGIN {note}; END")
    yield Run("CREATE TEMP TRIGGER opens AFTER INSERT ON main.sessions BEGIN INSERT INTO opened VALUES (NEW.id); END")


def _watched(transaction: Transaction[T]) -> Transaction[T]:
    yield Run("DELETE FROM written")
    yield Run("DELETE FROM opened")
    taken: list[Lock] = []
    held: set[str] = set()
    try:
        statement = next(transaction)
        while True:
            found: list[Any] = []
            if isinstance(statement, Lock):
                if taken and not locks.is_alone(taken[0]):
                    raise Undeclared(f"{_name(transaction)} locks {statement} after {taken[0]}, and is not alone")
                taken.append(statement)
                held |= yield from _sessions(statement.names)
            else:
                found = yield statement
            statement = transaction.send(found)
    except StopIteration as done:
        result = done.value
    if taken != [locks.UNNAMED]:
        written = {session_id for (session_id,) in (yield Run(WRITTEN))}
        if written - held:
            raise Undeclared(f"{_name(transaction)} wrote {written - held} and had locked {taken}")
    return result


def _sessions(names: Sequence[Name]) -> Transaction[set[str]]:
    sessions: set[str] = set()
    for kind, *of in names:
        match kind:
            case "session":
                sessions.add(of[0])
            case "turn":
                sessions.update(session_id for (session_id,) in (yield Run(OF_TURN, {"turn": of[0]})))
            case "key":
                sessions.update(session_id for (session_id,) in (yield Run(OF_KEY, {"key": of[0]})))
            case "conversation":
                place = {"owner": of[0], "key": of[1]}
                sessions.update(session_id for (session_id,) in (yield Run(OF_CONVERSATION, place)))
            case _:
                pass
    return sessions


def _name(transaction: Transaction[Any]) -> str:
    return getattr(transaction, "__qualname__", str(transaction))
