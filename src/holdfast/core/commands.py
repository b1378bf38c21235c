"""The commands that every channel shares: a message that begins with a slash and a known word is one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType


class CommandName(StrEnum):
    NEW = "new"
    STOP = "stop"
    STATUS = "status"
    RESUME = "resume"
    RETRY = "retry"
    UNDO = "undo"
    TITLE = "title"
    HELP = "help"


# The one command that the agent answers itself: only it can tell what may be left out of a conversation.
COMPRESS = "compress"

HELP: Mapping[str, str] = MappingProxyType(
    {
        CommandName.NEW: "begin a new conversation",
        CommandName.STOP: "stop what is running and leave this conversation",
        CommandName.STATUS: "show where this conversation stands",
        CommandName.RESUME: "go on with an answer that was cut off",
        CommandName.RETRY: "answer the last message anew",
        CommandName.UNDO: "leave the last exchange out",
        CommandName.TITLE: "name this conversation: /title TEXT",
        COMPRESS: "let a summary stand for the older part of this conversation",
        CommandName.HELP: "show this list",
    }
)


_NAMES = frozenset(CommandName)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatCommand:
    """A command that a person gives to the gateway itself."""

    name: CommandName
    argument: str = ""


def parse(text: str) -> ChatCommand | None:
    """Return the command that a message is; None for a message to the agent, such as one that begins with a path."""
    word, _, argument = text.strip().partition(" ")
    name = _name(word)
    return ChatCommand(name=CommandName(name), argument=argument.strip()) if name in _NAMES else None


def is_compress(text: str) -> bool:
    """Return whether a message to the agent is nothing but the command to compress."""
    return _name(text.strip()) == COMPRESS


def _name(word: str) -> str | None:
    # In a group chat a command may be addressed: /new@holdfast.
    return word[1:].partition("@")[0].lower() if word.startswith("/") else None
