"""The catalog: how a configured name becomes a model."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from holdfast.agent.models.circuit_breaker import CircuitBreaker, CircuitBreakers
from holdfast.agent.models.facts import known
from holdfast.agent.models.port import Facts, Model
from holdfast.agent.models.providers import PROVIDERS, Directory
from holdfast.agent.models.resilient import Resilient
from holdfast.clock import Clock, SystemClock
from holdfast.config import ModelConfig, ProviderConfig
from holdfast.errors import ConfigInvalid

if TYPE_CHECKING:
    # The HTTP client takes long to import, and a gateway without a model needs none.
    from holdfast.agent.models.client import ModelClient

ModelMaker = Callable[[str, ModelConfig], Model]

# Providers that need an extra, and no key in the configuration.
PYDANTIC_AI, LOCAL = "pydantic", "local"
BUILT_IN = frozenset({*PROVIDERS, PYDANTIC_AI, LOCAL})


def _need(package: str, extra: str, name: str, setting: str) -> None:
    if importlib.util.find_spec(package) is None:
        raise ConfigInvalid(f"{setting}: {name} needs an extra; in the folder of the source, run: pip install '.[{extra}]'")


def open_model(
    config: ModelConfig,
    providers: Mapping[str, ProviderConfig],
    environment: Mapping[str, str],
    *,
    clock: Clock | None = None,
    client: ModelClient | None = None,
    breakers: CircuitBreakers | None = None,
    makers: Mapping[str, ModelMaker] | None = None,
    chosen: str = "",
) -> Model:
    """Return the configured model with its fallbacks.  Nothing is connected yet.  Raises `ConfigInvalid`.

    A `chosen` model takes the place of the configured one, in front of the same fallbacks.  The models share `client`, and
    the models of one provider share a circuit breaker from `breakers`; pass the same ones to share them between chains.
    `makers` come from plugins.
    """
    clock = clock or SystemClock()
    catalog = _Catalog(
        directory=Directory(config=config, providers=providers, environment=environment),
        config=config,
        clock=clock,
        makers=makers or {},
        client=client,
        breakers=breakers or CircuitBreakers(clock),
    )
    is_other = chosen not in ("", config.name)
    chain = [catalog.model(chosen, "the chosen model") if is_other else catalog.model(config.name, "model.name")]
    chain += [catalog.model(name, "model.fallback") for name in config.fallback if name != chosen]
    return Resilient(chain, config.retries, clock)


@dataclass(slots=True, kw_only=True)
class _Catalog:
    """Opens models that share one client."""

    directory: Directory
    config: ModelConfig
    clock: Clock
    makers: Mapping[str, ModelMaker]
    client: ModelClient | None
    breakers: CircuitBreakers

    def model(self, name: str, setting: str) -> tuple[Model, CircuitBreaker]:
        """Return a model with the circuit breaker of its provider."""
        provider, _, model = name.partition(":")
        if not provider or not model:
            raise ConfigInvalid(f'{setting}: {name!r} must be a provider and a model, like "openai:gpt-5"')
        # The configured facts are about the first model of the chain.
        facts = self._configured(known(provider, model)) if setting == "model.name" else known(provider, model)
        if provider in self.makers:
            return self.makers[provider](model, self.config), self.breakers.of(provider)
        if provider == PYDANTIC_AI:
            _need("pydantic_ai", "providers", name, setting)
            from holdfast.agent.models.pydantic_model import open_pydantic_ai

            stall_s = self.config.stall_timeout
            opened = open_pydantic_ai(model, facts=facts, setting=setting, stall_timeout_s=stall_s, clock=self.clock)
            return opened, self.breakers.of((PYDANTIC_AI, model.partition(":")[0]))
        if provider == LOCAL:
            _need("xllamacpp", "local", name, setting)
            from holdfast.agent.models.local import open_local

            # Local models share no server, so each has its own breaker.
            return open_local(model, facts=facts, setting=setting), self.breakers.of(name)
        return self._http_model(provider, model, facts, setting)

    def _configured(self, facts: Facts) -> Facts:
        config = self.config
        if config.input_price or config.output_price:
            facts = replace(facts, input_price=config.input_price, output_price=config.output_price, cached_price=0)
        return replace(
            facts,
            context_tokens=config.context_tokens or facts.context_tokens,
            output_tokens_max=config.output_tokens_max or facts.output_tokens_max,
        )

    def _http_model(self, provider: str, model: str, facts: Facts, setting: str) -> tuple[Model, CircuitBreaker]:
        # The HTTP client takes long to import, and a gateway without a model needs none.
        from holdfast.agent.models.anthropic import Anthropic
        from holdfast.agent.models.client import ModelClient
        from holdfast.agent.models.openai import OpenAI

        resolved = self.directory.resolve(provider, setting, (*self.makers, PYDANTIC_AI, LOCAL))
        self.client = self.client or ModelClient(self.clock)
        make = Anthropic.at if resolved.wire == "anthropic" else OpenAI.at
        model_ = make(
            resolved,
            client=self.client,
            provider=provider,
            model=model,
            facts=facts,
            name_setting=setting,
            config=self.config,
        )
        return model_, self.breakers.of(resolved.account)
