"""What a database far away costs: an accept, a turn of three words, and fifty of them side by side."""

from __future__ import annotations

import asyncio
import itertools
import time

from tests.distance import Far, far

from bench import workload
from bench.ground import Ground
from bench.producers import median
from bench.report import Line, Unit
from holdfast.agent.scripted import Pause, Say, ScriptedAgent
from holdfast.core.intake import Inbound
from holdfast.core.sessions import Source
from holdfast.engine.engine import Engine
from holdfast.engine.tuning import Tuning
from holdfast.store.opening import open_store

SIDE_BY_SIDE = 50
# Milliseconds there and back, and what an accept, a turn and fifty turns may take.
BARS_MS: dict[int, tuple[int, int, int] | None] = {0: None, 10: None, 50: (150, 500, 2_000), 200: None}


async def run(ground: Ground) -> list[Line]:
    async with far(ground.database()) as way:
        store = await open_store(way.url, ground.folder)
        agent = ScriptedAgent([Say("three "), Pause(0), Say("short "), Pause(0), Say("words")])
        try:
            async with workload.running(store, agent, Tuning(poll_ms=10_000)) as (engine, watched):
                talk = Talk(engine, watched)
                await talk.together(SIDE_BY_SIDE)
                return [line for away in BARS_MS for line in await _at(way, talk, away, 3 if ground.quick else 7)]
        finally:
            way.round_trip_s = 0
            await store.close()


class Talk:
    """Conversations of one message each."""

    def __init__(self, engine: Engine, watched: workload.Watched) -> None:
        self._engine = engine
        self._watched = watched
        self._numbers = itertools.count(1)

    async def turn(self) -> tuple[float, float]:
        """Return after how many milliseconds a message was accepted, and its turn finished."""
        key, began = f"chat:{next(self._numbers)}", time.perf_counter()
        message = Inbound(conversation=key, text="hello", channel="chat", source=Source(chat_id=key), dedupe_key=key)
        receipt = await self._engine.inbox.accept(message)
        accepted = time.perf_counter()
        await self._watched.ended(receipt.turn_id)
        return (accepted - began) * 1000, (time.perf_counter() - began) * 1000

    async def together(self, turns: int) -> float:
        """Return how many milliseconds so many turns take side by side."""
        began = time.perf_counter()
        await asyncio.gather(*(self.turn() for _ in range(turns)))
        return (time.perf_counter() - began) * 1000


async def _at(way: Far, talk: Talk, away_ms: int, times: int) -> list[Line]:
    way.round_trip_s = away_ms / 1000
    # Connections are opened when they are needed, which is no part of what is measured.
    await talk.together(SIDE_BY_SIDE)
    accepted, finished = zip(*[await talk.turn() for _ in range(times)], strict=True)
    together = [await talk.together(SIDE_BY_SIDE) for _ in range(times)]
    measured = {"accept": median(accepted), "a turn": median(finished), f"{SIDE_BY_SIDE} turns": median(together)}
    bars = BARS_MS[away_ms] or (None,) * 3
    return [
        _line(f"{away_ms} ms away: {what}", ms, bar, away_ms) for (what, ms), bar in zip(measured.items(), bars, strict=True)
    ]


def _line(what: str, measured_ms: float, bar_ms: int | None, away_ms: int) -> Line:
    return Line(
        what=what,
        measured=measured_ms,
        unit=Unit.MILLISECONDS,
        detail=f"({measured_ms / away_ms:.1f} round trips)" if away_ms else "",
        bar=f"< {bar_ms} ms" if bar_ms else "",
        met=measured_ms < bar_ms if bar_ms else None,
    )
