"""An account at work: it receives, handles what comes, shows what turns do, and sends."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.channels.chat.account import ChatAccount, ChatContext, ChatKind, ChatServices, Home, no_home
from holdfast.channels.chat.asking import asking_at_home
from holdfast.channels.chat.budget import Budget
from holdfast.channels.chat.carrier import ChatCarrier
from holdfast.channels.chat.config import ChatSettings
from holdfast.channels.chat.intake import Intake
from holdfast.channels.chat.port import MenuEntry
from holdfast.channels.chat.presses import Presses
from holdfast.channels.chat.receiver import Receiver, Timing
from holdfast.channels.chat.status_line import StatusLines
from holdfast.channels.port import Accept
from holdfast.clock import Clock
from holdfast.core.chats import Lease
from holdfast.core.commands import COMMANDS
from holdfast.core.trust import trusts
from holdfast.ids import NodeId
from holdfast.offload.pool import Pool
from holdfast.ports import AskOperator, Uploads, ask_nowhere
from holdfast.store.store import Store

MENU = tuple(MenuEntry(name=each.name, text=each.text) for each in COMMANDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatSurroundings:
    """What an account needs of the gateway."""

    store: Store
    clock: Clock
    node_id: NodeId
    accept: Accept
    # Whether an owner may use the tools of this machine, and so its workspace.
    trusts: Callable[[str], bool] = trusts
    # Keeps files that people send; None where there is no workspace.
    uploads: Uploads | None = None
    # Reads PDF files; None where they are not read.
    pool: Pool | None = None
    timing: Timing | None = None


class ChatChannel:
    """One account with everything that works for it."""

    def __init__(self, account: ChatAccount, around: ChatSurroundings, home: Callable[[], Home | None] = no_home) -> None:
        store, clock = around.store, around.clock
        budget = Budget(clock, account.capabilities.edits_per_minute)
        self.account = account
        self.carrier = ChatCarrier(account, store, budget, home)
        presses = Presses(store=store, clock=clock, budget=budget, split=self.carrier.split)
        services = ChatServices(
            store=store,
            clock=clock,
            node_id=around.node_id,
            accept=around.accept,
            press=presses.press,
            take_answer=presses.take_answer,
            chosen=presses.chosen,
            split=self.carrier.split,
            home=home,
            trusts=around.trusts,
            uploads=around.uploads,
            pool=around.pool,
            menu=MENU,
        )
        self._receiver = Receiver(account, services, around.timing)
        self._intake = Intake(account, services)
        self._lines = StatusLines(account, store, budget, self.carrier.split, clock)

    @property
    def home(self) -> Home | None:
        """The chat for notices that this account has; None where its settings name none."""
        if not (home := self.account.settings.home):
            return None
        return Home(target=f"{self.account.name}:{home}", split=self.carrier.split)

    async def run(self) -> None:
        """Work until cancelled, whenever this node has the lease of the account."""
        await self._receiver.run(self._beside)

    async def _beside(self, lease: Lease) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._intake.run(lease), name=f"{lease.account} intake")
            group.create_task(self._lines.run(lease), name=f"{lease.account} status lines")


@contextlib.asynccontextmanager
async def open_account(
    kind: ChatKind[Any], settings: ChatSettings, context: ChatContext
) -> AsyncGenerator[ChatAccount]:  # `Any` because each kind has settings of its own.
    """Yield an account, which does not connect yet, and close it when the context ends.  Raises `ConfigInvalid`."""
    async with kind.open(settings, context) as platform:
        yield ChatAccount(
            name=context.name, kind=kind.name, settings=settings, capabilities=kind.capabilities, platform=platform
        )


def at_work(accounts: Mapping[str, ChatAccount], around: ChatSurroundings) -> Mapping[str, ChatChannel]:
    """Return what works for each account.  An account without a home chat uses that of another one."""
    working: dict[str, ChatChannel] = {}

    def home_for(name: str) -> Callable[[], Home | None]:
        def home() -> Home | None:
            return working[name].home or next((each.home for each in working.values() if each.home), None)

        return home

    working.update((name, ChatChannel(account, around, home_for(name))) for name, account in accounts.items())
    return working


def homes_of(working: Mapping[str, ChatChannel]) -> Mapping[str, Home]:
    """Return the home chats by the accounts that have them."""
    return {name: home for name, chat in working.items() if (home := chat.home)}


def ask_in(homes: Mapping[str, Home]) -> AskOperator:
    """Return what takes questions to the first of these home chats that are asked in no chat."""
    home = next(iter(homes.values()), None)
    return ask_nowhere if home is None else lambda turn, question, now_ms: asking_at_home(turn, question, home, now_ms)
