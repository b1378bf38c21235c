"""What an operator allows, and what a person is asked when it is used up."""

from __future__ import annotations

from holdfast.agent.budget import limits, question, used_up
from holdfast.config import BudgetConfig
from holdfast.core.questions import About
from holdfast.core.usage import Limit, Scope, Spent, Usage


def spent(tokens: int = 0, cost_micros: int = 0) -> Spent:
    return Spent().plus(Usage(input_tokens=tokens, cost_micros=cost_micros))


def test_only_what_was_set_is_a_limit() -> None:
    assert limits(BudgetConfig()) == ()
    assert limits(BudgetConfig(turn_tokens=5, day_usd=0.1)) == (
        Limit(scope=Scope.TURN, tokens=5),
        Limit(scope=Scope.DAY, cost_micros=100_000),
    )


def test_the_question_says_what_was_used_and_of_what() -> None:
    limit = Limit(scope=Scope.DAY, tokens=1_000, cost_micros=2_000_000)
    used = spent(tokens=1_234, cost_micros=500_000)
    assert used_up(limit, used) == "the budget for today is used up (1,234 of 1,000 tokens, $0.50 of $2.00)"
    asked = question(limit, used, 1)
    assert (asked.id, asked.about, asked.choices) == ("budget:day:1", About.BUDGET, ("continue", "stop"))
    assert asked.text.startswith("The budget for today is used up (1,234 of 1,000 tokens")
