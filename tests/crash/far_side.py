"""A chat platform that is kept on disk: what people did, what it was told, and what it shows outlive the gateway."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.channels.chat.platform import (
    Batch,
    Bot,
    Button,
    Capabilities,
    ChatEvent,
    MessageSize,
    Outgoing,
    Place,
    Platform,
    Pressed,
    Rejected,
    Unit,
)
from holdfast.core.chats import decoded, encoded
from tests.crash.life import Fuse
from tests.crash.world import World

CAN = Capabilities(
    delivers_later=True,
    edits=True,
    deletes=True,
    buttons=True,
    message_size=MessageSize(most=4_096, unit=Unit.UTF16),
)
CALLS = frozenset({"sent", "edited", "deleted", "settled", "confirmed"})


@dataclass
class Seen:
    """A message of the account, as people see it now."""

    id: str
    chat: str
    key: str
    text: str
    buttons: list[Button] = field(default_factory=list[Button])
    # The place of its sending among the lines of the world.
    line: int = 0


class DurablePlatform(Platform):
    """One account at a platform on disk.  Each call that changes something is a point of the fuse.

    It reports everything that was not confirmed, also what the gateway says that it has read, and forgets what was.
    """

    def __init__(self, world: World, fuse: Fuse) -> None:
        self._world = world
        self._fuse = fuse
        self._news = asyncio.Event()
        # Every call that changes something sets it.
        self._changed = asyncio.Event()
        self.listens = asyncio.Event()

    def report(self, *events: ChatEvent) -> None:
        """Let people do something, all of it at once."""
        self._world.note("done", events=[encoded(each).decode() for each in events])
        self._news.set()

    def done(self) -> list[ChatEvent]:
        """Return what people have done."""
        return [decoded(each) for line in self._world.read("done") for each in line["events"]]

    def confirmed(self) -> int:
        """Return how many events the platform has forgotten."""
        return max((line["position"] for line in self._world.read("confirmed")), default=0)

    def shown(self, chat: str = "") -> list[Seen]:
        """Return what people see in a chat, or in all of them."""
        return shown(self._world.lines(), chat)

    async def shows(self, chat: str, is_it: Callable[[Seen], bool]) -> Seen:
        """Return the first message of a chat that is like that, once there is one."""
        while True:
            self._changed.clear()
            for each in self.shown(chat):
                if is_it(each):
                    return each
            await self._changed.wait()

    async def identify(self) -> Bot:
        return Bot(user_id="1000", name="bot")

    async def listen(self, position: str | None) -> AsyncGenerator[Batch]:
        reported = self.confirmed()
        while True:
            self._news.clear()
            events = self.done()
            self.listens.set()
            if news := events[reported:]:
                reported = len(events)
                yield Batch(events=news, position=str(reported), acknowledge=self._confirmation(reported))
            else:
                await self._news.wait()

    def _confirmation(self, position: int) -> Callable[[], Any]:
        async def confirm() -> None:
            self._called("confirmed", position=position)

        return confirm

    async def send(self, place: Place, message: Outgoing, key: str) -> str:
        message_id = f"m{len(self._world.read('sent')) + 1}"
        buttons = [[each.label, each.value] for row in message.buttons for each in row]
        self._called("sent", chat=place.chat_id, id=message_id, key=key, text=message.text, buttons=buttons)
        return message_id

    async def edit(self, place: Place, message_id: str, message: Outgoing) -> None:
        if message_id not in {each.id for each in self.shown(place.chat_id)}:
            raise Rejected("there is no such message to be edited")
        self._called("edited", chat=place.chat_id, id=message_id, text=message.text)

    async def delete(self, place: Place, message_id: str) -> None:
        self._called("deleted", chat=place.chat_id, id=message_id)

    async def settle(self, press: Pressed, text: str) -> None:
        self._called("settled", press=press.press_id, text=text)

    def _called(self, kind: str, **facts: object) -> None:
        with self._fuse.point(lasts=True):
            self._world.note(kind, **facts)
        self._changed.set()


def shown(lines: Sequence[dict[str, Any]], chat: str = "") -> list[Seen]:
    """Return what is seen after these lines of a world, the oldest first."""
    messages: dict[str, Seen] = {}
    for number, line in enumerate(lines):
        match line["kind"]:
            case "sent":
                buttons = [Button(label=label, value=value) for label, value in line["buttons"]]
                messages[line["id"]] = Seen(line["id"], line["chat"], line["key"], line["text"], buttons, number)
            case "edited":
                messages[line["id"]].text, messages[line["id"]].buttons = line["text"], []
            case "deleted":
                messages.pop(line["id"], None)
            case _:
                pass
    return [each for each in messages.values() if chat in ("", each.chat)]
