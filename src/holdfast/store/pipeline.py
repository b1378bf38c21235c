"""Our transactions side by side in one of PostgreSQL's: all statements at which they stand take one round trip."""

# asyncpg ships no complete types.
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import asyncpg

from holdfast.store.database import Add, Lock, Params, Row, Run, RunMany, Statement, Together, Transaction, storable
from holdfast.store.locks import in_front
from holdfast.store.wire import Query, Wire

# Which transaction a statement is of, and which of those that it yielded together; -1 is what it added.
Place: TypeAlias = tuple[int, int]
Sent: TypeAlias = tuple[Place | None, Query]

COMMIT: Query = ("COMMIT", ())
# A transaction that has failed is rolled back by the same statement, which is then called by another name.
COMMITTED = b"COMMIT\0"
# What says of the connection that it is of no use any more, and of the work that nothing of it was done.
USELESS = (
    # Another node has changed the schema: what was prepared before does not fit.
    asyncpg.InvalidCachedStatementError,
    # The server is another one's copy by now: a new connection may lead to the one that writes.
    asyncpg.ReadOnlySQLTransactionError,
)
# Fails where the statement in it finds no row, and with it everything behind it on the same trip.
_NEEDED = """
    WITH needed AS ({})
    SELECT needed.*, 1 / found.rows FROM (SELECT COUNT(*) AS rows FROM needed) AS found LEFT JOIN needed ON TRUE
"""


class Spoiled(Exception):
    """One of the transactions failed, and all of them have to be rolled back; `number` says which, where that is known."""

    def __init__(self, number: int | None, error: Exception) -> None:
        super().__init__(number, error)
        self.number = number
        self.error = error


