"""What people do in the chats of an account, and what is kept of it until it is handled.

The events are msgspec structs, because the store keeps them as JSON until they are handled.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

import msgspec
from msgspec import Struct

from holdfast.ids import SessionId, TurnId


class ChatType(StrEnum):
    """Who reads along."""

    PRIVATE = "private"
    GROUP = "group"


class Place(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where messages of an account go: a chat, or a thread of it."""

    chat_id: str
    thread_id: str = ""


class Member(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A user of the platform."""

    id: str
    name: str = ""
    is_bot: bool = False


class RemoteFile(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file at the platform that came with a message."""

    # What the platform fetches it by.
    id: str
    name: str
    media_type: str
    bytes: int


class ChatMessage(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="message"):
    """A person wrote a message."""

    place: Place
    sender: Member
    # The platform's id of the message, unique in its chat.
    message_id: str
    text: str
    # When it was sent by the platform's clock, in milliseconds since 1970.
    sent_at: int
    chat_type: ChatType = ChatType.PRIVATE
    chat_name: str = ""
    # Whether it mentions the bot, or replies to one of its messages.
    addresses_bot: bool = False
    files: tuple[RemoteFile, ...] = ()
    # Messages of one album have the same name here.
    album: str = ""
    # The message that it replies to.
    reply_to: str = ""


class MessageEdited(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="edited"):
    """A person changed a message.  An empty text means that the message was deleted."""

    place: Place
    sender: Member
    message_id: str
    text: str
    # When it was changed by the platform's clock, in milliseconds since 1970; 0 where the platform does not tell.
    edited_at: int = 0


class Pressed(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="pressed"):
    """A person pressed a button."""

    place: Place
    sender: Member
    # The message that has the button.
    message_id: str
    # The platform's id of the press, with which it is answered.
    press_id: str
    # What the button was sent with.
    value: str


class ChatMoved(Struct, frozen=True, kw_only=True, tag="moved"):
    """A chat has got another id, as when a group becomes a supergroup."""

    from_chat_id: str
    to_chat_id: str


ChatEvent: TypeAlias = ChatMessage | MessageEdited | Pressed | ChatMoved

encoded: Callable[[ChatEvent], bytes] = msgspec.json.Encoder().encode
decoded: Callable[[str | bytes], ChatEvent] = msgspec.json.Decoder(ChatEvent).decode


def event_key(event: ChatEvent) -> str:
    """Return what identifies an event among those of its account, made of the platform's own ids."""
    match event:
        case ChatMessage():
            return _key("message", event.place.chat_id, event.message_id)
        case MessageEdited():
            text = hashlib.sha256(event.text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
            return _key("edited", event.place.chat_id, event.message_id, str(event.edited_at), text)
        case Pressed():
            return _key("pressed", event.press_id)
        case ChatMoved():
            return _key("moved", event.from_chat_id, event.to_chat_id)


def command_key(account: str, place: Place, message_id: str) -> str:
    """Return the dedupe key of a message that is a command."""
    return command_keys(account) + _key(place.chat_id, message_id)


def command_keys(account: str) -> str:
    """Return what the dedupe keys of all commands of an account begin with."""
    return f"chat:{_key(account)}:"


def place_of(event: ChatEvent) -> Place:
    """Return where something happened."""
    return Place(chat_id=event.from_chat_id) if isinstance(event, ChatMoved) else event.place


def target_of(account: str, place: Place) -> str:
    """Return the target of deliveries to a place: `<account>:<chat>[:<thread>]`."""
    return _key(account, place.chat_id, *([place.thread_id] if place.thread_id else []))


def conversation_of(account: str, place: Place, user_id: str = "") -> str:
    """Return the key of the session of a place, or of one person there: `<account>:<chat>[:<thread>][:<person>]`."""
    return _key(account, place.chat_id, *filter(None, (place.thread_id, user_id)))


def _key(*parts: str) -> str:
    # Escaped, so that no id can be read as two.
    return ":".join(part.replace("%", "%25").replace(":", "%3A") for part in parts)


def place_named(target: str) -> Place:
    """Return the place of a target without its account.  Raises `ValueError` where it names none."""
    chat_id, _, thread_id = target.partition(":")
    if not chat_id or ":" in thread_id:
        raise ValueError(f"{target!r} is not <chat> or <chat>:<thread>")
    return Place(chat_id=_plain(chat_id), thread_id=_plain(thread_id))


def _plain(part: str) -> str:
    return part.replace("%3A", ":").replace("%25", "%")


def first_id(chat_id: str, moves: Mapping[str, str]) -> str:
    """Return the id that a chat had first.  Its conversations go on under that one."""
    before = {new: old for old, new in moves.items()}
    seen = {chat_id}
    while (earlier := before.get(chat_id)) is not None and earlier not in seen:
        chat_id = earlier
        seen.add(chat_id)
    return chat_id


def last_id(chat_id: str, moves: Mapping[str, str]) -> str:
    """Return the id that a chat has now."""
    seen = {chat_id}
    while (later := moves.get(chat_id)) is not None and later not in seen:
        chat_id = later
        seen.add(chat_id)
    return chat_id


class AccountState(StrEnum):
    """How an account stands with its platform."""

    CONNECTING = "connecting"
    CONNECTED = "connected"
    STOPPED = "stopped"
    # Another program receives its messages.
    TAKEN = "taken"
    # The platform does not accept its token.
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountRecord:
    """What is known of an account of a chat platform."""

    name: str
    kind: str
    state: AccountState = AccountState.STOPPED
    # What is wrong, in a sentence; empty while nothing is.
    problem: str = ""
    # The node that receives its messages.
    node_id: str | None = None
    # Grows whenever another node begins to receive.
    fence: int = 0
    # When the platform last answered a receive, in milliseconds since 1970.
    last_receive_at: int | None = None
    bot_id: str = ""
    bot_name: str = ""
    bot_url: str = ""
    # Identifies the menu of commands that the platform has.
    menu_digest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right of one node to receive the messages of an account."""

    account: str
    node_id: str
    fence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedEvent:
    """An event that is durable and not handled yet."""

    account: str
    # Grows with each event of the account.
    number: int
    key: str
    event: ChatEvent
    received_at: int
    # What it waits for: a pairing or a question about a backlog; None while nothing holds it, and empty once a backlog has
    # let it go on.
    holder: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePart:
    """Which part of a turn's text one message of a chat is."""

    chat_id: str
    message_id: str
    # In characters.
    position: int
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumed:
    """The staged events that become a turn, removed in the transaction that accepts it."""

    account: str
    numbers: tuple[int, ...]
    # Who sent them.
    user_id: str = ""
    parts: tuple[MessagePart, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnOfMessage:
    """The turn that a message of a chat became part of."""

    turn_id: TurnId
    session_id: SessionId
    # Who sent it.
    user_id: str
    part: MessagePart


def revised(text: str, part: MessagePart, new: str) -> str:
    """Return a turn's text in which one message says something else."""
    return text[: part.position] + new + text[part.position + part.length :]


def is_empty(text: str, parts: Sequence[MessagePart]) -> bool:
    """Return whether a turn has no words of its messages any more, and nothing came with them."""
    return not any(part.length for part in parts) and not text[max((part.position for part in parts), default=0) :].strip()
