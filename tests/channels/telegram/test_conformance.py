"""The suite on the Telegram channel, which speaks to a Bot API server on loopback."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence

import httpx2

from holdfast.channels.chat.port import Place
from holdfast.channels.telegram.channel import TELEGRAM
from holdfast.drill.telegram.chats import Chat, Person
from holdfast.drill.telegram.chats import Shown as Message
from holdfast.drill.telegram.server import TOKEN, BotApiServer, Way, telegram
from holdfast.testing.chat import ChatConformance, Failure, FarSide, Shown, Where, Who
from tests.engine.world import until

TOPIC = 9
FAULTS: Mapping[Failure, tuple[Way, Mapping[str, object]]] = {
    Failure.FLOOD: (Way.STATUS, {"status": 429}),
    Failure.DOWN: (Way.STATUS, {"status": 502}),
    Failure.LOST: (Way.CUT_AFTER, {}),
    Failure.SILENT: (Way.SILENT_AFTER, {}),
    Failure.BLOCKED: (Way.STATUS, {"status": 403, "description": "Forbidden: bot was blocked by the user"}),
}


class TelegramSide(FarSide):
    """Plays the phones at a `BotApiServer`."""

    def __init__(self, there: BotApiServer) -> None:
        self.settings = {"api_base": there.url, "token": TOKEN}
        self._there = there
        self._people = {
            Who.OPERATOR: there.person(1001, "Ann", "ann"),
            Who.STRANGER: there.person(1002, "Eve", "eve"),
            Who.OTHER_BOT: Person(2001, "Other", "other_bot", is_bot=True),
            Who.ACCOUNT: there.bot.person,
        }
        self.user_ids = {who: str(person.id) for who, person in self._people.items()}
        self._group = there.group(-5, "Crew")
        self._forum = there.group(-1005, "Roofers", "supergroup", {TOPIC: "Roof"})
        self._last: Message | None = None

    def place(self, who: Who, where: Where) -> Place:
        return Place(chat_id=str(self._chat(who, where).id), thread_id=str(TOPIC) if where is Where.THREAD else "")

    def _chat(self, who: Who, where: Where) -> Chat:
        match where:
            case Where.PRIVATE:
                return self._there.private(self._people[Who.OPERATOR if who is Who.ACCOUNT else who])
            case Where.GROUP:
                return self._group
            case Where.THREAD:
                return self._forum

    async def write(self, text: str, who: Who = Who.OPERATOR, where: Where = Where.PRIVATE, *, mention: bool = False) -> str:
        text = f"@{self._there.bot.person.username} {text}" if mention else text
        thread = TOPIC if where is Where.THREAD else None
        self._last = self._there.says(self._chat(who, where), self._people[who], text, thread=thread)
        return str(self._last.id)

    async def shown(self, place: Place) -> Sequence[Shown]:
        thread = int(place.thread_id) if place.thread_id else None
        return [_shown(each) for each in self._there.chats[int(place.chat_id)].of_bot() if each.thread == thread]

    async def fail(self, how: Failure, retry_after_s: int = 0) -> None:
        way, fields = FAULTS[how]
        wanted = {"retry_after": retry_after_s} if how is Failure.FLOOD else {}
        self._there.fail(way, "sendMessage", **fields, **wanted)

    async def repeat(self) -> None:
        assert self._last
        self._there.report(self._there.bot, "message", self._last.json)

    @contextlib.asynccontextmanager
    async def backwards(self) -> AsyncIterator[None]:
        updates, first = self._there.bot.updates, self._there.bot.next_update
        # Nothing is sent meanwhile, because the server gets no turn of the loop.
        yield
        numbers = [each for each in updates if each >= first]
        turned = [updates[each] for each in reversed(numbers)]
        updates.update({number: {**each, "update_id": number} for number, each in zip(numbers, turned, strict=True)})

    async def edit(self, place: Place, message_id: str, text: str) -> None:
        self._there.edits(self._message(place, message_id), text)

    def _message(self, place: Place, message_id: str) -> Message:
        return self._there.chats[int(place.chat_id)].messages[int(message_id)]

    async def attach(self, text: str, name: str, media_type: str, content: bytes) -> str:
        chat, file = self._chat(Who.OPERATOR, Where.PRIVATE), {"file_name": name, "mime_type": media_type}
        return str(self._there.attaches(chat, self._people[Who.OPERATOR], "document", content, text, file=file).id)

    async def press(self, place: Place, message_id: str, label: str, who: Who = Who.OPERATOR) -> None:
        self._there.presses(self._message(place, message_id), self._people[who], label)

    async def told(self) -> Sequence[str]:
        return list(self._there.toasts.values())

    async def typing(self, place: Place) -> int:
        return len(self._there.chats[int(place.chat_id)].typing)

    async def disconnect(self) -> None:
        await self._break(Way.CUT_BEFORE)

    async def fall_silent(self) -> None:
        await self._break(Way.SILENT_BEFORE)

    async def _break(self, way: Way) -> None:
        """Answer the request for updates that is held, and let the next one fail."""
        self._there.fail(way, "getUpdates")
        if held := self._there.bot.poll:
            held.set_result(None)
            await until(lambda: self._there.bot.poll is not held)

    @contextlib.asynccontextmanager
    async def rival(self) -> AsyncIterator[None]:
        polling = asyncio.create_task(self._poll())
        yield
        polling.cancel()
        await asyncio.gather(polling, return_exceptions=True)

    async def _poll(self) -> None:
        async with httpx2.AsyncClient(base_url=self._there.url, trust_env=False) as client:
            while True:
                await client.post(f"/bot{TOKEN}/getUpdates", json={"timeout": 1})

    async def move(self) -> None:
        self._group = self._there.migrates(self._group)


def _shown(message: Message) -> Shown:
    return Shown(
        message_id=str(message.id),
        text=_with_fences(message),
        buttons=tuple(each["text"] for row in message.buttons for each in row),
        file=message.content or None,
    )


def _with_fences(message: Message) -> str:
    """Return what a message says, with blocks of code as they were before they were rendered."""
    units, begin, text = message.text.encode("utf-16-le"), 0, ""
    for each in (entity for entity in message.entities if entity["type"] == "pre"):
        at, end = 2 * each["offset"], 2 * (each["offset"] + each["length"])
        text += f"{units[begin:at].decode('utf-16-le')}```\n{units[at:end].decode('utf-16-le')}\n```"
        begin = end
    return text + units[begin:].decode("utf-16-le")


class TestTelegram(ChatConformance):
    kind = TELEGRAM

    @contextlib.asynccontextmanager
    async def far_side(self) -> AsyncIterator[FarSide]:
        async with telegram() as there:
            yield TelegramSide(there)
