"""The threads that read from SQLite, each on a connection of its own."""

# apsw's stubs name a type that Python 3.11 lacks, so what it returns is checked where rows.py decodes it.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import apsw

from holdfast.errors import Unavailable
from holdfast.store.database import TOO_BUSY, Work
from holdfast.store.sqlite_execution import DAMAGE, drive, tell

T = TypeVar("T")

READERS = 2
READS_MAX = 20_000


class Readers:
    """Run reading transactions.  `suspect` makes an error of what SQLite says about a damaged file."""

    def __init__(self, connect: Callable[[], apsw.Connection], suspect: Callable[[Exception], Exception]) -> None:
        self._connect = connect
        self._suspect = suspect
        self._loop = asyncio.get_running_loop()
        self._waiting: queue.SimpleQueue[tuple[Work[Any], asyncio.Future[Any]] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []

    async def read(self, work: Work[T]) -> T:
        """Return the result of a transaction.  Raises `Unavailable` where too many wait already."""
        if self._waiting.qsize() > READS_MAX:
            raise Unavailable(TOO_BUSY)
        if len(self._threads) < READERS:
            self._threads.append(threading.Thread(target=self._run, name="holdfast-reader", daemon=True))
            self._threads[-1].start()
        future: asyncio.Future[T] = self._loop.create_future()
        self._waiting.put((work, future))
        return await future

    async def close(self) -> None:
        """Finish what waits, and end the threads."""
        for _ in self._threads:
            self._waiting.put(None)
        for thread in self._threads:
            await self._loop.run_in_executor(None, thread.join)

    def _run(self) -> None:
        connection: apsw.Connection | None = None
        while (asked := self._waiting.get()) is not None:
            work, future = asked
            try:
                connection = connection or self._connect()
                outcome: object = _read(connection, work)
            except DAMAGE as error:
                outcome = self._suspect(error)
            except Exception as error:
                outcome = error
            with contextlib.suppress(RuntimeError):  # The loop is gone, and with it everyone who waited.
                self._loop.call_soon_threadsafe(tell, future, outcome)
        if connection is not None:
            connection.close()


def _read(connection: apsw.Connection, work: Work[T]) -> T:
    connection.execute("BEGIN")
    try:
        return drive(connection, work())
    finally:
        # SQLite has ended it already where the disk failed, and what it says about that is what counts.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
