"""Our transactions side by side in one of PostgreSQL's: a statement at which several stand takes one round trip."""

# asyncpg ships no complete types, so what it returns is checked where rows.py decodes it.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import asyncpg

from holdfast.store.database import Add, Params, Row, Run, Statement, Transaction, storable

Connection: TypeAlias = asyncpg.Connection | asyncpg.pool.PoolConnectionProxy


class Pipeline:
    """One transaction of a connection, with all of ours that share its commit."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        # New rows that no statement could have looked at yet, by the one that adds them.
        self._added: dict[str, list[Params]] = {}

    async def run(self, transactions: Sequence[Transaction[Any]]) -> list[Any]:
        """Run transactions that touch nothing in common until all have returned; what they add is kept back."""
        results: list[Any] = [None] * len(transactions)
        standing: dict[int, Statement] = {}

        def step(number: int, found: list[Row] | None) -> None:
            transaction = transactions[number]
            try:
                standing[number] = next(transaction) if found is None else transaction.send(found)
            except StopIteration as done:
                standing.pop(number, None)
                results[number] = done.value

        for number in range(len(transactions)):
            step(number, None)
        while standing:
            alike: dict[tuple[type[Statement], str], list[int]] = {}
            for number, statement in standing.items():
                alike.setdefault((type(statement), statement.sql), []).append(number)
            for numbers in alike.values():
                found = await self._run_alike([standing[number] for number in numbers])
                for number, rows in zip(numbers, found, strict=True):
                    step(number, rows)
        return results

    async def write_added(self, before: str | None = None) -> None:
        """Write the rows that were kept back: all of them, or those that the statement `before` which we stand names."""
        for sql in tuple(self._added):
            _insert, _into, table, *_ = sql.split(maxsplit=3)
            if before is None or table in before:
                await self._execute_each(sql, self._added.pop(sql))

    async def _run_alike(self, statements: Sequence[Statement]) -> list[list[Row]]:
        """Run one statement with the parameters of several transactions; returns what each of them gets."""
        sql = statements[0].sql
        if isinstance(statements[0], Add):
            self._added.setdefault(sql, []).extend(params for each in statements for params in _sets(each))
            return [[] for _ in statements]
        await self.write_added(before=sql)
        if isinstance(statements[0], Run):
            return await self._fetch_each(sql, [params for each in statements for params in _sets(each)])
        await self._execute_each(sql, [params for each in statements for params in _sets(each)])
        return [[] for _ in statements]

    async def _fetch_each(self, sql: str, params: Sequence[Params]) -> list[list[Row]]:
        if len(params) == 1 or sql.split(maxsplit=1)[0] in ("SELECT", "WITH"):
            return [await fetch(self._connection, sql, each) for each in params]
        if "RETURNING" not in sql:
            await self._execute_each(sql, params)
            return [[] for _ in params]
        numbered, names = number_parameters(sql)
        # The rows of all come back as one list: a number behind each says whose it is.
        marked = [[*in_order(each, names), number] for number, each in enumerate(params)]
        found: list[list[Row]] = [[] for _ in params]
        for row in await self._connection.fetchmany(f"{numbered}, CAST(${len(names) + 1} AS BIGINT)", marked):
            found[row[-1]].append(row[:-1])
        return found

    async def _execute_each(self, sql: str, params: Sequence[Params]) -> None:
        numbered, names = number_parameters(sql)
        await self._connection.executemany(numbered, [in_order(each, names) for each in params])


async def fetch(connection: Connection, sql: str, params: Params) -> list[Row]:
    """Run one statement and return its rows."""
    numbered, names = number_parameters(sql)
    return await connection.fetch(numbered, *in_order(params, names))


def _sets(statement: Statement) -> Sequence[Params]:
    return [statement.params] if isinstance(statement, Run) else statement.params


def in_order(params: Mapping[str, Any], names: Sequence[str]) -> list[Any]:
    fitting = storable(params)
    return [fitting[name] for name in names]


_PARAMETER = re.compile(r"(?<!:):([a-z_]+)")


@functools.cache
def number_parameters(sql: str) -> tuple[str, tuple[str, ...]]:
    """Return a statement with `:name` as `$1`, and the names in that order."""
    names = tuple(dict.fromkeys(_PARAMETER.findall(sql)))
    return _PARAMETER.sub(lambda match: f"${names.index(match[1]) + 1}", sql), names
