"""Budgets: what a turn, a session or a day may cost before a person is asked whether to go on."""

from __future__ import annotations

from holdfast.config import BudgetConfig
from holdfast.core.questions import About, Question
from holdfast.core.usage import CONTINUE, Limit, Scope, Spent, Usage, question_id
from holdfast.ports import Stage

STOP = "stop"

_MICROS = 1_000_000
_NAMES = {Scope.TURN: "this turn", Scope.SESSION: "this conversation", Scope.DAY: "today"}


def limits(config: BudgetConfig) -> tuple[Limit, ...]:
    """Return the limits that an operator has set."""
    wanted = (
        Limit(scope=Scope.TURN, tokens=config.turn_tokens, cost_micros=round(config.turn_usd * _MICROS)),
        Limit(scope=Scope.SESSION, tokens=config.session_tokens, cost_micros=round(config.session_usd * _MICROS)),
        Limit(scope=Scope.DAY, tokens=config.day_tokens, cost_micros=round(config.day_usd * _MICROS)),
    )
    return tuple(limit for limit in wanted if limit.tokens or limit.cost_micros)


async def refusal(limits: tuple[Limit, ...], spent: Spent, stage: Stage) -> str | None:
    """Return why a turn stops, if a person has said so; None if it goes on.  Until the person answers, it is parked."""
    for limit in limits:
        times = limit.times_passed(spent)
        if not times or question_id(limit.scope, times) in spent.allowed:
            continue
        if (await stage.ask(question(limit, spent, times))).strip().lower() != CONTINUE:
            return f"I stopped here: {used_up(limit, spent)}."
    return None


def question(limit: Limit, spent: Spent, times: int) -> Question:
    """Return the question once a limit is used up; going on allows the same amount again."""
    return Question(
        id=question_id(limit.scope, times),
        text=f"{used_up(limit, spent).capitalize()}. Go on with as much again?",
        about=About.BUDGET,
        choices=(CONTINUE, STOP),
    )


def used_up(limit: Limit, spent: Spent) -> str:
    """Describe the usage and the limit."""
    return f"the budget for {_NAMES[limit.scope]} is used up ({_amounts(limit, spent.of(limit.scope))})"


def _amounts(limit: Limit, used: Usage) -> str:
    tokens = f"{used.tokens:,} of {limit.tokens:,} tokens" if limit.tokens else ""
    cost = f"${used.cost_micros / _MICROS:.2f} of ${limit.cost_micros / _MICROS:.2f}" if limit.cost_micros else ""
    return ", ".join(amount for amount in (tokens, cost) if amount)
