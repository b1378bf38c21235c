"""A transaction is a generator of statements: written once, run by either driver.

    def rename(session_id: str, title: str) -> Transaction[bool]:
        rows = yield Run("UPDATE sessions SET title = :title WHERE id = :id RETURNING id", {...})
        return bool(rows)

The SQLite driver runs it in the writer thread, the PostgreSQL driver awaits its statements, and neither needs to know
what it means.  A transaction may run more than once before it is committed, so it must have no effect but its statements.

Every yield may be a round trip to a database that is far away: statements that need no rows of each other are yielded
`Together`, and rows that are only added are `Add`ed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeAlias, TypedDict, TypeVar, Unpack

T = TypeVar("T")

Value = str | int | None
Params = Mapping[str, Value]
Row = tuple[Any, ...]  # A database cannot promise types; each aggregate decodes its own rows at once.

_NONE: Params = {}
# The refusal of a store whose queue is full.
TOO_BUSY = "the store has more work waiting than it can take; try again in a moment"


def clean(text: str) -> str:
    """Return text that both databases can hold: NUL, and half a surrogate pair, are replaced."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def storable(params: Params) -> Params:
    """Return parameters that both databases can hold.  Every driver passes every parameter through here."""
    if _fits("".join([value for value in params.values() if isinstance(value, str)])):
        return params
    return {name: clean(value) if isinstance(value, str) else value for name, value in params.items()}


def _fits(text: str) -> bool:
    if "\0" in text:
        return False
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


class Run(NamedTuple):
    """One statement; its rows come back into the generator."""

    sql: str
    params: Params = _NONE
    # In a `Together`: if this statement finds no row, the statements behind it are not run.
    needed: bool = False


class RunMany(NamedTuple):
    """One statement for many sets of parameters, in one round trip; no rows come back."""

    sql: str
    params: Sequence[Params]


class Add(NamedTuple):
    """Rows to be written whose result is not needed; a driver may delay them until a statement names their table."""

    sql: str
    params: Sequence[Params]


class Together(NamedTuple):
    """Statements in one round trip, in their order; one row comes back for each, which is the tuple of its rows.

    Where they are the `last`, the transaction only returns behind them, so that its commit can travel with them.
    """

    statements: Sequence[Run | RunMany | Add]
    last: bool = False


# Something that a transaction touches: its kind, and what identifies it.  See locks.py.
Name: TypeAlias = tuple[str, ...]


class Lock(NamedTuple):
    """What a transaction touches, which it yields before anything else.  locks.py has the order and the names.

    The driver takes these locks in front of the first statement.  Transactions that have no name in common run side by
    side and share a commit, unless one is `alone`.  Only a transaction that is alone may yield another lock later, for
    sessions that it finds on the way.  A transaction that yields no lock touches nothing that belongs to a session.
    """

    names: Sequence[Name] = ()
    alone: bool = False


Statement: TypeAlias = Run | RunMany | Add | Together
Transaction: TypeAlias = Generator[Statement | Lock, list[Row], T]
Work: TypeAlias = Callable[[], Transaction[T]]
# What a committed transaction wakes, from its result.
Topics: TypeAlias = Callable[[T], Sequence[str]]


def no_topics(result: object) -> Sequence[str]:  # noqa: ARG001 - The shape of every other `Topics`.
    return ()


