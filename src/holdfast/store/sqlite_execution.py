"""Transactions on a connection of SQLite: their statements are run in the thread that owns it."""

# apsw's stubs name a type that Python 3.11 lacks, so what it returns is checked where rows.py decodes it.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

import apsw

from holdfast.errors import Stale
from holdfast.store.database import Add, Lock, Run, RunMany, Statement, Together, Transaction, storable

T = TypeVar("T")

# What SQLite says where a file cannot be what it wrote; half a page is an error of reading.
DAMAGE = (apsw.CorruptError, apsw.NotADBError, apsw.IOError, UnicodeDecodeError)


def drive(connection: apsw.Connection, transaction: Transaction[T]) -> T:
    """Run a transaction's statements one after the other until it returns."""
    try:
        statement = next(transaction)
        while True:
            statement = transaction.send(_run(connection, statement))
    except StopIteration as done:
        return done.value
    except apsw.ConstraintError as error:
        raise Stale(f"the store refused a write that breaks its rules: {error}") from error


def _run(connection: apsw.Connection, statement: Statement | Lock) -> list[tuple[Any, ...]]:
    if isinstance(statement, Lock):
        # There is one writer, so no transaction can get in another's way.
        return []
    return _run_together(connection, statement) if isinstance(statement, Together) else _run_one(connection, statement)


def _run_together(connection: apsw.Connection, together: Together) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = [()] * len(together.statements)
    for place, statement in enumerate(together.statements):
        found[place] = tuple(_run_one(connection, statement))
        if isinstance(statement, Run) and statement.needed and not found[place]:
            break
    return found


def _run_one(connection: apsw.Connection, statement: Run | RunMany | Add) -> list[tuple[Any, ...]]:
    if isinstance(statement, Run):
        return connection.execute(statement.sql, storable(statement.params)).fetchall()
    connection.executemany(statement.sql, [storable(params) for params in statement.params])
    return []


def tell(future: asyncio.Future[Any], outcome: object) -> None:
    """Give the caller of a transaction its result, or the exception that refused it."""
    if future.done():
        return  # The caller was cancelled.
    if isinstance(outcome, Exception):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
