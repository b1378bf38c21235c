"""From the agent's word to its reader: written, synced, and only then shown."""

from __future__ import annotations

import asyncio
import random
import re
import time

from bench import workload
from bench.ground import Ground
from bench.limit import SqliteLimit
from bench.producers import percentile
from bench.report import Line, Unit
from holdfast.core.events import EntryKind
from holdfast.core.intake import Inbound
from holdfast.core.journal import ends_attempt
from holdfast.engine.engine import Engine
from holdfast.engine.tuning import Tuning
from holdfast.ids import SessionId
from holdfast.ports import Assignment, Stage

# What a hosted model streams.
TOKENS_PER_S = 60
# People take a tenth of a second for at once.
P99_MAX_MS = 100.0

_STAMP = re.compile(r"<(\d+)>")


class Speaker:
    """An agent whose every word carries the instant at which it was said."""

    def __init__(self, turns: int, seconds: float) -> None:
        self.together = asyncio.Barrier(turns + 1)
        self._words = int(seconds * TOKENS_PER_S)

    async def run(self, work: Assignment, stage: Stage) -> str:  # noqa: ARG002 - The shape of an agent.
        await self.together.wait()
        # Models do not speak in step.
        await asyncio.sleep(random.random() / TOKENS_PER_S)
        for _ in range(self._words):
            await stage.say(f"<{time.perf_counter_ns()}>")
            await asyncio.sleep(1 / TOKENS_PER_S)
        return "done"

    async def release(self, session_id: SessionId) -> None:
        """Hold nothing between turns."""


async def run(ground: Ground) -> list[Line]:
    seconds = 1.0 if ground.quick else 5.0
    return [await _measure(ground, turns, seconds) for turns in (1, 50)]


async def _measure(ground: Ground, turns: int, seconds: float) -> Line:
    store, _ = await ground.store("sqlite")
    speaker = Speaker(turns, seconds)
    async with workload.running(store, speaker) as (engine, _):
        receipts = [
            await engine.inbox.accept(Inbound(conversation=f"chat:{number}", text="speak", channel="chat"))
            for number in range(turns)
        ]
        listening = asyncio.gather(*(_listen(engine, receipt.session_id) for receipt in receipts))
        # By then the followers have caught up with the past, and only live words are left to measure.
        await asyncio.sleep(0.2)
        await speaker.together.wait()
        heard = await listening
    await store.close()
    latencies = [each for one in heard for each in one]
    p99 = percentile(latencies, 99)
    return Line(
        what=f"word to reader, {turns} turns at {TOKENS_PER_S} words/s",
        measured=percentile(latencies, 50),
        unit=Unit.MILLISECONDS,
        detail=f"p99 {p99:.1f} ms of {len(latencies):,} words",
        raw=await _plain(ground, turns, seconds / 5),
        bar=f"p99 < {P99_MAX_MS:.0f} ms",
        met=p99 < P99_MAX_MS,
        note=f"Holdfast gathers words for up to {Tuning().batch_ms} ms before it writes; raw writes each by itself",
    )


async def _listen(engine: Engine, session_id: SessionId) -> list[float]:
    latencies: list[float] = []
    async for entry in engine.feed.follow(session_id):
        now = time.perf_counter_ns()
        if entry.kind is EntryKind.TEXT:
            latencies += [(now - int(stamp)) / 1e6 for stamp in _STAMP.findall(str(entry.data["text"]))]
        if ends_attempt(entry.event):
            break
    return latencies


async def _plain(ground: Ground, turns: int, seconds: float) -> float:
    """Return the median milliseconds of one durable row, written at the same pace."""
    raw = SqliteLimit(str(ground.home() / "plain.db"))
    latencies: list[float] = []

    async def speak() -> None:
        for _ in range(int(seconds * TOKENS_PER_S)):
            began = time.perf_counter()
            await raw.write({"small": [("key", "a few words ")]})
            latencies.append((time.perf_counter() - began) * 1000)
            await asyncio.sleep(1 / TOKENS_PER_S)

    await asyncio.gather(*(speak() for _ in range(turns)))
    await raw.close()
    return percentile(latencies, 50)
