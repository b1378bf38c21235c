"""The carrier of a chat account: takes deliveries to its chats, and questions to the people who may decide them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from holdfast.channels.chat.account import ChatAccount, Home
from holdfast.channels.chat.asking import asking
from holdfast.channels.chat.budget import Budget
from holdfast.channels.chat.port import LocalFile, Outgoing, Place
from holdfast.channels.port import MessageSize
from holdfast.core.chats import ChatType, place_named
from holdfast.core.delivery import REPEAT_LABEL, Delivery
from holdfast.core.questions import Question
from holdfast.core.showing import LineKind, LineState, StatusLine, numbered
from holdfast.core.splitting import split
from holdfast.core.turns import Turn
from holdfast.errors import Rejected
from holdfast.store.store import Store

EMPTY = "(The answer is empty.)"
# Room for the label of a repeat, and for what follows it.
_MARGIN = len(REPEAT_LABEL) + 1


class ChatCarrier:
    """Takes deliveries to the chats of one account."""

    dedupes = False
    in_line = True

    def __init__(self, account: ChatAccount, store: Store, budget: Budget, home: Callable[[], Home | None]) -> None:
        self._account = account
        self._store = store
        self._budget = budget
        self._home = home
        size = account.capabilities.message_size
        self._size = size and MessageSize(most=size.most - _MARGIN, unit=size.unit)

    @property
    def takes_files(self) -> bool:
        return self._account.capabilities.files_out

    def check(self, target: str) -> None:
        self._place(target)

    def split(self, text: str, below: str = "") -> Sequence[str]:
        """Cut a text into parts that the platform takes, each with room for what is added `below` it."""
        text, size = text if text.strip() else EMPTY, self._size
        return split(text, lambda part: size.fits(part + below)) if size else [text]

    def ask(self, turn: Turn, question: Question, target: str, now_ms: int) -> Sequence[Delivery]:
        return asking(turn, question, target, self._home(), self.split, now_ms)

    async def send(self, sent: Delivery) -> str:
        place = self._place(sent.target)
        return await self._budget.call(place, lambda: self._send(place, sent))

    async def find(self, sent: Delivery) -> str | None:  # noqa: ARG002 - Chats cannot be searched.
        return None

    async def _send(self, place: Place, sent: Delivery) -> str:
        line = await self._line(sent)
        if line and line.message_id is not None:
            await self._store.status_lines.close(line.turn_id)
            return await self._complete(place, line.message_id, sent)
        if line:
            # The beginning of the answer was being sent when its sender died, so it may be there.
            sent = replace(sent, repeats=1)
            await self._store.status_lines.close(line.turn_id)
        return await self._account.platform.send(place, await self._outgoing(sent), sent.id)

    async def _line(self, sent: Delivery) -> StatusLine | None:
        """Return the message in which the answer grew that this delivery begins."""
        line = await self._store.status_lines.find(sent.turn_id) if sent.turn_id and sent.part == 1 else None
        if line is None or line.kind is not LineKind.STREAM or line.target != sent.target:
            return None
        # A message that was completed is completed again, because that changes nothing.
        return line if line.message_id is not None or line.state is LineState.SENDING else None

    async def _complete(self, place: Place, message_id: str, sent: Delivery) -> str:
        try:
            await self._account.platform.edit(place, message_id, Outgoing(text=sent.text))
        except Rejected:
            # The person has deleted it.
            return await self._account.platform.send(place, await self._outgoing(sent), sent.id)
        return message_id

    async def _outgoing(self, sent: Delivery) -> Outgoing:
        extra = sent.extra
        can = self._account.capabilities
        return Outgoing(
            text=sent.outgoing if can.buttons else f"{sent.outgoing}{numbered(extra.buttons)}",
            buttons=extra.buttons if can.buttons else (),
            file=await self._file(sent),
            is_quiet=extra.is_quiet,
            reply_to=extra.reply_to or await self._asked_by(sent),
        )

    async def _file(self, sent: Delivery) -> LocalFile | None:
        if (file := sent.extra.file) is None:
            return None
        if not self._account.capabilities.files_out:
            raise Rejected(f"{self._account.kind} takes no files")
        content = await self._store.kept_files.read(file.id)
        return LocalFile(name=file.name, media_type=file.media_type, content=content)

    async def _asked_by(self, sent: Delivery) -> str:
        """Return the message that an answer in a group is for."""
        if sent.turn_id is None or sent.session_id is None or sent.part != 1:
            return ""
        session = await self._store.sessions.get(sent.session_id)
        if session.source.chat_type != ChatType.GROUP:
            return ""
        place = self._place(sent.target)
        asked = [each for each in await self._store.channels.messages_of(sent.turn_id) if each.chat_id == place.chat_id]
        return asked[-1].message_id if asked else ""

    def _place(self, target: str) -> Place:
        account, _, address = target.partition(":")
        try:
            if account == self._account.name:
                return place_named(address)
        except ValueError:
            pass
        raise Rejected(f"{target!r} names no chat: use {self._account.name}:<chat> or {self._account.name}:<chat>:<thread>")
