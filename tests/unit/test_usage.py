"""Budgets: what has been used, and when a person is asked."""

from __future__ import annotations

import pytest

from holdfast.core.usage import Limit, Scope, Spent, Usage

USED = Usage(model="m", input_tokens=60, output_tokens=40, cached_tokens=10, cost_micros=500)


def test_usage_adds_up() -> None:
    total = USED + Usage(model="other", input_tokens=1, output_tokens=2, cached_tokens=3, cost_micros=4)
    assert total == Usage(model="m", input_tokens=61, output_tokens=42, cached_tokens=13, cost_micros=504)
    assert total.tokens == 103


def test_one_more_call_counts_in_every_scope() -> None:
    spent = Spent(session=USED, day=USED + USED).plus(USED)
    assert [spent.turn.tokens, spent.session.tokens, spent.day.tokens] == [100, 200, 300]


@pytest.mark.parametrize("scope", Scope)
@pytest.mark.parametrize(
    ("tokens", "cost", "times"),
    [(0, 0, 0), (101, 0, 0), (100, 0, 1), (99, 0, 1), (51, 0, 1), (50, 0, 2), (0, 501, 0), (0, 500, 1), (1_000, 250, 2)],
)
def test_a_person_is_asked_once_each_time_a_limit_is_used_up(scope: Scope, tokens: int, cost: int, times: int) -> None:
    limit = Limit(scope=scope, tokens=tokens, cost_micros=cost)
    assert limit.times_passed(Spent(**{scope.value: USED})) == times
    assert limit.times_passed(Spent()) == 0


def test_tokens_or_dollars_whichever_is_used_up_more_often() -> None:
    limit = Limit(scope=Scope.DAY, tokens=100, cost_micros=1_000_000)
    assert limit.times_passed(Spent(day=Usage(input_tokens=10, cost_micros=2_500_000))) == 2
    assert limit.times_passed(Spent(day=Usage(input_tokens=310, cost_micros=1))) == 3
