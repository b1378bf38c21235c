"""A question parks a turn until a person answers it: plain ones, approvals of one exact action, and spent budgets."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from holdfast.ids import SessionId, TurnId


class About(StrEnum):
    """What is asked for."""

    ANSWER = "answer"
    APPROVAL = "approval"
    BUDGET = "budget"


class Decision(StrEnum):
    """What a person decides about an action: once, for this session, for ever, or not at all."""

    ONCE = "once"
    SESSION = "session"
    ALWAYS = "always"
    DENY = "deny"


# The answer that an expired question gets by itself; it allows nothing.
EXPIRED = "expired"
# What stands in place of an answer once the turn that asked was cancelled.
CANCELLED = "cancelled"
APPROVAL_CHOICES = tuple(Decision)
# For what may be another thing tomorrow, although it looks the same.
PASSING_CHOICES = (Decision.ONCE, Decision.SESSION, Decision.DENY)
ONCE_CHOICES = (Decision.ONCE, Decision.DENY)

# Of a turn's id and of the digest of a question's: enough to be told apart, and short enough to be typed.
_TURN_CHARS = 8
_DIGEST_CHARS = 4

_SAID: Mapping[str, Decision] = {
    **dict.fromkeys(("once", "yes", "y", "ok", "okay", "allow", "approve", "approved"), Decision.ONCE),
    **dict.fromkeys(("session", "for this session"), Decision.SESSION),
    **dict.fromkeys(("always", "forever"), Decision.ALWAYS),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question to a person.

    An approval is bound to exactly what it is about: its `fingerprint` is part of what is granted, and of its id.  It may be
    several, with blanks between: each is granted for itself, and all of them must be.
    `detail` is what the person should see beside the text, such as the command and its folder.
    """

    id: str
    text: str
    about: About = About.ANSWER
    choices: tuple[str, ...] = ()
    fingerprint: str = ""
    expires_at: int | None = None
    detail: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedQuestion:
    """A question that a turn has asked, and its answer once there is one."""

    question: Question
    turn_id: TurnId
    session_id: SessionId
    owner: str
    asked_at: int
    answer: str | None = None
    answered_at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Something a person has allowed for longer than once: in one session, or in all of theirs."""

    owner: str
    fingerprint: str
    text: str
    granted_at: int
    session_id: SessionId | None = None


def decide(answer: str) -> Decision:
    """Return what an answer allows.  An answer that is not clearly a yes is a no."""
    return _SAID.get(answer.strip().strip(".!").lower(), Decision.DENY)


def denied(reason: str) -> str:
    """Return the answer that denies something for a reason, which can never be read as a yes."""
    return f"{Decision.DENY}: {reason}" if reason else Decision.DENY.value


def reason(answer: str) -> str:
    """Return the words of an answer that denies something; empty where it says no more than that."""
    word, _, rest = answer.strip().partition(":")
    return rest.strip() if word.strip().lower() == Decision.DENY else answer


def answer(about: About, choices: Sequence[str], decision: Decision) -> str:
    """Return the answer that means a decision: a budget has choices of its own."""
    if about is About.BUDGET and choices:
        return choices[-1] if decision is Decision.DENY else choices[0]
    return decision.value


def short_id(turn_id: TurnId, question_id: str) -> str:
    """Return the id by which people name a question."""
    digest = hashlib.sha256(question_id.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{turn_id[-_TURN_CHARS:]}-{digest[:_DIGEST_CHARS]}"


def is_offered(question: Question, decision: Decision) -> bool:
    """Return whether a decision is one of those that a question leaves open; a no always is."""
    return decision is Decision.DENY or not question.choices or decision in question.choices


def fingerprint(**bound: object) -> str:
    """Return the digest of everything that an approval is bound to."""
    return hashlib.sha256(json.dumps(bound, sort_keys=True, default=str).encode("utf-8", "surrogatepass")).hexdigest()
