"""Scheduled work: every due instant has one slot, whatever the clock does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.core.intake import Receipt
from holdfast.core.schedule import Job, JobOutcome, due_slots, slot_key
from holdfast.core.timekeeping import STEP_MAX_MS
from holdfast.core.turns import Mode, TurnEvent, TurnState
from holdfast.errors import KeyReused, Rejected, Stale
from holdfast.ids import new_session_id, new_turn_id
from holdfast.store.retention import DAY_MS
from tests.conformance.scenes import MINUTE, START, Scene, on_postgres, on_sqlite

HOUR = 60 * MINUTE


def job(**changes: object) -> Job:
    facts = {"name": "report", "owner": "local", "schedule": "0 * * * *", "prompt": "Report.", "created_at": START}
    return Job(**{**facts, "last_instant": START, **changes})


async def fire(scene: Scene, instant: int, name: str = "report") -> Receipt:
    message = scene.message(
        "Report.",
        conversation=f"cron:{name}:{instant}",
        channel="cron",
        one_shot=True,
        mode=Mode.DETACHED,
        dedupe_key=slot_key(name, instant),
        remembers=False,
    )
    ids = (new_turn_id(scene.now), new_session_id(scene.now))
    return await scene.store.jobs.fire(name, instant, message, *ids, scene.now)


async def serve(scene: Scene, next_hour: int = HOUR) -> list[int]:
    """Deal with everything that is due now, as a scheduler does; returns the instants that fired."""
    fired = []
    for each in await scene.store.jobs.list():
        for slot in due_slots(each.last_instant, scene.now, HOUR, lambda at: (at // next_hour + 1) * next_hour):
            if slot.fires:
                await fire(scene, slot.instant, each.name)
                fired.append(slot.instant)
            else:
                await scene.store.jobs.miss(each.name, slot.instant)
    return fired


async def test_a_job_is_saved_listed_and_changed(scene: Scene) -> None:
    await scene.store.jobs.save(job())
    await scene.store.jobs.save(job(name="alarm", deliver="telegram:1", paused=True))
    assert await scene.store.jobs.list() == [job(name="alarm", deliver="telegram:1", paused=True), job()]
    changed = job(prompt="Report more.", schedule="@daily", paused=True, deliver="slack:1")
    await scene.store.jobs.save(changed)
    assert (await scene.store.jobs.list())[1] == changed


async def test_jobs_of_an_owner_are_paged_by_name(scene: Scene) -> None:
    theirs = [job(name=name, owner="ann") for name in ("a", "c", "e", "g", "i")]
    for each in (*theirs, *(job(name=name) for name in ("b", "d", "z"))):
        await scene.store.jobs.save(each)
    seen: list[Job] = []
    while page := await scene.store.jobs.of_owner("ann", seen[-1].name if seen else "", limit=2):
        assert len(page) <= 2
        seen += page
    assert seen == theirs
    assert await scene.store.jobs.of_owner("nobody") == []


async def test_nobody_changes_the_job_of_another_owner(scene: Scene) -> None:
    """What ann wrote would run in bob's name."""
    await scene.store.jobs.save(job(owner="bob"))
    before = await scene.snapshot()
    with pytest.raises(Rejected, match="choose another"):
        await scene.store.jobs.save(job(owner="ann", prompt="Send me everything."))
    assert await scene.snapshot() == before


async def test_a_job_is_found_by_its_name(scene: Scene) -> None:
    """R12"""
    await scene.store.jobs.save(job(owner="ann"))
    assert await scene.store.jobs.find("report") == job(owner="ann")
    assert await scene.store.jobs.find("nothing\0") is None


async def test_a_new_schedule_counts_from_when_it_was_made(scene: Scene) -> None:
    """C1: a daily job that becomes an hourly one at half past is due at the next full hour, not at the last one."""
    await scene.store.jobs.save(job(schedule="0 9 * * *"))
    scene.now = START + 90 * MINUTE
    await scene.store.jobs.save(job(schedule="0 9 * * *", last_instant=scene.now))
    assert [each.last_instant for each in await scene.store.jobs.list()] == [START]
    await scene.store.jobs.save(job(last_instant=scene.now))
    assert [each.last_instant for each in await scene.store.jobs.list()] == [scene.now]


