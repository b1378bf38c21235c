"""When a conversation gives way to a new one, over every choice of the operator."""

from __future__ import annotations

import pytest

from holdfast.core.resets import Reason, Reset, When

NOW = 100_000_000
IDLE = 1_000
# Last used before or after the daily reset, and longer ago than the idle time or not.
CASES = [
    (When.NONE, NOW - IDLE - 1, NOW - 1, None),
    (When.IDLE, NOW - IDLE + 1, NOW - 1, None),
    (When.IDLE, NOW - IDLE, NOW - 1, Reason.IDLE),
    (When.DAILY, NOW - IDLE - 1, NOW - IDLE - 1, None),
    (When.DAILY, NOW - IDLE - 1, NOW - IDLE, Reason.DAILY),
    (When.DAILY, NOW - 5, NOW, Reason.DAILY),
    (When.DAILY, NOW - 5, NOW + 1, None),
    (When.BOTH, NOW - IDLE, NOW - 1, Reason.IDLE),
    (When.BOTH, NOW - 5, NOW - 1, Reason.DAILY),
    (When.BOTH, NOW - 5, NOW - 6, None),
]


@pytest.mark.parametrize(("when", "last_used_at", "day_began_at", "reason"), CASES)
def test_a_session_gives_way_when_the_operator_said_so(
    when: When, last_used_at: int, day_began_at: int, reason: Reason | None
) -> None:
    reset = Reset(when=when, idle_ms=IDLE, day_began_at=day_began_at)
    assert reset.due(last_used_at=last_used_at, now_ms=NOW, held=False) is reason
    assert reset.due(last_used_at=last_used_at, now_ms=NOW, held=True) is None


def test_every_choice_is_tried() -> None:
    assert {case[0] for case in CASES} == set(When)
    assert {case[3] for case in CASES} == {None, *Reason}