class Pipeline:
    """One transaction of a connection, with all of ours that share its commit.

    A `careful` one makes no guess: it waits for each statement that others behind it depend on.
    """

    def __init__(self, wire: Wire, begin: Sequence[Query], *, careful: bool = False, timeout_s: float | None = None) -> None:
        self.committing = False
        self._wire = wire
        self._careful = careful
        self._timeout_s = timeout_s
        # What travels in front of the next statement.
        self._first: list[Sent] = [(None, query) for query in begin]
        # Rows that no statement could have looked at yet, by the transaction that writes them.
        self._added: list[tuple[int, Add]] = []

    async def run(self, transactions: Sequence[Transaction[Any]]) -> list[Any]:
        """Run transactions that touch nothing in common until all have returned.  Raises `Spoiled`."""
        results: list[Any] = [None] * len(transactions)
        standing: dict[int, Statement] = {}

        def step(number: int, found: list[Row] | None) -> None:
            transaction = transactions[number]
            try:
                statement = next(transaction) if found is None else transaction.send(found)
                if found is None and isinstance(statement, Lock):
                    # Taken by `begin`, together with those of the others.
                    statement = transaction.send([])
                while isinstance(statement, Add | Lock):
                    if isinstance(statement, Add):
                        self._added.append((number, statement))
                    elif further := in_front(statement.names):
                        statement = Together(further)
                        break
                    statement = transaction.send([])
                standing[number] = statement
            except StopIteration as done:
                standing.pop(number, None)
                results[number] = done.value
            except Exception as error:
                raise Spoiled(number, error) from error

        for number in range(len(transactions)):
            step(number, None)
        while standing:
            for number, rows in (await self._trip(standing)).items():
                step(number, rows)
            if self.committing and standing:
                raise AssertionError(f"a transaction goes on behind what it called its last: {standing}")
        return results

    async def commit(self) -> None:
        """Write what was kept back, and commit, unless that has travelled with the last statements."""
        if not self.committing:
            self.committing = True
            await self._send([*self._take_added(), (None, COMMIT)])

    async def _trip(self, standing: Mapping[int, Statement]) -> dict[int, list[Row]]:
        """Run the statements at which transactions stand, and return what each of them gets."""
        if self._careful:
            return await self._one_by_one(standing)
        sent: list[Sent] = []
        for number, statement in standing.items():
            for part, one in enumerate(_parts(statement)):
                sent += self._take_added(one.sql)
                sql = _NEEDED.format(one.sql) if isinstance(one, Run) and one.needed else one.sql
                sent += [((number, part), query(sql, params)) for params in _sets(one)]
        if all(isinstance(each, Together) and each.last for each in standing.values()):
            sent += [*self._take_added(), (None, COMMIT)]
            self.committing = True
        found = await self._send(sent)
        for number, statement in standing.items():
            for part, one in enumerate(_parts(statement)):
                if isinstance(one, Run) and one.needed:
                    found[number, part] = [row[:-1] for row in found[number, part]]
        return {number: _shaped(number, statement, found) for number, statement in standing.items()}

    async def _one_by_one(self, standing: Mapping[int, Statement]) -> dict[int, list[Row]]:
        """Take as many trips as the longest of them has statements: each next one only where the one before allows it."""
        found: dict[Place, list[Row]] = {}
        going, part = {number: _parts(statement) for number, statement in standing.items()}, 0
        while going := {number: parts for number, parts in going.items() if part < len(parts)}:
            sent: list[Sent] = []
            for number, parts in going.items():
                sent += self._take_added(parts[part].sql)
                sent += [((number, part), query(parts[part].sql, params)) for params in _sets(parts[part])]
            found |= await self._send(sent)
            going = {number: parts for number, parts in going.items() if _allows(parts[part], found.get((number, part)))}
            part += 1
        return {number: _shaped(number, statement, found) for number, statement in standing.items()}

    async def _send(self, sent: Sequence[Sent]) -> dict[Place, list[Row]]:
        """Make one round trip; returns the rows by what they are for."""
        sent, self._first = [*self._first, *sent], []
        trip = self._wire.send([query for _, query in sent])
        try:
            rows = await self._wire.wait(trip, self._timeout_s)
        except asyncpg.PostgresError as error:
            if self._wire.closed or isinstance(error, USELESS):
                raise
            place = sent[trip.place][0]
            raise Spoiled(place[0] if place else None, error) from error
        if self.committing and trip.tag != COMMITTED:
            raise asyncpg.InternalClientError(f"PostgreSQL answered a COMMIT with {trip.tag!r}")
        return {place: each for (place, _), each in zip(sent, rows, strict=True) if place is not None}

    def _take_added(self, before: str | None = None) -> list[Sent]:
        """Return what writes the rows that were kept back; in front of a statement, only if it names one of their tables."""
        if before is not None and not any(_table(added.sql) in before for _, added in self._added):
            return []
        added, self._added = self._added, []
        return [((number, -1), query(each.sql, params)) for number, each in added for params in each.params]


@functools.cache
def _table(sql: str) -> str:
    """Return the table that a statement writes to."""
    verb, table, more, *_ = sql.split(maxsplit=3)
    return table if verb == "UPDATE" else more


def _parts(statement: Statement) -> Sequence[Run | RunMany | Add]:
    return statement.statements if isinstance(statement, Together) else [statement]


def _allows(statement: Run | RunMany | Add, found: list[Row] | None) -> bool:
    """Return whether what stands behind a statement may run."""
    return bool(found) or not (isinstance(statement, Run) and statement.needed)


def _sets(statement: Run | RunMany | Add) -> Sequence[Params]:
    return [statement.params] if isinstance(statement, Run) else statement.params


def _shaped(number: int, statement: Statement, found: Mapping[Place, list[Row]]) -> list[Row]:
    """Return what a transaction gets for its statement."""
    if isinstance(statement, Together):
        return [tuple(found.get((number, part), ())) for part in range(len(statement.statements))]
    return found.get((number, 0), [])


def query(sql: str, params: Params) -> Query:
    """Return a statement with its parameters as the wire takes them."""
    numbered, names = number_parameters(sql)
    fitting = storable(params)
    return numbered, [fitting[name] for name in names]


_PARAMETER = re.compile(r"(?<!:):([a-z_]+)")


@functools.cache
def number_parameters(sql: str) -> tuple[str, tuple[str, ...]]:
    """Return a statement with `:name` as `$1`, and the names in that order."""
    names = tuple(dict.fromkeys(_PARAMETER.findall(sql)))
    return _PARAMETER.sub(lambda match: f"${names.index(match[1]) + 1}", sql), names
