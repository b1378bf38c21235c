"""The intake of an account: events that are staged become turns, commands, edits and presses.

Each chat has its own order, and no chat waits for another.  An event leaves the stage in the transaction that makes it
something else, or after something that may be done again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from holdfast.channels.chat.account import ChatAccount, ChatServices
from holdfast.channels.chat.composing import compose, in_group, with_text
from holdfast.channels.chat.files import Files
from holdfast.channels.chat.gate import HOUR_MS, Gate
from holdfast.channels.chat.triage import Triage
from holdfast.core import commands, joining
from holdfast.core.chats import (
    ChatMessage,
    ChatMoved,
    Consumed,
    Lease,
    MessageEdited,
    Place,
    Pressed,
    StagedEvent,
    TurnOfMessage,
    command_key,
    conversation_of,
    first_id,
    last_id,
    place_of,
)
from holdfast.core.intake import Inbound, Once
from holdfast.core.joining import Arrived
from holdfast.core.people import Role, Sessions, Verdict, owner_in
from holdfast.core.sessions import Source
from holdfast.errors import Rejected, Repeated, Stale, Unavailable
from holdfast.store.channels import EVENTS_TOPIC

log = logging.getLogger(__name__)

# Between two looks, because hints may be lost.
LOOK_MS = 5_000
PAGE = 500
# What cannot be handled so often is given up, so that it does not stand before the rest for ever.
TRIES_MAX = 5
RETRY_FIRST_MS = 200
RETRY_MAX_MS = 30_000
LEFT_OUT = "What was attached is left out, because this command takes no files."
# The agent is told that a message is older than this.
AGED_MS = 600_000
# An edit whose message has not come is kept for so long.
EDIT_WAIT_MS = 60_000


@dataclass(slots=True)
class _Chat:
    """What waits in one chat."""

    waiting: deque[StagedEvent] = field(default_factory=deque[StagedEvent])
    # Edits of messages that have not come yet.
    early: list[StagedEvent] = field(default_factory=list[StagedEvent])
    news: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None
    failures: int = 0

    def add(self, staged: StagedEvent) -> None:
        # What something held is older than what has come since.
        is_late = bool(self.waiting) and staged.number < self.waiting[-1].number
        self.waiting.append(staged)
        if is_late:
            self.waiting = deque(sorted(self.waiting, key=lambda each: each.number))
        self.news.set()

    def forget(self, numbers: Sequence[int]) -> None:
        gone = set(numbers)
        self.waiting = deque(each for each in self.waiting if each.number not in gone)
        self.early = [each for each in self.early if each.number not in gone]


class Intake:
    """Handles the events of one account, while this node has its lease."""

    def __init__(self, account: ChatAccount, services: ChatServices) -> None:
        self._account = account
        self._services = services
        self._channels = services.store.channels
        self._clock = services.clock
        self._gate = Gate(account, services)
        self._files = Files(account, services)
        self._triage = Triage(account, services)
        self._chats: dict[str, _Chat] = {}
        self._known: dict[int, str] = {}
        # What was handled while a look read what there is.
        self._handled: set[int] = set()
        self._moves: dict[str, str] = {}
        self._bot_id = ""

    async def run(self, lease: Lease) -> None:
        """Handle events until cancelled, or until another node has the lease."""
        changed = asyncio.Event()
        stop = self._services.store.wakes.listen(lambda topic: changed.set() if topic == EVENTS_TOPIC else None)
        self._chats, self._known = {}, {}
        try:
            self._moves = await self._channels.moves(self._account.name)
            await self._services.store.people.hand_on(self._account.name, self._account.settings.allow)
            async with asyncio.TaskGroup() as group:
                while True:
                    changed.clear()
                    try:
                        if not await self._channels.holds(lease):
                            return
                        await self._look(group)
                    except Unavailable as error:
                        log.warning("%s: its events wait for the store: %s", self._account.name, error)
                    with contextlib.suppress(TimeoutError):
                        # Not `wait_for`: on Python 3.11 it forgets a stop that comes together with an event.
                        async with asyncio.timeout(LOOK_MS / 1000):
                            await changed.wait()
        finally:
            stop()

    async def _look(self, group: asyncio.TaskGroup) -> None:
        """Give every event to its chat, and let chats work that have something to do."""
        record = await self._channels.find(self._account.name)
        self._bot_id = record.bot_id if record else ""
        seen: set[int] = set()
        self._handled.clear()
        after = 0
        while page := await self._channels.staged(self._account.name, after, PAGE):
            for staged in page:
                seen.add(staged.number)
                await self._sort(staged)
            after = page[-1].number
        for number in self._known.keys() - seen:
            self._forget(self._chats.get(self._known[number], _Chat()), [number])
        for chat_id, chat in [*self._chats.items()]:
            await self._drop_stray(chat)
            if chat.waiting and chat.task is None:
                chat.task = group.create_task(self._work(chat), name=f"{self._account.name} {chat_id}")
            elif not chat.waiting and not chat.early and chat.task is None:
                del self._chats[chat_id]

    async def _drop_stray(self, chat: _Chat) -> None:
        """Drop edits whose message has not come for long: it was a command, or was left alone."""
        now = self._clock.now_ms()
        if stray := [each for each in chat.early if now - each.received_at > EDIT_WAIT_MS]:
            await self._done(chat, stray)

    async def _sort(self, staged: StagedEvent) -> None:
        if staged.number in self._known or staged.number in self._handled:
            return
        if isinstance(staged.event, ChatMoved):
            # Before anything behind it, because the messages of the new id belong to the same chat.
            await self._move(staged.event)
            with contextlib.suppress(Stale):
                await self._channels.remove(self._account.name, [staged.number])
            return
        chat_id = first_id(place_of(staged.event).chat_id, self._moves)
        self._known[staged.number] = chat_id
        self._chats.setdefault(chat_id, _Chat()).add(staged)

    async def _move(self, moved: ChatMoved) -> None:
        await self._channels.move(self._account.name, moved, self._clock.now_ms())
        before, after = (self._account.target(Place(chat_id=each)) for each in (moved.from_chat_id, moved.to_chat_id))
        await self._services.store.deliveries.redirect(before, after)
        self._moves = await self._channels.moves(self._account.name)

    async def _work(self, chat: _Chat) -> None:
        """Handle what waits in a chat, in its order."""
        try:
            while chat.waiting:
                await self._try(chat)
        finally:
            chat.task = None

    async def _try(self, chat: _Chat) -> None:
        head = chat.waiting[0]
        try:
            await self._step(chat)
            chat.failures = 0
        except Stale:
            # It was decided elsewhere; the next look shows what is left.
            log.info("%s: event %d was handled elsewhere", self._account.name, head.number)
            await self._reload(chat)
        except Unavailable as error:
            chat.failures = min(chat.failures + 1, 20)
            log.warning("%s: event %d waits: %s", self._account.name, head.number, error)
            await self._pause(chat)
        except Rejected as error:
            await self._give_up(chat, head, str(error))
        except Exception:  # One event that cannot be handled must not stop a whole account.
            chat.failures += 1
            log.exception("%s: event %d cannot be handled", self._account.name, head.number)
            if chat.failures < TRIES_MAX:
                await self._pause(chat)
            else:
                await self._give_up(chat, head, "of an error in Holdfast, which its log tells")

    async def _pause(self, chat: _Chat) -> None:
        await self._clock.sleep_ms(min(RETRY_FIRST_MS << chat.failures, RETRY_MAX_MS))

    async def _reload(self, chat: _Chat) -> None:
        """Forget what was handled elsewhere, and drop messages that became turns and came again at the same moment."""
        waiting = list(chat.waiting)
        if not waiting:
            return
        first = waiting[0].number
        left = {each.number for each in await self._channels.staged(self._account.name, first - 1, len(waiting) + PAGE)}
        self._forget(chat, [each.number for each in waiting if each.number not in left])
        for each in [each for each in waiting if each.number in left]:
            if isinstance(each.event, ChatMessage) and await self._turn_of(each.event):
                await self._done(chat, [each])

    async def _turn_of(self, event: ChatMessage | MessageEdited) -> TurnOfMessage | None:
        return await self._channels.turn_of(self._account.name, event.place, event.message_id)

    async def _give_up(self, chat: _Chat, staged: StagedEvent, why: str) -> None:
        """Tell a person that their message was not taken, and why."""
        chat.failures = 0
        log.warning("%s: event %d is given up: %s", self._account.name, staged.number, why)
        if isinstance(staged.event, ChatMessage):
            admission = await self._gate.admit(staged.event, addresses_bot=True)
            owner = self._owner(staged.event, admission.role or Role.GUEST)
            place = self._now_at(staged.event.place)
            await self._gate.tell(owner, place, f"I could not take your message: {why}", f"{staged.key}:lost")
        await self._done(chat, [staged])

    async def _done(self, chat: _Chat, handled: Sequence[StagedEvent]) -> None:
        numbers = [each.number for each in handled]
        with contextlib.suppress(Stale):
            await self._channels.remove(self._account.name, numbers)
        self._forget(chat, numbers)

    def _forget(self, chat: _Chat, numbers: Sequence[int]) -> None:
        chat.forget(numbers)
        self._handled.update(numbers)
        for number in numbers:
            self._known.pop(number, None)

    async def _step(self, chat: _Chat) -> None:
        """Handle the first event that waits, with what belongs to it."""
        head = chat.waiting[0]
        match head.event:
            case ChatMessage():
                await self._message(chat, head, head.event)
            case MessageEdited():
                await self._edit(chat, head, head.event)
            case Pressed():
                if not self._is_ours(head.event):
                    await self._services.press(self._account, head.event)
                await self._done(chat, [head])
            case ChatMoved():
                raise AssertionError("a move is made before its chat is known")

    def _is_ours(self, event: ChatMessage | Pressed | MessageEdited) -> bool:
        return event.sender.id == self._bot_id

    async def _edit(self, chat: _Chat, staged: StagedEvent, edited: MessageEdited) -> None:
        if self._is_ours(edited) or await self._revise(edited):
            await self._done(chat, [staged])
            return
        # Its message has not come yet: it is read as it was edited.
        if staged in chat.waiting:
            chat.waiting.remove(staged)
            chat.early.append(staged)

    async def _revise(self, edited: MessageEdited) -> bool:
        """Change what a message says, unless it is being answered already.  False where the message is not known."""
        found = await self._turn_of(edited)
        if found is not None and found.user_id == edited.sender.id:
            text = commands.spoken(edited.text)
            await self._channels.revise(self._account.name, found, text, self._clock.now_ms())
        return found is not None

    async def _message(self, chat: _Chat, head: StagedEvent, message: ChatMessage) -> None:
        if self._is_ours(message):
            await self._done(chat, [head])
            return
        if head.holder is None and joining.is_old(message.sent_at, self._clock.now_ms()):
            old = await self._backlog(chat)
            if old:
                await self._triage.park(old)
                self._forget(chat, [each.number for each in old])
                return
        together = await self._gathered(chat)
        said, edits = self._as_edited(chat, together)
        consumed = [*together, *edits]
        if not any(each.text or each.files for each in said):
            # It was deleted before it was read.
            await self._done(chat, consumed)
            return
        await self._admit(chat, consumed, said)

    async def _backlog(self, chat: _Chat) -> list[StagedEvent]:
        """Return the old messages of a chat where there are so many that a person decides about them; else none."""
        # The rest of what was missed comes at once.
        while await self._more(chat, joining.WINDOW_MS):
            pass
        now = self._clock.now_ms()
        old = [
            (each, each.event)
            for each in chat.waiting
            if isinstance(each.event, ChatMessage) and each.holder is None and joining.is_old(each.event.sent_at, now)
        ]
        if not joining.is_backlog([event.sent_at for _, event in old], now):
            return []
        admitted = [(each, event) for each, event in old if await self._is_admitted(event)]
        if not joining.is_backlog([event.sent_at for _, event in admitted], now):
            return []
        return [each for each, _ in admitted]

    async def _is_admitted(self, message: ChatMessage) -> bool:
        if self._is_ours(message):
            return False
        return (await self._gate.admit(message, addresses_bot=message.addresses_bot)).verdict is Verdict.ADMIT

    async def _gathered(self, chat: _Chat) -> list[StagedEvent]:
        """Return the first message with those that belong to it, once no further one can come."""
        while True:
            messages = [each for each in chat.waiting if isinstance(each.event, ChatMessage)]
            found = joining.gather([_arrived(each) for each in messages], self._clock.now_ms())
            if not found.wait_ms or not await self._more(chat, found.wait_ms):
                return [messages[place] for place in found.places]

    async def _more(self, chat: _Chat, wait_ms: int) -> bool:
        """Wait for another event of a chat; False if none came."""
        chat.news.clear()
        try:
            async with asyncio.timeout(wait_ms / 1000):
                await chat.news.wait()
        except TimeoutError:
            return False
        return True

    def _as_edited(self, chat: _Chat, together: Sequence[StagedEvent]) -> tuple[list[ChatMessage], list[StagedEvent]]:
        """Return messages as they were edited meanwhile, and the edits."""
        said: list[ChatMessage] = []
        used: list[StagedEvent] = []
        for staged in together:
            message = staged.event
            assert isinstance(message, ChatMessage)  # noqa: S101 - Only messages are gathered.
            for each in sorted((*chat.early, *chat.waiting), key=lambda each: each.number):
                edit = each.event
                if isinstance(edit, MessageEdited) and _is_of(edit, message):
                    message = with_text(message, edit.text)
                    used.append(each)
            said.append(message)
        return said, used

    async def _admit(self, chat: _Chat, consumed: Sequence[StagedEvent], said: Sequence[ChatMessage]) -> None:
        first = said[0]
        admission = await self._gate.admit(first, addresses_bot=any(each.addresses_bot for each in said))
        if admission.verdict is Verdict.PAIR:
            await self._gate.ask_to_pair(consumed, first)
            self._forget(chat, [each.number for each in consumed])
            return
        if admission.verdict is Verdict.IGNORE or admission.role is None:
            await self._done(chat, consumed)
            return
        await self._take(chat, consumed, said, admission.role)
        # Behind the message, which a person waits for.
        now = self._clock.now_ms()
        await self._services.store.people.note(self._account.name, first.sender.id, first.sender.name, now)

    async def _take(self, chat: _Chat, consumed: Sequence[StagedEvent], said: Sequence[ChatMessage], role: Role) -> None:
        """Do what the messages of a person ask for who may."""
        first = said[0]
        has_files = bool(first.files)
        if commands.asks_agent(first.text, has_more=has_files) and await self._gate.answers_enough(first.sender.id, role):
            await self._refuse_more(first, role)
            await self._done(chat, consumed)
        elif spoken := commands.before_words(first.text, has_more=has_files):
            words = with_text(first, commands.spoken(first.text))
            await self._accept(chat, consumed, [words], role, before=spoken)
        elif _is_command(first.text):
            await self._command(chat, consumed, first, role)
        else:
            await self._answer_or_accept(chat, consumed, said, role)

    async def _answer_or_accept(
        self, chat: _Chat, consumed: Sequence[StagedEvent], said: Sequence[ChatMessage], role: Role
    ) -> None:
        """Let a message decide what its chat is asked, or else become a turn."""
        first, services = said[0], self._services
        may_answer = len(said) == 1 and not first.files
        if may_answer and (pressed := await services.chosen(self._account, first, role, consumed[0].received_at)):
            await self._choose(chat, consumed, pressed)
        elif may_answer and await services.take_answer(self._account, first, role):
            await self._done(chat, consumed)
        else:
            await self._accept(chat, consumed, said, role)

    async def _choose(self, chat: _Chat, consumed: Sequence[StagedEvent], pressed: Pressed) -> None:
        """Let a message become the press of a button, which is handled next."""
        head, *edits = consumed
        once = Once(key=command_key(self._account.name, pressed.place, pressed.press_id), body_hash="")
        try:
            await self._channels.choose(self._account.name, head.number, pressed, once, self._clock.now_ms())
        except Repeated:
            await self._done(chat, consumed)
            return
        chat.waiting = deque(replace(each, event=pressed) if each is head else each for each in chat.waiting)
        await self._done(chat, edits)

    async def _refuse_more(self, message: ChatMessage, role: Role) -> None:
        hour = self._clock.now_ms() // HOUR_MS
        text = "You have had many answers in the last hour. What you write now is left out; write again later."
        place = self._now_at(message.place)
        await self._gate.tell(self._owner(message, role), place, text, f"guard:{message.sender.id}:{hour}")

    async def _command(self, chat: _Chat, consumed: Sequence[StagedEvent], message: ChatMessage, role: Role) -> None:
        """Let a command be done.  Its key makes it one that is done once, also if it was staged twice."""
        key = command_key(self._account.name, message.place, message.message_id)
        taken = message.files if commands.takes_files(message.text) else ()
        came = await self._files.receive(taken, self._owner(message, role))
        text = "\n".join([message.text, *came.lines])
        receipt = await self._services.accept(self._inbound(message, role, text, dedupe_key=key, images=came.images))
        replies = [receipt.reply, LEFT_OUT if message.files and not taken else None]
        if reply := "\n".join(filter(None, replies)):
            await self._gate.tell(self._owner(message, role), self._now_at(message.place), reply, f"{key}:reply")
        await self._done(chat, consumed)

    async def _accept(
        self, chat: _Chat, consumed: Sequence[StagedEvent], said: Sequence[ChatMessage], role: Role, before: str = ""
    ) -> None:
        """Let messages become a turn.  `before` is the command that says how a busy session meets it."""
        first = said[0]
        came = await self._files.receive([file for each in said for file in each.files], self._owner(first, role))
        composed = compose(said, came.lines, names_speaker=in_group(first) and self._shares_session)
        numbers = tuple(each.number for each in consumed)
        taken = Consumed(account=self._account.name, numbers=numbers, user_id=first.sender.id, parts=composed.parts)
        sent_at = first.sent_at if self._clock.now_ms() - first.sent_at > AGED_MS else 0
        message = self._inbound(first, role, before + composed.text, consumed=taken, images=came.images, sent_at=sent_at)
        await self._services.accept(message)
        self._forget(chat, numbers)

    @property
    def _shares_session(self) -> bool:
        return Sessions(self._account.settings.sessions) is Sessions.CHAT

    def _owner(self, message: ChatMessage, role: Role) -> str:
        chat_id = first_id(message.place.chat_id, self._moves)
        sessions = Sessions(self._account.settings.sessions)
        return owner_in(self._account.name, chat_id, message.chat_type, sessions, role, message.sender.id)

    def _now_at(self, place: Place) -> Place:
        """Return where a place is now: a chat may have got another id since."""
        return Place(chat_id=last_id(place.chat_id, self._moves), thread_id=place.thread_id)

    def _inbound(self, message: ChatMessage, role: Role, text: str, **more: object) -> Inbound:
        place, is_shared = message.place, in_group(message) and self._shares_session
        first = Place(chat_id=first_id(place.chat_id, self._moves), thread_id=place.thread_id)
        person = message.sender.id if in_group(message) and not is_shared else ""
        current = self._now_at(place)
        source = Source(
            chat_id=current.chat_id,
            chat_name=message.chat_name,
            chat_type=message.chat_type.value,
            thread_id=current.thread_id,
            user="" if is_shared else message.sender.id,
            user_name="" if is_shared else message.sender.name,
        )
        return Inbound(
            conversation=conversation_of(self._account.name, first, person),
            text=text,
            channel=self._account.name,
            owner=self._owner(message, role),
            source=source,
            reply_to=self._account.target(current),
            is_operator=role is Role.OPERATOR,
            **more,  # type: ignore[arg-type]
        )


def _is_of(edit: MessageEdited, message: ChatMessage) -> bool:
    """Return whether an edit is of a message; only its sender may edit it.  A chat that has moved counts anew."""
    return (edit.place.chat_id, edit.message_id, edit.sender.id) == (
        message.place.chat_id,
        message.message_id,
        message.sender.id,
    )


def _arrived(staged: StagedEvent) -> Arrived:
    message = staged.event
    assert isinstance(message, ChatMessage)  # noqa: S101 - Only messages are gathered.
    return Arrived(
        speaker=(message.sender.id, message.place.thread_id),
        text=message.text,
        sent_at=message.sent_at,
        received_at=staged.received_at,
        album=message.album,
        alone=_is_command(message.text),
    )


def _is_command(text: str) -> bool:
    return commands.parse(text) is not None
