"""Does a store with a million sessions answer like one with a thousand?"""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import apsw
import asyncpg

from bench import fill
from bench.ground import Ground, Kind
from bench.producers import median
from bench.report import Line, Unit
from holdfast.clock import SystemClock
from holdfast.config import GatewayConfig, SessionsConfig
from holdfast.core.intake import Inbound
from holdfast.core.redaction import Redaction
from holdfast.engine.inbox import Inbox
from holdfast.ids import NodeId, SessionId, TurnId
from holdfast.store.database import Run, Transaction
from holdfast.store.store import Store

GROWTH_MAX = 2.0
WAITING = 6_400
NODE = NodeId("nod_bench")
_FIND = "SELECT * FROM sessions WHERE owner = 'local' AND key = $1 AND state = 'open'"

_clock = SystemClock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Microseconds at one size."""

    sessions: int
    find: float
    find_raw: float
    claim: float
    claim_raw: float


async def run(ground: Ground) -> list[Line]:
    sizes: dict[Kind, tuple[int, ...]] = {
        "sqlite": (1_000, 10_000) if ground.quick else (1_000, 10_000, 100_000, 1_000_000),
        "postgres": (1_000, 10_000) if ground.quick else (1_000, 100_000, 1_000_000),
    }
    return [line for kind in sizes for line in await _grow(ground, kind, sizes[kind])]


async def _grow(ground: Ground, kind: Kind, sizes: tuple[int, ...]) -> list[Line]:
    store, where = await ground.store(kind)
    await store.nodes.join(NODE, _clock.now_ms())
    # The turn to be claimed: its session is the only one that ever has work.
    await Inbox(store, GatewayConfig(), SessionsConfig(), Redaction(), _clock).accept(
        Inbound(conversation="queued", text="work", channel="chat")
    )
    points: list[Point] = []
    full = 0
    for size in sizes:
        await fill.completed(store.database, full + 1, size)
        full = size
        points.append(await _measure(store, where, size, ground.quick))
    await fill.waiting(store.database, WAITING // 100)
    behind = await _claim(store, 20 if ground.quick else 100)
    await store.close()
    return [*_lines(kind, points), _behind(kind, behind, points[-1].claim)]


def _behind(kind: Kind, measured: float, without: float) -> Line:
    return Line(
        what=f"{kind}: claim past {WAITING:,} that must wait",
        measured=measured,
        unit=Unit.MICROSECONDS,
        detail=f"({without:.0f} without them)",
        note="a claim looks at every older message that waits behind a live turn of its conversation",
    )


def _lines(kind: Kind, points: list[Point]) -> list[Line]:
    first, last = points[0], points[-1]
    return [
        _line(f"{kind}: find a session of {last.sessions:,}", last.find, last.find_raw, first.find,
              _curve(points, "find"), first.sessions),
        _line(f"{kind}: claim beside {last.sessions:,}", last.claim, last.claim_raw, first.claim,
              _curve(points, "claim"), first.sessions),
    ]  # fmt: skip


def _line(what: str, measured: float, raw: float, first: float, curve: str, smallest: int) -> Line:
    return Line(
        what=what,
        measured=measured,
        unit=Unit.MICROSECONDS,
        detail=curve,
        raw=raw,
        bar=f"≤ {GROWTH_MAX:.0f} × at {smallest:,}",
        met=measured <= GROWTH_MAX * first,
    )


def _curve(points: list[Point], name: str) -> str:
    return "(" + " → ".join(f"{getattr(point, name):.0f}" for point in points) + ")"


async def _measure(store: Store, where: str, size: int, quick: bool) -> Point:
    times = 300 if quick else 2_000
    keys = [f"chat:{fill.BASE + random.randint(1, size)}" for _ in range(times)]
    plain = await _plain(where)
    find: list[float] = []
    for key in keys:
        began = time.perf_counter()
        found = await store.sessions.find("local", key)
        find.append(time.perf_counter() - began)
        assert found
    find_raw = [await plain(_FIND, key) for key in keys]
    claim = await _claim(store, times // 4)
    claim_raw = [await _write_one_row(store) for _ in range(times // 4)]
    await plain("")
    return Point(
        sessions=size,
        find=median(find) * 1e6,
        find_raw=median(find_raw) * 1e6,
        claim=claim,
        claim_raw=median(claim_raw) * 1e6,
    )


async def _claim(store: Store, times: int) -> float:
    """Return the median microseconds of a claim that finds one turn."""
    taken: list[float] = []
    for _ in range(times):
        began = time.perf_counter()
        ((turn, _),) = await store.turns.take(NODE, 1, _clock.now_ms())
        taken.append(time.perf_counter() - began)
        await store.database.write(lambda turn_id=turn.id: _queue_again(turn_id))
    return median(taken) * 1e6


def _queue_again(turn_id: TurnId) -> Transaction[None]:
    yield Run("UPDATE turns SET state = 'queued', node_id = NULL WHERE id = :id", {"id": turn_id})


async def _write_one_row(store: Store) -> float:
    """Return how long the least durable write takes, which is what a claim cannot be faster than."""
    began = time.perf_counter()
    await store.sessions.change(SessionId(f"ses_{fill.BASE + 1}"), title=f"renamed {began}")
    return time.perf_counter() - began


async def _plain(where: str) -> Callable[..., Awaitable[float]]:
    """Return what runs one statement on a plain connection and says how long it took; no statement closes it."""
    if where.startswith("postgresql:"):
        connection = await asyncpg.connect(where)

        async def ask_postgres(sql: str, *values: str) -> float:
            if not sql:
                await connection.close()
                return 0
            began = time.perf_counter()
            await connection.fetch(sql, *values)
            return time.perf_counter() - began

        return ask_postgres
    reader = apsw.Connection(where, flags=apsw.SQLITE_OPEN_READONLY)

    async def ask_sqlite(sql: str, *values: str) -> float:
        if not sql:
            reader.close()
            return 0
        began = time.perf_counter()
        reader.execute(sql, values).fetchall()
        return time.perf_counter() - began

    return ask_sqlite
