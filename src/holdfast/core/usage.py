"""What a turn costs, and the budgets that it may not pass unasked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self

# What a person says to go on with as much again.
CONTINUE = "continue"


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

    @property
    def told(self) -> str:
        """Say it in words."""
        cached = f" ({self.cached_tokens:,} of them cached)" if self.cached_tokens else ""
        cost = f", ${self.cost_micros / 1_000_000:.4f}" if self.cost_micros else ""
        return f"{self.input_tokens:,} tokens in{cached}, {self.output_tokens:,} out{cost}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What has been used so far: by a turn, by its session, and by its owner today.

    `allowed` are the questions about it to which they have said to go on, in this session or today.
    """

    turn: Usage = Usage()
    session: Usage = Usage()
    day: Usage = Usage()
    allowed: frozenset[str] = frozenset()

    def plus(self, used: Usage) -> Self:
        """Return what has been used after one more call."""
        return replace(self, turn=self.turn + used, session=self.session + used, day=self.day + used)

    def of(self, scope: Scope) -> Usage:
        """Return what has been used in one scope."""
        return {Scope.TURN: self.turn, Scope.SESSION: self.session, Scope.DAY: self.day}[scope]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """How much may be used in one scope before a person is asked; 0 is no limit."""

    scope: Scope
    tokens: int = 0
    cost_micros: int = 0

    def times_passed(self, spent: Spent) -> int:
        """Return how often it has been used up: each time a person is asked once."""
        used = spent.of(self.scope)
        tokens = used.tokens // self.tokens if self.tokens else 0
        return max(tokens, used.cost_micros // self.cost_micros if self.cost_micros else 0)


def question_id(scope: Scope, times: int) -> str:
    """Return the id of the question that is asked when a budget is used up so often."""
    return f"budget:{scope}:{times}"
