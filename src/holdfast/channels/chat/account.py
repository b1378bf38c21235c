"""An account of a chat platform: what a kind of platform registers, and what is opened of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from holdfast.channels.chat.config import ChatSettings
from holdfast.channels.chat.port import Button, MenuEntry, Platform
from holdfast.channels.port import Accept, Capabilities
from holdfast.clock import Clock
from holdfast.core.chats import Place, Pressed, target_of
from holdfast.ids import NodeId
from holdfast.ports import Uploads
from holdfast.store.store import Store

S = TypeVar("S", bound=ChatSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatContext:
    """What an account is opened with, beside its settings."""

    # The name of the account, which its targets begin with.
    name: str
    home: Path
    environment: Mapping[str, str]
    clock: Clock
    # Where the gateway can be reached from the internet; empty if nowhere.
    public_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatKind(Generic[S]):
    """A chat platform, as its folder registers it."""

    name: str
    # A dataclass of settings that extends `ChatSettings`.
    settings: type[S]
    capabilities: Capabilities
    # Opens an account, and closes it when the context ends.  Raises `ConfigInvalid`.  It does not connect yet.
    open: Callable[[S, ChatContext], AbstractAsyncContextManager[Platform]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatAccount:
    """An open account."""

    name: str
    kind: str
    settings: ChatSettings
    capabilities: Capabilities
    platform: Platform

    def target(self, place: Place) -> str:
        """Return the target of deliveries to a place."""
        return target_of(self.name, place)


class Notify(Protocol):
    """Sends a message that is not an answer, through the outbox."""

    async def __call__(self, target: str, text: str, key: str, *, buttons: Sequence[Sequence[Button]] = ()) -> None:
        """Return once it is durable; the same key again is the same message."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatServices:
    """What an account uses of the gateway while it runs."""

    store: Store
    clock: Clock
    node_id: NodeId
    accept: Accept
    notify: Notify
    # Does what a button says, and settles the press.
    press: Callable[[ChatAccount, Pressed], Awaitable[None]]
    # Keeps files that people send; None where there is no workspace.
    uploads: Uploads | None = None
    # The commands that a platform offers while a person types.
    menu: tuple[MenuEntry, ...] = ()
