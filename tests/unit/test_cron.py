"""When a job is due: by the clock on the wall, also when it is changed, or once."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from holdfast.cron import SCHEDULE_MAX, is_once, moment_of, next_instant, once, upcoming
from holdfast.errors import Rejected

BERLIN = ZoneInfo("Europe/Berlin")


def at(text: str, zone: ZoneInfo | None = None) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=zone or UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    ("schedule", "after", "due"),
    [
        ("* * * * *", "2031-05-04T09:30:00", "2031-05-04T09:31:00"),
        ("30 7 * * 1-5", "2031-05-03T07:30:00", "2031-05-05T07:30:00"),
        ("0 0 29 2 *", "2031-05-04T00:00:00", "2032-02-29T00:00:00"),
    ],
)
def test_a_cron_expression_is_due_after_and_never_at_the_instant_before(schedule: str, after: str, due: str) -> None:
    assert next_instant(schedule, at(after, BERLIN), BERLIN) == at(due, BERLIN)


def test_an_hour_that_comes_twice_is_due_once() -> None:
    """C1: in autumn half past two is there twice, and the job runs once."""
    first = next_instant("30 2 * * *", at("2031-10-26T00:00:00", BERLIN), BERLIN)
    assert next_instant("30 2 * * *", first, BERLIN) == at("2031-10-27T02:30:00", BERLIN)


def test_an_hour_that_is_left_out_is_made_up_for() -> None:
    """C1: in spring half past two does not come, and the job runs all the same."""
    due = next_instant("30 2 * * *", at("2031-03-30T00:00:00", BERLIN), BERLIN)
    assert datetime.fromtimestamp(due / 1000, BERLIN).date().isoformat() == "2031-03-30"


@pytest.mark.parametrize(
    "schedule",
    ["", "* * * *", "* * * * * *", "61 * * * *", "0 0 30 2 *", "soon", "at teatime", "@daily", f"0-{'9' * 5_000} * * * *"],
)
def test_what_is_no_schedule_is_refused(schedule: str) -> None:
    with pytest.raises(Rejected):
        next_instant(schedule, 0)
    assert upcoming(schedule, 0) is None


def test_a_moment_is_due_once() -> None:
    instant = at("2031-05-04T09:30:00")
    schedule = once(instant)
    assert is_once(schedule)
    assert next_instant(schedule, instant - 1) == instant
    with pytest.raises(Rejected, match="is in the past"):
        next_instant(schedule, instant)


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2031-05-04T09:30", at("2031-05-04T09:30:00", BERLIN)),
        ("2031-05-04 09:30", at("2031-05-04T09:30:00", BERLIN)),
        ("2031-05-04T09:30Z", at("2031-05-04T09:30:00")),
        ("2031-05-04T09:30+02:00", at("2031-05-04T07:30:00")),
    ],
)
def test_a_time_is_meant_here_unless_it_says_where(text: str, instant: int) -> None:
    assert moment_of(text, BERLIN) == instant


def test_a_schedule_has_an_end() -> None:
    """It is read again at every look at the jobs, and a long one would keep everybody waiting each time."""
    longest = "0" + ",0" * ((SCHEDULE_MAX - 10) // 2) + " * * * *"
    assert next_instant(longest, 0) > 0
    with pytest.raises(Rejected, match=f"{SCHEDULE_MAX} characters"):
        next_instant("0," * SCHEDULE_MAX + longest, 0)
