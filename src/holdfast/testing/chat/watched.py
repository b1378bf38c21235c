"""A platform with a witness: notes each call that the gateway makes, and what came of it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from holdfast.channels.chat.port import Batch, Bot, MenuEntry, Outgoing, Place, Platform, Posted, Pressed, RemoteFile
from holdfast.errors import Rejected, Unavailable

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call that ended."""

    name: str
    place: Place | None = None
    text: str = ""
    # What a send is known by.
    key: str = ""
    error: Exception | None = None


async def _unwatched(_message_id: str) -> None:
    pass


@dataclass
class WatchedPlatform:
    """Passes everything on to a platform."""

    platform: Platform
    calls: list[Call] = field(default_factory=list[Call])
    # Calls that failed in a way that the port does not know.
    violations: list[str] = field(default_factory=list[str])
    # Runs before a message is edited.
    before_edit: Callable[[str], Awaitable[None]] = _unwatched
    # How many batches are not handed to the gateway, as when its store fails before they are durable.
    batches_to_drop: int = 0

    def of(self, name: str, place: Place | None = None) -> list[Call]:
        """Return the calls of a name, or those of them to one chat."""
        return [each for each in self.calls if each.name == name and place in (None, each.place)]

    async def identify(self) -> Bot:
        return await self._call(self.platform.identify(), "identify")

    async def listen(self, position: str | None) -> AsyncGenerator[Batch]:
        async with contextlib.aclosing(self.platform.listen(position)) as batches:
            while True:
                try:
                    batch = await anext(batches, None)
                except Exception as error:
                    self._judge("listen", error)
                    raise
                if batch is None:
                    return
                if batch.events and self.batches_to_drop:
                    self.batches_to_drop -= 1
                    raise Unavailable("the store failed before the batch was durable")
                yield batch

    async def receive(self, posted: Posted) -> Batch:
        return await self._call(self.platform.receive(posted), "receive")

    async def send(self, place: Place, message: Outgoing, key: str) -> str:
        return await self._call(self.platform.send(place, message, key), "send", place, message.text, key)

    async def edit(self, place: Place, message_id: str, message: Outgoing) -> None:
        await self.before_edit(message_id)
        await self._call(self.platform.edit(place, message_id, message), "edit", place, message.text)

    async def delete(self, place: Place, message_id: str) -> None:
        await self._call(self.platform.delete(place, message_id), "delete", place)

    async def type(self, place: Place) -> None:
        await self._call(self.platform.type(place), "type", place)

    async def react(self, place: Place, message_id: str, emoji: str) -> None:
        await self._call(self.platform.react(place, message_id, emoji), "react", place, emoji)

    async def settle(self, press: Pressed, text: str) -> None:
        await self._call(self.platform.settle(press, text), "settle", press.place, text)

    async def fetch(self, file: RemoteFile, bytes_max: int) -> bytes:
        return await self._call(self.platform.fetch(file, bytes_max), "fetch")

    async def offer(self, menu: Sequence[MenuEntry]) -> None:
        await self._call(self.platform.offer(menu), "offer")

    async def _call(self, work: Awaitable[T], name: str, place: Place | None = None, text: str = "", key: str = "") -> T:
        error: Exception | None = None
        try:
            return await work
        except Exception as raised:
            error = raised
            self._judge(name, raised)
            raise
        finally:
            self.calls.append(Call(name=name, place=place, text=text, key=key, error=error))

    def _judge(self, name: str, error: Exception) -> None:
        if not isinstance(error, Rejected | Unavailable):
            told = f"{name} raised {type(error).__name__}: {error}"
            self.violations.append(f"{told}; a platform raises Rejected, Unavailable or OutcomeUnknown")
