"""The wire to PostgreSQL: any number of statements in one round trip.

The driver connects, which is the hard part (addresses, TLS, authentication), and waits for each statement.  Behind that
this module speaks the protocol itself: it sends all statements of a trip at once, and reads their answers in order.
"""

# asyncpg ships no complete types, so what it returns is checked where rows.py decodes it.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false

from __future__ import annotations

import asyncio
import struct
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

import asyncpg

from holdfast.store.database import Row, Value

Columns: TypeAlias = tuple[Callable[[bytes], Any], ...]
Query: TypeAlias = tuple[str, Sequence[Value]]

_SYNC = b"S\x00\x00\x00\x04"
_EXECUTE = b"E\x00\x00\x00\x09\x00\x00\x00\x00\x00"
_GOODBYE = b"X\x00\x00\x00\x04"
# 1700 is what a sum of integers has become.
_INTEGERS = (20, 21, 23, 26, 1700)
_BOOLEAN = 16
_HEADER = 5

_length = struct.Struct("!i")
_count = struct.Struct("!h")


class _Prepared(NamedTuple):
    """A statement that the server has parsed: its name there, and how its columns are read."""

    name: bytes
    columns: Columns


class Trip:
    """What was sent at once, and what has come back of it."""

    __slots__ = ("done", "error", "fresh", "place", "queries", "rows", "tag")

    def __init__(self, queries: Sequence[str], fresh: dict[int, bytes]) -> None:
        self.queries = queries
        # The statements that the server parses on this trip, by their place in it.
        self.fresh = fresh
        self.rows: list[list[Row]] = [[] for _ in queries]
        self.place = 0
        # What the server calls the last statement that it has done.
        self.tag = b""
        self.error: Exception | None = None
        self.done: asyncio.Future[list[list[Row]]] = asyncio.get_running_loop().create_future()


