"""A node whose machine has a clock that is set: instants, expiry and retention go on by the time that has passed."""

from __future__ import annotations

import time
from typing import Any

import pytest

from holdfast.clock import SystemClock
from holdfast.core.intake import Receipt
from holdfast.core.schedule import Job, JobOutcome
from holdfast.core.timekeeping import BELIEVED_AFTER_MS, EARLIEST_MS, STEP_MAX_MS, BootClock
from holdfast.engine.scheduler import Scheduler
from holdfast.engine.timekeeper import ANSWER_MAX_MS, SteadyClock, Timekeeper, steady_clock
from holdfast.ids import NodeId, new_node_id
from holdfast.store.store import Store
from tests.engine.world import FAST, Altered, ManualClock, Open, opened

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
# Past by every clock, so that no database objects.
NOW = EARLIEST_MS + 100 * DAY


class Machine(ManualClock):
    """A machine with a clock that can be set, which moves only when it is told to."""

    def __init__(self, now_ms: int = NOW, passed_ms: int = 5_000, boot: str = "one") -> None:
        super().__init__(now_ms)
        self._passed_ms = passed_ms
        self._boot = boot
        self.ahead_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.ahead_ms

    def passed_ms(self) -> int:
        return self._passed_ms

    def boot(self) -> str:
        return self._boot

    def passes(self, duration_ms: int) -> None:
        self._now_ms += duration_ms
        self._passed_ms += duration_ms


def database_at(store: Store, *told: int | None, took_ms: int = 0, machine: Machine | None = None) -> Any:
    """A store whose clock says one thing after the other, and the last for ever."""
    answers = list(told)

    async def database_ms() -> int | None:
        if machine:
            machine.passes(took_ms)
        return answers.pop(0) if len(answers) > 1 else answers[0]

    return Altered(store.nodes, database_ms=database_ms)


