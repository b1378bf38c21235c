"""The far side of a chat account, as a test plays it: the people with their phones, and a platform that fails on demand."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import StrEnum

from holdfast.channels.chat.port import Place


class Who(StrEnum):
    """Who does something at the far side."""

    # The operator's user id is in `allow`.
    OPERATOR = "operator"
    # The account does not know this person.
    STRANGER = "stranger"
    # A program with an account of its own.
    OTHER_BOT = "other bot"
    # The account itself, as when its operator writes with its name.
    ACCOUNT = "account"


class Where(StrEnum):
    """Where it is done."""

    # The private chat of that person with the account.
    PRIVATE = "private"
    # A group of all of them.
    GROUP = "group"
    # A thread of that group.
    THREAD = "thread"


class Failure(StrEnum):
    """How the next message that the account sends fails."""

    # It is refused, and the platform says how long to wait.
    FLOOD = "flood"
    # It is certainly not taken, because the platform is out of order.
    DOWN = "down"
    # It is taken, and the connection ends before the platform says so.
    LOST = "lost"
    # It is taken, and the platform never says so: the connection stays open.
    SILENT = "silent"
    # The chat is closed to the account for good.
    BLOCKED = "blocked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A message of the account, as people see it now."""

    message_id: str
    # Where the platform has a markup of its own, blocks of code are written with ``` here all the same.
    text: str
    # The labels, row by row.
    buttons: tuple[str, ...] = ()
    file: bytes | None = None


class Impossible(Exception):
    """It cannot happen on this platform; the message says why, and the case is skipped."""


class FarSide(ABC):
    """One platform with one account on it.

    The abstract methods are needed by every case.  Four more are needed where the kind declares what they play: `attach`
    (files_in), `press` and `told` (buttons), and `typing`.  The others play what not every platform has: the cases that need
    them are skipped.
    """

    # The platform's id of each person.
    user_ids: Mapping[Who, str]
    # What connects the account to this far side: values for the settings of the kind.
    settings: Mapping[str, object]
    # Whether messages that come while the gateway is away are delivered later.
    keeps_history: bool = True
    # Whether a message that is sent again with the same key is shown once.
    drops_repeats: bool = False

    @abstractmethod
    def place(self, who: Who, where: Where) -> Place:
        """Return the place that someone writes to.  Raises `Impossible` where the platform has none of the kind."""

    @abstractmethod
    async def write(self, text: str, who: Who = Who.OPERATOR, where: Where = Where.PRIVATE, *, mention: bool = False) -> str:
        """Let someone write a message, and return its id.  `mention` names the account, as far as the platform needs it."""

    @abstractmethod
    async def shown(self, place: Place) -> Sequence[Shown]:
        """Return the messages of the account that people see there now, the oldest first."""

    @abstractmethod
    async def fail(self, how: Failure, retry_after_s: int = 0) -> None:
        """Let the next message that the account sends fail.  Raises `Impossible` where the platform cannot fail so."""

    async def repeat(self) -> None:
        """Report the last message to the account once more."""
        raise self._not_played("report a message twice")

    @contextlib.asynccontextmanager
    async def backwards(self) -> AsyncGenerator[None]:
        """Report what people do in the body when it ends, the last first."""
        raise self._not_played("report events in another order")
        yield

    async def edit(self, place: Place, message_id: str, text: str) -> None:  # noqa: ARG002 - Others use them.
        """Let the person who wrote a message change it."""
        raise self._not_played("let people edit their messages")

    async def delete(self, place: Place, message_id: str) -> None:  # noqa: ARG002 - Others use them.
        """Let the person who wrote a message delete it."""
        raise self._not_played("let people delete their messages")

    async def attach(self, text: str, name: str, media_type: str, content: bytes) -> str:
        """Let the operator send a file in the private chat, and return the id of the message."""
        raise NotImplementedError

    async def press(self, place: Place, message_id: str, label: str, who: Who = Who.OPERATOR) -> None:
        """Let someone press a button."""
        raise NotImplementedError

    async def told(self) -> Sequence[str]:
        """Return what people who pressed buttons were told, in order."""
        raise NotImplementedError

    async def typing(self, place: Place) -> int:
        """Return how often a place showed that the agent is at work."""
        raise NotImplementedError

    async def disconnect(self) -> None:
        """End the connection by which the account receives."""
        raise self._not_played("end the connection")

    async def fall_silent(self) -> None:
        """Let the connection by which the account receives stay open, and bring nothing more.  A new one is sound."""
        raise self._not_played("leave a connection open that brings nothing")

    def rival(self) -> AbstractAsyncContextManager[None]:
        """Let another program receive the messages of the account while the context lasts."""
        raise self._not_played("let another program receive")

    async def move(self) -> None:
        """Give the group another id.  `place` returns the new one from then on."""
        raise self._not_played("give a chat another id")

    def _not_played(self, what: str) -> Impossible:
        return Impossible(f"{type(self).__name__} does not {what}")
