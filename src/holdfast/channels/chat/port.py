"""The port of a chat platform: the events that it reports, and the calls that it takes.

A platform's folder has a pure `parse.py` (what came in becomes an event), a pure `render.py` (Markdown becomes what the
platform shows) and a `client.py` that implements `Platform`.  Everything else is shared by all platforms: people, groups,
commands, buttons, status lines, budgets and recovery are in this folder, behind the port.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from holdfast.core.chats import (
    ChatEvent,
    ChatMessage,
    ChatMoved,
    ChatType,
    Member,
    MessageEdited,
    Place,
    Pressed,
    RemoteFile,
)
from holdfast.core.delivery import Button
from holdfast.errors import BadParameter

__all__ = [
    "Batch",
    "Bot",
    "Button",
    "ChatEvent",
    "ChatMessage",
    "ChatMoved",
    "ChatType",
    "LocalFile",
    "Member",
    "MenuEntry",
    "MessageEdited",
    "Outgoing",
    "Place",
    "Platform",
    "Posted",
    "Pressed",
    "RemoteFile",
]


async def _nothing() -> None:
    pass


def _undeclared(capability: str) -> AssertionError:
    """Return the error of a call that is never made, because its kind does not declare the capability."""
    return AssertionError(f"{capability!r} is not declared, so this is not called")


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What a platform reported at once, in its order.  An empty batch proves that the connection lives."""

    events: Sequence[ChatEvent] = ()
    # How far the account has been read after this batch; None where the platform has no such thing.
    position: str | None = None
    # Tells the platform that the batch is durable.  It is called after the commit.
    acknowledge: Callable[[], Awaitable[None]] = _nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted:
    """A request that came to `/channels/{account}`, for a platform that sends what people do."""

    # Their names are in lower case.
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalFile:
    """A file of this machine that is sent."""

    name: str
    media_type: str
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """A message to be shown: Markdown that is short enough, buttons and a file."""

    text: str
    # One row for each inner sequence.
    buttons: tuple[tuple[Button, ...], ...] = ()
    file: LocalFile | None = None
    # Whether the platform may show it without alerting the person.
    is_quiet: bool = False
    # The message that it answers, where the platform can show that.
    reply_to: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MenuEntry:
    """A command that the platform offers while a person types."""

    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bot:
    """Who the account is at its platform."""

    user_id: str
    name: str
    # What people open to write to it; empty where there is no such address.
    url: str = ""
    facts: dict[str, str] = field(default_factory=dict[str, str])


class Platform(Protocol):
    """One account at its platform.

    Every call raises `Rejected` where the platform will never take it, `Unavailable` (with `retry_after_s` exactly as the
    platform said) where it certainly took nothing and may take it later, and `OutcomeUnknown` where that is unknown.  A
    refused account is `AccountRefused`, a second consumer is `AccountTaken`.

    A platform of plain text has the first three methods, and inherits the others: what it does not declare is not called.
    """

    async def identify(self) -> Bot:
        """Ask the platform who the account is."""
        ...

    def listen(self, position: str | None) -> AsyncGenerator[Batch]:
        """Yield what people do, from a position on, for as long as the connection holds.

        The next batch is asked for when the one before is durable.  What was sent while the gateway was away comes first.
        """
        ...

    async def send(self, place: Place, message: Outgoing, key: str) -> str:
        """Send one message and return the platform's id of it.  `key` is the same for each try of one message."""
        ...

    async def receive(self, posted: Posted) -> Batch:
        """Read a request of the platform.  It is answered with success once the batch is durable.

        Raises `NotTrusted` where it does not prove that the platform sent it, and `BadParameter` where it cannot be read.
        An account that receives this way yields empty batches from `listen`, as proof that the platform still sends here.
        """
        raise BadParameter("this account takes no requests at this address")

    async def edit(self, place: Place, message_id: str, message: Outgoing) -> None:
        """Change a message, where the kind declares `edits`.  That it says so already is no error."""
        raise _undeclared("edits")

    async def delete(self, place: Place, message_id: str) -> None:
        """Remove a message, where the kind declares `deletes`.  That it is gone is no error."""
        raise _undeclared("deletes")

    async def type(self, place: Place) -> None:
        """Show for a few seconds that the agent is at work, where the kind declares `typing`."""
        raise _undeclared("typing")

    async def react(self, place: Place, message_id: str, emoji: str) -> None:
        """Put a reaction on a message, in place of the bot's earlier one, where the kind declares `reactions`.

        An empty one takes it away.
        """
        raise _undeclared("reactions")

    async def settle(self, press: Pressed, text: str) -> None:
        """Tell the person who pressed a button what came of it, where the kind declares `buttons`."""
        raise _undeclared("buttons")

    async def fetch(self, file: RemoteFile, bytes_max: int) -> bytes:
        """Return the content of a file, where the kind declares `files_in`.  Raises `Rejected` where it is larger."""
        raise _undeclared("files_in")

    async def offer(self, menu: Sequence[MenuEntry]) -> None:
        """Replace the menu of commands, where the kind declares `menu`."""
        raise _undeclared("menu")
