"""The commands that every channel shares: a message that begins with a slash and a known word is one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile


class CommandName(StrEnum):
    NEW = "new"
    STOP = "stop"
    STATUS = "status"
    RESUME = "resume"
    SESSIONS = "sessions"
    TITLE = "title"
    RETRY = "retry"
    UNDO = "undo"
    MODEL = "model"
    APPROVE = "approve"
    DENY = "deny"
    QUEUE = "queue"
    STEER = "steer"
    BACKGROUND = "background"
    # The agent answers this one itself: only it can tell what may be left out of a conversation.
    COMPRESS = "compress"
    USAGE = "usage"
    HELP = "help"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandHelp:
    """What people are told about a command."""

    name: CommandName
    text: str
    # What follows the name; what may be left out is in brackets.
    argument: str = ""

    @property
    def usage(self) -> str:
        return f"/{self.name} {self.argument}".rstrip()


# The one table of commands.  `/help`, the completion of the terminal, the page and the menus of chats are made from it.
COMMANDS = (
    CommandHelp(name=CommandName.NEW, text="begin a new conversation"),
    CommandHelp(name=CommandName.STOP, text="stop what is running and leave this conversation"),
    CommandHelp(name=CommandName.STATUS, text="show where this conversation stands"),
    CommandHelp(
        name=CommandName.RESUME,
        argument="[NAME]",
        text="go on with an answer that was cut off, or with another conversation",
    ),
    CommandHelp(name=CommandName.SESSIONS, text="list your conversations"),
    CommandHelp(name=CommandName.TITLE, argument="[TEXT]", text="name this conversation, or show its name"),
    CommandHelp(name=CommandName.RETRY, text="answer the last message anew"),
    CommandHelp(name=CommandName.UNDO, text="leave the last exchange out"),
    CommandHelp(name=CommandName.MODEL, argument="[NAME]", text="choose the model of this conversation, or show it"),
    CommandHelp(
        name=CommandName.APPROVE, argument="[ID] [once|session|always]", text="allow what the agent asks permission for"
    ),
    CommandHelp(name=CommandName.DENY, argument="[ID] [REASON]", text="refuse what the agent asks permission for"),
    CommandHelp(name=CommandName.QUEUE, argument="TEXT", text="send a message that waits for the current answer"),
    CommandHelp(name=CommandName.STEER, argument="TEXT", text="send a message that joins the current answer"),
    CommandHelp(name=CommandName.BACKGROUND, argument="TEXT", text="do something on the side and report back here"),
    CommandHelp(name=CommandName.COMPRESS, text="let a summary stand for the older part of this conversation"),
    CommandHelp(name=CommandName.USAGE, text="show the tokens and the cost of this conversation and of today"),
    CommandHelp(name=CommandName.HELP, text="show this list"),
)
HELP = "\n".join(f"{each.usage}: {each.text}" for each in COMMANDS)
_NAMES = frozenset(CommandName)
_SPOKEN = frozenset({CommandName.QUEUE, CommandName.STEER})
_WORK = frozenset({CommandName.RETRY, CommandName.RESUME, CommandName.BACKGROUND, CommandName.COMPRESS})


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatCommand:
    """A command that a person gives to the gateway itself."""

    name: CommandName
    argument: str = ""


def parse(text: str) -> ChatCommand | None:
    """Return the command that a message is; None for a message to the agent, such as one that begins with a path."""
    word, *rest = text.split(maxsplit=1) or [""]
    # In a group chat a command may be addressed: /new@holdfast.
    name = word[1:].partition("@")[0].lower() if word.startswith("/") else ""
    return ChatCommand(name=CommandName(name), argument="".join(rest).strip()) if name in _NAMES else None


def before_words(text: str, *, has_more: bool = False) -> str:
    """Return the command before words to the agent, as in `/queue TEXT`; empty where a message is none, or has no words.

    With `has_more` something comes with the message, which is enough.
    """
    command = parse(text)
    is_spoken = command is not None and command.name in _SPOKEN and bool(command.argument or has_more)
    return f"/{command.name} " if command and is_spoken else ""


def asks_agent(text: str, *, has_more: bool = False) -> bool:
    """Return whether the agent works on a message: False for a command that the gateway answers alone."""
    command = parse(text)
    return command is None or command.name in _WORK or bool(before_words(text, has_more=has_more))


def takes_files(text: str) -> bool:
    """Return whether what comes with a command goes to the agent with the words behind it."""
    command = parse(text)
    return command is not None and command.name is CommandName.BACKGROUND and bool(command.argument)


def spoken(text: str) -> str:
    """Return the words to the agent of a message, without the command that says how a busy session meets them."""
    command = parse(text)
    return command.argument if command and command.name in _SPOKEN else text


def is_compress(text: str) -> bool:
    """Return whether a message to the agent is nothing but the command to compress."""
    command = parse(text)
    return command == ChatCommand(name=CommandName.COMPRESS)


def usage(name: CommandName) -> str:
    """Say how a command is written."""
    return next(f"{each.usage}: {each.text}" for each in COMMANDS if each.name is name)


def completed(text: str) -> str:
    """Return a text as far as it can only be continued in one way, with a space where an argument follows."""
    found = completions(text)
    if not found:
        return text
    letters = zip(*(each.name for each in found), strict=False)
    common = "".join(same[0] for same in takewhile(lambda each: len(set(each)) == 1, letters))
    return f"/{common} " if len(found) == 1 and found[0].argument else f"/{common}"


def hint(text: str) -> str:
    """Say which commands a text may become; empty for any other text."""
    found = completions(text)
    return f"{found[0].usage}: {found[0].text}" if len(found) == 1 else "  ".join(f"/{each.name}" for each in found)


def completions(text: str) -> tuple[CommandHelp, ...]:
    """Return the commands that a text may be the beginning of; none once it is longer than a name."""
    if not text.startswith("/") or any(letter.isspace() for letter in text):
        return ()
    return tuple(each for each in COMMANDS if each.name.startswith(text[1:].lower()))
