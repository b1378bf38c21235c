"""A turn is one message being answered: its states, its moves, and what becomes of one whose worker is gone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Self, assert_never

from holdfast.core.moves import move
from holdfast.core.sessions import STRIKES_MAX, STRIKES_SUSPECT
from holdfast.ids import NodeId, SessionId, TurnId


class TurnState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"


class TurnEvent(StrEnum):
    START = "start"
    ASK = "ask"
    DEFER = "defer"
    ANSWER = "answer"
    FINISH = "finish"
    FAIL = "fail"
    CANCEL = "cancel"
    LOSE = "lose"
    RESUME = "resume"
    JOIN = "join"


# Claiming is no move: a claimed turn is still queued until its first entry is durable.
# Recovery is no special path: a turn whose worker is lost is interrupted, and one that may go on is queued again.
MOVES: Mapping[tuple[TurnState, TurnEvent], TurnState] = MappingProxyType(
    {
        (TurnState.QUEUED, TurnEvent.START): TurnState.RUNNING,
        (TurnState.QUEUED, TurnEvent.CANCEL): TurnState.CANCELLED,
        (TurnState.QUEUED, TurnEvent.JOIN): TurnState.COMPLETED,
        (TurnState.RUNNING, TurnEvent.ASK): TurnState.WAITING,
        (TurnState.RUNNING, TurnEvent.DEFER): TurnState.QUEUED,
        (TurnState.RUNNING, TurnEvent.FINISH): TurnState.COMPLETED,
        (TurnState.RUNNING, TurnEvent.FAIL): TurnState.FAILED,
        (TurnState.RUNNING, TurnEvent.CANCEL): TurnState.CANCELLED,
        (TurnState.RUNNING, TurnEvent.LOSE): TurnState.INTERRUPTED,
        (TurnState.WAITING, TurnEvent.ANSWER): TurnState.QUEUED,
        (TurnState.WAITING, TurnEvent.CANCEL): TurnState.CANCELLED,
        (TurnState.INTERRUPTED, TurnEvent.RESUME): TurnState.QUEUED,
    }
)

# At most one of these per session; the schema holds it.
LIVE = frozenset({TurnState.RUNNING, TurnState.WAITING})
# Nothing leaves these.
FINAL = frozenset({TurnState.COMPLETED, TurnState.FAILED, TurnState.CANCELLED})
# A turn at rest: it has an outcome that its user can see.
SETTLED = FINAL | {TurnState.INTERRUPTED}
IN_FLIGHT = frozenset(TurnState) - SETTLED


class Mode(StrEnum):
    """Who waits for the answer, which decides what an interruption leads to."""

    CONVERSATION = "conversation"
    DETACHED = "detached"
    SYNCHRONOUS = "synchronous"


class Cause(StrEnum):
    """Why a turn was interrupted or cancelled, or failed."""

    CRASH = "crash"
    RESTART_TIMEOUT = "restart_timeout"
    SHUTDOWN_TIMEOUT = "shutdown_timeout"
    DISK_FULL = "disk_full"
    USER = "user"
    SUPERSEDED = "superseded"
    SESSION_ENDED = "session_ended"
    SESSION_SUSPENDED = "session_suspended"
    MODEL_UNAVAILABLE = "model_unavailable"


# A full disk says nothing against the turn that it stops.
BLAMELESS = frozenset({Cause.DISK_FULL})


class Resume(StrEnum):
    """The operator's choice for conversations: wait for the next message, or go on at once."""

    ON_MESSAGE = "on_message"
    AUTO = "auto"


class OnCrash(StrEnum):
    """The operator's choice for conversations that a crash cut off: resume them, or leave them and begin anew."""

    RESUME = "resume"
    SUSPEND = "suspend"


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Everything the operator may choose about interrupted turns."""

    resume: Resume = Resume.ON_MESSAGE
    on_crash: OnCrash = OnCrash.RESUME
    # The kinds of targets that are chats: they are told of an answer that was cut off, and offered to go on with it.
    chats: frozenset[str] = frozenset()


class Aftermath(StrEnum):
    """What follows an interruption."""

    CONTINUE = "continue"
    REST = "rest"
    SUSPEND = "suspend"
    GIVE_UP = "give_up"


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One message being answered."""

    id: TurnId
    session_id: SessionId
    # Its place among the turns of its session, from 1.
    ordinal: int
    # When its message became durable, in milliseconds since 1970.
    accepted_at: int
    # Who waits for the answer, which decides what follows an interruption.
    mode: Mode = Mode.CONVERSATION
    # Whether later messages, such as the end of a background task, can still be delivered.
    delivers_later: bool = True
    # Whether memory is told about it.
    remembers: bool = True
    # The delivery target of the answer; None if it is only kept.
    reply_to: str | None = None
    state: TurnState = TurnState.QUEUED
    # How often it was started.
    attempt: int = 0
    # The number of the last entry that its running attempt wrote.
    nth: int = 0
    # Grows with each claim and each loss; a write with an older fence changes nothing.
    fence: int = 0
    # The node that holds it; None if none does.
    node_id: NodeId | None = None
    # Why it was interrupted, cancelled or failed, mostly a `Cause`.
    cause: str | None = None
    # What failed, in words.
    error: str | None = None
    # Its number among the completed turns of its session; None until it completes.
    generation: int | None = None
    # When its first attempt began.
    started_at: int | None = None
    # When it came to rest.
    answered_at: int | None = None
    # Whether its message joins the running turn of its session at the next step.
    steers: bool = False
    # The turn that its message became a part of, whose outcome it shares.
    joined_to: TurnId | None = None
    # The turn that it works for, and with which it is cancelled.
    parent_turn_id: TurnId | None = None
    # Whether its message is its own answer, without an agent.
    verbatim: bool = False
    # The person or tenant that it belongs to.
    owner: str = "local"
    # Before this time a turn that waits for its model is not tried again.
    retry_at: int | None = None

    def on(self, event: TurnEvent) -> Self:
        """Return the turn after `event`; the store saves it by compare-and-set on state and fence."""
        return replace(self, state=move(MOVES, self.id, self.state, event))


def strikes_max(cause: Cause, *, in_company: bool) -> int:
    """Return how many strikes an interruption can bring a session to.

    A crash `in_company` cut off several turns of one node at once.  It makes suspects of them, and convicts none.  What is
    no fault of the turn brings the first strike only, which also says that the session is resume pending.
    """
    if cause in BLAMELESS:
        return 1
    return STRIKES_SUSPECT if in_company else STRIKES_MAX


def after_loss(mode: Mode, policy: Policy, cause: Cause, strikes: int, *, in_company: bool = False) -> Aftermath:
    """Decide what follows the interruption that left the session with `strikes`; `in_company` as for `strikes_max`."""
    if strikes >= STRIKES_MAX and not in_company:
        return Aftermath.GIVE_UP
    match mode:
        case Mode.DETACHED:
            # No next message will ever follow, so waiting for one would lose the turn.
            return Aftermath.CONTINUE
        case Mode.CONVERSATION:
            # A session that was resume pending before this crash keeps what it was promised.
            if policy.on_crash is OnCrash.SUSPEND and cause is Cause.CRASH and strikes <= 1:
                return Aftermath.SUSPEND
            return Aftermath.CONTINUE if policy.resume is Resume.AUTO else Aftermath.REST
        case Mode.SYNCHRONOUS:
            # The client is gone with its connection; the same request with the same key goes on.
            return Aftermath.REST
        case _:
            assert_never(mode)
