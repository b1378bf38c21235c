"""Composing: the messages that belong together become one message to the agent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from holdfast.core.chats import ChatMessage, ChatType, MessagePart
from holdfast.core.legible import one_line

NAME_MAX_CHARS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    """The text of a turn, and which part of it each message is."""

    text: str
    parts: tuple[MessagePart, ...]


def compose(messages: Sequence[ChatMessage], attached: Sequence[str] = (), *, names_speaker: bool = False) -> Composed:
    """Return the text that messages of one person become: each on lines of its own, then what came with them."""
    text = speaker(messages[0]) if names_speaker else ""
    parts: list[MessagePart] = []
    for number, message in enumerate(messages):
        if number and text and message.text:
            text += "\n"
        parts.append(_part(message, len(text)))
        text += message.text
    for line in attached:
        text += f"\n{line}" if text else line
    return Composed(text=text, parts=tuple(parts))


def speaker(message: ChatMessage) -> str:
    """Return what stands before the words of a person in a group."""
    # A name is chosen by its owner, so it is one short line.
    name = one_line(message.sender.name)[:NAME_MAX_CHARS].replace(":", "") or message.sender.id
    return f"{name}: "


def with_text(message: ChatMessage, text: str) -> ChatMessage:
    """Return a message as it was edited before it was read."""
    return msgspec.structs.replace(message, text=text)


def in_group(message: ChatMessage) -> bool:
    return message.chat_type is ChatType.GROUP


def _part(message: ChatMessage, position: int) -> MessagePart:
    return MessagePart(
        chat_id=message.place.chat_id, message_id=message.message_id, position=position, length=len(message.text)
    )
