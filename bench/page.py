"""The page in a real browser: what it fetches, how soon it is there, and how a very long conversation opens and scrolls."""

from __future__ import annotations

from tests import machine
from tests.blackbox.gateway import Gateway, gateways
from tests.page import browser
from tests.page.test_first_run import FIRST_PAINT_MAX_MS, first_paint
from tests.page.test_length import FRAME_MAX_MS, OPEN_MAX_S, SCROLL, TURNS, fill, opening
from tests.page.test_size import PACKED_MAX, needed

from bench.ground import Ground
from bench.producers import median
from bench.report import Line, Unit
from holdfast.web.page import built

TIMES = 15
# Frames of which one is dropped now and then; those that are worse than nineteen of twenty others.
LATE = 0.95


async def run(ground: Ground) -> list[Line]:
    times = 3 if ground.quick else TIMES
    if machine.browser() is None:
        return [_fetched()]
    try:
        with gateways() as (gateway,):
            await fill(gateway)
            await gateway.start()
            return [_fetched(), await _painted(gateway, times), *await _long(gateway, times)]
    finally:
        await browser.close()


def _fetched() -> Line:
    files = {file.path: file for file in built()}
    size = sum(len(files[path].packed) for path in needed(files, "/"))
    return Line(
        what="fetched before the first paint, gzipped",
        measured=size / 1024,
        unit=Unit.KILOBYTES,
        bar=f"under {PACKED_MAX // 1024} kB",
        met=size < PACKED_MAX,
    )


async def _painted(gateway: Gateway, times: int) -> Line:
    async with browser.visiting(gateway) as visit:
        painted = [await first_paint(visit) for _ in range(times)]
    return Line(
        what="first contentful paint, in a browser that has never been here",
        measured=median(painted),
        unit=Unit.MILLISECONDS,
        detail=f"slowest of {times}: {max(painted):.0f} ms",
        bar=f"under {FIRST_PAINT_MAX_MS} ms",
        met=median(painted) < FIRST_PAINT_MAX_MS,
    )


async def _long(gateway: Gateway, times: int) -> list[Line]:
    async with browser.visiting(gateway) as visit:
        page = await visit.tab()
        opened = [await opening(page) * 1000 for _ in range(times)]
        frames = sorted([gap for _ in range(times) for gap in await page.evaluate(SCROLL, -120)])
    return [
        Line(
            what=f"open a conversation of {TURNS:,} turns at its end",
            measured=median(opened),
            unit=Unit.MILLISECONDS,
            detail=f"slowest of {times}: {max(opened):.0f} ms",
            bar=f"under {OPEN_MAX_S * 1000:.0f} ms",
            met=median(opened) < OPEN_MAX_S * 1000,
        ),
        Line(
            what="from one frame to the next while it is scrolled, p95",
            measured=frames[int(len(frames) * LATE)],
            unit=Unit.MILLISECONDS,
            detail=f"median {median(frames):.0f} ms, longest {frames[-1]:.0f} ms",
            bar=f"under {FRAME_MAX_MS} ms",
            met=frames[int(len(frames) * LATE)] < FRAME_MAX_MS,
        ),
    ]
