"""A whole node with accounts of a chat platform: it receives, runs turns, sends, and tells the operator the news."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.channels.chat.account import ChatAccount
from holdfast.channels.chat.channel import ChatChannel, ChatSurroundings, ask_in, at_work, homes_of
from holdfast.channels.chat.config import ChatSettings
from holdfast.channels.chat.home_news import HomeNews
from holdfast.channels.chat.port import Batch, ChatEvent, Member, MenuEntry, Outgoing, Place
from holdfast.channels.port import Accept, Capabilities, MessageSize, Unit
from holdfast.clock import SystemClock
from holdfast.config import Config
from holdfast.core.chats import ChatMessage
from holdfast.core.redaction import Redaction
from holdfast.engine.engine import Engine, Parts
from holdfast.engine.inbox import Inbox
from holdfast.ids import new_node_id
from holdfast.ports import Agent
from holdfast.store.store import Store
from tests.channels.chat import phone
from tests.channels.chat.phone import CHAT, HOME, ME, Phone
from tests.channels.chat.platform import ScriptedPlatform
from tests.channels.chat.test_receiver import QUICK
from tests.engine.world import DEADLINE_S, FAST, Altered, Open, opened

SIZE = MessageSize(most=4_096, unit=Unit.UTF16)
CAN = replace(phone.CAN, files_in=True, message_size=SIZE)
_IDS = itertools.count(1)
Components = Mapping[str, Callable[[], Awaitable[None]]]


@dataclass
class Handset(Phone):
    """A phone that people also write with."""

    typed: ScriptedPlatform = field(default_factory=ScriptedPlatform)
    size: MessageSize = SIZE

    async def listen(self, position: str | None) -> AsyncGenerator[Batch]:
        async for batch in self.typed.listen(position):
            yield batch

    async def identify(self) -> Any:
        return await self.typed.identify()

    async def offer(self, menu: Sequence[MenuEntry]) -> None: ...

    def write(self, text: str, *, place: Place = CHAT, who: Member = ME, **changes: Any) -> str:
        """Write a message, and return its id."""
        message_id = f"w{next(_IDS)}"
        facts = {"place": place, "sender": who, "message_id": message_id, "text": text, "sent_at": int(time.time() * 1000)}
        self.report(ChatMessage(**{**facts, **changes}))
        return message_id

    def report(self, *events: ChatEvent) -> None:
        self.typed.report(*events)

    def shows(self, words: str, place: Place = CHAT) -> list[Outgoing]:
        """Return the messages of a chat with these words in them."""
        return [each for each in self.chats.get(place, {}).values() if words in each.text]


@dataclass
class House:
    """What a node is started with, again and again, on one store."""

    store: Store
    agent: Agent
    phones: dict[str, Handset] = field(default_factory=lambda: {"telegram": Handset()})
    homes: dict[str, str] = field(default_factory=lambda: {"telegram": HOME.chat_id})
    config: Config = field(default_factory=Config)
    can: Capabilities = CAN
    settings: dict[str, object] = field(default_factory=dict[str, object])
    chats: dict[str, ChatChannel] = field(default_factory=dict[str, ChatChannel])
    news: HomeNews | None = None
    # What else runs on the node.
    beside: Callable[[Accept], Components] = lambda _: {}

    @property
    def phone(self) -> Handset:
        return next(iter(self.phones.values()))

    def _account(self, name: str, phone: Handset) -> ChatAccount:
        chosen = {"allow": (ME.id,), "home": self.homes.get(name, ""), **self.settings}
        settings = ChatSettings(**chosen)  # type: ignore[arg-type]
        return ChatAccount(name=name, kind="telegram", settings=settings, capabilities=self.can, platform=phone)

    @contextlib.asynccontextmanager
    async def running(self, *, is_killed: bool = False, **parts: Any) -> AsyncIterator[Engine]:
        """Run a node; one that is killed does not leave."""
        store, clock, config = self.store, SystemClock(), self.config
        accept = Inbox(store, config.gateway, config.sessions, Redaction(), clock).accept
        node_id = new_node_id(clock.now_ms())
        accounts = {name: self._account(name, phone) for name, phone in self.phones.items()}
        around = ChatSurroundings(store=store, clock=clock, node_id=node_id, accept=accept, timing=QUICK)
        chats = at_work(accounts, around)
        homes = homes_of(chats)
        self.chats, self.news = dict(chats), HomeNews(store, homes, clock)
        nodes = Altered(store.nodes, leave=_stay) if is_killed else store.nodes
        engine = Engine(
            Parts(
                **{
                    "store": Altered(store, nodes=nodes),
                    "agent": self.agent,
                    "carriers": {name: chat.carrier for name, chat in chats.items()},
                    "ask_operator": ask_in(homes),
                    "config": config,
                    "tuning": FAST,
                    "clock": clock,
                    "node_id": node_id,
                    "components": {**{name: chat.run for name, chat in chats.items()}, **self.beside(accept)},
                    **parts,
                }
            )
        )
        running = asyncio.create_task(engine.run(), name="engine")
        try:
            await asyncio.wait_for(engine.recovered(), DEADLINE_S)
            yield engine
        finally:
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running


async def _stay(_node_id: str) -> None: ...


@contextlib.asynccontextmanager
async def living(open_it: Open, agent: Agent, **facts: Any) -> AsyncIterator[House]:
    async with opened(open_it) as store:
        yield House(store, agent, **facts)
