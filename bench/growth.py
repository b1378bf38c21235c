"""A long run: neither the process nor the database may grow once both have settled."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncGenerator, Coroutine
from pathlib import Path

import psutil

from bench import workload
from bench.ground import Ground
from bench.producers import median, produce
from bench.report import Line, Unit
from holdfast.clock import SystemClock
from holdfast.store.store import Store

GROWTH_MAX_MB = 4.0
GROWTH_MAX_SHARE = 0.05
# Retention on fast forward: what took days takes seconds.
KEEP_MS = 2_000

_clock = SystemClock()


async def run(ground: Ground) -> list[Line]:
    seconds = 10 if ground.quick else 60
    store, path = await ground.store("sqlite")
    numbers = itertools.count(1)
    resident: list[float] = []
    stored: list[float] = []
    async with workload.running(store, workload.script(yields=True)) as (engine, watched):

        async def turn(_: int, __: int) -> None:
            receipt = await engine.inbox.accept(workload.message(next(numbers)))
            await watched.ended(receipt.turn_id)

        async with _beside(_prune(store)):
            # Caches fill and the first sessions grow old enough to be pruned before anything is counted.
            await produce(turn, 2 * KEEP_MS / 1000)
            async with _beside(_sample(Path(path), resident, stored)):
                done = await produce(turn, seconds)
    await store.close()
    return [
        _line("memory of the process", resident, f"after {len(done.latencies_ms):,} turns"),
        _line("size of the database", stored, f"keeping {KEEP_MS / 1000:.0f} s of {done.rate:.0f} turns/s"),
    ]


def _line(what: str, curve: list[float], detail: str) -> Line:
    quarter = max(len(curve) // 4, 1)
    early, late = median(curve[quarter : 2 * quarter]), median(curve[-quarter:])
    growth = late - early
    return Line(
        what=what,
        measured=late,
        unit=Unit.MEGABYTES,
        detail=f"{growth:+.1f} MB from the second quarter to the last, {detail}",
        bar=f"growth ≤ {GROWTH_MAX_SHARE:.0%} or {GROWTH_MAX_MB:.0f} MB",
        met=growth <= max(GROWTH_MAX_MB, GROWTH_MAX_SHARE * early),
        note="MB: " + " ".join(f"{each:.0f}" for each in curve[:: max(len(curve) // 20, 1)]),
    )


async def _prune(store: Store) -> None:
    while True:
        await asyncio.sleep(1)
        before = _clock.now_ms() - KEEP_MS
        await store.sessions.prune("webhook", before)
        await store.sessions.forget_keys(before)


async def _sample(path: Path, resident: list[float], stored: list[float]) -> None:
    process, began = psutil.Process(), time.monotonic()
    for second in itertools.count(1):
        await asyncio.sleep(began + second - time.monotonic())
        resident.append(process.memory_info().rss / 2**20)
        stored.append(path.stat().st_size / 2**20)


@contextlib.asynccontextmanager
async def _beside(work: Coroutine[None, None, None]) -> AsyncGenerator[None]:
    """Run something beside the body, for as long as that takes."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
