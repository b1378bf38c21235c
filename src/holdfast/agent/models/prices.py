"""The cost of a step."""

from __future__ import annotations

from holdfast.agent.models.port import Facts
from holdfast.core.usage import Usage

# Input that is written to the vendor's cache costs this many times the input price.
_CACHE_WRITE = 1.25


def priced(
    model: str, facts: Facts, *, input_tokens: int, output_tokens: int, cached_tokens: int = 0, written_tokens: int = 0
) -> Usage:
    """Return the usage of one step with its cost.  `input_tokens` includes cached ones."""
    plain = max(0, input_tokens - cached_tokens - written_tokens)
    # Dollars per million tokens are millionths of a dollar per token.
    cost = (
        (plain + written_tokens * _CACHE_WRITE) * facts.input_price
        + cached_tokens * (facts.cached_price or facts.input_price)
        + output_tokens * facts.output_price
    )
    return Usage(
        model=model,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cached_tokens=cached_tokens,
        cost_micros=round(cost),
    )
