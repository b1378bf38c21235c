"""Many producers at once, each waiting for one operation before it begins the next."""

from __future__ import annotations

import asyncio
import itertools
import statistics
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import psutil

PRODUCERS = 50

Operation = Callable[[int, int], Awaitable[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What the producers saw in one round, and what it cost this process."""

    seconds: float
    latencies_ms: list[float]
    cpu_s: float
    # By the name of the thread: where the time went.
    threads_s: dict[str, float] = field(default_factory=dict[str, float])

    @property
    def rate(self) -> float:
        return len(self.latencies_ms) / self.seconds

    @property
    def cpu_ms(self) -> float:
        """The processor time of one operation."""
        return self.cpu_s * 1000 / len(self.latencies_ms)

    def percentile_ms(self, percent: float) -> float:
        return percentile(self.latencies_ms, percent)


async def produce(operation: Operation, seconds: float, producers: int = PRODUCERS) -> Round:
    """Run `operation(producer, nth)` from every producer, again and again, for a while."""
    numbers = itertools.count()
    latencies: list[float] = []

    async def one(producer: int) -> None:
        while time.perf_counter() < deadline:
            began = time.perf_counter()
            await operation(producer, next(numbers))
            latencies.append((time.perf_counter() - began) * 1000)

    threads, cpu, began = _threads(), time.process_time(), time.perf_counter()
    deadline = began + seconds
    await asyncio.gather(*map(one, range(producers)))
    taken = time.perf_counter() - began
    spent = {name: used - threads.get(name, 0) for name, used in _threads().items()}
    return Round(seconds=taken, latencies_ms=latencies, cpu_s=time.process_time() - cpu, threads_s=spent)


def percentile(values: Sequence[float], percent: float) -> float:
    return sorted(values)[min(int(len(values) * percent / 100), len(values) - 1)]


def median_round(rounds: Sequence[Round]) -> Round:
    """Return the round with the median rate."""
    return sorted(rounds, key=lambda each: each.rate)[len(rounds) // 2]


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def _threads() -> dict[str, float]:
    names = {thread.native_id: thread.name for thread in threading.enumerate()}
    used: dict[str, float] = {}
    for each in psutil.Process().threads():
        name = names.get(each.id, "others")
        used[name] = used.get(name, 0) + each.user_time + each.system_time
    return used