class Wire(asyncio.Protocol):
    """One connection to PostgreSQL."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        # How many round trips were waited for.
        self.trips = 0
        self.pid: int = connection.get_server_pid()
        self._connection = connection
        # The driver has no other way to be relieved of its transport.
        self._driver = cast("asyncio.Protocol", connection._protocol)  # noqa: SLF001
        self._transport = cast("asyncio.Transport", connection._transport)  # noqa: SLF001
        self._prepared: dict[str, _Prepared] = {}
        self._names = 0
        self._under_way: deque[Trip] = deque()
        self._received = bytearray()
        self._lost = False
        self._transport.set_protocol(self)

    @property
    def closed(self) -> bool:
        return self._lost or self._transport.is_closing()

    async def run(self, queries: Sequence[Query], timeout_s: float | None) -> list[list[Row]]:
        """Run statements in one round trip and return the rows of each."""
        return await self.wait(self.send(queries), timeout_s)

    async def wait(self, trip: Trip, timeout_s: float | None) -> list[list[Row]]:
        """Return the rows of each statement of a trip.  Raises what the driver would for the one at its `place`.

        After a timeout, or when cancelled, the connection is of no use any more.
        """
        self.trips += 1
        try:
            async with asyncio.timeout(timeout_s):
                return await trip.done
        except (TimeoutError, asyncio.CancelledError):
            self.hang_up()
            raise

    def send(self, queries: Sequence[Query]) -> Trip:
        """Send statements; behind one that fails, none of them runs."""
        if self.closed:
            raise asyncpg.ConnectionDoesNotExistError("the connection is closed")
        fresh: dict[int, bytes] = {}
        named: dict[str, bytes] = {}
        out: list[bytes] = []
        for place, (sql, values) in enumerate(queries):
            name = prepared.name if (prepared := self._prepared.get(sql)) else named.get(sql)
            if name is None:
                self._names += 1
                name = fresh[place] = named[sql] = b"h%d" % self._names
                out.append(_message(b"P", name + b"\0" + sql.encode() + b"\0\0\0"))
                out.append(_message(b"D", b"S" + name + b"\0"))
            out.append(_bind(name, values))
            out.append(_EXECUTE)
        out.append(_SYNC)
        trip = Trip([sql for sql, _ in queries], fresh)
        self._under_way.append(trip)
        self._transport.write(b"".join(out))
        return trip

    def hang_up(self) -> None:
        """Drop the connection without a word to the far side."""
        self._transport.abort()
        self._connection.terminate()

    def close(self) -> None:
        """End the connection; what was sent before is still done."""
        if not self.closed:
            self._transport.write(_GOODBYE)
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        received = self._received
        received += data
        begin, end = 0, len(received)
        while end - begin >= _HEADER:
            (length,) = _length.unpack_from(received, begin + 1)
            if end - begin <= length:
                break
            self._take(received[begin], bytes(received[begin + _HEADER : begin + 1 + length]))
            begin += 1 + length
        del received[:begin]

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        self._driver.connection_lost(exc)
        error = asyncpg.ConnectionDoesNotExistError("the connection was lost in the middle of a round trip")
        while self._under_way:
            trip = self._under_way.popleft()
            self._end(trip, trip.error or error)

    def _take(self, kind: int, body: bytes) -> None:
        match kind:
            case 0x44:  # D: a row
                trip = self._under_way[0]
                trip.rows[trip.place].append(_row(body, self._prepared[trip.queries[trip.place]].columns))
            case 0x43 | 0x49:  # C, I: the end of a statement
                self._under_way[0].place += 1
                self._under_way[0].tag = body
            case 0x5A:  # Z: the end of a trip
                trip = self._under_way.popleft()
                self._end(trip, trip.error)
            case 0x54:  # T: the columns of a statement that was just parsed
                self._know(_columns(body))
            case 0x6E:  # n: a statement that was just parsed has none
                self._know(())
            case 0x45:  # E
                error = _error(body)
                if self._under_way:
                    self._under_way[0].error = error
            case _:  # Confirmations, notices and parameter reports.
                pass

    def _know(self, columns: Columns) -> None:
        trip = self._under_way[0]
        self._prepared[trip.queries[trip.place]] = _Prepared(trip.fresh[trip.place], columns)

    def _end(self, trip: Trip, error: Exception | None) -> None:
        if trip.done.done():
            return
        if error is None:
            trip.done.set_result(trip.rows)
        else:
            trip.done.set_exception(error)
            # Marked as seen: a trip that is not waited for failed with its connection, which the next trip finds out.
            trip.done.exception()


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + _length.pack(len(body) + 4) + body


def _bind(name: bytes, values: Sequence[Value]) -> bytes:
    """Return the message that gives a statement its parameters, all of them as text."""
    parts = [b"\0", name, b"\0\0\0", _count.pack(len(values))]
    for value in values:
        if value is None:
            parts.append(b"\xff\xff\xff\xff")
        else:
            text = value.encode() if isinstance(value, str) else b"%d" % value
            parts.append(_length.pack(len(text)))
            parts.append(text)
    parts.append(b"\0\0")
    return _message(b"B", b"".join(parts))


def _row(body: bytes, columns: Columns) -> Row:
    values: list[Any] = []
    at = 2
    for read in columns:
        (length,) = _length.unpack_from(body, at)
        at += 4
        if length < 0:
            values.append(None)
        else:
            values.append(read(body[at : at + length]))
            at += length
    return tuple(values)


def _columns(body: bytes) -> Columns:
    columns: list[Callable[[bytes], Any]] = []
    at = 2
    for _ in range(_count.unpack_from(body)[0]):
        at = body.index(0, at) + 1
        (oid,) = _length.unpack_from(body, at + 6)
        columns.append(int if oid in _INTEGERS else _is_true if oid == _BOOLEAN else bytes.decode)
        at += 18
    return tuple(columns)


def _is_true(value: bytes) -> bool:
    return value == b"t"


def _error(body: bytes) -> Exception:
    fields = {chr(field[0]): field[1:].decode("utf-8", "replace") for field in body.split(b"\0") if field}
    return asyncpg.PostgresError.new(fields)
