"""What a step costs."""

from __future__ import annotations

from holdfast.agent.models.port import Facts
from holdfast.core.usage import Usage

# What is written to the cache of a vendor costs this much more than what is only read by the model.
_CACHE_WRITE = 1.25


def priced(
    model: str, facts: Facts, *, input_tokens: int, output_tokens: int, cached_tokens: int = 0, written_tokens: int = 0
) -> Usage:
    """Return the usage of one step with its cost.  `input_tokens` are all of them, from a cache or not."""
    plain = max(0, input_tokens - cached_tokens - written_tokens)
    # A price per million tokens in dollars is a price per token in millionths.
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
