"""The supervisor: a crash is a pause, a fatal error is the end, and cancellation is stop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

import pytest

from holdfast.engine.supervisor import HEALTHY_MS, WAIT_FIRST_MS, WAIT_MAX_MS, supervise
from holdfast.errors import NodeLost, StoreBroken, StoreDown
from tests.engine.world import DEADLINE_S, ManualClock, until


class Component:
    """Runs by its script, one line per start: an exception to crash with at once, or what to wait for before the next."""

    def __init__(self, *script: BaseException | Callable[[], Awaitable[None]]) -> None:
        self.starts = 0
        self.stopped = False
        self._script = list(script)

    async def run(self) -> None:
        self.starts += 1
        line = self._script.pop(0) if self._script else self._for_ever
        if isinstance(line, BaseException):
            raise line
        await line()
        raise RuntimeError("the run is over")

    async def _for_ever(self) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.stopped = True
            raise


@asynccontextmanager
async def supervised(components: Mapping[str, Component], clock: ManualClock) -> AsyncIterator[asyncio.Task[None]]:
    """Supervise components for as long as the context lasts."""
    task = asyncio.create_task(supervise({name: each.run for name, each in components.items()}, clock))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_component_that_crashed_starts_again_after_longer_and_longer_waits() -> None:
    clock, component = ManualClock(), Component(*(RuntimeError(f"crash {number}") for number in range(10)))
    expected = [min(WAIT_FIRST_MS * 2**number, WAIT_MAX_MS) for number in range(10)]
    async with supervised({"component": component}, clock):
        for crashes, wait_ms in enumerate(expected, 1):
            await clock.asleep(crashes)
            await clock.advance(wait_ms - 1)
            assert component.starts == crashes, "started before its time"
            await clock.advance(1)
            await until(lambda after=crashes: component.starts == after + 1)
    assert clock.naps == expected
    assert (expected[0], expected[-1]) == (WAIT_FIRST_MS, WAIT_MAX_MS)


async def test_a_long_healthy_run_makes_the_waits_begin_anew() -> None:
    clock = ManualClock()

    def run_for(duration_ms: int) -> Callable[[], Awaitable[None]]:
        return lambda: clock.sleep_ms(duration_ms)

    script = (RuntimeError(), RuntimeError(), run_for(HEALTHY_MS - 1), RuntimeError(), run_for(HEALTHY_MS), RuntimeError())
    component = Component(*script)
    async with supervised({"component": component}, clock):
        for nap in range(1, 9):
            await clock.asleep(nap)
            await clock.advance(clock.naps[-1])
        await until(lambda: component.starts == 7)
    waits = [nap for nap in clock.naps if nap < HEALTHY_MS - 1]
    assert waits == [100, 200, 400, 800, 100, 200], "only the whole minute counts as healthy"


async def test_the_neighbours_of_a_crashed_component_go_on() -> None:
    clock = ManualClock()
    crashing, healthy = Component(RuntimeError("crash")), Component()
    async with supervised({"crashing": crashing, "healthy": healthy}, clock):
        await clock.asleep(1)
        await clock.advance(WAIT_FIRST_MS)
        await until(lambda: crashing.starts == 2)
        assert (healthy.starts, healthy.stopped) == (1, False)


async def test_a_crash_is_logged_with_its_component_and_cause(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    async with supervised({"outbox": Component(StoreDown("it went away"))}, clock):
        await clock.asleep(1)
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.getMessage() == "outbox crashed; starting it again"
    assert "it went away" in caplog.text


async def test_something_cancelled_inside_a_component_is_a_crash_of_it_and_not_its_end() -> None:
    """A cancelled future, which nobody meant for the component, must not end it without a word."""
    clock, component = ManualClock(), Component(asyncio.CancelledError())
    async with supervised({"component": component}, clock):
        await clock.asleep(1)
        await clock.advance(WAIT_FIRST_MS)
        await until(lambda: component.starts == 2)


async def _in_a_task_group(error: Exception) -> None:
    """Fail like a component whose own task fails, two groups deep, beside a crash that is not fatal."""

    async def fail() -> None:
        raise error

    async def crash() -> None:
        raise RuntimeError("not fatal")

    async def inner() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(crash())
            group.create_task(fail())

    async with asyncio.TaskGroup() as group:
        group.create_task(inner())


@pytest.mark.parametrize("nested", [False, True], ids=["raised", "raised in nested groups"])
async def test_a_fatal_error_stops_everything_and_surfaces_as_itself(nested: bool) -> None:
    fatal = NodeLost("the others gave our turns away")
    dying = Component((lambda: _in_a_task_group(fatal)) if nested else fatal)
    healthy, resting = Component(), Component(RuntimeError("rests until its next start"))
    components = {"healthy": healthy, "resting": resting, "dying": dying}
    async with supervised(components, ManualClock()) as task, asyncio.timeout(DEADLINE_S):
        with pytest.raises(NodeLost) as caught:
            await task
    assert caught.value is fatal
    assert (healthy.stopped, resting.starts, dying.starts) == (True, 1, 1)


async def test_of_two_fatal_errors_one_surfaces() -> None:
    fatal = (NodeLost("first"), StoreBroken("second"))
    components = {"first": Component(fatal[0]), "second": Component(fatal[1])}
    async with supervised(components, ManualClock()) as task, asyncio.timeout(DEADLINE_S):
        with pytest.raises((NodeLost, StoreBroken)) as caught:
            await task
    assert caught.value in fatal


async def test_cancellation_is_stop(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    running, resting = Component(), Component(RuntimeError("rests until its next start"))
    async with supervised({"running": running, "resting": resting}, clock) as task:
        await clock.asleep(1)
        caplog.clear()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert (running.starts, running.stopped, resting.starts) == (1, True, 1)
    assert caplog.records == [], "a stop is not a crash"
    assert len(clock.naps) == 1
