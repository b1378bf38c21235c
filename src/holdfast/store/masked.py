"""A database that no secret reaches: all parameters of all statements are masked."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import TypeVar, Unpack

from holdfast.core.redaction import Redaction
from holdfast.store.database import (
    Add,
    Database,
    Dialect,
    Lock,
    Params,
    Run,
    RunMany,
    Statement,
    Together,
    Transaction,
    Wakes,
    Work,
    Writing,
)

T = TypeVar("T")
# Keeps the end of one parameter and the beginning of the next from being taken for a secret.
_BETWEEN = "\0"


class MaskedDatabase:
    """Wraps another database.  Search terms are masked too, so that they find what was masked when it was written."""

    def __init__(self, database: Database, redaction: Redaction) -> None:
        self._database = database
        self._redaction = redaction

    @property
    def dialect(self) -> Dialect:
        return self._database.dialect

    @property
    def wakes(self) -> Wakes:
        return self._database.wakes

    @property
    def exclusive(self) -> bool:
        return self._database.exclusive

    async def write(self, work: Work[T], **how: Unpack[Writing[T]]) -> T:
        return await self._database.write(lambda: self._masked(work()), **how)

    async def read(self, work: Work[T]) -> T:
        return await self._database.read(lambda: self._masked(work()))

    def unhurried(self) -> AbstractAsyncContextManager[None]:
        return self._database.unhurried()

    @property
    def damage(self) -> Sequence[str]:
        return self._database.damage

    async def inspect(self) -> Sequence[str]:
        return await self._database.inspect()

    async def tidy(self) -> None:
        await self._database.tidy()

    async def close(self) -> None:
        await self._database.close()

    def _masked(self, transaction: Transaction[T]) -> Transaction[T]:
        try:
            statement = next(transaction)
            while True:
                statement = transaction.send((yield self._statement(statement)))
        except StopIteration as done:
            return done.value

    def _statement(self, statement: Statement | Lock) -> Statement | Lock:
        if isinstance(statement, Lock):
            return statement._replace(names=[tuple(map(self._redaction.text, name)) for name in statement.names])
        if isinstance(statement, Together):
            return statement._replace(statements=[self._one(each) for each in statement.statements])
        return self._one(statement)

    def _one(self, statement: Run | RunMany | Add) -> Run | RunMany | Add:
        if isinstance(statement, Run):
            return statement._replace(params=self._params(statement.params))
        return type(statement)(statement.sql, [self._params(each) for each in statement.params])

    def _params(self, params: Params) -> Params:
        if not self._redaction.finds(_BETWEEN.join([value for value in params.values() if isinstance(value, str)])):
            return params
        mask = self._redaction.text
        return {name: mask(value) if isinstance(value, str) else value for name, value in params.items()}
