"""Sweeps: lives that are killed beside one point after the other, until one ends of itself."""

from __future__ import annotations

import itertools
import queue
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests import scratch
from tests.crash.forking import Death, Warm
from tests.crash.life import Case, Life, When

# Lives on until everything is at rest, and requires that nothing shows of the deaths before.
Converge = Callable[[Path, Sequence[Death]], None]

WORKERS = 2
# Far more points than any life has; a life that never ends of itself must not sweep for ever.
POINTS_MAX = 2_000


class Lives:
    """Warm processes, and homes in memory for the lives they live: what a killed process wrote is in the page cache."""

    def __init__(self, folder: Path, warm: Sequence[Warm[Life]]) -> None:
        self._folder = folder
        self._idle: queue.SimpleQueue[Warm[Life]] = queue.SimpleQueue()
        for each in warm:
            self._idle.put(each)
        self._homes = itertools.count(1)

    def live(self, home: Path, case: Case, nth: int | None = None, when: When = "before") -> Death:
        warm = self._idle.get()
        try:
            return warm.live(Life(home=str(home), case=case, nth=nth, when=when))
        finally:
            self._idle.put(warm)

    def new_home(self, like: Path | None = None) -> Path:
        home = self._folder / str(next(self._homes))
        if like is None:
            home.mkdir()
        else:
            shutil.copytree(like, home)
        return home

    def sweep(self, points: Sequence[int], kill: Callable[[int], bool]) -> int:
        """Kill beside each point until `kill` says that a life ended of itself; returns how many points there were."""
        left = iter(points)
        tried: list[bool] = []

        def work() -> None:
            for point in left:
                tried.append(kill(point))
                if not tried[-1]:
                    return

        with ThreadPoolExecutor(WORKERS) as pool:
            for done in [pool.submit(work) for _ in range(WORKERS)]:
                done.result()
        assert not all(tried), "no life ended of itself"
        return sum(tried)

    def kill_once(self, born: Path, case: Case, when: When, points: Sequence[int], converge: Converge) -> int:
        """Kill the whole life of a case beside each of the points; returns how many of them there were."""

        def kill(point: int) -> bool:
            home = self.new_home(like=born)
            killed = self.live(home, case, point, when)
            converge(home, [killed])
            shutil.rmtree(home)
            return killed.status != 0

        return self.sweep(points, kill)

    def kill_twice(self, born: Path, case: Case, when: When, strides: tuple[int, int], converge: Converge) -> None:
        """Kill a life, and then its recovery.  Only some first deaths have a second, beside only some of its points."""
        first_stride, second_stride = strides

        def kill(first: int) -> bool:
            killed_once = self.new_home(like=born)
            once = self.live(killed_once, case, first, when)
            # Each start lies elsewhere, so that together the recoveries are killed beside every point.
            for second in range(1 + first % second_stride, POINTS_MAX, second_stride):
                home = self.new_home(like=killed_once)
                twice = self.live(home, case, second, when)
                converge(home, [once, twice])
                shutil.rmtree(home)
                if twice.status == 0:
                    break
            shutil.rmtree(killed_once)
            return once.status != 0

        self.sweep(range(1, POINTS_MAX, first_stride), kill)

    def born(self) -> Path:
        """Return a home whose store has its schema and nothing else, to be copied."""
        home = self.new_home()
        assert self.live(home, "birth").status == 0
        return home


@contextmanager
def lives_of(module: str) -> Iterator[Lives]:
    """Yield lives of a module that serves them."""
    with ExitStack() as stack:
        folder = stack.enter_context(scratch.folder())
        yield Lives(folder, [stack.enter_context(Warm[Life](module)) for _ in range(WORKERS)])
