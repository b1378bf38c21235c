"""What is known about models: their context windows, output limits and prices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from holdfast.agent.models.port import Facts

# An unknown model is assumed to be small: a conversation is compacted too early rather than refused.
UNKNOWN = Facts(context_tokens=32_768)
# Local servers configure a smaller context window than the model supports, and silently cut longer input.
UNKNOWN_AT_HOME = Facts(context_tokens=8_192)
AT_HOME = frozenset({"ollama", "lmstudio", "local"})


def _facts(
    context: int, output: int, input_price: float, output_price: float, cached: float, *, images: bool = True
) -> Facts:
    return Facts(
        context_tokens=context,
        output_tokens_max=output,
        input_price=input_price,
        output_price=output_price,
        cached_price=cached,
        images=images,
    )


# By vendor and prefix of the name; the longest matching prefix counts.  Higher price tiers are not modelled.
KNOWN: Mapping[str, Mapping[str, Facts]] = {
    "openai": {
        "gpt-4o": _facts(128_000, 16_384, 2.5, 10, 1.25),
        "gpt-4o-mini": _facts(128_000, 16_384, 0.15, 0.6, 0.075),
        "gpt-4.1": _facts(1_000_000, 32_768, 2, 8, 0.5),
        "gpt-4.1-mini": _facts(1_000_000, 32_768, 0.4, 1.6, 0.1),
        "gpt-4.1-nano": _facts(1_000_000, 32_768, 0.1, 0.4, 0.025),
        "gpt-5": _facts(400_000, 128_000, 1.25, 10, 0.125),
        "gpt-5-mini": _facts(400_000, 128_000, 0.25, 2, 0.025),
        "gpt-5-nano": _facts(400_000, 128_000, 0.05, 0.4, 0.005),
        "gpt-5.2": _facts(400_000, 128_000, 1.75, 14, 0.175),
        "gpt-5.4": _facts(1_000_000, 128_000, 2.5, 15, 0.25),
        "gpt-5.4-mini": _facts(400_000, 128_000, 0.75, 4.5, 0.075),
        "gpt-5.4-nano": _facts(400_000, 128_000, 0.2, 1.25, 0.02),
        "gpt-5.5": _facts(1_000_000, 128_000, 5, 30, 0.5),
        "o3": _facts(200_000, 100_000, 2, 8, 0.5),
        "o4-mini": _facts(200_000, 100_000, 1.1, 4.4, 0.275),
    },
    "anthropic": {
        "claude-3-5-haiku": _facts(200_000, 8_192, 0.8, 4, 0.08),
        "claude-3-7-sonnet": _facts(200_000, 64_000, 3, 15, 0.3),
        "claude-haiku-4-5": _facts(200_000, 64_000, 1, 5, 0.1),
        "claude-sonnet-4": _facts(200_000, 64_000, 3, 15, 0.3),
        "claude-sonnet-5": _facts(1_000_000, 128_000, 2, 10, 0.2),
        "claude-opus-4": _facts(200_000, 32_000, 15, 75, 1.5),
        "claude-opus-4-5": _facts(200_000, 64_000, 5, 25, 0.5),
        "claude-opus-4-6": _facts(200_000, 128_000, 5, 25, 0.5),
        "claude-opus-4-7": _facts(1_000_000, 128_000, 5, 25, 0.5),
        "claude-opus-4-8": _facts(1_000_000, 128_000, 5, 25, 0.5),
        "claude-opus-5": _facts(1_000_000, 128_000, 5, 25, 0.5),
        "claude": _facts(200_000, 8_192, 0, 0, 0),
    },
    "deepseek": {
        "deepseek-chat": _facts(128_000, 8_192, 0.28, 0.42, 0.028, images=False),
        "deepseek-reasoner": _facts(128_000, 64_000, 0.28, 0.42, 0.028, images=False),
    },
    "gemini": {
        "gemini-2.5-pro": _facts(1_048_576, 65_536, 1.25, 10, 0.125),
        "gemini-2.5-flash": _facts(1_048_576, 65_536, 0.3, 2.5, 0.03),
        "gemini-2.5-flash-lite": _facts(1_000_000, 65_536, 0.1, 0.4, 0.01),
        "gemini-3": _facts(1_000_000, 65_536, 0, 0, 0),
    },
    "xai": {
        "grok-3": _facts(131_072, 0, 3, 15, 0.75, images=False),
        "grok-3-mini": _facts(131_072, 0, 0.3, 0.5, 0.075, images=False),
        "grok-4": _facts(256_000, 0, 3, 15, 0.75),
        "grok-4-fast": _facts(2_000_000, 0, 0.2, 0.5, 0.05),
        "grok-4-1-fast": _facts(2_000_000, 0, 0.2, 0.5, 0.05),
    },
    "mistral": {
        "mistral-large-2512": _facts(262_144, 0, 0.5, 1.5, 0.05),
        "mistral-small-2603": _facts(262_144, 0, 0.15, 0.6, 0.015),
        "devstral-2512": _facts(262_144, 0, 0.4, 2, 0.04, images=False),
        "codestral-2508": _facts(256_000, 0, 0.3, 0.9, 0.03, images=False),
        "mistral": _facts(128_000, 0, 0, 0, 0),
    },
    "groq": {
        "llama-3.1-8b": _facts(131_072, 0, 0.05, 0.08, 0, images=False),
        "llama-3.3-70b": _facts(131_072, 32_768, 0.59, 0.79, 0, images=False),
        "openai/gpt-oss-120b": _facts(131_072, 65_536, 0.15, 0.6, 0.075, images=False),
        "openai/gpt-oss-20b": _facts(131_072, 65_536, 0.075, 0.3, 0.0375, images=False),
    },
}


def known(provider: str, model: str) -> Facts:
    """Return what is known about a model.  At another provider than its vendor, its prices are not known."""
    table = KNOWN.get(provider, {})
    if prefix := _longest(table, model):
        return table[prefix]
    if provider in AT_HOME:
        return UNKNOWN_AT_HOME
    plain = model.rpartition("/")[2]
    # Some providers write dashes for the vendor's dots.
    found = {
        prefix: table[prefix]
        for table in KNOWN.values()
        for spelling in (plain, plain.replace(".", "-"))
        if (prefix := _longest(table, spelling))
    }
    if not found:
        return UNKNOWN
    return replace(found[max(found, key=len)], input_price=0, output_price=0, cached_price=0)


def _longest(table: Mapping[str, Facts], model: str) -> str:
    return max((prefix for prefix in table if model.startswith(prefix)), key=len, default="")
