"""Jobs fire when they are due: each instant once, on whatever node, and however the clock jumps."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from holdfast.agent.scripted import Say, ScriptedAgent
from holdfast.core.schedule import Fired, Job, JobOutcome, Slot
from holdfast.core.turns import Mode, TurnState
from holdfast.cron import next_instant, once
from holdfast.engine.scheduler import GRACE_MS, Scheduler, newest_only
from holdfast.errors import Rejected, Unavailable
from holdfast.store.store import Store
from tests.engine.world import FAST, START, Altered, LosingAnswer, ManualClock, Open, opened, running_engine, until

MINUTE = 60_000
HOUR = 60 * MINUTE
FIRST = START - START % HOUR + HOUR


def hourly(schedule: str, after: int) -> int:
    if schedule == "never":
        raise Rejected("never")
    return (after // HOUR + 1) * HOUR


def job(name: str = "report", **changes: Any) -> Job:
    facts = {"owner": "local", "schedule": "hourly", "prompt": "Report.", "created_at": START, "last_instant": START}
    return Job(**{**facts, "name": name, **changes})


def scheduler(store: Any, clock: ManualClock, **changes: Any) -> Scheduler:
    return Scheduler(store, FAST, clock, **{"next_due": hourly, **changes})


async def slots(store: Store, name: str = "report") -> list[tuple[int, JobOutcome]]:
    return [(each.instant, each.outcome) for each in reversed(await store.jobs.slots(name))]


@asynccontextmanager
async def at_work(component: Scheduler) -> AsyncIterator[None]:
    task = asyncio.create_task(component.run())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_a_due_job_runs_in_a_session_of_its_own_that_ends_with_it(open_it: Open) -> None:
    """W4, R10: a cron run is detached, and its session ends as cron_complete."""
    async with opened(open_it) as store:
        await store.jobs.save(job(deliver="chat:1"))
        clock = ManualClock(FIRST)
        await scheduler(store, clock).fire_due()
        (slot,) = await store.jobs.slots("report")
        assert slot.turn_id is not None
        turn = await store.turns.get(slot.turn_id)
        assert (turn.mode, turn.reply_to, turn.state) == (Mode.DETACHED, "chat:1", TurnState.QUEUED)
        async with running_engine(store, ScriptedAgent(lambda work: [Say("done")]), clock=ManualClock(FIRST)):
            await until(lambda: _ran(store, slot))
        session = await store.sessions.get(turn.session_id)
        assert (session.channel, session.key) == ("cron", f"cron:report:{FIRST}")
        assert session.end_reason == "cron_complete"


async def _ran(store: Store, slot: Fired) -> bool:
    return [each.outcome for each in await store.jobs.slots("report")] == [JobOutcome.RAN]


@pytest.mark.parametrize(("deliver", "target"), [(None, None), ("log", None), ("chat:1", "chat:1")])
async def test_a_run_can_deliver_later_where_it_is_delivered_at_all(
    open_it: Open, deliver: str | None, target: str | None
) -> None:
    """A2: what nobody is told of now, nobody can be told of later."""
    async with opened(open_it) as store:
        await store.jobs.save(job(deliver=deliver))
        await scheduler(store, ManualClock(FIRST)).fire_due()
        (turn_id,) = [slot.turn_id for slot in await store.jobs.slots("report")]
        assert turn_id is not None
        turn = await store.turns.get(turn_id)
        assert (turn.reply_to, turn.delivers_later) == (target, target is not None)


async def test_it_waits_for_the_clock_and_fires_each_instant(open_it: Open) -> None:
    async with opened(open_it) as store:
        await store.jobs.save(job())
        clock = ManualClock(FIRST - 5)
        async with at_work(scheduler(store, clock)):
            await clock.asleep(1)
            assert clock.naps == [5]
            assert await slots(store) == []
            await clock.advance(5)
            await clock.asleep(2)
            assert await slots(store) == [(FIRST, JobOutcome.DUE)]
            assert clock.naps[1] == FAST.poll_ms


async def test_looking_again_fires_nothing_twice(open_it: Open) -> None:
    """C1: the same instant, looked at again, is left alone."""
    async with opened(open_it) as store:
        await store.jobs.save(job())
        clock = ManualClock(FIRST)
        for _ in range(3):
            await scheduler(store, clock).fire_due()
        assert await slots(store) == [(FIRST, JobOutcome.DUE)]


async def test_a_clock_that_jumps_back_fires_nothing_twice(open_it: Open) -> None:
    """C1: what has a slot keeps it, whatever time it is."""
    async with opened(open_it) as store:
        await store.jobs.save(job())
        for now in (FIRST, FIRST + HOUR, FIRST - MINUTE, FIRST, FIRST + HOUR + MINUTE, FIRST + 2 * HOUR):
            await scheduler(store, ManualClock(now)).fire_due()
        assert [instant for instant, _ in await slots(store)] == [FIRST, FIRST + HOUR, FIRST + 2 * HOUR]


async def test_a_clock_that_jumps_forward_misses_what_is_too_old_and_fires_the_newest(open_it: Open) -> None:
    """C1: every skipped instant has its outcome, and only the last one still runs."""
    async with opened(open_it) as store:
        await store.jobs.save(job())
        await scheduler(store, ManualClock(FIRST + 5 * HOUR + MINUTE)).fire_due()
        assert await slots(store) == [
            *((FIRST + hours * HOUR, JobOutcome.MISSED) for hours in range(5)),
            (FIRST + 5 * HOUR, JobOutcome.DUE),
        ]


async def test_an_instant_that_is_older_than_the_grace_is_missed(open_it: Open) -> None:
    async with opened(open_it) as store:
        await store.jobs.save(job())
        late = scheduler(
            store, ManualClock(FIRST + GRACE_MS + 1), next_due=lambda _, at: FIRST if at < FIRST else FIRST + 9 * HOUR
        )
        await late.fire_due()
        assert await slots(store) == [(FIRST, JobOutcome.MISSED)]


async def test_what_is_due_once_fires_late_rather_than_never_and_never_again(open_it: Open) -> None:
    async with opened(open_it) as store:
        await store.jobs.save(job(schedule=once(FIRST)))
        for days in (2, 3, 400):
            await scheduler(store, ManualClock(FIRST + days * 24 * HOUR), next_due=next_instant).fire_due()
        assert await slots(store) == [(FIRST, JobOutcome.DUE)]


async def test_a_paused_job_misses_its_instants_and_does_not_catch_up(open_it: Open) -> None:
    async with opened(open_it) as store:
        await store.jobs.save(job(paused=True))
        await scheduler(store, ManualClock(FIRST)).fire_due()
        await store.jobs.save(job())
        await scheduler(store, ManualClock(FIRST + MINUTE)).fire_due()
        assert await slots(store) == [(FIRST, JobOutcome.MISSED)]
        await scheduler(store, ManualClock(FIRST + HOUR)).fire_due()
        assert (await slots(store))[-1] == (FIRST + HOUR, JobOutcome.DUE)


async def test_two_nodes_fire_one_instant_once(open_it: Open, store_url: str) -> None:
    """C1: on a shared database the slots decide, however many look at once."""
    async with opened(open_it) as store:
        nodes = [store]
        if store_url != "sqlite":
            nodes += [await open_it() for _ in range(3)]
        await store.jobs.save(job())
        await store.jobs.save(job("other"))
        try:
            await asyncio.gather(*(scheduler(each, ManualClock(FIRST)).fire_due() for each in nodes * 2))
        finally:
            for each in nodes[1:]:
                await each.close()
        assert await slots(store) == await slots(store, "other") == [(FIRST, JobOutcome.DUE)]
        assert (await store.turns.tally())[TurnState.QUEUED] == 2


async def test_a_store_that_goes_away_is_asked_again(open_it: Open) -> None:
    """A2: an instant whose firing was cut off is found again, and has one turn."""
    async with opened(open_it) as store:
        await store.jobs.save(job())
        fire = LosingAnswer(store.jobs.fire)
        clock = ManualClock(FIRST)
        async with at_work(scheduler(Altered(store, jobs=Altered(store.jobs, fire=fire)), clock)):
            await clock.asleep(1)
            await clock.advance(FAST.poll_ms)
            await clock.asleep(2)
        assert fire.calls == 1
        assert await slots(store) == [(FIRST, JobOutcome.DUE)]


async def test_a_store_that_is_away_from_the_start_stops_nobody(open_it: Open) -> None:
    class Away:
        looks = 0

        async def list(self) -> list[Job]:
            self.looks += 1
            raise Unavailable("gone")

    async with opened(open_it) as store:
        away, clock = Away(), ManualClock(FIRST)
        async with at_work(scheduler(Altered(store, jobs=away), clock)):
            await clock.asleep(1)
            await clock.advance(FAST.poll_ms)
            await clock.asleep(2)
        assert away.looks == 2


async def test_a_schedule_that_is_none_harms_no_other_job(open_it: Open) -> None:
    async with opened(open_it) as store:
        await store.jobs.save(job("broken", schedule="never"))
        await store.jobs.save(job())
        await scheduler(store, ManualClock(FIRST)).fire_due()
        assert await slots(store, "broken") == []
        assert await slots(store) == [(FIRST, JobOutcome.DUE)]


async def test_an_instant_that_another_job_of_the_same_name_had_is_missed(open_it: Open) -> None:
    """A3: the key of the instant is used up, and nobody tries it for ever."""
    async with opened(open_it) as store:
        await store.jobs.save(job())
        await scheduler(store, ManualClock(FIRST)).fire_due()
        await store.jobs.remove("report")
        await store.jobs.save(job(prompt="Something else."))
        for _ in range(2):
            await scheduler(store, ManualClock(FIRST + MINUTE)).fire_due()
        assert await slots(store) == [(FIRST, JobOutcome.MISSED)]


async def test_an_engine_runs_its_jobs_by_itself(open_it: Open) -> None:
    """R10: nobody has to ask; a real cron expression is read as one."""
    async with opened(open_it) as store:
        minute = START - START % MINUTE
        await store.jobs.save(job(schedule="* * * * *", last_instant=minute - MINUTE))
        clock = ManualClock(minute)
        async with running_engine(store, ScriptedAgent(lambda work: [Say("done")]), clock=clock):
            await until(lambda: _has_slots(store))
        assert (await slots(store))[0][0] == minute


async def _has_slots(store: Store) -> bool:
    return bool(await store.jobs.slots("report"))


@pytest.mark.parametrize(
    ("fires", "left"),
    [([], []), ([False, False], [False, False]), ([False, True, True], [False, False, True]), ([True], [True])],
)
def test_of_many_that_are_due_at_once_the_newest_fires(fires: list[bool], left: list[bool]) -> None:
    found = newest_only([Slot(instant=number, fires=each) for number, each in enumerate(fires)])
    assert [slot.fires for slot in found] == left
