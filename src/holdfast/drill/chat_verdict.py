"""Compares what people in chats saw during a drill with what is stored."""

from __future__ import annotations

import signal
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from holdfast.core import notes
from holdfast.core.chats import Place, target_of
from holdfast.core.delivery import REPEAT_LABEL, UNSETTLED, Delivery, DeliveryState
from holdfast.core.turns import SETTLED, Turn, TurnState
from holdfast.drill.ends import Ends
from holdfast.drill.nonces import words_for
from holdfast.drill.people import ACCOUNT, Crowd, Written
from holdfast.drill.strikes import judge_strikes
from holdfast.drill.telegram.chats import Chat, Shown
from holdfast.drill.verdict import journals_of, judge_drains, judge_world, read_ledger
from holdfast.ids import SessionId, TurnId
from holdfast.store import rows
from holdfast.store.audit import audit
from holdfast.store.database import Row, Run, Transaction
from holdfast.store.store import Store

_MESSAGES = "SELECT chat_id, message_id, turn_id FROM chat_messages"
_DELIVERIES = f"SELECT {rows.DELIVERY} FROM deliveries ORDER BY number"  # noqa: S608 - Columns of our own.
_LINES = "SELECT turn_id FROM status_lines WHERE message_id IS NULL"
_WAITING = "SELECT number FROM chat_inbox"
# How a line about the work of a turn begins.
_STATUS = ("Waiting", "Working")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatDrillResult:
    """The result of a drill through a channel, which has passed if there are no violations.

    `joined` messages share the answer of an earlier one, because they came right behind it.  `given_up` turns were
    interrupted too often, and say so in their chat.  `labelled` are the messages that say that they may be repeats.  `lost`
    are deliveries that were interrupted twice, so that it is unknown whether they were shown.  `lines` are lines about the
    work of a turn that stayed in a chat, because the gateway was killed before it knew which message they were.
    """

    channel: str
    kills: int
    sigkills: int
    sigterms: int
    drained: int
    chats: int
    written: int
    answered: int
    joined: int
    continued: int
    given_up: int
    shown: int
    labelled: int
    lost: int
    lines: int
    effects: int
    effects_unknown: int
    violations: list[str]

    def told(self) -> Sequence[str]:
        """Return the result as lines of text."""
        return (
            f"{self.written} messages written in {self.chats} chats, {self.joined} of them joined to the one before",
            f"{self.answered} answers, each in its own chat and in order; {self.continued} across at least one such end",
            f"{self.drained} turns cut by a stop that gave them too little time, each with its cause recorded",
            f"{self.given_up} given up at the third interruption in a row or later, and their chats told so",
            f"{self.shown} messages on phones, {self.labelled} labelled as possible repeats, all of them in the store",
            f"{self.lost} sends interrupted twice, so that it is unknown whether they arrived",
            f"{self.lines} lines about the work of a turn left behind by a kill",
            f"{self.effects} effects on the world, none twice; {self.effects_unknown} reported as unknown",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stored:
    """What the store says about the chats."""

    turns: Mapping[TurnId, Turn]
    # The turn of each message, by chat and message.
    turn_of: Mapping[tuple[str, str], TurnId]
    deliveries: Sequence[Delivery]
    # The turns whose line about their work was being sent when the gateway was killed.
    unknown_lines: frozenset[TurnId]


async def judge(store: Store, home: Path, crowd: Crowd, ends: Ends) -> ChatDrillResult:
    """Compare every phone with the store, and the store with itself."""
    stored = await _read(store)
    turns = list(stored.turns.values())
    journals = await journals_of(store, {turn.session_id for turn in turns})
    world, world_violations = await judge_world(read_ledger(home), store, turns)
    seen = [_Phone.of(chat, stored) for chat in crowd.chats]
    violations = [
        *await audit(store.database),
        *ends.odd_ends,
        *await judge_drains(store, ends.drained),
        *judge_strikes(turns, journals, ends.ends_ms),
        *world_violations,
        *_judge_messages(crowd.written, stored, len(await store.database.read(lambda: _run(_WAITING)))),
        *(violation for phone in seen for violation in phone.violations),
        *_judge_answers(crowd.written, stored, seen),
        *(f"D1 not settled: {each.id} is {each.state}" for each in stored.deliveries if each.state in UNSETTLED),
    ]
    return ChatDrillResult(
        channel=ACCOUNT,
        kills=ends.ends.total(),
        sigkills=ends.ends[signal.SIGKILL],
        sigterms=ends.ends[signal.SIGTERM],
        drained=ends.drained,
        chats=len(crowd.chats),
        written=len(crowd.written),
        answered=sum(turn.state is TurnState.COMPLETED for turn in turns),
        joined=len(stored.turn_of) - len(turns),
        continued=sum(turn.state is TurnState.COMPLETED and turn.attempt > 1 for turn in turns),
        given_up=sum(turn.state is TurnState.INTERRUPTED for turn in turns),
        shown=sum(len(phone.chat.of_bot()) for phone in seen),
        labelled=sum(_is_labelled(each.text) for phone in seen for each in phone.chat.of_bot()),
        lost=sum(each.state is DeliveryState.UNKNOWN for each in stored.deliveries),
        lines=sum(phone.lines for phone in seen),
        effects=world["effects"],
        effects_unknown=world["unknown"],
        violations=violations,
    )


async def _read(store: Store) -> _Stored:
    messages = await store.database.read(lambda: _run(_MESSAGES))
    turn_ids = [TurnId(turn_id) for turn_id in sorted({turn_id for _, _, turn_id in messages})]
    return _Stored(
        turns={turn_id: await store.turns.get(turn_id) for turn_id in turn_ids},
        turn_of={(chat_id, message_id): TurnId(turn_id) for chat_id, message_id, turn_id in messages},
        deliveries=[rows.delivered(row) for row in await store.database.read(lambda: _run(_DELIVERIES))],
        unknown_lines=frozenset(TurnId(turn_id) for (turn_id,) in await store.database.read(lambda: _run(_LINES))),
    )


@dataclass(slots=True)
class _Phone:
    """One chat, and what is wrong with what it shows."""

    chat: Chat
    violations: list[str]
    # How many lines about the work of turns have stayed.
    lines: int = 0

    @classmethod
    def of(cls, chat: Chat, stored: _Stored) -> _Phone:
        phone, target = cls(chat, []), _target(chat)
        here = [each for each in stored.deliveries if each.target == target]
        by_receipt = {each.receipt: each for each in here if each.receipt is not None}
        # A first send whose outcome stayed unknown is on the phone at most once, without a label.
        unconfirmed = defaultdict[str, list[Delivery]](list)
        for each in here:
            if each.repeats:
                unconfirmed[each.text.strip()].append(each)
            if each.state is DeliveryState.UNKNOWN:
                unconfirmed[each.outgoing.strip()].append(each)
        may_stay = sum(
            turn.reply_to == target and (turn.id in stored.unknown_lines or turn.state is TurnState.INTERRUPTED)
            for turn in stored.turns.values()
        )
        for message in chat.of_bot():
            sent = by_receipt.pop(str(message.id), None)
            if sent is not None:
                phone._compare(message, sent)
            elif unconfirmed[message.text]:
                unconfirmed[message.text].pop()
            elif message.is_quiet and message.text.startswith(_STATUS) and phone.lines < may_stay:
                phone.lines += 1
            else:
                phone.violations.append(f"D1 shown in {target}, and in no row: {message.text!r}")
        phone.violations += [f"D1 recorded as delivered, and not shown: {each.id}" for each in by_receipt.values()]
        return phone

    def _compare(self, message: Shown, sent: Delivery) -> None:
        if message.text != sent.outgoing.strip():
            self.violations.append(f"D1 {sent.id} is shown as {message.text!r}, and is {sent.outgoing!r}")


def _judge_messages(written: Sequence[Written], stored: _Stored, waiting: int) -> Iterator[str]:
    """Compare what was written with what was accepted."""
    if waiting:
        yield f"A1 {waiting} events are still staged"
    known = {(str(each.chat.id), str(each.message_id)) for each in written}
    yield from (f"A1 written and lost: {each}" for each in known - stored.turn_of.keys())
    yield from (f"A1 accepted, and never written: {each}" for each in stored.turn_of.keys() - known)
    yield from (f"A1 not settled: {turn.id}" for turn in stored.turns.values() if turn.state not in SETTLED)


def _judge_answers(written: Sequence[Written], stored: _Stored, phones: Sequence[_Phone]) -> Iterator[str]:
    """Compare what was written with what was shown: once, in its own chat, and in its order."""
    unknown = {each.turn_id for each in stored.deliveries if each.state is DeliveryState.UNKNOWN}
    # A message that follows a turn that was given up begins a new conversation, which waits for none.
    places: dict[SessionId, list[tuple[int, str]]] = defaultdict(list)
    for each in written:
        turn_id = stored.turn_of.get((str(each.chat.id), str(each.message_id)))
        turn = stored.turns.get(turn_id) if turn_id else None
        if turn is None:
            continue
        answer = "".join(words_for(each.nonce)).strip()
        for phone in phones:
            if phone.chat is not each.chat and any(answer in message.text for message in phone.chat.of_bot()):
                yield f"D1 answered in another chat: {each.nonce}"
        copies = [message for message in each.chat.of_bot() if answer in message.text]
        first = [message for message in copies if not _is_labelled(message.text)]
        if len(first) > 1 or len(copies) - len(first) > 1:
            yield f"D1 answered {len(first)} times, and {len(copies) - len(first)} times with a label: {each.nonce}"
        if copies:
            places[turn.session_id].append((copies[0].id, each.nonce))
        elif turn.state is TurnState.COMPLETED and turn.id not in unknown:
            yield f"D1 never answered: {each.nonce}"
        elif turn.state is TurnState.INTERRUPTED and not _says_given_up(each.chat) and turn.id not in unknown:
            yield f"D1 given up, and not told so: {each.nonce}"
    for shown in places.values():
        yield from (f"D3 {late} was answered before {early}" for (a, early), (b, late) in pairwise(shown) if b < a)


def _says_given_up(chat: Chat) -> bool:
    return any(notes.GIVEN_UP in message.text for message in chat.of_bot())


def _is_labelled(text: str) -> bool:
    return text.startswith(REPEAT_LABEL)


def _target(chat: Chat) -> str:
    return target_of(ACCOUNT, Place(chat_id=str(chat.id)))


def _run(sql: str) -> Transaction[list[Row]]:
    return (yield Run(sql))
