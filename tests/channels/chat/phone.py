"""What a phone shows: a platform that keeps every message, and fails when it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field

from holdfast.channels.chat.account import ChatAccount
from holdfast.channels.chat.config import ChatSettings
from holdfast.channels.chat.port import Batch, Bot, Member, MenuEntry, Outgoing, Place, Posted, Pressed, RemoteFile
from holdfast.channels.port import Capabilities, MessageSize, Unit
from holdfast.errors import Rejected

SIZE = MessageSize(most=318, unit=Unit.UTF16)
CAN = Capabilities(
    delivers_later=True,
    edits=True,
    deletes=True,
    buttons=True,
    reactions=True,
    threads=True,
    typing=True,
    files_out=True,
    message_size=SIZE,
    edits_per_minute=20,
)
HOME = Place(chat_id="home")
CHAT = Place(chat_id="1")
ME = Member(id="7", name="Ann")
STRANGER = Member(id="66", name="Eve")


@dataclass
class Phone:
    """The messages of each chat by their id, in the order in which they came."""

    chats: dict[Place, dict[str, Outgoing]] = field(default_factory=dict[Place, dict[str, Outgoing]])
    # Every call that arrived.
    calls: list[str] = field(default_factory=list[str])
    # Raised by the next calls of a name: before the call arrives, or behind it where it is an `OutcomeUnknown`.
    fails: dict[str, list[Exception]] = field(default_factory=dict[str, list[Exception]])
    # Raised behind the next calls, which arrive all the same.
    loses: dict[str, list[BaseException]] = field(default_factory=dict[str, list[BaseException]])
    told: list[str] = field(default_factory=list[str])
    # Whether the next message arrives, and its sender never hears so.
    swallows: bool = False
    size: MessageSize = SIZE

    def texts(self, place: Place = CHAT) -> list[str]:
        return [each.text for each in self.chats.get(place, {}).values()]

    def last(self, place: Place = CHAT) -> tuple[str, Outgoing]:
        return list(self.chats[place].items())[-1]

    def count(self, name: str) -> int:
        return sum(each.startswith(name) for each in self.calls)

    def press(self, number: int, *, place: Place = CHAT, who: Member = ME, message_id: str | None = None) -> Pressed:
        """Press a button of a message that the phone shows."""
        found = {name: each for name, each in self.chats[place].items() if each.buttons}
        name = message_id or list(found)[-1]
        button = [each for row in self.chats[place][name].buttons for each in row][number]
        return Pressed(place=place, sender=who, message_id=name, press_id=f"p{len(self.told)}", value=button.value)

    def _arrive(self, name: str, detail: str = "") -> None:
        if self.fails.get(name):
            raise self.fails[name].pop(0)
        self.calls.append(f"{name} {detail}".strip())

    def _answer(self, name: str) -> None:
        if self.loses.get(name):
            raise self.loses[name].pop(0)

    async def identify(self) -> Bot:
        return Bot(user_id="1000", name="bot")

    async def listen(self, position: str | None) -> AsyncGenerator[Batch]:
        yield Batch()

    async def receive(self, posted: Posted) -> Batch:
        raise NotImplementedError

    async def send(self, place: Place, message: Outgoing, key: str) -> str:
        self._arrive("send", message.text)
        assert self.size.fits(message.text), f"too long: {message.text!r}"
        name = str(100 + sum(map(len, self.chats.values())) + self.count("delete"))
        self.chats.setdefault(place, {})[name] = message
        self._answer("send")
        if self.swallows:
            self.swallows = False
            await asyncio.Event().wait()
        return name

    async def edit(self, place: Place, message_id: str, message: Outgoing) -> None:
        self._arrive("edit", message.text)
        if message_id not in self.chats.get(place, {}):
            raise Rejected("message to edit not found")
        assert self.size.fits(message.text), f"too long: {message.text!r}"
        self.chats[place][message_id] = message
        self._answer("edit")

    async def delete(self, place: Place, message_id: str) -> None:
        self._arrive("delete", message_id)
        self.chats.get(place, {}).pop(message_id, None)

    async def type(self, place: Place) -> None:
        self._arrive("type")

    async def react(self, place: Place, message_id: str, emoji: str) -> None:
        self._arrive("react", f"{message_id} {emoji}")

    async def settle(self, press: Pressed, text: str) -> None:
        self.told.append(text)
        if self.fails.get("settle"):
            raise self.fails["settle"].pop(0)

    async def fetch(self, file: RemoteFile, bytes_max: int) -> bytes:
        raise NotImplementedError

    async def offer(self, menu: Sequence[MenuEntry]) -> None:
        raise NotImplementedError


def account_of(phone: Phone, can: Capabilities = CAN, **settings: object) -> ChatAccount:
    chosen = ChatSettings(**{"allow": (ME.id,), "home": HOME.chat_id, **settings})  # type: ignore[arg-type]
    return ChatAccount(name="telegram", kind="telegram", settings=chosen, capabilities=can, platform=phone)
