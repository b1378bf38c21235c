"""A chat platform in this process: a test says what people do, and reads what the account did."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from holdfast.channels.chat.account import ChatAccount
from holdfast.channels.chat.config import ChatSettings
from holdfast.channels.chat.port import Batch, Bot, ChatEvent, MenuEntry, RemoteFile
from holdfast.channels.port import Capabilities
from holdfast.errors import AccountTaken, Rejected, Unavailable
from holdfast.store.store import Store
from tests.channels.chat.phone import Phone

ACCOUNT = "telegram"
BOT = Bot(user_id="1000", name="holdfast_bot", url="https://chat.example/holdfast_bot")


@dataclass
class ScriptedPlatform(Phone):
    """Keeps every event, like a platform that forgets nothing; a position is how many of them were read.

    Errors in `refusals` are raised by the next calls, one each.
    """

    events: list[ChatEvent] = field(default_factory=list[ChatEvent])
    refusals: list[Exception] = field(default_factory=list[Exception])
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    offered: list[Sequence[MenuEntry]] = field(default_factory=list[Sequence[MenuEntry]])
    connects: int = 0
    # How far the platform was told that it has been read.
    acknowledged: int = 0
    # The number of the connection that yields nothing more, and does not end.
    deaf_connection: int = 0
    # Another program receives.
    taken: bool = False
    # Reports everything again with each connection, as a platform without positions does.
    forgets_position: bool = False
    batch_max: int = 100
    # Runs between the commit of a batch and its acknowledgement.
    before_acknowledge: Callable[[], Awaitable[None]] | None = None
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def report(self, *events: ChatEvent) -> None:
        """People did something."""
        self.events.extend(events)
        self._news.set()

    def fall_silent(self) -> None:
        """Let the connection stay open and bring nothing more."""
        self.deaf_connection = self.connects
        self._news.set()

    def drop(self) -> None:
        """End the connection."""
        self.report_error(Unavailable("the connection ended"))

    def report_error(self, error: Exception) -> None:
        self.refusals.append(error)
        self._news.set()

    async def identify(self) -> Bot:
        self._raise()
        return BOT

    async def listen(self, position: str | None) -> AsyncGenerator[Batch]:
        self.connects += 1
        connection = self.connects
        read = 0 if position is None or self.forgets_position else int(position)
        while True:
            self._raise()
            news, read = self.events[read : read + self.batch_max], min(read + self.batch_max, len(self.events))
            if self.deaf_connection == connection:
                await asyncio.Event().wait()

            async def acknowledge(read: int = read) -> None:
                if self.before_acknowledge:
                    await self.before_acknowledge()
                self.acknowledged = max(self.acknowledged, read)

            yield Batch(events=tuple(news), position=str(read), acknowledge=acknowledge)
            if read == len(self.events):
                self._news.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._news.wait(), 0.1)

    def _raise(self) -> None:
        if self.taken:
            raise AccountTaken("another connection was made")
        if self.refusals:
            raise self.refusals.pop(0)

    async def fetch(self, file: RemoteFile, bytes_max: int) -> bytes:
        if file.bytes > bytes_max:
            raise Rejected(f"{file.name} is larger than {bytes_max} bytes")
        return self.files[file.id]

    async def offer(self, menu: Sequence[MenuEntry]) -> None:
        self._raise()
        self.offered.append(menu)


def account_of(platform: ScriptedPlatform, **settings: object) -> ChatAccount:
    return ChatAccount(
        name=ACCOUNT,
        kind="scripted",
        settings=ChatSettings(**{"allow": ("5",), **settings}),  # type: ignore[arg-type]
        capabilities=Capabilities(files_in=True, menu=True, buttons=True),
        platform=platform,
    )


async def until(reached: Callable[[], Awaitable[bool] | bool], limit_s: float = 10) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(limit_s):
        while True:
            found = reached()
            if found if isinstance(found, bool) else await found:
                return
            await asyncio.sleep(0.005)


@contextlib.asynccontextmanager
async def beside(running: Awaitable[None]) -> AsyncIterator[asyncio.Task[None]]:
    """Run something beside the body, and end it with the body.  What it raised is raised."""
    task = asyncio.ensure_future(running)
    try:
        yield task
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@contextlib.asynccontextmanager
async def closed(store: Store) -> AsyncIterator[Store]:
    """Close a store after the body."""
    try:
        yield store
    finally:
        await store.close()
