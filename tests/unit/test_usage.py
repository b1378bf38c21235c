"""Budgets: what has been used, and when a person is asked."""

from __future__ import annotations

import pytest

from holdfast.core.usage import Limit, Scope, Spent, Usage, passed

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
    ("tokens", "cost", "again", "asks"),
    [
        (0, 0, 0, False),
        (101, 0, 0, False),
        (100, 0, 0, True),
        (99, 0, 0, True),
        (0, 501, 0, False),
        (0, 500, 0, True),
        (1_000, 500, 0, True),
        (100, 0, 1, False),
        (50, 0, 1, True),
        (0, 250, 1, True),
        (0, 251, 1, False),
    ],
)
def test_a_budget_that_is_used_up_asks_and_one_that_is_not_does_not(
    scope: Scope, tokens: int, cost: int, again: int, asks: bool
) -> None:
    limit = Limit(scope=scope, tokens=tokens, cost_micros=cost)
    spent = Spent(**{scope.value: USED})
    assert passed((limit,), spent, again) == (limit if asks else None)


def test_the_first_limit_that_is_used_up_is_named() -> None:
    limits = (Limit(scope=Scope.TURN, tokens=1_000), Limit(scope=Scope.DAY, tokens=10), Limit(scope=Scope.SESSION, tokens=1))
    assert passed(limits, Spent().plus(USED)) == limits[1]
