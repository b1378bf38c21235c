"""What a chat shows of a turn: a line about its work, and the messages that ask a question."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from holdfast.core.delivery import Button, Delivery
from holdfast.core.questions import ONCE_CHOICES, About, Decision, Question
from holdfast.core.turns import TurnState
from holdfast.ids import DeliveryId, SessionId, TurnId

_DIGEST_CHARS = 8
_LABEL_MAX = 60
# No label is longer, whether characters, UTF-16 units or bytes are counted.
LABEL_LONGEST = "\U0001f600" * _LABEL_MAX
# One row for each inner sequence.
Buttons: TypeAlias = tuple[tuple[Button, ...], ...]
_LABELS = {Decision.ONCE: "Once", Decision.SESSION: "For this session", Decision.ALWAYS: "Always", Decision.DENY: "Deny"}


class LineKind(StrEnum):
    """What the message of a turn shows."""

    # A line about the work, which the answer removes.
    STATUS = "status"
    # The growing answer.
    STREAM = "stream"


class LineState(StrEnum):
    # It is being sent, or its sender died.
    SENDING = "sending"
    SHOWN = "shown"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusLine:
    """The message that shows a turn at work."""

    turn_id: TurnId
    target: str
    kind: LineKind
    state: LineState
    # The platform's id of the message, once it is known.
    message_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AtWork:
    """A turn whose work a chat may see."""

    turn_id: TurnId
    session_id: SessionId
    target: str
    state: TurnState
    accepted_at: int
    # Whether an earlier message of the conversation is not answered yet.
    waits_behind: bool
    # Whether it waits for a model that cannot answer now.
    is_deferred: bool
    # A tool call that runs.
    tool: str
    # Whether its answer has still to leave.
    is_unsent: bool
    # Whether anything has still to leave for its chat.
    chat_is_sending: bool
    in_group: bool
    line: StatusLine | None = None

    @property
    def text(self) -> str:
        """What is said about its work; empty while there is nothing to say."""
        match self.state:
            case TurnState.QUEUED if self.is_deferred:
                return "Waiting for the model…"
            case TurnState.QUEUED if self.waits_behind:
                return "Waiting behind another message…"
            case TurnState.RUNNING:
                return f"Working: {self.tool}…" if self.tool else "Working…"
            case TurnState.WAITING:
                return "Waiting for you."
            case _:
                return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A message that asks a question."""

    delivery_id: DeliveryId
    turn_id: TurnId
    question_id: str
    target: str
    closed_at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledCard:
    """A message whose question is settled, and which does not say so yet."""

    card: Card
    delivery: Delivery
    answer: str


def question_digest(question_id: str) -> str:
    """Return what names a question of a turn in a button."""
    return hashlib.sha256(question_id.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_CHARS]


def choices_of(question: Question) -> Sequence[str]:
    """Return the answers that a question offers as buttons."""
    return question.choices or (ONCE_CHOICES if question.about is About.APPROVAL else ())


def label_of(choice: str) -> str:
    """Return a choice as people read it."""
    label = _LABELS[Decision(choice)] if choice in _LABELS else choice
    return label if len(label) <= _LABEL_MAX else f"{label[: _LABEL_MAX - 1]}…"


def closed(text: str, told: str) -> str:
    """Return a message that says what came of it."""
    return f"{text}\n\n**{told}**"


def numbered(rows: Buttons) -> str:
    """Return what stands below a message where a platform has no buttons; empty where there is nothing to choose."""
    lines = [f"{number}. {button.label}" for number, button in enumerate((each for row in rows for each in row), 1)]
    return "\n".join(["", "", *lines, "", "Reply with a number."]) if lines else ""


def buttons_of(turn_id: TurnId, question: Question) -> Buttons:
    """Return a row with a button for each choice.  A button refers to rows, so that it works as long as they are there."""
    name = f"q:{turn_id}:{question_digest(question.id)}"
    return tuple(
        (Button(label=label_of(choice), value=f"{name}:{number}"),) for number, choice in enumerate(choices_of(question))
    )


def go_on(turn_id: TurnId) -> Buttons:
    """Return the button that lets a turn go on that was cut off."""
    return ((Button(label="Go on", value=f"r:{turn_id}"),),)
