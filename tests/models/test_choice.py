"""The models that a conversation can choose from: listed by their providers, opened once, and closed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from holdfast.agent.models.choice import ModelChoices, near
from holdfast.agent.models.port import Request, TextDelta, UserMessage
from holdfast.app.build import Builder
from holdfast.clock import SystemClock
from holdfast.config import Config, ModelConfig, ProviderConfig
from holdfast.core.redaction import Redaction
from holdfast.errors import Rejected
from tests.models.servers import ModelServer

KNOWN = ["openai:gpt-5", "openai:gpt-5-mini", "anthropic:claude-sonnet-5", "groq:openai/gpt-oss-120b"]


def choices(model: ModelConfig, providers: Mapping[str, ProviderConfig] | None = None) -> ModelChoices:
    config = Config(model=model, providers=providers or {})
    return Builder(config=config, home=Path(), redaction=Redaction(()), clock=SystemClock(), environment={}).models()


@pytest.mark.parametrize(
    ("wanted", "nearest"),
    [
        ("sonnet", "anthropic:claude-sonnet-5"),
        ("gtp-5", "openai:gpt-5"),
        ("antropic:claude-sonet-5", "anthropic:claude-sonnet-5"),
        ("MINI", "openai:gpt-5-mini"),
    ],
)
def test_the_nearest_name_comes_first(wanted: str, nearest: str) -> None:
    assert near(wanted, KNOWN)[0] == nearest


def test_nothing_is_near_to_what_has_nothing_in_common() -> None:
    assert near("zzzz", KNOWN) == []


async def test_the_operator_chooses_among_what_the_configured_providers_offer() -> None:
    async with ModelServer().running() as server:
        own = ModelConfig(name="openai:echo", base_url=server.url, api_key="k", choices=("house:tokens",))
        house = {"house": ProviderConfig(base_url=server.url, api_key="h")}
        models = choices(own, house)
        assert await models.offered(is_operator=False) == ["openai:echo", "house:tokens"]
        offered = await models.offered(is_operator=True)
        assert {"openai:held", "house:held"} <= set(offered)
        # The same list is good for a while.
        asked = len(server.requests)
        assert await models.find("openai:fast", is_operator=True) == "openai:fast"
        assert len(server.requests) == asked
        with pytest.raises(Rejected, match="did you mean openai:echo"):
            await models.find("openai:fast", is_operator=False)
        with pytest.raises(Rejected, match="did you mean openai:held or house:held"):
            await models.find("held", is_operator=True)
        with pytest.raises(Rejected, match="there is no model 'openai:other'"):
            await models.find("openai:other", is_operator=True)
        await models.close()


async def test_a_chosen_model_has_the_key_of_its_own_provider_and_is_opened_once() -> None:
    async with ModelServer().running() as server:
        own = ModelConfig(name="openai:echo", base_url="http://127.0.0.1:1/v1", api_key="k")
        models = choices(own, {"house": ProviderConfig(base_url=server.url, api_key="h")})
        model = models.of("house:tokens")
        assert models.of("house:tokens") is model
        said = [
            event.text
            async for event in model.stream(Request(messages=[UserMessage(text="hi")]))
            if isinstance(event, TextDelta)
        ]
        assert said
        assert server.requests[-1].headers["authorization"] == "Bearer h"
        assert server.requests[-1].body["model"] == "tokens"
        await models.close()


async def test_the_fallbacks_stand_behind_a_chosen_model_too() -> None:
    async with ModelServer().running() as server:
        down = {"down": ProviderConfig(base_url="http://127.0.0.1:1/v1", api_key="h")}
        own = ModelConfig(name="openai:echo", base_url=server.url, api_key="k", fallback=("openai:tokens",), retries=0)
        models = choices(own, down)
        events = models.of("down:x").stream(Request(messages=[UserMessage(text="hi")]))
        assert [event async for event in events]
        assert server.requests[-1].body["model"] == "tokens"
        await models.close()


async def test_without_a_configured_model_there_is_nothing_to_choose() -> None:
    with pytest.raises(Rejected, match="demonstration"):
        await choices(ModelConfig()).find("openai:gpt-5", is_operator=True)