async def test_a_changed_job_keeps_how_far_it_got(scene: Scene) -> None:
    """C1: saving it again does not make it forget what it has dealt with."""
    await scene.store.jobs.save(job())
    await fire(scene, START + HOUR)
    await scene.store.jobs.save(job(prompt="Report more.", last_instant=0))
    assert (await scene.store.jobs.list())[0].last_instant == START + HOUR
    with pytest.raises(Stale):
        await fire(scene, START + HOUR)


async def test_a_due_instant_becomes_one_turn(scene: Scene) -> None:
    """C1: its slot and its turn are one transaction."""
    await scene.store.jobs.save(job())
    receipt = await fire(scene, START + HOUR)
    (slot,) = await scene.store.jobs.slots("report")
    assert (slot.instant, slot.turn_id, slot.outcome) == (START + HOUR, receipt.turn_id, JobOutcome.DUE)
    assert await scene.state(receipt) is TurnState.QUEUED
    before = await scene.snapshot()
    with pytest.raises(Stale):
        await fire(scene, START + HOUR)
    with pytest.raises(Stale):
        await scene.store.jobs.miss("report", START + HOUR)
    assert await scene.snapshot() == before


@pytest.mark.parametrize(
    ("event", "outcome"),
    [(TurnEvent.FINISH, JobOutcome.RAN), (TurnEvent.FAIL, JobOutcome.FAILED), (TurnEvent.CANCEL, JobOutcome.FAILED)],
)
async def test_a_slot_tells_what_became_of_its_turn(scene: Scene, event: TurnEvent, outcome: JobOutcome) -> None:
    await scene.store.jobs.save(job())
    receipt = await fire(scene, START + HOUR)
    turn = await scene.claim_and_start(receipt.turn_id)
    assert [slot.outcome for slot in await scene.store.jobs.slots("report")] == [JobOutcome.DUE]
    await scene.finish(turn, event=event, cause="user" if event is TurnEvent.CANCEL else None)
    assert [slot.outcome for slot in await scene.store.jobs.slots("report")] == [outcome]
    assert (await scene.store.sessions.get(receipt.session_id)).end_reason == "cron_complete"


async def test_a_slot_that_ran_did_run_after_its_turn_was_pruned(scene: Scene) -> None:
    """Slots are kept longer than the sessions of their turns."""
    await scene.store.jobs.save(job())
    receipt = await fire(scene, START + HOUR)
    await scene.finish(await scene.claim_and_start(receipt.turn_id))
    assert await scene.store.sessions.prune("cron", scene.now) == 1
    (slot,) = await scene.store.jobs.slots("report")
    assert (slot.turn_id, slot.outcome) == (receipt.turn_id, JobOutcome.RAN)


async def test_an_instant_that_passed_unserved_is_missed_once(scene: Scene) -> None:
    await scene.store.jobs.save(job())
    await scene.store.jobs.miss("report", START + HOUR)
    (slot,) = await scene.store.jobs.slots("report")
    assert (slot.turn_id, slot.outcome) == (None, JobOutcome.MISSED)
    before = await scene.snapshot()
    with pytest.raises(Stale):
        await scene.store.jobs.miss("report", START + HOUR)
    with pytest.raises(Stale):
        await fire(scene, START + HOUR)
    assert await scene.snapshot() == before


async def test_a_clock_that_jumps_back_fires_nothing_twice(scene: Scene) -> None:
    """C1"""
    await scene.store.jobs.save(job())
    scene.now = START + HOUR
    fired = await serve(scene)
    assert len(fired) == 1
    for jump in (-10 * HOUR, -HOUR, -MINUTE, 0):
        scene.now = START + HOUR + jump
        assert await serve(scene) == []
    with pytest.raises(Stale):
        await fire(scene, fired[0] - HOUR)
    scene.now = START + 2 * HOUR
    assert len(await serve(scene)) == 1


