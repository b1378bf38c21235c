"""Due instants: each is listed once and none is skipped, however the clock behaves."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.core.schedule import HORIZON_MS, JobOutcome, Slot, due_slots, outcome, slot_key
from holdfast.core.turns import TurnState

HOUR_MS = 3_600_000
NEVER = 2**62
SPAN_MS = 4 * HORIZON_MS

# Some clocks jitter, some jump by hours, some by years; a schedule may be regular or not.
moments = st.one_of(st.integers(0, SPAN_MS), st.integers(0, 48).map(lambda hours: hours * HOUR_MS))
clocks = st.lists(moments, min_size=1, max_size=12)
schedules = st.one_of(
    st.lists(st.integers(1, SPAN_MS), max_size=60).map(lambda instants: sorted(set(instants))),
    st.integers(6, 100).map(lambda hours: list(range(hours * HOUR_MS, SPAN_MS, hours * HOUR_MS))),
)


def next_of(instants: list[int]) -> Callable[[int], int]:
    def next_instant(after: int) -> int:
        index = bisect_right(instants, after)
        return instants[index] if index < len(instants) else NEVER

    return next_instant


def instants_of(slots: list[Slot]) -> list[int]:
    return [slot.instant for slot in slots]


@given(schedules, clocks)
@example([1, 2, 3], [2, 0, 3, 3, 1])
def test_no_instant_is_listed_twice_however_the_clock_jumps(schedule: list[int], clock: list[int]) -> None:
    """C1: a clock set back and forth again fires no job twice."""
    after, listed = 0, list[int]()
    for now in clock:
        slots = instants_of(due_slots(after, now, HOUR_MS, next_of(schedule)))
        listed += slots
        after = max([after, *slots])
    assert listed == sorted(set(listed))


@given(schedules, clocks)
@example([HOUR_MS], [HORIZON_MS + HOUR_MS])
@example([HOUR_MS + 1], [HORIZON_MS + HOUR_MS])
def test_no_instant_within_the_horizon_is_skipped(schedule: list[int], clock: list[int]) -> None:
    """C1: every instant that the clock has passed is listed, unless the clock was a whole horizon beyond it by then."""
    after, listed, too_old = 0, set[int](), set[int]()
    for now in clock:
        slots = instants_of(due_slots(after, now, HOUR_MS, next_of(schedule)))
        listed.update(slots)
        after = max([after, *slots])
        too_old |= {instant for instant in schedule if instant <= now - HORIZON_MS} - listed
        assert {instant for instant in schedule if instant <= now} <= listed | too_old


@given(schedules, clocks, st.data())
def test_what_was_listed_and_not_recorded_is_listed_again(
    schedule: list[int], clock: list[int], data: st.DataObject
) -> None:
    """C1, P1: a crash between two slots loses none and repeats none."""
    after, recorded, too_old = 0, list[int](), set[int]()
    for now in [*clock, max(clock)]:
        slots = instants_of(due_slots(after, now, HOUR_MS, next_of(schedule)))
        survives = len(slots) if now == max(clock) else data.draw(st.integers(0, len(slots)))
        recorded += slots[:survives]
        after = max([after, *slots[:survives]])
        too_old |= {instant for instant in schedule if instant <= now - HORIZON_MS}
    assert recorded == sorted(set(recorded))
    assert {instant for instant in schedule if instant <= max(clock)} - too_old <= set(recorded)


@given(schedules, moments, moments, st.integers(0, 3 * HOUR_MS))
def test_an_instant_fires_while_it_is_within_the_grace(schedule: list[int], after: int, now: int, grace: int) -> None:
    """C1: what is older is recorded as missed, and not fired as if nothing had happened."""
    for slot in due_slots(after, now, grace, next_of(schedule)):
        assert slot.fires is (now - slot.instant <= grace)
        assert after < slot.instant <= now


@pytest.mark.parametrize(("late_ms", "fires"), [(0, True), (HOUR_MS, True), (HOUR_MS + 1, False)])
def test_the_grace_includes_its_last_moment(late_ms: int, fires: bool) -> None:
    assert due_slots(0, 5 + late_ms, HOUR_MS, next_of([5])) == [Slot(instant=5, fires=fires)]


def test_a_clock_that_was_years_ahead_lists_no_more_than_the_horizon() -> None:
    """C1: every minute of ten years would be five million turns."""
    ten_years, minute = 3_650 * 24 * HOUR_MS, 60_000
    slots = due_slots(0, ten_years, HOUR_MS, lambda after: after - after % minute + minute)
    assert len(slots) == HORIZON_MS // minute


OUTCOMES = {
    None: JobOutcome.MISSED,
    TurnState.QUEUED: JobOutcome.DUE,
    TurnState.RUNNING: JobOutcome.DUE,
    TurnState.WAITING: JobOutcome.DUE,
    TurnState.COMPLETED: JobOutcome.RAN,
    TurnState.FAILED: JobOutcome.FAILED,
    TurnState.CANCELLED: JobOutcome.FAILED,
    TurnState.INTERRUPTED: JobOutcome.FAILED,
}


@pytest.mark.parametrize("state", [None, *TurnState])
def test_the_outcome_of_a_slot_is_that_of_its_turn(state: TurnState | None) -> None:
    """A1: every due instant ends ran, missed or failed."""
    assert outcome(state) is OUTCOMES[state]


@given(st.text(), st.integers(), st.text(), st.integers())
@example("a", 12, "a1", 2)
@example("a", 12, "a:1", 2)
def test_two_instants_never_share_a_key(job: str, instant: int, other_job: str, other_instant: int) -> None:
    """A3, C1: one turn per job and instant, whoever fires it."""
    same = (job, instant) == (other_job, other_instant)
    assert (slot_key(job, instant) == slot_key(other_job, other_instant)) is same
