"""What a chat shows of a turn while it is at work: typing, and one message.

The message has a line about the work, or the growing answer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from holdfast.channels.chat.account import ChatAccount
from holdfast.channels.chat.budget import Budget
from holdfast.channels.chat.cards import Cards
from holdfast.channels.chat.port import Outgoing, Place
from holdfast.clock import Clock
from holdfast.core import notes
from holdfast.core.chats import Lease, place_named
from holdfast.core.events import Text
from holdfast.core.showing import AtWork, LineKind, LineState, StatusLine
from holdfast.core.turns import SETTLED, TurnState
from holdfast.errors import HoldfastError, OutcomeUnknown, Rejected, Unavailable
from holdfast.ids import TurnId
from holdfast.store.store import Store

log = logging.getLogger(__name__)

DONE = "Done."
SEEN = "👀"
# A quick answer needs no status line.
SHOW_AFTER_MS = 2_000
# Platforms show typing for about five seconds.
TYPE_EACH_MS = 4_000
# What happens within so long is shown by one edit.
GATHER_MS = 300
LOOK_MS = 1_000
IDLE_MS = 10_000
CALL_S = 20
AT_ONCE_MAX = 16
_TOPICS = ("appended", "session", "turns", "deliveries")

Split = Callable[[str], Sequence[str]]


class StatusLines:
    """The status lines and the question messages of one account, on the node that receives for it."""

    def __init__(self, account: ChatAccount, store: Store, budget: Budget, split: Split, clock: Clock) -> None:
        self._account = account
        self._platform = account.platform
        self._can = account.capabilities
        self._stream = account.settings.stream
        self._store = store
        self._budget = budget
        self._split = split
        self._clock = clock
        self._cards = Cards(account, store, budget, clock)
        # What the messages say, as far as this process knows.
        self._said: dict[TurnId, str] = {}
        self._typed_at: dict[Place, int] = {}
        self._seen: set[TurnId] = set()

    async def run(self, lease: Lease) -> None:
        """Show what happens until cancelled, or until another node has the lease.

        Wakes may be lost, so it also looks from time to time.
        """
        changed = asyncio.Event()
        stop = self._store.wakes.listen(lambda topic: changed.set() if topic.partition(":")[0] in _TOPICS else None)
        try:
            while await self._holds(lease):
                changed.clear()
                is_busy = await self.look()
                try:
                    async with asyncio.timeout((LOOK_MS if is_busy else IDLE_MS) / 1000):
                        await changed.wait()
                except TimeoutError:
                    continue
                await self._clock.sleep_ms(GATHER_MS)
        finally:
            stop()

    async def _holds(self, lease: Lease) -> bool:
        try:
            return await self._store.channels.holds(lease)
        except Unavailable:
            return True

    async def look(self) -> bool:
        """Bring all messages up to date once; returns whether turns are at work."""
        try:
            shown = await self._store.status_lines.at_work(self._account.name)
            await self._cards.look()
        except Unavailable as error:
            log.warning("the status lines of %s are not up to date: %s", self._account.name, error)
            return True
        at_once = asyncio.Semaphore(AT_ONCE_MAX)

        async def show(each: AtWork) -> None:
            async with at_once:
                await self._safely(lambda: self._show(each))

        async with asyncio.TaskGroup() as group:
            for each in shown:
                group.create_task(show(each))
        now = self._clock.monotonic_ms()
        self._typed_at = {place: at for place, at in self._typed_at.items() if now - at < TYPE_EACH_MS}
        there = {each.turn_id for each in shown}
        self._said = {name: text for name, text in self._said.items() if name in there}
        self._seen &= there
        return bool(shown)

    async def _safely(self, work: Callable[[], Awaitable[None]]) -> None:
        """Make a call that only decorates: where it fails, the next look tries again."""
        try:
            async with asyncio.timeout(CALL_S):
                await work()
        except (HoldfastError, TimeoutError) as error:
            log.debug("a status line of %s: %s", self._account.name, error)
        except Exception:  # The edge to a platform: what fails here must not keep answers from being shown.
            log.exception("a status line of %s failed", self._account.name)

    async def _show(self, each: AtWork) -> None:
        place = place_named(each.target.partition(":")[2])
        if each.state in SETTLED:
            # The message stays until the answer is there.
            if not each.is_unsent and each.line:
                await self._end(place, each, each.line)
            return
        if each.state is TurnState.RUNNING:
            await self._type(place)
        if self._stream == "off" or not self._can.edits:
            await self._acknowledge(place, each)
            return
        kind, text = await self._content(each)
        line = each.line
        if line and line.kind is LineKind.STATUS and kind is LineKind.STREAM:
            if not self._may_begin(place, each, kind):
                return
            await self._withdraw(place, each, line)
            line = None
        if text and line is None:
            await self._begin(place, each, kind, text)
        elif text and line and line.state is LineState.SHOWN:
            await self._edit(place, each, line, text)

    async def _content(self, each: AtWork) -> tuple[LineKind, str]:
        """Return what the message of a turn is, and what it says.

        An answer grows in a message of its own, because the status line may stand above the answers to earlier messages and
        alerts no phone.
        """
        if self._stream == "edit" and (text := await self._answer_so_far(each.turn_id)):
            # A message that is full does not change any more.
            return LineKind.STREAM, self._split(text)[0]
        return LineKind.STATUS, each.text

    async def _answer_so_far(self, turn_id: TurnId) -> str:
        entries = await self._store.journal.read_turn(turn_id)
        return "".join(entry.event.text for entry in entries if isinstance(entry.event, Text)).strip()

    def _may_begin(self, place: Place, each: AtWork, kind: LineKind) -> bool:
        """Return whether the message of a turn may be sent now.  An answer begins behind what was said before it."""
        is_quick = not each.waits_behind and self._clock.now_ms() - each.accepted_at < SHOW_AFTER_MS
        return not (is_quick or self._budget.is_held(place) or (kind is LineKind.STREAM and each.chat_is_sending))

    async def _begin(self, place: Place, each: AtWork, kind: LineKind, text: str) -> None:
        """Send the message.  It is a row before it is sent, so that after a crash it is not sent again."""
        if not self._may_begin(place, each, kind):
            return
        message = Outgoing(text=text, is_quiet=kind is LineKind.STATUS)

        async def send() -> None:
            lines = self._store.status_lines
            if not await lines.begin(each.turn_id, each.target, kind):
                return
            try:
                message_id = await self._platform.send(place, message, f"{kind}:{each.turn_id}")
            except OutcomeUnknown:
                raise
            except (Rejected, Unavailable):
                # It certainly is not there.
                await lines.withdraw(each.turn_id)
                raise
            await lines.show(each.turn_id, message_id)
            self._said[each.turn_id] = text
            self._budget.edited(place)

        await self._budget.call(place, send)

    async def _edit(self, place: Place, each: AtWork, line: StatusLine, text: str) -> None:
        # A platform may count an edit that changes nothing.
        if self._said.get(each.turn_id) == text or not self._budget.may_edit(place, in_group=each.in_group):
            return

        async def edit() -> None:
            # The answer may have come meanwhile, and stands in this message.
            now = await self._store.status_lines.find(each.turn_id)
            if now is None or now.state is not LineState.SHOWN or line.message_id is None:
                return
            self._budget.edited(place)
            await self._platform.edit(place, line.message_id, Outgoing(text=text))
            self._said[each.turn_id] = text

        await self._budget.call(place, edit)

    async def _end(self, place: Place, each: AtWork, line: StatusLine) -> None:
        """Take the message away, or let it say that the work is over."""
        # A turn that was cut off may go on, and is shown anew then.  One whose id is unknown stays, so a second one is never
        # begun: there would be one more after each crash.
        if each.state is TurnState.INTERRUPTED and line.kind is LineKind.STATUS and line.state is LineState.SHOWN:
            await self._withdraw(place, each, line)
            return
        await self._take_away(place, each, line)
        await self._store.status_lines.close(each.turn_id)

    async def _withdraw(self, place: Place, each: AtWork, line: StatusLine) -> None:
        """Take the message away, so that another one can be sent."""
        await self._take_away(place, each, line)
        await self._store.status_lines.forget(each.turn_id)

    async def _take_away(self, place: Place, each: AtWork, line: StatusLine) -> None:
        if line.message_id is None:
            return
        try:
            await self._budget.call(place, lambda: self._remove(place, each, line.message_id or ""))
        except Rejected as error:
            log.info("a status line of %s cannot be removed: %s", self._account.name, error)

    async def _remove(self, place: Place, each: AtWork, message_id: str) -> None:
        line = await self._store.status_lines.find(each.turn_id)
        if line is None or line.state is LineState.CLOSED:
            return
        if line.kind is LineKind.STREAM:
            # Its turn has no answer, so what was shown is all there is.
            text = await self._answer_so_far(each.turn_id)
            cut = self._split(text)[0] if text else ""
            await self._platform.edit(place, message_id, Outgoing(text=f"{cut}\n\n{_ended(each.state)}".strip()))
            return
        if self._can.deletes:
            try:
                await self._platform.delete(place, message_id)
            except Rejected:
                log.debug("a status line of %s is too old to be deleted", self._account.name)
            else:
                return
        await self._platform.edit(place, message_id, Outgoing(text=DONE))

    async def _type(self, place: Place) -> None:
        now = self._clock.monotonic_ms()
        if not self._can.typing or self._budget.is_held(place):
            return
        typed_at = self._typed_at.get(place)
        if typed_at is not None and now - typed_at < TYPE_EACH_MS:
            return
        self._typed_at[place] = now
        await self._safely(lambda: self._budget.call(place, lambda: self._platform.type(place)))

    async def _acknowledge(self, place: Place, each: AtWork) -> None:
        """Show at the message itself that it waits, where there is no status line."""
        if not self._can.reactions or not each.waits_behind or each.turn_id in self._seen:
            return
        self._seen.add(each.turn_id)
        for message in await self._store.channels.messages_of(each.turn_id):
            await self._budget.call(
                place, lambda message_id=message.message_id: self._platform.react(place, message_id, SEEN)
            )


def _ended(state: TurnState) -> str:
    return notes.cancelled("") if state is TurnState.CANCELLED else DONE if state is TurnState.COMPLETED else "Interrupted."
