"""A task that a turn hands to another session: how the two find each other, and what is said of its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.core.intake import Busy, Inbound
from holdfast.core.journal import Entry
from holdfast.core.progress import Progress
from holdfast.core.sessions import Session
from holdfast.core.turns import Mode, Turn, TurnState
from holdfast.ids import SessionId

CHANNEL = "delegate"
# The key of a child whose answer comes home by itself begins with this.
LATER = f"{CHANNEL}:later:"
NOW = f"{CHANNEL}:now:"
# The key under which the end of a child has come home begins with this, and its turn follows.
HOME = f"{CHANNEL}:home:"
# The channel of what a person sends to the side.  Its key names the session that sent it and where that is answered.
BACKGROUND = "background"
# The key of a child ends with this whose task may tell private things.
PRIVATE = ":private"


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegatedTask:
    """What is handed on."""

    goal: str
    context: str = ""

    @property
    def prompt(self) -> str:
        """What the child reads: it knows nothing of the conversation it was sent from."""
        background = f"\n\nWhat you need to know:\n{self.context}" if self.context else ""
        return f"{self.goal}{background}\n\nAnswer with the result alone; you cannot ask questions."


def depth(session: Session) -> int:
    """Return how many hands a task has gone through before it reached a session."""
    if session.channel != CHANNEL:
        return 0
    number = session.key.removeprefix(LATER).removeprefix(NOW).partition(":")[0]
    return int(number) if number.isdecimal() else 1


def is_private(session: Session) -> bool:
    """Return whether a session was given its task by a turn that had read private things."""
    return session.channel == CHANNEL and session.key.endswith(PRIVATE)


def child_message(
    task: DelegatedTask, session: Session, turn: Turn, call_key: str, number: int, *, later: bool, private: bool = False
) -> Inbound:
    """Return the message that makes a child of a turn; a repeated call makes the same one, and so finds the same child."""
    conversation = f"{LATER if later else NOW}{depth(session) + 1}:{call_key}:{number}{PRIVATE if private else ''}"
    return Inbound(
        conversation=conversation,
        text=task.prompt,
        channel=CHANNEL,
        owner=session.owner,
        source=session.source,
        dedupe_key=conversation,
        mode=Mode.DETACHED,
        delivers_later=False,
        one_shot=True,
        remembers=False,
        parent_turn_id=turn.id,
    )


def result_message(child: Turn, entries: Sequence[Entry], asked: str, session: Session, parent: Turn) -> Inbound:
    """Return the message that brings the end of a child home, into the conversation that sent it."""
    goal = asked.partition("\n")[0]
    return Inbound(
        conversation=session.key,
        text=f"[System note: a task that you gave away in the background has ended: {goal}]\n\n{told(child, entries)}",
        channel=session.channel,
        owner=session.owner,
        source=session.source,
        dedupe_key=f"{HOME}{child.id}",
        mode=Mode.DETACHED,
        delivers_later=parent.delivers_later,
        reply_to=parent.reply_to,
        one_shot=session.one_shot,
        remembers=parent.remembers,
        busy=Busy.QUEUE,
    )


def aside(message: Inbound, text: str, home: Session, unique: str) -> Inbound:
    """Return the message that does something on the side of a conversation, which it reports back to."""
    key = f"{BACKGROUND}:{home.id}:{unique}:{message.reply_to or ''}"
    return Inbound(
        conversation=key,
        text=DelegatedTask(goal=text).prompt,
        channel=BACKGROUND,
        owner=message.owner,
        source=message.source,
        dedupe_key=key,
        mode=Mode.DETACHED,
        delivers_later=False,
        one_shot=True,
        remembers=False,
        images=message.images,
    )


def home_of(aside: Session) -> SessionId:
    """Return the session that sent something to the side."""
    return SessionId(aside.key.split(":", 3)[1])


def aside_report(child: Turn, entries: Sequence[Entry], asked: str, aside: Session, home: Session) -> Inbound:
    """Return the message that brings the end of it back to the conversation that sent it."""
    goal = asked.partition("\n")[0]
    note = f"[System note: what the person sent to the background has ended: {goal}\nTell them the result.]"
    return Inbound(
        conversation=home.key,
        text=f"{note}\n\n{told(child, entries)}",
        channel=home.channel,
        owner=home.owner,
        source=home.source,
        dedupe_key=f"{HOME}{child.id}",
        mode=Mode.DETACHED,
        reply_to=aside.key.split(":", 3)[3] or None,
        busy=Busy.QUEUE,
    )


def told(child: Turn, entries: Sequence[Entry]) -> str:
    """Return what became of a child that is at rest."""
    match child.state:
        case TurnState.COMPLETED:
            return Progress.of(entries).answer or "It ended without an answer."
        case TurnState.FAILED:
            return f"It failed: {child.error or 'no reason is known'}"
        case TurnState.CANCELLED:
            return f"It was cancelled: {child.cause or 'no reason is known'}"
        case TurnState.INTERRUPTED:
            return f"It was interrupted too often and given up: {child.cause or 'no reason is known'}"
        case _:
            return f"It is not at its end: {child.state}"
