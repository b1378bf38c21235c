"""The suite on a platform in this process: once with everything that a platform can do, once with text alone."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from holdfast.channels.chat.account import ChatContext, ChatKind
from holdfast.channels.chat.config import ChatSettings
from holdfast.channels.chat.port import (
    ChatEvent,
    ChatMessage,
    ChatMoved,
    ChatType,
    Member,
    MessageEdited,
    Place,
    Platform,
    Pressed,
    RemoteFile,
)
from holdfast.channels.port import Capabilities, MessageSize
from holdfast.errors import OutcomeUnknown, Rejected, Unavailable
from holdfast.testing.chat import ChatConformance, Failure, FarSide, Shown, Where, Who
from tests.channels.chat.phone import CAN, SIZE
from tests.channels.chat.platform import BOT, ScriptedPlatform

MEMBERS = {
    Who.OPERATOR: Member(id="5", name="Ada"),
    Who.STRANGER: Member(id="66", name="Eve"),
    Who.OTHER_BOT: Member(id="8", name="other", is_bot=True),
    Who.ACCOUNT: Member(id=BOT.user_id, name=BOT.name),
}
ALL = replace(CAN, files_in=True, menu=True)
TEXT = Capabilities(delivers_later=True, message_size=MessageSize(most=300))
THERE: dict[int, ScriptedPlatform] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedSettings(ChatSettings):
    number: int = 0


@contextlib.asynccontextmanager
async def opened(settings: ScriptedSettings, context: ChatContext) -> AsyncIterator[Platform]:
    yield THERE[settings.number]


@dataclass
class ScriptedSide(FarSide):
    """Plays people before a `ScriptedPlatform`."""

    platform: ScriptedPlatform
    settings: Mapping[str, object]
    user_ids: Mapping[Who, str] = field(default_factory=lambda: {who: each.id for who, each in MEMBERS.items()})
    _group: str = "group"
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    # What is reported later, in a body that turns it round.
    _kept: list[ChatEvent] | None = None

    def place(self, who: Who, where: Where) -> Place:
        if where is Where.PRIVATE:
            return Place(chat_id=self.user_ids[Who.OPERATOR if who is Who.ACCOUNT else who])
        return Place(chat_id=self._group, thread_id="9" if where is Where.THREAD else "")

    def _report(self, event: ChatEvent) -> None:
        if self._kept is None:
            self.platform.report(event)
        else:
            self._kept.append(event)

    async def write(self, text: str, who: Who = Who.OPERATOR, where: Where = Where.PRIVATE, *, mention: bool = False) -> str:
        return self._write(text, who, where, mention=mention)

    def _write(
        self,
        text: str,
        who: Who = Who.OPERATOR,
        where: Where = Where.PRIVATE,
        *,
        mention: bool = False,
        files: tuple[RemoteFile, ...] = (),
    ) -> str:
        message = ChatMessage(
            place=self.place(who, where),
            sender=MEMBERS[who],
            message_id=f"m{next(self._numbers)}",
            text=text,
            sent_at=int(time.time() * 1000),
            chat_type=ChatType.PRIVATE if where is Where.PRIVATE else ChatType.GROUP,
            addresses_bot=mention,
            files=files,
        )
        self._report(message)
        return message.message_id

    async def shown(self, place: Place) -> Sequence[Shown]:
        return [
            Shown(
                message_id=message_id,
                text=each.text,
                buttons=tuple(button.label for row in each.buttons for button in row),
                file=each.file.content if each.file else None,
            )
            for message_id, each in self.platform.chats.get(place, {}).items()
        ]

    async def fail(self, how: Failure, retry_after_s: int = 0) -> None:
        fails, loses = self.platform.fails.setdefault("send", []), self.platform.loses.setdefault("send", [])
        match how:
            case Failure.FLOOD:
                fails.append(Unavailable("too many requests", retry_after_s))
            case Failure.DOWN:
                fails.append(Unavailable("out of order"))
            case Failure.BLOCKED:
                fails.append(Rejected("the account was blocked"))
            case Failure.LOST:
                loses.append(OutcomeUnknown("the connection ended"))
            case Failure.SILENT:
                self.platform.swallows = True

    async def repeat(self) -> None:
        self.platform.report(self.platform.events[-1])

    @contextlib.asynccontextmanager
    async def backwards(self) -> AsyncIterator[None]:
        self._kept = []
        yield
        self.platform.report(*reversed(self._kept))
        self._kept = None

    async def edit(self, place: Place, message_id: str, text: str) -> None:
        edited_at = next(self._numbers)
        self._report(
            MessageEdited(place=place, sender=MEMBERS[Who.OPERATOR], message_id=message_id, text=text, edited_at=edited_at)
        )

    async def delete(self, place: Place, message_id: str) -> None:
        await self.edit(place, message_id, "")

    async def attach(self, text: str, name: str, media_type: str, content: bytes) -> str:
        self.platform.files[name] = content
        file = RemoteFile(id=name, name=name, media_type=media_type, bytes=len(content))
        return self._write(text, files=(file,))

    async def press(self, place: Place, message_id: str, label: str, who: Who = Who.OPERATOR) -> None:
        rows = self.platform.chats[place][message_id].buttons
        value = next(button.value for row in rows for button in row if button.label == label)
        press_id = f"p{next(self._numbers)}"
        self._report(Pressed(place=place, sender=MEMBERS[who], message_id=message_id, press_id=press_id, value=value))

    async def told(self) -> Sequence[str]:
        return self.platform.told

    async def typing(self, place: Place) -> int:
        return self.platform.count("type")

    async def disconnect(self) -> None:
        self.platform.drop()

    async def fall_silent(self) -> None:
        self.platform.fall_silent()

    @contextlib.asynccontextmanager
    async def rival(self) -> AsyncIterator[None]:
        self.platform.taken = True
        yield
        self.platform.taken = False

    async def move(self) -> None:
        before, self._group = self._group, "supergroup"
        self.platform.report(ChatMoved(from_chat_id=before, to_chat_id=self._group))


class _Scripted(ChatConformance):
    @contextlib.asynccontextmanager
    async def far_side(self) -> AsyncIterator[FarSide]:
        platform = ScriptedPlatform(size=self.kind.capabilities.message_size or SIZE)
        THERE[id(platform)] = platform
        try:
            yield ScriptedSide(platform, {"number": id(platform)})
        finally:
            del THERE[id(platform)]


class TestEverything(_Scripted):
    kind = ChatKind(name="scripted", settings=ScriptedSettings, capabilities=ALL, open=opened)


class TestTextAlone(_Scripted):
    kind = ChatKind(name="scripted", settings=ScriptedSettings, capabilities=TEXT, open=opened)
