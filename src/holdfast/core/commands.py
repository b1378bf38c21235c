"""The commands that every channel shares: a message that begins with a slash and a known word is one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType


class Name(StrEnum):
    NEW = "new"
    STOP = "stop"
    STATUS = "status"
    RESUME = "resume"
    RETRY = "retry"
    UNDO = "undo"
    TITLE = "title"
    HELP = "help"


HELP: Mapping[Name, str] = MappingProxyType(
    {
        Name.NEW: "begin a new conversation",
        Name.STOP: "stop what is running and leave this conversation",
        Name.STATUS: "show where this conversation stands",
        Name.RESUME: "go on with an answer that was cut off",
        Name.RETRY: "answer the last message anew",
        Name.UNDO: "leave the last exchange out",
        Name.TITLE: "name this conversation: /title TEXT",
        Name.HELP: "show this list",
    }
)


_NAMES = frozenset(Name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What somebody wants of the gateway itself."""

    name: Name
    argument: str = ""


def parse(text: str) -> Command | None:
    """Return the command that a message is; None for a message to the agent, such as one that begins with a path."""
    word, _, argument = text.strip().partition(" ")
    # In a group chat a command may be addressed: /new@holdfast.
    name = word[1:].partition("@")[0].lower()
    if not word.startswith("/") or name not in _NAMES:
        return None
    return Command(name=Name(name), argument=argument.strip())
