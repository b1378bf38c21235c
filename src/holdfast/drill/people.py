"""The people of a drill: each writes to the bot of a scripted Telegram, in a private chat or in a group."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from itertools import count

from holdfast.drill.telegram.chats import Chat, Person, Shown
from holdfast.drill.telegram.server import BotApiServer

# The name of the account, with which its targets begin.
ACCOUNT = "telegram"
NAMES = ("Ann", "Ben", "Cleo", "Dev", "Eve", "Finn", "Gia", "Hal", "Ida", "Jon", "Kay")
PEOPLE = dict(enumerate(NAMES, 1001))
GROUP = -2001
# How long a person waits before the next message.  Some follow so soon that they are joined.
PAUSE_MAX_S = 1.5
# A person who was not answered yet waits after so many messages.
AHEAD_MAX = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A message that a person wrote."""

    nonce: str
    chat: Chat
    message_id: int


@dataclass(slots=True)
class Crowd:
    """The people who write, and what they wrote, in order."""

    server: BotApiServer
    chance: random.Random
    written: list[Written] = field(default_factory=list[Written])
    _rooms: list[tuple[Chat, Person]] = field(default_factory=list[tuple[Chat, Person]])

    def __post_init__(self) -> None:
        people = [self.server.person(number, name) for number, name in PEOPLE.items()]
        self._rooms = [(self.server.private(each), each) for each in people]
        self._rooms.append((self.server.group(GROUP, "The garden"), people[0]))

    @property
    def chats(self) -> list[Chat]:
        return [chat for chat, _ in self._rooms]

    async def write(self) -> None:
        """Write until cancelled, also while the gateway is down."""
        async with asyncio.TaskGroup() as group:
            for number in range(len(self._rooms)):
                group.create_task(self._write_in(number))

    def say_one_more(self, nth: int = 0) -> None:
        """Let each person write one message."""
        for number in range(len(self._rooms)):
            self._say(number, f"n{number}x{nth}")

    async def _write_in(self, number: int) -> None:
        chat, _ = self._rooms[number]
        for nth in count(1):
            await asyncio.sleep(self.chance.uniform(0, PAUSE_MAX_S))
            if _ahead(chat) < AHEAD_MAX:
                self._say(number, f"n{number}x{nth}")

    def _say(self, number: int, nonce: str) -> None:
        chat, person = self._rooms[number]
        mention = f"@{self.server.bot.person.username} " if chat.type != "private" else ""
        message = self.server.says(chat, person, f"{mention}please answer {nonce}")
        self.written.append(Written(nonce=nonce, chat=chat, message_id=message.id))


def _ahead(chat: Chat) -> int:
    """Return how many messages were written since the last message of the bot."""
    latest = max((each.id for each in chat.messages.values() if _is_said(each)), default=0)
    return sum(each.id > latest for each in chat.messages.values())


def _is_said(message: Shown) -> bool:
    # A line about the work is quiet.
    return message.sender.is_bot and not message.is_quiet
