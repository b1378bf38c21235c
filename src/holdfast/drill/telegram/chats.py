"""The chats of the scripted Bot API server: what people do in them, what the bot did, and what a phone would show."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from holdfast.drill.telegram.markup import units

_ENTITY = re.compile(r"(?<!\w)(?:/(\w{1,64})(@\w+)?|@(\w{3,32}))")
DRAWN_COLUMNS = 64


@dataclass
class Person:
    """A user with a phone."""

    id: int
    first_name: str
    username: str = ""
    is_bot: bool = False
    has_blocked: bool = False
    is_deactivated: bool = False

    @property
    def json(self) -> dict[str, Any]:
        named = {"username": self.username} if self.username else {}
        return {"id": self.id, "is_bot": self.is_bot, "first_name": self.first_name, **named}


@dataclass
class Shown:
    """A message as a phone shows it."""

    id: int
    chat: Chat
    sender: Person
    text: str = ""
    entities: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    date: int = 0
    thread: int | None = None
    reply_to: int | None = None
    buttons: list[list[dict[str, Any]]] = field(default_factory=list[list[dict[str, Any]]])
    # Fields of what is attached, as the API names them.
    attached: dict[str, Any] = field(default_factory=dict[str, Any])
    content: bytes = b""
    is_quiet: bool = False
    # What it said before each edit.
    earlier: list[str] = field(default_factory=list[str])
    edit_date: int | None = None
    is_deleted: bool = False
    reactions: dict[int, str] = field(default_factory=dict[int, str])
    # Fields of service messages, and of what people can do and this class does not model.
    extra: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def has_text(self) -> bool:
        return not self.attached

    @property
    def json(self) -> dict[str, Any]:
        said = ("text", "entities") if self.has_text else ("caption", "caption_entities")
        found: dict[str, Any] = {
            "message_id": self.id,
            "date": self.date,
            "chat": self.chat.json,
            "from": self.sender.json,
            **self.attached,
            **self.extra,
        }
        if self.text:
            found[said[0]] = self.text
        if self.entities:
            found[said[1]] = self.entities
        if self.thread is not None:
            found |= {"message_thread_id": self.thread, "is_topic_message": True}
        if self.reply_to is not None and (first := self.chat.messages.get(self.reply_to)):
            found["reply_to_message"] = {name: value for name, value in first.json.items() if name != "reply_to_message"}
        if self.edit_date is not None:
            found["edit_date"] = self.edit_date
        if self.buttons:
            found["reply_markup"] = {"inline_keyboard": self.buttons}
        return found


@dataclass
class Chat:
    """A chat of the bot."""

    id: int
    type: str
    title: str = ""
    person: Person | None = None
    messages: dict[int, Shown] = field(default_factory=dict[int, Shown])
    topics: dict[int, str] = field(default_factory=dict[int, str])
    last_id: int = 0
    is_started: bool = True
    was_kicked: bool = False
    moved_to: int | None = None
    # Calls to it are refused until then, by `time.monotonic`.
    flooded_until: float = 0.0
    calls_while_flooded: list[str] = field(default_factory=list[str])
    typing: list[float] = field(default_factory=list[float])
    # Set when there is a new message.
    news: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = {"id": self.id, "type": self.type}
        if self.person:
            return {
                **found,
                **{name: value for name, value in self.person.json.items() if name != "is_bot" and name != "id"},
            }
        return {**found, "title": self.title, **({"is_forum": True} if self.topics else {})}

    def add(self, sender: Person, **fields: Any) -> Shown:
        self.last_id += 1
        message = Shown(id=self.last_id, chat=self, sender=sender, date=int(time.time()), **fields)
        self.messages[message.id] = message
        self.news.set()
        return message

    def shown(self, thread: int | None = None) -> list[Shown]:
        """Return what can be seen: in one topic, or in all of them."""
        return [each for each in self.messages.values() if not each.is_deleted and (thread is None or each.thread == thread)]

    def of_bot(self) -> list[Shown]:
        return [each for each in self.shown() if each.sender.is_bot and not each.extra]

    @property
    def texts(self) -> list[str]:
        """What the bot says, in order."""
        return [each.text for each in self.of_bot()]

    def draw(self) -> str:
        """Return the chat as a phone would show it."""
        name = self.person.first_name if self.person else self.title
        lines = [f"┌── {name} ({self.type} {self.id}{f' → {self.moved_to}' if self.moved_to else ''})"]
        for each in self.messages.values():
            lines += [f"│ {line}" for line in _drawn(each)]
        return "\n".join([*lines, "└──"])


def _drawn(message: Shown) -> Iterator[str]:
    notes = [
        f"#{message.id}",
        f"topic {message.thread}" if message.thread is not None else "",
        f"answers #{message.reply_to}" if message.reply_to is not None else "",
        f"edited {len(message.earlier)}×" if message.earlier else "",
        "quiet" if message.is_quiet else "",
        "deleted" if message.is_deleted else "",
        " ".join(message.reactions.values()),
    ]
    yield f"{message.sender.first_name}  ({', '.join(filter(None, notes))})"
    for kind in message.attached:
        yield f"   [{kind}: {len(message.content)} bytes]"
    for line in message.text.splitlines():
        for begin in range(0, len(line), DRAWN_COLUMNS):
            yield f"   {line[begin : begin + DRAWN_COLUMNS]}"
    for row in message.buttons:
        yield "   " + " ".join(f"[ {each['text']} ]" for each in row)


def entities_of(text: str) -> list[dict[str, Any]]:
    """Return the mentions and commands in what a person wrote."""
    found: list[dict[str, Any]] = []
    for each in _ENTITY.finditer(text):
        kind = "bot_command" if each[1] else "mention"
        found.append({"type": kind, "offset": units(text[: each.start()]), "length": units(each[0])})
    return found
