"""An account of a chat platform: what a kind of platform registers, and what is opened of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from holdfast.channels.chat.config import ChatSettings
from holdfast.channels.chat.port import MenuEntry, Platform
from holdfast.channels.port import Accept, Capabilities
from holdfast.clock import Clock
from holdfast.core import delivery
from holdfast.core.chats import ChatMessage, Place, Pressed, target_of
from holdfast.core.delivery import NO_EXTRA, Delivery, Extra
from holdfast.core.people import Role
from holdfast.core.trust import trusts
from holdfast.ids import NodeId
from holdfast.offload.pool import Pool
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


class Split(Protocol):
    """Cuts a text into parts that a platform takes, each with room for what is added `below` it."""

    def __call__(self, text: str, below: str = "") -> Sequence[str]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """The chat for notices to the operator."""

    target: str
    split: Split


def one_part(text: str, below: str = "") -> Sequence[str]:  # noqa: ARG001 - The shape of `Split`.
    """Leave a text whole."""
    return [text]


async def not_an_answer(account: ChatAccount, message: ChatMessage, role: Role) -> bool:  # noqa: ARG001 - The shape of `take_answer`.
    """Leave every message to the agent."""
    return False


async def no_button(account: ChatAccount, message: ChatMessage, role: Role, received_at: int) -> Pressed | None:  # noqa: ARG001 - The shape of `chosen`.
    """Let no message stand for a button."""
    return None


def no_home() -> Home | None:
    """Name no chat for notices."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatServices:
    """What an account uses of the gateway while it runs."""

    store: Store
    clock: Clock
    node_id: NodeId
    accept: Accept
    # Does what a button says, and settles the press.
    press: Callable[[ChatAccount, Pressed], Awaitable[None]]
    # Answers the question that is open in a chat with a message; False where the message is for the agent.
    take_answer: Callable[[ChatAccount, ChatMessage, Role], Awaitable[bool]] = not_an_answer
    # Returns the button that a message stands for, where a chat shows buttons as a list with numbers.
    chosen: Callable[[ChatAccount, ChatMessage, Role, int], Awaitable[Pressed | None]] = no_button
    # Cuts a notice into parts that the platform takes.
    split: Split = one_part
    # Finds the chat for notices to the operator, which may be one of another account.
    home: Callable[[], Home | None] = no_home
    # Whether an owner may use the tools of this machine, and so its workspace.
    trusts: Callable[[str], bool] = trusts
    # Keeps files that people send; None where there is no workspace.
    uploads: Uploads | None = None
    # Reads PDF files; None where they are not read.
    pool: Pool | None = None
    # The commands that a platform offers while a person types.
    menu: tuple[MenuEntry, ...] = ()

    async def notify(self, owner: str, target: str, text: str, key: str, extra: Extra = NO_EXTRA) -> None:
        """Send a message that is not an answer.  The same key again is the same message."""
        await self.store.deliveries.notify(self.notice(owner, target, text, key, extra))

    def notice(self, owner: str, target: str, text: str, key: str, extra: Extra = NO_EXTRA) -> Sequence[Delivery]:
        """Return a message that is not an answer, to be sent with the commit of a transaction."""
        return delivery.notice(key, owner, target, self.split(text), self.clock.now_ms(), extra)
