"""Builds what a configuration describes, step by step.

A gateway, a rehearsal of other settings and the doctor share these steps, and each of them goes as far as it needs.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from holdfast.agent import budget, plugins
from holdfast.agent.models.catalog import BUILT_IN, ModelMaker, open_model
from holdfast.agent.models.choice import ModelChoices
from holdfast.agent.models.circuit_breaker import CircuitBreakers
from holdfast.agent.models.port import Model
from holdfast.agent.models.providers import Directory
from holdfast.agent.plugins import Plugins
from holdfast.channels.chat import kinds
from holdfast.channels.chat.account import ChatAccount, ChatContext
from holdfast.channels.chat.channel import open_account
from holdfast.channels.port import Channel, ChannelContext
from holdfast.channels.registry import open_channels
from holdfast.channels.webhook.routes import Routes
from holdfast.clock import Clock, SystemClock
from holdfast.config import ChatSettings, Config, ModelConfig
from holdfast.core.redaction import Redaction
from holdfast.errors import ConfigInvalid, KindUnusable, Unavailable
from holdfast.memory.bindings import MemoryBindings
from holdfast.memory.builtin.extraction import Extractor
from holdfast.memory.builtin.provider import Builtin
from holdfast.memory.opening import open_bindings
from holdfast.offload.pool import Pool
from holdfast.sandbox import Sandbox, terminal_profile
from holdfast.store.store import Store
from holdfast.targets import Targets

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Builder:
    """The steps of building.  Each raises `ConfigInvalid` where the configuration makes it impossible."""

    config: Config
    home: Path
    redaction: Redaction
    clock: Clock
    plugins: Plugins = field(default_factory=Plugins)
    # Shared by all models, so that those of one provider are asked in turn.
    breakers: CircuitBreakers | None = None
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)

    @classmethod
    async def of(cls, config: Config, home: Path, redaction: Redaction, clock: Clock) -> Self:
        """Return the builder for a configuration, with the plugins that are installed."""
        # In a thread, because reading what is installed takes longer than the loop may stand still.
        found = await asyncio.to_thread(plugins.load, providers=BUILT_IN | set(config.providers))
        return cls(
            config=config, home=home, redaction=redaction, clock=clock, plugins=found, breakers=CircuitBreakers(clock)
        )

    def model(self) -> Model | None:
        """Open the model that answers; None for the built-in demonstration."""
        return self._open(self.config.model) if self.config.model.name else None

    def models(self) -> ModelChoices:
        """Return the models that can be chosen for a conversation.  None of them is open yet."""
        config = self.config.model
        directory = Directory(config=config, providers=self.config.providers, environment=self.environment)
        return ModelChoices(config, directory, lambda name: self._open(config, name), self.clock, self.plugins.models)

    def extracting_model(self) -> Model | None:
        """Open the model that extracts memories; None where the one that answers does it."""
        if not self.config.memory.model:
            return None
        try:
            return self._open(extracting(self.config.model, self.config.memory.model))
        except ConfigInvalid as error:
            raise ConfigInvalid(f"memory.model: {str(error).removeprefix('model.name: ')}") from error

    def _open(self, config: ModelConfig, chosen: str = "") -> Model:
        return open_model(
            config,
            self.config.providers,
            self.environment,
            clock=self.clock,
            breakers=self.breakers,
            makers=self.plugins.models,
            chosen=chosen,
        )

    def memory(self, store: Store | None, extractor: Extractor) -> MemoryBindings:
        """Open the providers of memory.  Without a store, the builtin one cannot be used."""

        def builtin() -> Builtin:
            if store is None:
                raise Unavailable("the store cannot be read")
            limits = budget.limits(self.config.budget)
            return Builtin(store, extractor, limits=limits, redaction=self.redaction, clock=self.clock)

        return open_bindings(
            self.config.memory,
            builtin=builtin,
            plugins=self.plugins,
            redaction=self.redaction,
            clock=self.clock,
            environment=self.environment,
        )

    @contextlib.asynccontextmanager
    async def channels(self, secret: str) -> AsyncGenerator[Mapping[str, Channel]]:
        """Yield every channel, by name; `secret` signs the answers to `url:` targets."""
        context = ChannelContext(
            config=self.config.channels,
            home=self.home,
            environment=self.environment,
            clock=SystemClock(),
            signing_secret=secret,
        )
        async with open_channels(context) as channels:
            yield channels

    @contextlib.asynccontextmanager
    async def accounts(self) -> AsyncGenerator[Mapping[str, ChatAccount]]:
        """Yield the enabled accounts of chat platforms, by name.  None of them is connected yet.

        An account whose package has a fault is left out, so that the others go on.
        """
        enabled = {name: settings for name, settings in self.config.channels.accounts.items() if settings.enabled}
        async with contextlib.AsyncExitStack() as stack:
            opened: dict[str, ChatAccount] = {}
            for name, settings in enabled.items():
                try:
                    opened[name] = await stack.enter_async_context(self._account(name, settings))
                except KindUnusable as error:
                    log.error("The account %s stays closed: %s", name, error)  # noqa: TRY400 - The bug is not here.
                except ConfigInvalid:
                    raise
                except Exception:  # The edge to a package, whose bug closes its own accounts only.
                    log.exception("The account %s stays closed: its platform cannot be opened", name)
            yield opened

    @contextlib.asynccontextmanager
    async def _account(self, name: str, settings: ChatSettings) -> AsyncGenerator[ChatAccount]:
        kind = await asyncio.to_thread(kinds.find, settings.kind or name)
        context = ChatContext(name=name, home=self.home, environment=self.environment, clock=SystemClock())
        async with open_account(kind, settings, context) as opened:
            yield opened

    async def sandbox(self, workspace: Path) -> Sandbox:
        """Return what confines the commands of the agent."""
        config = self.config.tools.terminal
        profile = await asyncio.to_thread(terminal_profile, config, workspace, self.home)
        return await Sandbox.find(config.sandbox, profile)

    async def routes(self, store: Store, targets: Targets, pool: Pool) -> Routes:
        """Return the webhook routes; the redaction knows their secrets before any turn runs."""
        routes = Routes(
            store.webhooks,
            store.wakes,
            self.config.channels.webhook.routes,
            host=self.config.server.host,
            targets=targets,
            redaction=self.redaction,
            pool=pool,
            environment=self.environment,
        )
        await routes.load()
        return routes


def model_makers() -> Mapping[str, ModelMaker]:
    """Return the models of plugins, by provider."""
    return plugins.load(providers=BUILT_IN).models


def extracting(answering: ModelConfig, name: str) -> ModelConfig:
    """Return how the extracting model is reached.  One of another provider gets neither key nor address of the first."""
    chosen = ModelConfig(name=name, stall_timeout=answering.stall_timeout, retries=answering.retries)
    if name.partition(":")[0] != answering.name.partition(":")[0]:
        return chosen
    keys = {"api_key": answering.api_key, "api_key_env": answering.api_key_env}
    return replace(chosen, base_url=answering.base_url, **keys)