def every_minute(_schedule: str, after: int) -> int:
    return (after // MINUTE + 1) * MINUTE


def job(**changes: Any) -> Job:
    facts = {"owner": "local", "schedule": "minutely", "prompt": "Report.", "created_at": NOW, "last_instant": NOW}
    return Job(**{**facts, "name": "report", **changes})


async def slots(store: Store) -> list[tuple[int, JobOutcome]]:
    return [(each.instant, each.outcome) for each in reversed(await store.jobs.slots("report", limit=10_000))]


async def joined(store: Store) -> NodeId:
    node_id = new_node_id(NOW)
    await store.nodes.join(node_id, NOW)
    return node_id


@pytest.mark.parametrize("ahead_ms", [DAY, 2 * HOUR, -2 * HOUR])
async def test_a_clock_that_is_set_wrong_for_a_while_changes_nothing_for_a_job(open_it: Open, ahead_ms: int) -> None:
    """C1: each minute runs when it has come, before, while and after; none is missed, and none fires twice."""
    machine = Machine()
    clock = SteadyClock(machine)
    async with opened(open_it) as store:
        await store.jobs.save(job())
        scheduler = Scheduler(store, FAST, clock, next_due=every_minute)
        for minute in range(1, 10):
            machine.ahead_ms = ahead_ms if 3 <= minute < 7 else 0
            machine.passes(MINUTE)
            clock.look()
            await scheduler.fire_due()
            assert await slots(store) == [(NOW + number * MINUTE, JobOutcome.DUE) for number in range(1, minute + 1)]


async def test_a_clock_that_learns_the_time_late_fires_the_newest_only(open_it: Open) -> None:
    """C1: a machine that was off for years, and began in 1970, fires neither nothing nor everything."""
    machine = Machine(now_ms=MINUTE)
    clock = SteadyClock(machine)
    async with opened(open_it) as store:
        await store.jobs.save(job(last_instant=NOW - 400 * DAY, created_at=NOW - 900 * DAY))
        daily = Scheduler(store, FAST, clock, next_due=lambda _, at: (at // DAY + 1) * DAY)
        await daily.fire_due()
        assert await slots(store) == []
        machine.ahead_ms = NOW
        machine.passes(1_000)
        clock.look()
        await daily.fire_due()
        found = await slots(store)
        assert len(found) == 31
        assert {outcome for _, outcome in found[:-1]} == {JobOutcome.MISSED}
        assert found[-1][0] == NOW // DAY * DAY


async def test_a_jump_that_lasts_is_believed_and_its_newest_instant_fires(open_it: Open) -> None:
    """C1: a machine that stood still goes on like one that has slept."""
    machine = Machine()
    clock = SteadyClock(machine)
    async with opened(open_it) as store:
        await store.jobs.save(job())
        scheduler = Scheduler(store, FAST, clock, next_due=every_minute)
        await scheduler.fire_due()
        machine.ahead_ms = 5 * MINUTE + 1
        for _ in range(10 * BELIEVED_AFTER_MS // MINUTE):
            machine.passes(MINUTE // 10)
            clock.look()
            await scheduler.fire_due()
        served = BELIEVED_AFTER_MS // MINUTE
        assert [instant for instant, _ in await slots(store)] == [NOW + number * MINUTE for number in range(1, served + 1)]
        machine.passes(MINUTE // 10)
        clock.look()
        await scheduler.fire_due()
        found = await slots(store)
        assert [instant for instant, _ in found] == [NOW + number * MINUTE for number in range(1, served + 6)]
        assert [outcome for _, outcome in found[-5:]] == [JobOutcome.MISSED] * 4 + [JobOutcome.DUE]


async def test_a_job_that_an_earlier_clock_led_astray_comes_back(open_it: Open) -> None:
    """C1: what was missed ahead of time is due when it comes; what was fired then is not fired again."""
    async with opened(open_it) as store:
        await store.jobs.save(job())
        ahead = Scheduler(Altered(store, jobs=Altered(store.jobs, rewind=None)), FAST, ManualClock(NOW + 10 * MINUTE),
                          next_due=every_minute)  # fmt: skip
        await ahead.fire_due()
        assert [outcome for _, outcome in await slots(store)] == [JobOutcome.MISSED] * 9 + [JobOutcome.DUE]
        clock = ManualClock(NOW + 30_000)
        back = Scheduler(store, FAST, clock, next_due=every_minute)
        for _ in range(12):
            await back.fire_due()
            await clock.advance(MINUTE)
        found = await slots(store)
        assert found == [(NOW + number * MINUTE, JobOutcome.DUE) for number in range(1, 12)]
        # What was fired ahead of time has one turn, and is not looked at again.
        assert (await store.jobs.find("report") or job()).last_instant == NOW + 11 * MINUTE
        assert len({each.turn_id for each in await store.jobs.slots("report")}) == 11


async def test_an_instant_that_was_fired_ahead_of_time_is_passed_by_when_it_comes(open_it: Open) -> None:
    """C1: it is looked at once, and the next one is waited for."""
    async with opened(open_it) as store:
        tried: list[int] = []

        async def fire(name: str, instant: int, *rest: Any) -> Receipt:
            tried.append(instant)
            return await store.jobs.fire(name, instant, *rest)

        counted = Altered(store, jobs=Altered(store.jobs, fire=fire))
        await store.jobs.save(job())
        for now in (NOW + HOUR, NOW, NOW + HOUR, NOW + HOUR, NOW + HOUR):
            await Scheduler(counted, FAST, ManualClock(now), next_due=lambda _, at: (at // HOUR + 1) * HOUR).fire_due()
        assert tried == [NOW + HOUR] * 2
        assert await slots(store) == [(NOW + HOUR, JobOutcome.DUE)]


async def test_a_clock_that_cannot_be_brings_no_job_back(open_it: Open) -> None:
    """C1: a machine that begins in 1970 has not come back from the future."""
    async with opened(open_it) as store:
        await store.jobs.save(job())
        await store.jobs.miss("report", NOW + MINUTE)
        await Scheduler(store, FAST, ManualClock(EARLIEST_MS - 1), next_due=every_minute).fire_due()
        assert await slots(store) == [(NOW + MINUTE, JobOutcome.MISSED)]


async def test_the_clock_of_the_database_is_followed_and_the_machines_is_not(open_it: Open) -> None:
    """C1: from the first moment on, whatever the machine's own clock says."""
    machine = Machine()
    machine.ahead_ms = DAY
    async with opened(open_it) as store:
        clock = await steady_clock(machine, database_at(store, NOW))
        assert clock.now_ms() == NOW
        assert clock.off_ms == DAY
        machine.ahead_ms = 3 * DAY
        machine.passes(MINUTE)
        assert clock.now_ms() == NOW + MINUTE
        assert clock.off_ms == 3 * DAY


async def test_the_database_may_be_asked_late_and_is_believed_then(open_it: Open) -> None:
    """C1: an answer that took too long says nothing; the first one that says something is believed at once."""
    machine = Machine()
    machine.ahead_ms = DAY
    async with opened(open_it) as store:
        slow = database_at(store, NOW, took_ms=ANSWER_MAX_MS + 1, machine=machine)
        clock = await steady_clock(machine, slow)
        assert clock.now_ms() == machine.now_ms()
        node = await joined(store)
        await Timekeeper(node, database_at(store, NOW), clock, FAST).look()
        assert clock.now_ms() == NOW


async def test_a_database_whose_clock_jumps_is_doubted_like_any_other(open_it: Open) -> None:
    """C1: every node is told of, because nobody can know who is right."""
    machine = Machine()
    async with opened(open_it) as store:
        node, nodes = await joined(store), database_at(store, NOW, NOW, NOW + DAY)
        clock = await steady_clock(machine, nodes)
        keeper = Timekeeper(node, nodes, clock, FAST)
        await keeper.look()
        assert await store.nodes.clocks_off() == {}
        await keeper.look()
        assert clock.now_ms() == NOW
        assert await store.nodes.clocks_off() == {node: -DAY}


async def test_a_node_says_that_its_clock_is_off_until_it_is_right_again(open_it: Open) -> None:
    machine = Machine()
    async with opened(open_it) as store:
        node = await joined(store)
        clock = SteadyClock(machine)
        keeper = Timekeeper(node, database_at(store, None), clock, FAST)
        seen = list[dict[NodeId, int]]()
        for ahead in (0, 4_000, STEP_MAX_MS, DAY, DAY, 2 * DAY, 0):
            machine.ahead_ms = ahead
            machine.passes(1_000)
            await keeper.look()
            seen.append(await store.nodes.clocks_off())
        # A step that is followed at once makes no clock wrong; the jump is measured from where the last step led.
        off = [{}, {}, {}, {node: DAY - STEP_MAX_MS}, {node: DAY - STEP_MAX_MS}, {node: 2 * DAY - STEP_MAX_MS}, {}]
        assert seen == off


async def test_what_is_known_of_the_time_outlives_the_process_and_not_the_start_of_the_machine(open_it: Open) -> None:
    """C1: whoever restarts a gateway because of a wrong clock does not make it worse."""
    async with opened(open_it) as store:
        unknown = database_at(store, None)
        machine = Machine()
        await Timekeeper(await joined(store), unknown, await steady_clock(machine, unknown), FAST).look()
        machine.ahead_ms = DAY
        machine.passes(HOUR)
        assert (await steady_clock(machine, unknown)).now_ms() == NOW + HOUR
        elsewhere = Machine(boot="another")
        elsewhere.ahead_ms = DAY
        assert (await steady_clock(elsewhere, unknown)).now_ms() == NOW + DAY
        unnamed = Machine(boot="")
        unnamed.ahead_ms = DAY
        assert (await steady_clock(unnamed, unknown)).now_ms() == NOW + DAY


async def test_the_store_is_written_to_only_when_something_is_new(open_it: Open) -> None:
    async with opened(open_it) as store:
        noted: list[BootClock] = []

        async def note_clock(_node_id: NodeId, clock: BootClock) -> None:
            noted.append(clock)

        machine = Machine()
        nodes = Altered(database_at(store, None), note_clock=note_clock)
        keeper = Timekeeper(NodeId("n"), nodes, SteadyClock(machine), FAST)
        for ahead in (0, 0, 1_000, -2_000, 0, DAY, DAY, DAY + 3_000, 0, 0):
            machine.ahead_ms = ahead
            machine.passes(1_000)
            await keeper.look()
        assert [each.off_ms for each in noted] == [0, DAY, 0]


def test_the_machines_own_clocks_go_on_together() -> None:
    clock = SystemClock()
    before = clock.passed_ms()
    assert clock.passed_ms() >= before > 0
    assert clock.boot() == clock.boot()
    assert abs(SteadyClock(clock).now_ms() - time.time() * 1000) < 1_000
