"""Accounts of chat platforms: how each stands with its platform, and whether a token is the right one."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.channels.chat import kinds
from holdfast.clock import Clock
from holdfast.config import ChannelsConfig, ChatSettings, Config, is_secret, problems
from holdfast.core.chats import AccountRecord, AccountState
from holdfast.core.keys import ADMIN
from holdfast.core.redaction import Redaction
from holdfast.errors import ConfigInvalid, KindUnusable, NotFound, Rejected, Unavailable
from holdfast.operations.operation import operation
from holdfast.operations.pages import Page

if TYPE_CHECKING:
    # A command that asks a running gateway does not import these.
    from holdfast.channels.chat.port import Bot
    from holdfast.store.store import Store

TRIAL_TIMEOUT_S = 15
# A platform that has not answered for longer is one that the account does not hear.
SILENT_MS = 120_000
TEXT_MAX = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelView:
    """An account of a chat platform.  `last_receive_at` is when the platform last answered a request for messages."""

    name: str
    kind: str
    enabled: bool
    state: AccountState
    last_receive_at: int | None
    problem: str | None
    pending_deliveries: int
    bot_name: str | None
    bot_url: str | None
    home: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelPlan:
    """Settings of an account that are tried and not kept.  They go before those that the account `name` has."""

    kind: str
    name: str = ""
    settings: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    def __post_init__(self) -> None:
        if any(len(text) > TEXT_MAX for text in (self.kind, self.name, *self.settings, *self.settings.values())):
            raise Rejected(f"a setting of an account has {TEXT_MAX} characters at most")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelTrial:
    """What a platform said when it was asked who the account is."""

    ok: bool
    problem: str | None
    hint: str | None
    bot_id: str | None = None
    bot_name: str | None = None
    bot_url: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Channels:
    """The accounts of a gateway.  `accounts` are those of its configuration."""

    store: Store
    accounts: Mapping[str, ChatSettings]
    clock: Clock
    home: Path
    redaction: Redaction
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)

    @operation("GET /api/channels", "List the accounts of chat platforms", scope=ADMIN, offline=True)
    async def list(self) -> Page[ChannelView]:
        records = {each.name: each for each in await self.store.channels.list()}
        pending: Mapping[str, int] = await self.store.catalog.pending_by_channel() if self.accounts else {}
        return Page(
            items=[
                self._view(name, settings, records.get(name), pending.get(name, 0))
                for name, settings in sorted(self.accounts.items())
            ]
        )

    @operation("GET /api/channels/{id}", "Show an account of a chat platform", scope=ADMIN, offline=True)
    async def get(self, name: str) -> ChannelView:
        for each in (await self.list()).items:
            if each.name == name:
                return each
        raise self._missing(name)

    @operation("POST /api/channels/{id}/test", "Ask the platform of an account who the account is", scope=ADMIN)
    async def test(self, name: str) -> ChannelTrial:
        if name not in self.accounts:
            raise self._missing(name)
        return await try_account(name, self.accounts[name], self._around)

    @operation("POST /api/channels/try", "Ask a platform who an account would be, and keep nothing", scope=ADMIN)
    async def attempt(self, plan: ChannelPlan) -> ChannelTrial:
        """Try settings that are not kept, and the name.  Only texts can be tried."""
        # First, so that no error message can show them.
        self.redaction.learn(value for key, value in plan.settings.items() if is_secret(("channels", plan.kind, key)))
        try:
            settings = self._planned(plan)
        except Rejected as error:
            return _failed(error, self.redaction)
        return await try_account(plan.name or plan.kind, replace(settings, kind=plan.kind), self._around)

    def _planned(self, plan: ChannelPlan) -> ChatSettings:
        kind = kinds.settings_of(plan.kind)
        if kind is None:
            raise ConfigInvalid(f"there is no platform {plan.kind!r}; known are {', '.join(kinds.names())}")
        if problem := _fault(plan.kind, kind):
            raise KindUnusable(problem)
        before = self.accounts.get(plan.name)
        known = {each for each in kind.__dataclass_fields__ if each != "kind"}
        if unknown := sorted(plan.settings.keys() - known):
            raise ConfigInvalid(f"{plan.kind} has no setting {unknown[0]!r}")
        settings = replace(before if isinstance(before, kind) else kind(), **plan.settings)
        config = Config(channels=ChannelsConfig(accounts={plan.name or plan.kind: settings}))
        for (*_, key), problem in chain(problems(config), kinds.misconfigured(config)):
            raise ConfigInvalid(f"{key} {problem}")
        return settings

    @property
    def _around(self) -> TrialContext:
        return TrialContext(home=self.home, environment=self.environment, clock=self.clock, redaction=self.redaction)

    def _view(self, name: str, settings: ChatSettings, record: AccountRecord | None, pending: int) -> ChannelView:
        known = record or AccountRecord(name=name, kind=settings.kind or name)
        state = known.state if settings.enabled else AccountState.STOPPED
        return ChannelView(
            name=name,
            kind=settings.kind or name,
            enabled=settings.enabled,
            state=state,
            last_receive_at=known.last_receive_at,
            problem=_fault(known.kind, type(settings)) or self._problem(known, state),
            pending_deliveries=pending,
            bot_name=known.bot_name or None,
            bot_url=known.bot_url or None,
            home=settings.home or None,
        )

    def _problem(self, known: AccountRecord, state: AccountState) -> str | None:
        """Return what is wrong.  An account that says it is connected is judged by what it has received."""
        if known.problem or state is not AccountState.CONNECTED:
            return known.problem or None
        silent_ms = self.clock.now_ms() - (known.last_receive_at or 0)
        return f"the platform has not answered for {silent_ms // 1000} seconds" if silent_ms > SILENT_MS else None

    def _missing(self, name: str) -> NotFound:
        there = f"there are {', '.join(sorted(self.accounts))}" if self.accounts else "none is configured"
        return NotFound(f"there is no account {name!r}; {there}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialContext:
    """What an account is opened with to be tried."""

    home: Path
    environment: Mapping[str, str]
    clock: Clock
    redaction: Redaction


async def try_account(name: str, settings: ChatSettings, around: TrialContext) -> ChannelTrial:
    """Ask the platform of an account who the account is."""
    try:
        async with asyncio.timeout(TRIAL_TIMEOUT_S):
            bot = await _identified(name, settings, around)
    except (Rejected, Unavailable, TimeoutError, LookupError) as error:
        return _failed(error, around.redaction)
    except Exception as error:  # The edge to another package, which may have any bug.
        told = KindUnusable(f"the platform {settings.kind or name} failed with {type(error).__name__}: {error}")
        return _failed(told, around.redaction)
    return ChannelTrial(
        ok=True, problem=None, hint=None, bot_id=bot.user_id, bot_name=bot.name or None, bot_url=bot.url or None
    )


async def _identified(name: str, settings: ChatSettings, around: TrialContext) -> Bot:
    # Only now, because commands that list accounts do not open any.
    from holdfast.channels.chat.account import ChatContext

    found = await asyncio.to_thread(kinds.find, settings.kind or name)
    context = ChatContext(name=name, home=around.home, environment=around.environment, clock=around.clock)
    async with found.open(settings, context) as platform:
        return await platform.identify()


def _fault(name: str, settings: type[ChatSettings]) -> str | None:
    """Return what is wrong with the package of a kind; None if nothing is."""
    if settings is not kinds.UnusableSettings:
        return None
    try:
        kinds.find(name)
    except KindUnusable as error:
        return str(error)
    return "its package was repaired; restart the gateway"


def _failed(error: Exception, redaction: Redaction) -> ChannelTrial:
    problem = redaction.everything.text(str(error)) or "it did not answer in time"
    return ChannelTrial(ok=False, problem=problem, hint=_hint(error))


def _hint(error: Exception) -> str:
    if isinstance(error, Unavailable | TimeoutError):
        return "see that the platform can be reached from the gateway's machine, then try again"
    if isinstance(error, KindUnusable):
        return "install another version of its package, or remove the account"
    if isinstance(error, ConfigInvalid):
        return "correct it, then try again"
    return "see that the token is copied whole and was not replaced by a newer one"
