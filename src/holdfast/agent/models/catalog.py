"""The catalog: how a configured name becomes a model."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from holdfast.agent.models.facts import known
from holdfast.agent.models.gate import Gate, Gates
from holdfast.agent.models.port import Facts, Model
from holdfast.agent.models.providers import PROVIDERS, Directory
from holdfast.agent.models.resilient import Resilient
from holdfast.clock import Clock, SystemClock
from holdfast.config import ModelConfig, ProviderConfig
from holdfast.errors import ConfigInvalid

if TYPE_CHECKING:
    # The HTTP client takes long to import, and a gateway without a model needs none.
    from holdfast.agent.models.exchange import Wire

ModelMaker = Callable[[str, ModelConfig], Model]

# Names that need an extra, and no key of ours.
FOREIGN, LOCAL = "pydantic", "local"
BUILT_IN = frozenset({*PROVIDERS, FOREIGN, LOCAL})


def _need(package: str, extra: str, name: str, setting: str) -> None:
    if importlib.util.find_spec(package) is None:
        raise ConfigInvalid(f"{setting}: {name} needs an extra; in the folder of the source, run: pip install '.[{extra}]'")


def open_model(
    config: ModelConfig,
    providers: Mapping[str, ProviderConfig],
    environment: Mapping[str, str],
    *,
    clock: Clock | None = None,
    wire: Wire | None = None,
    gates: Gates | None = None,
    makers: Mapping[str, ModelMaker] | None = None,
) -> Model:
    """Return the configured model with its fallbacks.  Nothing is connected yet.  Raises `ConfigInvalid`.

    All of them share one `wire`, and those of one provider a gate; pass the same where more than one chain is opened.
    `makers` are those of plugins.
    """
    clock = clock or SystemClock()
    shop = _Shop(
        directory=Directory(config=config, providers=providers, environment=environment),
        config=config,
        clock=clock,
        makers=makers or {},
        wire=wire,
        gates=gates or Gates(clock),
    )
    chain = [shop.model(config.name, "model.name")]
    chain += [shop.model(name, "model.fallback") for name in config.fallback]
    return Resilient(chain, config.retries, clock)


@dataclass(slots=True, kw_only=True)
class _Shop:
    """Makes models that share one wire."""

    directory: Directory
    config: ModelConfig
    clock: Clock
    makers: Mapping[str, ModelMaker]
    wire: Wire | None
    gates: Gates

    def model(self, name: str, setting: str) -> tuple[Model, Gate]:
        """Return a model with the gate of its provider."""
        provider, _, model = name.partition(":")
        if not provider or not model:
            raise ConfigInvalid(f'{setting}: {name!r} must be a provider and a model, like "openai:gpt-5"')
        # What the configuration says about a model is about its first.
        facts = self._configured(known(provider, model)) if setting == "model.name" else known(provider, model)
        if provider in self.makers:
            return self.makers[provider](model, self.config), self.gates.of(provider)
        if provider == FOREIGN:
            _need("pydantic_ai", "providers", name, setting)
            from holdfast.agent.models.foreign import open_foreign

            stall_s = self.config.stall_timeout
            opened = open_foreign(model, facts=facts, setting=setting, stall_timeout_s=stall_s, clock=self.clock)
            return opened, self.gates.of((FOREIGN, model.partition(":")[0]))
        if provider == LOCAL:
            _need("xllamacpp", "local", name, setting)
            from holdfast.agent.models.local import open_local

            # Each file is a model of its own on this machine: they share nothing that could fail.
            return open_local(model, facts=facts, setting=setting), self.gates.of(name)
        return self._wired(provider, model, facts, setting)

    def _configured(self, facts: Facts) -> Facts:
        config = self.config
        if config.input_price or config.output_price:
            facts = replace(facts, input_price=config.input_price, output_price=config.output_price, cached_price=0)
        return replace(
            facts,
            context_tokens=config.context_tokens or facts.context_tokens,
            output_tokens_max=config.output_tokens_max or facts.output_tokens_max,
        )

    def _wired(self, provider: str, model: str, facts: Facts, setting: str) -> tuple[Model, Gate]:
        # The HTTP client takes long to import, and a gateway without a model needs none.
        from holdfast.agent.models.anthropic import Anthropic
        from holdfast.agent.models.exchange import Wire
        from holdfast.agent.models.openai import OpenAI

        seat = self.directory.seat(provider, setting, (*self.makers, FOREIGN, LOCAL))
        self.wire = self.wire or Wire(self.clock)
        make = Anthropic.at if seat.wire == "anthropic" else OpenAI.at
        wired = make(
            seat,
            wire=self.wire,
            provider=provider,
            model=model,
            facts=facts,
            name_setting=setting,
            config=self.config,
        )
        return wired, self.gates.of(seat.account)
