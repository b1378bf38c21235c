"""Time that cannot jump: what a clock says is followed, doubted or believed, in every order in which it can happen."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.core.timekeeping import BELIEVED_AFTER_MS, EARLIEST_MS, STEP_MAX_MS, Steady, follow, lead, off_ms, span

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
YEAR_MS = 365 * DAY_MS
# What the clock is right with.
RIGHT = EARLIEST_MS + YEAR_MS

errors = st.one_of(
    st.integers(-STEP_MAX_MS, STEP_MAX_MS),
    st.integers(-40 * YEAR_MS, 40 * YEAR_MS),
    st.sampled_from([DAY_MS, 2 * HOUR_MS, -2 * HOUR_MS, STEP_MAX_MS + 1, -STEP_MAX_MS - 1]),
)
jumps = st.one_of(st.integers(STEP_MAX_MS + 1, 40 * YEAR_MS), st.integers(-YEAR_MS + 1, -STEP_MAX_MS - 1))
pauses = st.one_of(st.integers(0, 5_000), st.integers(0, 2 * BELIEVED_AFTER_MS))


def looked(looks: list[tuple[int, int]], before: Steady | None = None) -> Steady:
    """Follow a clock through looks at it: how wrong it is, and how much time has passed."""
    for error, passed in looks:
        before = follow(before, RIGHT + passed + error, passed)
    assert before is not None
    return before


def believed(looks: list[tuple[int, int]]) -> int:
    """Return the error that must be believed after these looks, from all of them and the definition alone."""
    current, since = looks[0][0], 0
    for number, (error, passed) in enumerate(looks):
        if abs(error - current) <= STEP_MAX_MS:
            current, since = error, number + 1
        elif abs(error - looks[since][0]) > STEP_MAX_MS:
            since = number
        elif passed - looks[since][1] >= BELIEVED_AFTER_MS:
            current, since = error, number + 1
    return current


def test_every_short_history_of_a_clock_is_judged_by_the_definition() -> None:
    """C1: all histories of four looks, over every kind of error and every kind of pause."""
    kinds = [0, STEP_MAX_MS, STEP_MAX_MS + 1, DAY_MS, DAY_MS + STEP_MAX_MS, -5 * HOUR_MS]
    waits = [1_000, BELIEVED_AFTER_MS - 1, BELIEVED_AFTER_MS]
    for first, *rest in product(kinds, *[list(product(kinds, waits))] * 3):
        looks = [(first, 0)]
        for error, wait in rest:
            looks.append((error, looks[-1][1] + wait))
        assert looked(looks).offset_ms == RIGHT + believed(looks), looks


@given(st.lists(st.tuples(errors, pauses), min_size=1, max_size=12))
@example([(0, 0), (DAY_MS, 0), (DAY_MS, BELIEVED_AFTER_MS), (0, 0)])
def test_longer_histories_are_too(steps: list[tuple[int, int]]) -> None:
    passed, looks = 0, list[tuple[int, int]]()
    for error, pause in steps:
        passed += pause
        looks.append((max(error, -YEAR_MS + 1), passed))
    assert looked(looks).offset_ms == RIGHT + believed(looks)


@given(st.integers(-STEP_MAX_MS, STEP_MAX_MS))
def test_a_step_of_seconds_is_followed_at_once(step: int) -> None:
    """What a time server does is right."""
    assert looked([(0, 0), (step, 1_000)]) == Steady(offset_ms=RIGHT + step)


@given(jumps, st.lists(st.integers(0, BELIEVED_AFTER_MS - 1), min_size=1, max_size=20))
def test_a_jump_that_does_not_last_leaves_no_trace(jump: int, moments: list[int]) -> None:
    """C1: while it lasts time goes on as if nothing had happened, and when it is over nothing has."""
    steady = looked([(0, 0)])
    for passed in sorted(moments):
        steady = follow(steady, RIGHT + passed + jump, passed)
        assert steady.at(passed) == RIGHT + passed
    after = max(moments) + 1
    assert follow(steady, RIGHT + after, after) == Steady(offset_ms=RIGHT)


@given(jumps, st.integers(1, 2_000))
def test_a_jump_that_lasts_is_believed(jump: int, look_ms: int) -> None:
    """A machine that stood still, or had no time at its start, is not behind for ever."""
    looks = [(0, 0), *((jump, passed) for passed in range(1, BELIEVED_AFTER_MS + 2 * look_ms, look_ms * 50))]
    assert looked([*looks, (jump, BELIEVED_AFTER_MS + 1)]) == Steady(offset_ms=RIGHT + jump)


def test_a_clock_that_goes_mad_is_never_believed() -> None:
    looks = [(0, 0), *((number * HOUR_MS, number * 1_000) for number in range(1, 2_000))]
    assert looked(looks).offset_ms == RIGHT


@given(st.integers(0, EARLIEST_MS - 1), st.integers(EARLIEST_MS, EARLIEST_MS + 40 * YEAR_MS), st.integers(0, DAY_MS))
def test_a_time_that_cannot_be_is_corrected_at_once(wrong: int, right: int, up: int) -> None:
    """A machine without a clock of its own begins in 1970, or when it was last shut down, and learns the time later."""
    steady = follow(None, wrong, 0)
    if steady.at(up) < EARLIEST_MS:
        assert follow(steady, right + up, up) == Steady(offset_ms=right)


@given(st.integers(1, 30 * DAY_MS))
def test_sleep_is_no_jump(slept: int) -> None:
    """Both clocks go on while a machine sleeps."""
    assert looked([(0, 0), (0, slept)]) == Steady(offset_ms=RIGHT)


@pytest.mark.parametrize(
    ("machine", "clock", "steady", "off"),
    [
        (0, 0, 0, 0),
        (DAY_MS, 0, 0, DAY_MS),
        (0, DAY_MS, 0, -DAY_MS),
        (DAY_MS, DAY_MS, 0, DAY_MS),
        (0, DAY_MS, DAY_MS, -DAY_MS),
        (-HOUR_MS, 0, 0, -HOUR_MS),
    ],
)
def test_a_clock_is_off_from_whatever_it_is_further_from(machine: int, clock: int, steady: int, off: int) -> None:
    """Also where machine and database have one clock, which has jumped for both."""
    assert off_ms(machine, clock, steady) == off


@pytest.mark.parametrize(
    ("off", "words"),
    [(6_000, "6 s ahead"), (-119_000, "119 s behind"), (300_000, "5 min ahead"), (DAY_MS, "24 h ahead")],
)
def test_how_far_a_clock_is_off_is_said_in_words(off: int, words: str) -> None:
    assert lead(off) == words
    assert span(abs(off)) == words.rpartition(" ")[0]
