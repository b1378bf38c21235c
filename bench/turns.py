"""Whole turns through the engine: accepted, claimed, started, twenty entries, finished; on both databases."""

from __future__ import annotations

import itertools

from bench import limit, workload
from bench.ground import Ground, Kind
from bench.limit import Limit, open_limit
from bench.producers import Round, median_round, produce
from bench.report import Line, Unit
from holdfast.clock import SystemClock
from holdfast.store.store import Store

BARS: dict[Kind, int] = {"sqlite": 500, "postgres": 250}
VARIANTS = {"entries one by one": True, "entries all at once": False}

_clock = SystemClock()


async def run(ground: Ground) -> list[Line]:
    seconds, rounds = (1.0, 1) if ground.quick else (3.0, 3)
    lines: list[Line] = []
    for kind in BARS:
        store, _ = await ground.store(kind)
        other, where = await ground.store(kind)
        await other.close()
        raw = await open_limit(kind, where)
        numbers = itertools.count(1)
        plain = [await _plain(raw, numbers, seconds / 2)]
        ours: dict[str, list[Round]] = {name: [] for name in VARIANTS}
        for _ in range(rounds):
            for name, yields in VARIANTS.items():
                ours[name].append(await _ours(store, numbers, seconds, yields=yields))
            plain.append(await _plain(raw, numbers, seconds / 2))
        await store.close()
        await raw.close()
        lines += [_line(kind, name, median_round(each), median_round(plain)) for name, each in ours.items()]
    return lines


def _line(kind: Kind, name: str, ours: Round, raw: Round) -> Line:
    return Line(
        what=f"{kind}: turns, {name}",
        measured=ours.rate,
        unit=Unit.RATE,
        detail=f"p50 {ours.percentile_ms(50):.0f} p99 {ours.percentile_ms(99):.0f} ms, {ours.cpu_ms:.2f} ms CPU a turn",
        raw=raw.rate,
        bar=f"≥ {BARS[kind]}/s",
        met=ours.rate >= BARS[kind],
    )


async def _ours(store: Store, numbers: itertools.count[int], seconds: float, *, yields: bool) -> Round:
    settlement = store.settlement
    try:
        async with workload.running(store, workload.script(yields=yields)) as (engine, watched):

            async def turn(_: int, __: int) -> None:
                receipt = await engine.inbox.accept(workload.message(next(numbers)))
                await watched.ended(receipt.turn_id)

            return await produce(turn, seconds)
    finally:
        store.settlement = settlement


async def _plain(raw: Limit, numbers: itertools.count[int], seconds: float) -> Round:
    """Write the same rows in as many transactions: accept, claim, start, the first entries, the rest and the end."""

    async def turn(_: int, __: int) -> None:
        number, now = next(numbers), _clock.now_ms()
        await raw.write(limit.accept(number, now))
        await raw.write(limit.claim(number))
        await raw.write(limit.start(number, now))
        await raw.write(limit.append(number, 1, 2, now))
        await raw.write(limit.finish(number, 3, workload.ENTRIES - 2, now))

    return await produce(turn, seconds)