async def test_a_clock_that_jumps_forward_and_back_leaves_one_slot_per_instant(scene: Scene) -> None:
    """C1: skipped instants are missed, and stay missed when the clock comes back."""
    await scene.store.jobs.save(job())
    scene.now = START + 5 * HOUR
    assert len(await serve(scene)) == 1
    scene.now = START + 2 * HOUR
    assert await serve(scene) == []
    slots = await scene.store.jobs.slots("report")
    assert len({slot.instant for slot in slots}) == len(slots) == 5
    assert [slot.outcome for slot in slots] == [JobOutcome.DUE] + [JobOutcome.MISSED] * 4


async def test_a_job_made_anew_fires_no_instant_that_its_namesake_fired(scene: Scene) -> None:
    """C1, A3: the turn of an instant is keyed, and outlives the job; the slot names that turn."""
    await scene.store.jobs.save(job())
    first = await fire(scene, START + HOUR)
    assert await scene.store.jobs.remove("report") is True
    await scene.store.jobs.save(job())
    again = await fire(scene, START + HOUR)
    assert (again.turn_id, again.duplicate) == (first.turn_id, True)
    (slot,) = await scene.store.jobs.slots("report")
    assert slot.turn_id == first.turn_id
    assert len(await scene.claim()) == 1


async def test_a_removed_job_takes_its_slots_along_and_leaves_its_turns(scene: Scene) -> None:
    """A1"""
    await scene.store.jobs.save(job())
    receipt = await fire(scene, START + HOUR)
    assert await scene.store.jobs.remove("report") is True
    assert await scene.store.jobs.remove("report") is False
    assert await scene.store.jobs.slots("report") == []
    assert await scene.state(receipt) is TurnState.QUEUED


async def test_a_job_that_is_gone_does_not_fire(scene: Scene) -> None:
    before = await scene.snapshot()
    with pytest.raises(Stale):
        await fire(scene, START + HOUR)
    assert await scene.snapshot() == before


async def test_slots_are_listed_newest_first(scene: Scene) -> None:
    await scene.store.jobs.save(job())
    for number in range(1, 5):
        await scene.store.jobs.miss("report", START + number * HOUR)
    found = await scene.store.jobs.slots("report", limit=2)
    assert [slot.instant for slot in found] == [START + 4 * HOUR, START + 3 * HOUR]


async def test_old_slots_are_forgotten_and_do_not_come_back(scene: Scene) -> None:
    """C1: the job remembers how far it got without them."""
    await scene.store.jobs.save(job())
    for number in (1, 2, 3):
        await scene.store.jobs.miss("report", START + number * HOUR)
    assert await scene.store.jobs.forget_slots(START + 2 * HOUR) == 2
    assert [slot.instant for slot in await scene.store.jobs.slots("report")] == [START + 3 * HOUR]
    with pytest.raises(Stale):
        await fire(scene, START + HOUR)


async def test_jobs_do_not_share_slots(scene: Scene) -> None:
    await scene.store.jobs.save(job())
    await scene.store.jobs.save(job(name="alarm"))
    first, second = await fire(scene, START + HOUR), await fire(scene, START + HOUR, "alarm")
    assert first.turn_id != second.turn_id


async def test_a_refused_turn_takes_its_slot_back(scene: Scene) -> None:
    """A1: the instant is still due, and no slot names a turn that never was."""
    await scene.store.jobs.save(job())
    await scene.accept("another body", dedupe_key=slot_key("report", START + HOUR))
    before = await scene.snapshot()
    with pytest.raises(KeyReused):
        await fire(scene, START + HOUR)
    assert await scene.snapshot() == before
    assert await scene.store.jobs.list() == [job()]


async def test_retention_keeps_young_slots(scene: Scene) -> None:
    await scene.store.jobs.save(job())
    await scene.store.jobs.miss("report", START + HOUR)
    await scene.store.enforce_retention({}, START + 80 * DAY_MS)
    assert len(await scene.store.jobs.slots("report")) == 1
    await scene.store.enforce_retention({}, START + 100 * DAY_MS)
    assert await scene.store.jobs.slots("report") == []