def declared(work: Work[Any]) -> Lock:
    """Return the lock that a transaction yields first.  No statement of it is run."""
    transaction = work()
    with contextlib.closing(transaction), contextlib.suppress(Exception):  # It fails once more when it is run.
        first = next(transaction, None)
        if isinstance(first, Lock):
            return first
    return Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """Where the two databases differ, by name."""

    name: Literal["sqlite", "postgres"]
    # Appended to a SELECT that picks work, so that two nodes never wait for, or get, the same row.
    skip_locked: str
    # Replacements for the type words that schema files leave open.
    strict: str
    rowid: str
    json: str
    integer: str
    # The time in milliseconds by the clock of the database, where that is not the machine's own.
    now_ms: str | None

    def ddl(self, sql: str) -> str:
        """Return a schema file in this dialect."""
        types = {"/*strict*/": self.strict, "/*rowid*/": self.rowid, "/*json*/": self.json, " BIGINT": self.integer}
        for word, meaning in types.items():
            sql = sql.replace(word, meaning)
        return sql

    def tables(self, parameter: str) -> str:
        """Return the query that finds a table by its name."""
        if self.name == "sqlite":
            return f"SELECT name FROM sqlite_schema WHERE name = :{parameter}"
        return f"SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND tablename = :{parameter}"

    def each(self, parameter: str) -> str:
        """Return a subquery over the strings of a JSON array parameter, for `IN`."""
        if self.name == "sqlite":
            return f"(SELECT value FROM json_each(:{parameter}))"
        return f"(SELECT json_array_elements_text(CAST(:{parameter} AS json)))"

    def each_number(self, parameter: str) -> str:
        """Return a subquery over the integers of a JSON array parameter, for `IN`."""
        if self.name == "sqlite":
            return f"(SELECT value FROM json_each(:{parameter}))"
        return f"(SELECT CAST(value AS BIGINT) FROM json_array_elements_text(CAST(:{parameter} AS json)))"

    def before_colon(self, text: str) -> str:
        """Return the part of a text before its first colon."""
        if self.name == "sqlite":
            return f"substr({text}, 1, instr({text} || ':', ':') - 1)"
        return f"split_part({text}, ':', 1)"

    def text(self, data: str, chars: int) -> str:
        """Return the first of the characters that the data of an entry has as its text; NULL where it cannot be read."""
        if self.name == "sqlite":
            return f"CASE WHEN json_valid({data}) THEN substr({data} ->> '$.text', 1, {chars}) END"
        return f"substr({data} ->> 'text', 1, {chars})"


SQLITE = Dialect(
    name="sqlite", skip_locked="", strict="STRICT", rowid="INTEGER PRIMARY KEY", json="TEXT", integer=" INTEGER", now_ms=None
)
POSTGRES = Dialect(
    name="postgres",
    skip_locked="FOR UPDATE SKIP LOCKED",
    strict="",
    rowid="BIGINT GENERATED ALWAYS AS IDENTITY",
    json="JSON",
    integer=" BIGINT",
    now_ms="CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)",
)


class Wakes:
    """Hints that work may be waiting.  They may be lost, so a listener also polls from time to time."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[str], None]] = []

    def listen(self, listener: Callable[[str], None]) -> Callable[[], None]:
        """Call `listener` with every topic from now on; returns the function that ends it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def wake(self, topics: Sequence[str]) -> None:
        for topic in topics:
            for listener in tuple(self._listeners):
                listener(topic)


class Writing(TypedDict, Generic[T], total=False):
    """What a driver is told about a write, beside the transaction."""

    wakes: Topics[T]
    """The topics that are woken once it is durable."""
    essential: bool
    """It ends what was begun, so it may use the room that is kept for a full disk."""
    heralds: Sequence[str]
    """Topics that are woken as soon as it waits, so that the work they call for can share its commit."""
    heeds: Sequence[str]
    """Topics that it has dealt with already, so that work that shares its commit need not wake them."""


class Database(Protocol):
    """Runs transactions durably."""

    @property
    def dialect(self) -> Dialect: ...

    @property
    def wakes(self) -> Wakes: ...

    @property
    def exclusive(self) -> bool:
        """Whether this process is the only one that can ever hold the store, so that every other node is dead."""
        ...

    async def write(self, work: Work[T], **how: Unpack[Writing[T]]) -> T:
        """Run a transaction and return its result once that is durable.

        A driver that commits on several connections has no use for `heralds` and `heeds`.
        """
        ...

    async def read(self, work: Work[T]) -> T:
        """Run statements that only read, on one snapshot."""
        ...

    def unhurried(self) -> AbstractAsyncContextManager[None]:
        """Lift every limit on how long a write may take; no other process may write meanwhile."""
        ...

    @property
    def damage(self) -> Sequence[str]:
        """The damage that was found so far."""
        ...

    async def inspect(self) -> Sequence[str]:
        """Read the whole store in the background and return the damage.  It may take minutes."""
        ...

    async def tidy(self) -> None:
        """Shrink the files of an embedded store to what they hold."""
        ...

    async def close(self) -> None: ...
