"""What a pressed button does.

A button refers to rows of the store, so that it works after any time and any number of restarts.  A press that comes again,
or too late, changes nothing and is told so.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.channels.chat import triage
from holdfast.channels.chat.account import ChatAccount, Split, one_part
from holdfast.channels.chat.budget import Budget
from holdfast.channels.chat.gate import request_key
from holdfast.channels.chat.port import ChatMessage, Outgoing, Pressed
from holdfast.channels.chat.triage import BacklogChoice
from holdfast.clock import Clock
from holdfast.core.chats import command_key, place_named, place_of
from holdfast.core.delivery import Delivery, delivery_id, notice
from holdfast.core.events import ApprovalAnswered
from holdfast.core.intake import Once
from holdfast.core.keys import LOCAL
from holdfast.core.people import TOLD, Choice, Role, may_decide, person_id, role_of
from holdfast.core.questions import CANCELLED, EXPIRED, About, AskedQuestion, Decision, decide
from holdfast.core.showing import Card, choices_of, closed, label_of, question_digest
from holdfast.core.turns import SETTLED, Turn
from holdfast.core.verbatim import span
from holdfast.errors import HoldfastError, IllegalMove, NotFound, Rejected, Repeated, Stale
from holdfast.ids import PairingId, TurnId
from holdfast.store.store import Store

log = logging.getLogger(__name__)

_PAIRING = frozenset(Choice)
_BACKLOG = frozenset(BacklogChoice)

# A button is never one of more.
_NUMBER = re.compile(r"[0-9]{1,3}")

UNKNOWN = "This button does not work any more."
NOT_YOURS = "Only the operator can decide this."
GOING_ON = "I go on."
MOVED_ON = "There is nothing to go on with: the conversation has moved on."


@dataclass(frozen=True, slots=True, kw_only=True)
class Presses:
    """Does what buttons say, for the people who may."""

    store: Store
    clock: Clock
    budget: Budget
    # Cuts what a person is told into parts that the platform takes.
    split: Split = one_part

    async def press(self, account: ChatAccount, pressed: Pressed) -> None:
        """Do what a button says, and tell the person what came of it.  Raises `Unavailable` to be called again."""
        told = await self._done(account, pressed)
        if not account.capabilities.buttons:
            await self._reply(account, pressed, told)
            return
        try:
            await account.platform.settle(pressed, told)
        except HoldfastError as error:
            # The platform forgets a press soon.  The message itself is edited to say how it was settled.
            log.info("cannot settle a press in %s: %s", account.name, error)

    async def _reply(self, account: ChatAccount, pressed: Pressed, told: str) -> None:
        """Tell the person who chose with a number.  What comes of a question is told by the turn that asked it."""
        if pressed.value.startswith("q:"):
            return
        key = f"{command_key(account.name, pressed.place, pressed.press_id)}:told"
        target = account.target(pressed.place)
        await self.store.deliveries.notify(notice(key, LOCAL, target, self.split(told), self.clock.now_ms()))

    async def _done(self, account: ChatAccount, pressed: Pressed) -> str:
        role = await self._role(account, pressed)
        if role is None:
            return NOT_YOURS
        match pressed.value.split(":"):
            case ["q", turn_id, digest, number]:
                return await self._answer(account, pressed, role, TurnId(turn_id), digest, number)
            case ["r", turn_id]:
                return await self._resume(account, pressed, TurnId(turn_id))
            case ["p", pairing_id, choice] if choice in _PAIRING:
                return await self._let_in(account, pressed, role, PairingId(pairing_id), Choice(choice))
            case ["b", backlog_id, choice] if choice in _BACKLOG:
                return await self._triage(account, pressed, backlog_id, BacklogChoice(choice))
            case _:
                return UNKNOWN

    async def _role(self, account: ChatAccount, pressed: Pressed) -> Role | None:
        sender = pressed.sender
        try:
            person = await self.store.people.get(person_id(account.name, sender.id))
        except NotFound:
            person = None
        return role_of(sender, account.settings.allow, person)

    async def _answer(
        self, account: ChatAccount, pressed: Pressed, role: Role, turn_id: TurnId, digest: str, number: str
    ) -> str:
        asked = await self._asked(account, pressed, turn_id, digest)
        if asked is None or not _NUMBER.fullmatch(number):
            return UNKNOWN
        choices = choices_of(asked.question)
        if int(number) >= len(choices):
            return UNKNOWN
        if not may_decide(role, asked.question.about):
            return NOT_YOURS
        return await self._settle(asked, choices[int(number)])

    async def _asked(self, account: ChatAccount, pressed: Pressed, turn_id: TurnId, digest: str) -> AskedQuestion | None:
        """Return the question of a button, if it was asked in this chat."""
        cards = await self.store.cards.of_turn(turn_id)
        here = {each.question_id for each in cards if _is_in(account, each.target, pressed)}
        for each in await self.store.questions.of_turn(turn_id):
            if each.question.id in here and question_digest(each.question.id) == digest:
                return each
        return None

    async def _settle(self, asked: AskedQuestion, choice: str) -> str:
        if asked.answer is not None:
            return settled_already(asked.answer)
        try:
            given = ApprovalAnswered(question_id=asked.question.id, text=choice)
            await self.store.turns.answer(asked.turn_id, given, self.clock.now_ms())
        except (IllegalMove, Stale, Rejected):
            found = [each for each in await self.store.questions.of_turn(asked.turn_id) if each.question == asked.question]
            return settled_already(found[0].answer) if found and found[0].answer else "This can not be answered any more."
        return label_of(choice)

    async def _resume(self, account: ChatAccount, pressed: Pressed, turn_id: TurnId) -> str:
        try:
            turn = await self.store.turns.get(turn_id)
            if turn.reply_to is None or not _is_in(account, turn.reply_to, pressed):
                return UNKNOWN
            if turn.state not in SETTLED:
                return GOING_ON
            told = await self._go_on(turn)
        except NotFound:
            return UNKNOWN
        sent = [each for each in await self.store.deliveries.of_turn(turn_id) if each.receipt == pressed.message_id]
        await self._close(account, pressed, sent, told)
        return told

    async def _go_on(self, turn: Turn) -> str:
        try:
            await self.store.turns.resume(turn.id, self.clock.now_ms())
        except (IllegalMove, Stale):
            return MOVED_ON
        return GOING_ON

    async def _let_in(
        self, account: ChatAccount, pressed: Pressed, role: Role, pairing_id: PairingId, choice: Choice
    ) -> str:
        """Decide about a person who asks to be let in."""
        if role is not Role.OPERATOR:
            return NOT_YOURS
        by = person_id(account.name, pressed.sender.id)
        try:
            settled = await self.store.people.decide(pairing_id, choice, by, self.clock.now_ms())
        except NotFound:
            return UNKNOWN
        except (Stale, Rejected) as error:
            told = f"{str(error)[:1].upper()}{str(error)[1:]}."
        else:
            told = TOLD[choice].format(span(settled.pairing.user_name or settled.pairing.user_id))
        await self._close_notice(account, pressed, request_key(pairing_id), told)
        return told

    async def _triage(self, account: ChatAccount, pressed: Pressed, backlog_id: str, choice: BacklogChoice) -> str:
        """Decide about messages that came while nothing received them, in the chat that they came in."""
        held = await self.store.channels.held(backlog_id)
        if any(each.account != account.name or place_of(each.event).chat_id != pressed.place.chat_id for each in held):
            return UNKNOWN
        told = await triage.settle(self.store.channels, backlog_id, choice)
        await self._close_notice(account, pressed, backlog_id, told)
        return told

    async def _close_notice(self, account: ChatAccount, pressed: Pressed, key: str, told: str) -> None:
        number = delivery_id(f"{LOCAL}:{account.target(pressed.place)}:{key}", 1)
        try:
            sent = await self.store.deliveries.get(number)
        except NotFound:
            return
        await self._close(account, pressed, [sent], told)

    async def _close(self, account: ChatAccount, pressed: Pressed, sent: Sequence[Delivery], told: str) -> None:
        """Take the buttons from a message, which says what came of it.  Where that fails, a later press tells the same."""
        if not account.capabilities.edits or not sent or not pressed.message_id:
            return
        message = Outgoing(text=closed(sent[0].outgoing, told))
        try:
            await self.budget.call(pressed.place, lambda: account.platform.edit(pressed.place, pressed.message_id, message))
        except HoldfastError as error:
            log.info("cannot edit a message in %s: %s", account.name, error)

    async def chosen(self, account: ChatAccount, message: ChatMessage, role: Role, received_at: int) -> Pressed | None:
        """Return the button that a number stands for where there are no buttons; None where the message is no such number.

        It is one of the list that was sent last, among those that are open in the chat and that the sender may decide.
        What was written after the message was received cannot be meant.
        """
        said = message.text.strip()
        if account.capabilities.buttons or not _NUMBER.fullmatch(said) or await self._is_done(account, message):
            return None
        for sent in await self.store.deliveries.choices(account.target(message.place), received_at):
            buttons = [button for row in sent.extra.buttons for button in row]
            if not 0 < int(said) <= len(buttons):
                continue
            pressed = Pressed(
                place=message.place,
                sender=message.sender,
                message_id=sent.receipt or "",
                press_id=message.message_id,
                value=buttons[int(said) - 1].value,
            )
            if await self._may_press(account, pressed, role):
                return pressed
        return None

    async def _may_press(self, account: ChatAccount, pressed: Pressed, role: Role) -> bool:
        """Return whether a button would still decide something, and its presser may decide that."""
        match pressed.value.split(":"):
            case ["q", turn_id, digest, _]:
                asked = await self._asked(account, pressed, TurnId(turn_id), digest)
                return asked is not None and asked.answer is None and may_decide(role, asked.question.about)
            case ["r", turn_id]:
                return await self.store.turns.may_resume(TurnId(turn_id))
            case ["p", pairing_id, _]:
                now = self.clock.now_ms()
                return role is Role.OPERATOR and any(
                    each.id == pairing_id and each.is_open(now) for each in await self.store.people.pairings()
                )
            case ["b", backlog_id, _]:
                return bool(await self.store.channels.held(backlog_id))
            case _:
                return False

    async def _is_done(self, account: ChatAccount, message: ChatMessage) -> bool:
        """Return whether a message has decided something before."""
        return await self.store.intake.seen(command_key(account.name, message.place, message.message_id)) is not None

    async def take_answer(self, account: ChatAccount, message: ChatMessage, role: Role) -> bool:
        """Answer the question that is open in a chat with a message; False where the message is for the agent.

        A message that comes again answers once.  Where there are no buttons, a word decides an approval too.
        """
        place, text = message.place, message.text
        if await self._is_done(account, message):
            return True
        once = Once(key=command_key(account.name, place, message.message_id), body_hash="")
        for card in await self.store.cards.open_at(account.target(place)):
            asked = await self._of(card)
            answer = _meant(asked, text, buttons=account.capabilities.buttons) if asked else None
            if asked is None or answer is None or not may_decide(role, asked.question.about):
                continue
            given = ApprovalAnswered(question_id=asked.question.id, text=answer)
            try:
                await self.store.turns.answer(asked.turn_id, given, self.clock.now_ms(), once)
            except (IllegalMove, Stale):
                continue
            except Repeated:
                return True
            return True
        return False

    async def _of(self, card: Card) -> AskedQuestion | None:
        found = [each for each in await self.store.questions.of_turn(card.turn_id) if each.question.id == card.question_id]
        return found[0] if found else None


def _is_in(account: ChatAccount, target: str, pressed: Pressed) -> bool:
    """Return whether a target is in the chat of a press.  Of an old message a platform may not tell the thread."""
    name, _, address = target.partition(":")
    return name == account.name and place_named(address).chat_id == pressed.place.chat_id


def settled_already(answer: str) -> str:
    """Tell that a question was settled before, and how."""
    return f"This is settled already: {how_settled(answer)}"


def how_settled(answer: str) -> str:
    """Say how a question was settled."""
    match answer:
        case str() if answer == EXPIRED:
            return "nobody answered in time."
        case str() if answer == CANCELLED:
            return "it is not asked any more."
        case _:
            return label_of(answer)


def _meant(asked: AskedQuestion, text: str, *, buttons: bool) -> str | None:
    """Return the answer that a message is; None where it is none."""
    said, choices = text.strip(), choices_of(asked.question)
    if said.isdecimal() and 0 < int(said) <= len(choices):
        return choices[int(said) - 1] if asked.question.about is About.ANSWER else None
    if asked.question.about is About.ANSWER:
        return said
    if buttons:
        return None
    is_decision = decide(said) is not Decision.DENY or said.lower() in (Decision.DENY, "no", "n")
    return said if said.lower() in choices or (asked.question.about is About.APPROVAL and is_decision) else None
