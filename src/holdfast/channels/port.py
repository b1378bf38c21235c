"""The port of a channel: what it can do, how it receives and how it sends.

A channel is a folder beside this file, with the same file names each time: `parse.py` (pure: what came in becomes an
`Inbound`), `render.py` (pure: an answer becomes what the far side shows), `client.py` (the wire) and `channel.py` (opens the
channel).  A channel leaves out what it does not need.  `registry.py` has a line for each.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from holdfast.clock import Clock
from holdfast.config import ChannelsConfig
from holdfast.core.intake import Inbound, Receipt
from holdfast.ports import Carrier

# Takes one message in.  It returns once the message is durable; only then may a channel acknowledge it.
Accept = Callable[[Inbound], Awaitable[Receipt]]


class Unit(StrEnum):
    """What the far side counts when it limits the size of a message."""

    CHARACTERS = "characters"
    UTF16 = "utf-16 units"
    BYTES = "bytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageSize:
    """How long one message may be."""

    most: int
    unit: Unit = Unit.CHARACTERS

    def fits(self, text: str) -> bool:
        match self.unit:
            case Unit.CHARACTERS:
                return len(text) <= self.most
            case Unit.UTF16:
                return len(text.encode("utf-16-le")) <= 2 * self.most
            case Unit.BYTES:
                return len(text.encode()) <= self.most


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a channel can do."""

    # It can send a message that answers no open request.  Such a channel has a carrier.
    delivers_later: bool = False
    # It can change and remove what it has sent.
    edits: bool = False
    deletes: bool = False
    # It can show buttons for questions and approvals.
    buttons: bool = False
    reactions: bool = False
    threads: bool = False
    # It can show that the agent is at work.
    typing: bool = False
    files_in: bool = False
    files_out: bool = False
    # It can offer commands while a person types.
    menu: bool = False
    # None: a message may have any size.
    message_size: MessageSize | None = None
    # How many edits of one chat the far side takes in a minute.
    edits_per_minute: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """An open channel."""

    capabilities: Capabilities
    # Sends deliveries to targets of this channel.
    carrier: Carrier | None = None
    # Receives messages until it is cancelled, and is restarted when it fails.
    run: Callable[[Accept], Awaitable[None]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelContext:
    """What a channel is opened with."""

    config: ChannelsConfig
    home: Path
    environment: Mapping[str, str]
    # The wall clock of this machine, because far sides compare signed times with their own.
    clock: Clock
    # Signs what is sent to `url:` targets.
    signing_secret: str


# Opens a channel, and closes it when the context ends.  Raises `ConfigInvalid`.
Opener = Callable[[ChannelContext], AbstractAsyncContextManager[Channel]]
