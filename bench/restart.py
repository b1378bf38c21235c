"""A home with many sessions whose gateway was killed in the middle of many turns: how long until it serves again."""

from __future__ import annotations

import shutil
from pathlib import Path

from bench import fill
from bench.gateway import Gateway
from bench.ground import Ground
from bench.producers import median
from bench.report import Line, Unit
from holdfast.store.opening import open_store

SECONDS_MAX = 2.0
SESSIONS = 100_000
INTERRUPTED = 1_000


async def run(ground: Ground) -> list[Line]:
    sessions, interrupted, rounds = (10_000, 100, 1) if ground.quick else (SESSIONS, INTERRUPTED, 5)
    filled, empty = ground.home(), ground.home()
    await _fill(filled, sessions, interrupted)
    await _fill(empty, 0, 0)
    taken = [await _restart(ground, filled) for _ in range(rounds)]
    raw = [await _restart(ground, empty) for _ in range(rounds)]
    return [
        Line(
            what=f"restart to serving, {sessions:,} sessions",
            measured=median(taken),
            unit=Unit.SECONDS,
            detail=f"{interrupted:,} turns had been cut off; slowest of {rounds} {max(taken):.2f} s",
            raw=median(raw),
            bar=f"< {SECONDS_MAX:.0f} s",
            met=median(taken) < SECONDS_MAX,
            note="from spawning the process to /ready answering 200; raw: the same on an empty home",
        )
    ]


async def _fill(home: Path, sessions: int, interrupted: int) -> None:
    store = await open_store("sqlite", home)
    if sessions:
        await fill.running(store.database, interrupted)
        await fill.completed(store.database, interrupted + 1, sessions)
    await store.close()


async def _restart(ground: Ground, filled: Path) -> float:
    """Return the seconds that a gateway takes on a copy of a home, since each start changes what the next one finds."""
    home = ground.home()
    shutil.copytree(filled, home, dirs_exist_ok=True)
    try:
        with Gateway(home) as gateway:
            return await gateway.ready()
    finally:
        shutil.rmtree(home)