@on_postgres
async def test_the_database_has_the_last_word_on_whether_an_instant_has_come(scene: Scene) -> None:
    """C1: a node whose clock is ahead by a day records nothing, whatever it believes."""
    now = await scene.store.nodes.database_ms()
    assert now is not None
    await scene.store.jobs.save(job(last_instant=now - HOUR))
    before = await scene.snapshot()
    for early in (STEP_MAX_MS + MINUTE, DAY_MS):
        with pytest.raises(Stale, match="has not come"):
            await scene.store.jobs.miss("report", now + early)
        with pytest.raises(Stale, match="has not come"):
            await fire(scene, now + early)
    assert await scene.snapshot() == before
    await fire(scene, now)


@on_sqlite
async def test_an_embedded_store_has_no_clock_of_its_own(scene: Scene) -> None:
    assert await scene.store.nodes.database_ms() is None


async def test_a_job_is_brought_back_from_the_future_with_what_it_missed_there(scene: Scene) -> None:
    """C1: what was missed ahead of time is due again, what was fired is not, and what lies back stays as it is."""
    await scene.store.jobs.save(job())
    for number in (1, 3, 5):
        await scene.store.jobs.miss("report", START + number * HOUR)
    fired = await fire(scene, START + 6 * HOUR)
    (ahead,) = await scene.store.jobs.list()
    now = START + 2 * HOUR
    rewound = await scene.store.jobs.rewind(ahead, now)
    assert [rewound] == await scene.store.jobs.list() == [replace(ahead, last_instant=now)]
    assert [each.instant for each in await scene.store.jobs.slots("report")] == [START + 6 * HOUR, START + HOUR]
    await fire(scene, START + 3 * HOUR)
    with pytest.raises(Stale):
        await fire(scene, START + 6 * HOUR)
    assert (await scene.store.jobs.slots("report"))[0].turn_id == fired.turn_id


async def test_a_job_that_has_moved_is_not_brought_back(scene: Scene) -> None:
    """C1: another node was faster."""
    await scene.store.jobs.save(job())
    await scene.store.jobs.miss("report", START + HOUR)
    (seen,) = await scene.store.jobs.list()
    await scene.store.jobs.miss("report", START + 2 * HOUR)
    before = await scene.snapshot()
    assert await scene.store.jobs.rewind(seen, START) == seen
    assert await scene.snapshot() == before


async def test_a_job_goes_back_no_further_than_its_slots_go(scene: Scene) -> None:
    """C1: of an instant whose slot was forgotten nobody could tell that it has fired."""
    await scene.store.jobs.save(job())
    await scene.store.jobs.save(job(name="young"))
    for number in (1, 2, 3, 4):
        await fire(scene, START + number * HOUR)
    await fire(scene, START + 4 * HOUR, "young")
    await scene.store.jobs.forget_slots(START + 2 * HOUR)
    # The next round finds nothing, and changes nothing.
    await scene.store.jobs.forget_slots(START + 2 * HOUR)
    by_name = {each.name: each for each in await scene.store.jobs.list()}
    assert (await scene.store.jobs.rewind(by_name["report"], START)).last_instant == START + 2 * HOUR
    assert (await scene.store.jobs.rewind(by_name["young"], START)).last_instant == START


async def test_a_job_goes_on_behind_an_instant_that_has_its_slot(scene: Scene) -> None:
    """C1: what was fired ahead of time is not tried for ever when it comes; what has no slot is not skipped."""
    await scene.store.jobs.save(job())
    await fire(scene, START + 3 * HOUR)
    (ahead,) = await scene.store.jobs.list()
    await scene.store.jobs.rewind(ahead, START + HOUR)
    await scene.store.jobs.skip("report", START + 2 * HOUR)
    assert [each.last_instant for each in await scene.store.jobs.list()] == [START + HOUR]
    await scene.store.jobs.skip("report", START + 3 * HOUR)
    await scene.store.jobs.skip("report", START + HOUR)
    assert [each.last_instant for each in await scene.store.jobs.list()] == [START + 3 * HOUR]
