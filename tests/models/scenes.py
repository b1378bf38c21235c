"""What the tests of models share: a model of each wire format at a scripted server."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from holdfast.agent.models.anthropic import Anthropic
from holdfast.agent.models.catalog import open_model
from holdfast.agent.models.circuit_breaker import CircuitBreakers
from holdfast.agent.models.client import ModelClient
from holdfast.agent.models.failures import ModelEndpoint
from holdfast.agent.models.openai import OpenAI
from holdfast.agent.models.port import Event, Facts, Message, Model, Request, TextDelta, ToolSpec, UserMessage
from holdfast.config import ModelConfig, ProviderConfig
from tests.models.servers import ModelServer

KEY = "sk-planted-secret-0123456789"
FACTS = Facts(context_tokens=100_000, input_price=2, output_price=10, cached_price=0.5)
TOOL = ToolSpec(name="look", description="Looks.", schema={"type": "object", "properties": {"at": {"type": "string"}}})
FORMATS = ("openai", "anthropic")


@dataclass
class Scene:
    server: ModelServer
    client: ModelClient

    def model(self, format_: str, *, stall_timeout_s: float = 5, reasoning: str = "off", name: str = "m") -> Model:
        """Return a model at this server."""
        path = "/messages" if format_ == "anthropic" else "/chat/completions"
        endpoint = ModelEndpoint(
            name=f"{format_}:{name}",
            url=self.server.url + path,
            headers={"authorization": KEY},
            secret=KEY,
            stall_timeout_s=stall_timeout_s,
        )
        kind = Anthropic if format_ == "anthropic" else OpenAI
        return kind(client=self.client, endpoint=endpoint, model=name, facts=FACTS, reasoning=reasoning)


@contextlib.asynccontextmanager
async def scene(script: str = "echo") -> AsyncIterator[Scene]:
    client = ModelClient()
    async with ModelServer(script=script).running() as server:
        try:
            yield Scene(server, client)
        finally:
            await client.close()


def request(*messages: Message | str, tools: Sequence[ToolSpec] = (), system: str = "") -> Request:
    told = [UserMessage(text=each) if isinstance(each, str) else each for each in messages]
    return Request(messages=told, tools=tools, system=system)


async def heard(model: Model, asked: Request | str) -> list[Event]:
    """Return everything that a model says."""
    asked = request(asked) if isinstance(asked, str) else asked
    return [event async for event in model.stream(asked)]


def text_of(events: Sequence[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def configured(server: ModelServer, breakers: CircuitBreakers | None = None, **settings: object) -> Model:
    """Return a model opened from a configuration, with this server as the provider `here`."""
    providers = {
        "here": ProviderConfig(base_url=server.url, api_key=KEY),
        "there": ProviderConfig(wire="anthropic", base_url=server.url, api_key=KEY),
    }
    return open_model(ModelConfig(**{"name": "here:m", **settings}), providers, {}, breakers=breakers)  # type: ignore[arg-type]
