"""Jobs, over a real engine and store."""

from __future__ import annotations

import pytest

from holdfast.clock import SystemClock
from holdfast.errors import NotFound, Rejected
from holdfast.operations.jobs import Plan
from tests.engine.world import ManualClock, Open, opened, running_engine
from tests.operations.asking import Asking, services_of


async def test_a_job_is_added_changed_paused_run_and_removed(open_it: Open) -> None:
    async with opened(open_it) as store, running_engine(store, Asking()) as engine:
        services = services_of(store, engine)
        jobs = services.jobs
        job = await jobs.save(Plan(name="tides", schedule="30 7 * * *", prompt="ask when", deliver="log"))
        assert job.next_at
        assert (job.schedule, job.paused, job.deliver) == ("30 7 * * *", False, "log")
        assert (await jobs.pause("tides")).next_at is None
        changed = await jobs.save(Plan(name="tides", schedule="0 8 * * *", prompt="ask when", deliver="chat:1"))
        # A change lets it rest as before.
        assert (changed.schedule, changed.paused, changed.deliver) == ("0 8 * * *", True, "chat:1")
        assert not (await jobs.resume("tides")).paused
        receipt = await jobs.run("tides")
        assert (await services.sessions.get(receipt.session_id)).channel == "cron"
        (slot,) = (await jobs.get("tides")).slots
        assert slot.turn_id == receipt.turn_id
        assert [each.name for each in (await jobs.list()).items] == ["tides"]
        other = services_of(store, engine, owner="somebody").jobs
        assert (await other.list()).items == []
        for ask in (other.get("tides"), other.run("tides"), other.remove("tides"), jobs.pause("none")):
            with pytest.raises(NotFound):
                await ask
        with pytest.raises(Rejected, match="taken"):
            await other.save(Plan(name="tides", schedule="* * * * *", prompt="mine"))
        await jobs.remove("tides")
        assert (await jobs.list()).items == []


async def test_a_job_runs_each_time_it_is_told_to_whatever_the_clock_says(open_it: Open) -> None:
    clock = ManualClock(SystemClock().now_ms())
    async with opened(open_it) as store, running_engine(store, Asking()) as engine:
        jobs = services_of(store, engine, clock=clock).jobs
        await jobs.save(Plan(name="tides", schedule="30 7 * * *", prompt="ask when"))
        runs = [await jobs.run("tides"), await jobs.run("tides")]
        await clock.advance(-3_600_000)
        runs.append(await jobs.run("tides"))
        assert len({run.turn_id for run in runs}) == len((await jobs.get("tides")).slots) == 3


@pytest.mark.parametrize(
    ("plan", "problem"),
    [
        (Plan(name="a", schedule="often", prompt="p"), "is not a schedule"),
        (Plan(name="a", schedule="61 * * * *", prompt="p"), "is not a schedule"),
        (Plan(name="", schedule="* * * * *", prompt="p"), "name of a job"),
        (Plan(name="a\nb", schedule="* * * * *", prompt="p"), "name of a job"),
        (Plan(name="a", schedule="* * * * *", prompt=" "), "prompt of a job"),
        (Plan(name="a", schedule="* * * * *", prompt="p", deliver="nowhere:1"), "'nowhere:1'; targets are chat:<address>"),
        (Plan(name="a", schedule="* * * * *", prompt="p", deliver="chat:nobody"), "'chat:nobody' is nobody: use a number"),
    ],
)
async def test_a_job_that_cannot_be_is_refused(open_it: Open, plan: Plan, problem: str) -> None:
    async with opened(open_it) as store, running_engine(store, Asking()) as engine:
        with pytest.raises(Rejected, match=problem):
            await services_of(store, engine).jobs.save(plan)
