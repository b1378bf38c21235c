"""Set-up: a model is chosen and tried out from the page."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from holdfast.agent.models.catalog import LOCAL, PYDANTIC_AI, ModelMaker, open_model
from holdfast.agent.models.client import ModelClient
from holdfast.agent.models.listing import listed
from holdfast.agent.models.port import Request, TextDelta, UserMessage
from holdfast.agent.models.providers import PROVIDERS, Directory, KnownProvider, ResolvedProvider
from holdfast.clock import Clock
from holdfast.config import Config, ModelConfig, ProviderConfig, secrets, shown
from holdfast.core.keys import ADMIN
from holdfast.core.redaction import Redaction
from holdfast.errors import ConfigInvalid, ModelRejected, ModelUnavailable, ModelUnusable, Rejected
from holdfast.operations.operation import operation
from holdfast.operations.settings import Settings, SettingsChange, SettingsView

LIST_TIMEOUT_S = 15
TRIAL_TIMEOUT_S = 60
# How long a model that is tried out may be silent.  A local one may have to be loaded first.
STALL_TIMEOUT_S = 45
# Enough for one word and a little reasoning before it.
TRIAL_TOKENS_MAX = 1_024
SAID_MAX = 200
TEXT_MAX = 2_000
TRIAL = "This is a test of the connection. Answer with the single word: ready"
_UNNAMED = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPlan:
    """A model to be tried or chosen: `name` is provider:model, or the model alone beside a `provider`.

    Without a key, the one that is stored for the same provider at the same address is used.  `api_key_env` names a
    variable of the gateway instead.
    """

    provider: str = ""
    name: str = ""
    base_url: str = ""
    api_key: str | None = field(default=None, repr=False)
    api_key_env: str = ""

    def __post_init__(self) -> None:
        for text in (self.provider, self.name, self.base_url, self.api_key or "", self.api_key_env):
            if len(text) > TEXT_MAX:
                raise Rejected(f"a part of a model's description has {TEXT_MAX} characters at most")

    @property
    def key(self) -> str:
        # A pasted key often ends with a line break.
        return (self.api_key or "").strip()

    @property
    def who(self) -> str:
        return (self.provider or self.name.partition(":")[0]).strip()

    @property
    def model(self) -> str:
        if self.provider:
            return self.name.strip().removeprefix(f"{self.who}:")
        return self.name.partition(":")[2].strip()

    @property
    def full_name(self) -> str:
        return f"{self.who}:{self.model}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderView:
    """A provider of models.  `base_url` is the usual address of a local server; `key_hint` says where keys are made."""

    name: str
    label: str
    needs_key: bool
    needs_address: bool
    base_url: str
    example: str
    key_hint: str
    key_variable: str
    has_key: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenModel:
    """The model of the configuration file."""

    name: str
    base_url: str
    has_key: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupView:
    """Whether a model is still to be chosen, the one that is chosen, and the providers to choose from."""

    needed: bool
    model: ChosenModel
    providers: Sequence[ProviderView]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelsView:
    """The models of a provider, or the `problem` with listing them."""

    models: Sequence[str]
    problem: str | None = None
    hint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """The result of one small request."""

    ok: bool
    problem: str | None
    hint: str | None
    said: str
    took_ms: int


class Setup:
    """Chooses a model.  What is only tried is not kept.  `needed` says whether a model is still to be chosen."""

    def __init__(
        self,
        settings: Settings,
        needed: Callable[[], bool],
        clock: Clock,
        makers: Callable[[], Mapping[str, ModelMaker]],
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._settings = settings
        self._needed = needed
        self._clock = clock
        # Of the plugins that bring models.
        self._makers = makers
        self._environment = environment

    @operation("GET /api/setup", "Say which model answers, and who could", scope=ADMIN, refuses=(422,))
    async def view(self) -> SetupView:
        """Return the choice.  Raises `ConfigInvalid` for a file that cannot be read."""
        config = await self._settings.config()
        return SetupView(
            needed=self._needed(),
            model=self._chosen(config),
            providers=[self._provider(name, config) for name in (*PROVIDERS, *sorted(config.providers.keys() - PROVIDERS))],
        )

    @operation("POST /api/setup/models", "Ask a provider which models it has", scope=ADMIN)
    async def models(self, plan: ModelPlan) -> ModelsView:
        """Ask a provider which models it has."""
        config = await self._settings.config()
        client = ModelClient(self._clock)
        try:
            async with asyncio.timeout(LIST_TIMEOUT_S):
                resolved = self._resolved(replace(plan, provider=plan.who, name=_UNNAMED), config)
                return ModelsView(models=await listed(plan.who, resolved, client, LIST_TIMEOUT_S))
        except (Rejected, ModelUnavailable, TimeoutError) as error:
            problem, hint = self._told(error, plan, config)
            return ModelsView(models=[], problem=problem, hint=hint)
        finally:
            await client.close()

    @operation("POST /api/setup/test", "Send one small request to a model, and keep nothing", scope=ADMIN)
    async def test(self, plan: ModelPlan) -> Trial:
        """Send one small request to a model."""
        config, since = await self._settings.config(), self._clock.monotonic_ms()
        problem, hint, said = None, None, ""
        try:
            async with asyncio.timeout(TRIAL_TIMEOUT_S):
                said = await self._asked(plan, config)
        except (Rejected, ModelUnavailable, TimeoutError) as error:
            problem, hint = self._told(error, plan, config)
        return Trial(
            ok=problem is None,
            problem=problem,
            hint=hint,
            said=self._mask(plan, config).text(said)[:SAID_MAX],
            took_ms=self._clock.monotonic_ms() - since,
        )

    @operation("POST /api/setup", "Let a model answer from the next start on", scope=ADMIN)
    async def choose(self, plan: ModelPlan) -> SettingsView:
        """Let a model answer from the next start on.  Raises what `Settings.change` raises."""
        config = await self._settings.config()
        _refuse_unnamed(plan)
        chosen = self._candidate(plan, config)
        self._refuse_moving(plan, chosen, config, await asyncio.to_thread(self._makers))
        wanted = _written(chosen).items() - _written(config.model).items()
        return await self._settings.change(SettingsChange(changes={key: value or None for key, value in wanted}))

    async def _asked(self, plan: ModelPlan, config: Config) -> str:
        _refuse_unnamed(plan)
        makers = await asyncio.to_thread(self._makers)
        chosen = self._candidate(plan, config)
        self._refuse_moving(plan, chosen, config, makers)
        model = open_model(chosen, config.providers, self._environment, clock=self._clock, makers=makers)
        said = ""
        try:
            request = Request(messages=[UserMessage(text=TRIAL)], output_tokens_max=TRIAL_TOKENS_MAX)
            async with contextlib.aclosing(model.stream(request)) as events:
                async for event in events:
                    said += event.text if isinstance(event, TextDelta) and len(said) < TEXT_MAX else ""
        finally:
            await model.close()
        return said.strip()

    def _candidate(self, plan: ModelPlan, config: Config) -> ModelConfig:
        """Return the model as it would be configured.  A stored key is used only for the same provider and address."""
        usual = PROVIDERS.get(plan.who, KnownProvider())
        base_url = plan.base_url.strip().rstrip("/")
        chosen = replace(
            config.model,
            name=plan.full_name,
            base_url="" if base_url == usual.base_url else base_url,
            api_key=plan.key,
            api_key_env="" if plan.key else plan.api_key_env.strip(),
            retries=0,
            fallback=(),
            stall_timeout=STALL_TIMEOUT_S,
        )
        if plan.key or plan.api_key_env or not self._is_same(chosen, config):
            return chosen
        return replace(chosen, api_key=config.model.api_key, api_key_env=config.model.api_key_env)

    def _is_same(self, chosen: ModelConfig, config: Config) -> bool:
        who = chosen.name.partition(":")[0]
        if config.model.name.partition(":")[0] != who:
            return False
        return self._address(who, chosen, config) == self._address(who, config.model, config)

    def _resolved(self, plan: ModelPlan, config: Config) -> ResolvedProvider:
        chosen = self._candidate(plan, config)
        self._refuse_moving(plan, chosen, config, {})
        return self._directory(chosen, config).resolve(plan.who, "model.name")

    def _refuse_moving(self, plan: ModelPlan, chosen: ModelConfig, config: Config, makers: Mapping[str, ModelMaker]) -> None:
        """Refuse to send a key that is stored for one address to another.  Raises `Rejected`."""
        who = plan.who
        if plan.key or plan.api_key_env or who in (PYDANTIC_AI, LOCAL, *makers):
            return
        directory = self._directory(chosen, config)
        address = directory.address(who)
        # Its current address, and its default one.
        if address in {self._address(who, each, config) for each in (config.model, ModelConfig())}:
            return
        with contextlib.suppress(ConfigInvalid):
            if directory.resolve(who, "model.name").key:
                told = f"the key that is stored for {who} is not meant for {shown(address)}"
                raise Rejected(f"{told}; give the one of this server, or name its variable in api_key_env")

    def _address(self, who: str, model: ModelConfig, config: Config) -> str:
        try:
            return self._directory(model, config).address(who)
        except ConfigInvalid:
            return ""

    def _directory(self, model: ModelConfig, config: Config) -> Directory:
        return Directory(config=model, providers=config.providers, environment=self._environment)

    def _chosen(self, config: Config) -> ChosenModel:
        model = config.model
        has_key = bool(model.name) and self._has_key(model.name.partition(":")[0], model, config)
        return ChosenModel(name=model.name, base_url=shown(model.base_url), has_key=has_key)

    def _provider(self, name: str, config: Config) -> ProviderView:
        usual, own = PROVIDERS.get(name, KnownProvider(label=name)), config.providers.get(name, ProviderConfig())
        return ProviderView(
            name=name,
            label=usual.label,
            needs_key=bool(usual.key_env),
            needs_address=not usual.base_url and not own.base_url,
            base_url="" if usual.key_env else shown(own.base_url or usual.base_url),
            example=usual.example,
            key_hint=usual.key_hint,
            key_variable=usual.key_env,
            has_key=self._has_key(name, config.model, config),
        )

    def _has_key(self, who: str, model: ModelConfig, config: Config) -> bool:
        try:
            return bool(self._directory(model, config).resolve(who, "model.name").key)
        except ConfigInvalid:
            return False

    def _mask(self, plan: ModelPlan, config: Config) -> Redaction:
        return Redaction({plan.key, *secrets(config, self._environment)} - {""})

    def _told(self, error: Exception, plan: ModelPlan, config: Config) -> tuple[str, str]:
        """Return a problem and what to do about it, without any key."""
        problem = str(error) or "it did not answer in time"
        return self._mask(plan, config).text(problem), _hint(error)


def _written(model: ModelConfig) -> dict[str, str]:
    """Return the settings of a model that are chosen here, by key."""
    return {
        "model.name": model.name,
        "model.base_url": model.base_url,
        "model.api_key": model.api_key,
        "model.api_key_env": model.api_key_env,
    }


def _hint(error: Exception) -> str:
    match error:
        case ModelUnusable():
            return "see that the key, the model and the address belong together, and that the account may use it"
        case ModelRejected():
            return "choose another model of this provider"
        case ModelUnavailable() | TimeoutError():
            return "see that the server runs and can be reached from the gateway's machine, then try again"
        case _:
            return "correct that, then try again"


def _refuse_unnamed(plan: ModelPlan) -> None:
    if not plan.who or not plan.model:
        raise ConfigInvalid('model.name: must be a provider and a model, like "openai:gpt-5"')
