"""What a turn costs, and the budgets that it may not pass unasked."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Self


class Scope(StrEnum):
    """What a budget is for."""

    TURN = "turn"
    SESSION = "session"
    DAY = "day"


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one or many model calls.  Cost is in millionths of a dollar; where no price is known it is 0."""

    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_micros: int = 0

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            model=self.model or other.model,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cost_micros=self.cost_micros + other.cost_micros,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What has been used so far: by a turn, by its session, and by its owner today."""

    turn: Usage = Usage()
    session: Usage = Usage()
    day: Usage = Usage()

    def plus(self, used: Usage) -> Self:
        """Return what has been used after one more call."""
        return type(self)(turn=self.turn + used, session=self.session + used, day=self.day + used)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """How much may be used in one scope before a person is asked; 0 is no limit."""

    scope: Scope
    tokens: int = 0
    cost_micros: int = 0


def passed(limits: tuple[Limit, ...], spent: Spent, allowed_again: int = 0) -> Limit | None:
    """Return the first limit that is used up.  Each time a person allows it again, all limits count once more."""
    used = {Scope.TURN: spent.turn, Scope.SESSION: spent.session, Scope.DAY: spent.day}
    for limit in limits:
        times, so_far = 1 + allowed_again, used[limit.scope]
        if limit.tokens and so_far.tokens >= limit.tokens * times:
            return limit
        if limit.cost_micros and so_far.cost_micros >= limit.cost_micros * times:
            return limit
    return None
