"""What the desk answers with: the shapes that scripts, pages and the command line hold on to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import TypeVar

from holdfast.core import sessions, turns
from holdfast.core.excerpts import excerpt
from holdfast.core.journal import Stretch
from holdfast.core.obligations import Obligations
from holdfast.core.segments import Debt
from holdfast.core.sessions import Activity, Glance, SearchHit, Source
from holdfast.core.transcript import Item
from holdfast.core.turns import Turn
from holdfast.core.usage import Usage
from holdfast.errors import Rejected
from holdfast.ids import NodeId, SessionId, TurnId

T = TypeVar("T")

TIMEOUT_MAX_S = 7 * 86_400
# Of a turn's id and of the digest of a question's or a grant's: enough to be told apart, and short enough to be typed.
_TURN_CHARS = 8
_DIGEST_CHARS = 4
_GRANT_CHARS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """A session is gone, with all that belonged to it."""

    deleted: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """How many sessions were deleted by this request; with `more`, the same request goes on where it ended."""

    pruned: int
    more: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceView:
    """Where the messages of a session come from.  What its channel does not say is null."""

    chat_id: str | None
    chat_name: str | None
    chat_type: str | None
    thread_id: str | None
    user_id: str | None
    user_name: str | None

    @classmethod
    def of(cls, source: Source) -> SourceView:
        return cls(
            chat_id=source.chat_id or None,
            chat_name=source.chat_name or None,
            chat_type=source.chat_type or None,
            thread_id=source.thread_id or None,
            user_id=source.user or None,
            # No channel knows what its users are called yet.
            user_name=None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionView:
    """A session as it is shown.  `seq` is the cursor of its last entry.

    `model` is the one that answered last; null where none was called yet.  `label` is what people know it by: its title,
    or how its first message begins.  `activity` is what its turn is doing that is not settled yet.
    """

    id: SessionId
    key: str
    channel: str
    source: SourceView
    model: str | None
    state: sessions.SessionState
    title: str | None
    created_at: int
    updated_at: int
    ended_at: int | None
    end_reason: str | None
    auto_reset_reason: str | None
    resume_pending: bool
    resume_reason: str | None
    parent_id: SessionId | None
    one_shot: bool
    pinned: bool
    archived: bool
    turns: int
    seq: int
    label: str
    activity: Activity | None

    @classmethod
    def of(cls, glance: Glance, resume_reason: str | None) -> SessionView:
        session = glance.session
        return cls(
            id=session.id,
            key=session.key,
            channel=session.channel,
            source=SourceView.of(session.source),
            model=glance.model,
            state=session.state,
            title=session.title,
            created_at=session.created_at,
            updated_at=session.updated_at,
            ended_at=session.ended_at,
            end_reason=session.end_reason,
            auto_reset_reason=session.auto_reset_reason,
            resume_pending=resume_reason is not None,
            resume_reason=resume_reason,
            parent_id=session.parent_id,
            one_shot=session.one_shot,
            pinned=session.pinned,
            archived=session.archived,
            turns=session.turns,
            seq=session.seq,
            label=glance.label,
            activity=glance.activity,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HitView(SearchHit):
    """Something that a search found, and where.

    The words stand in `snippet` between `marks`, which count as browsers do, in UTF-16 code units.
    """

    label: str
    channel: str
    snippet: str
    marks: Sequence[tuple[int, int]]

    @classmethod
    def of(cls, hit: SearchHit, glance: Glance, query: str) -> HitView:
        found = excerpt(hit.text, query)
        return cls(
            **{each.name: getattr(hit, each.name) for each in fields(hit)},
            label=glance.label,
            channel=glance.session.channel,
            snippet=found.snippet,
            marks=found.marks,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What a search found."""

    items: Sequence[HitView]
    # What was said is still being indexed: something older may be missing.
    indexing: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnView:
    """The receipt of a turn: what became of a message, and when.

    A message that joined another turn shares what becomes of that one, which `joined_to` names.
    """

    id: TurnId
    session_id: SessionId
    state: turns.TurnState
    cause: str | None
    attempt: int
    accepted_at: int
    started_at: int | None
    answered_at: int | None
    delivered_at: int | None
    error: str | None
    joined_to: TurnId | None = None
    # When a turn that waits for its model is tried again.
    retry_at: int | None = None

    @classmethod
    def of(cls, turn: Turn, host: Turn, delivered_at: int | None) -> TurnView:
        return cls(
            id=turn.id,
            session_id=turn.session_id,
            state=host.state,
            cause=host.cause,
            attempt=host.attempt,
            accepted_at=turn.accepted_at,
            started_at=host.started_at,
            answered_at=host.answered_at,
            delivered_at=delivered_at,
            error=host.error,
            joined_to=turn.joined_to,
            retry_at=host.retry_at,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """A page of a conversation as it is read, whole turns at a time.

    Following the session after `seq` gives exactly what was not there yet when it was read.
    """

    session: SessionView
    items: Sequence[Item]
    seq: int
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalPage:
    """What happened in some turns of a conversation, for whoever folds it themselves; `used` is for all of its turns.

    Following the session after `seq` gives exactly what was not there yet when it was read.
    """

    session: SessionView
    entries: Sequence[Stretch]
    seq: int
    used: Usage
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentView:
    """Who answers, and with what: `mcp` says of each server how it is.

    `unsafe` says that commands run unasked and without a sandbox.
    """

    model: str = ""
    demonstration: bool = False
    tools: Sequence[str] = ()
    sandbox: str = ""
    unsafe: bool = False
    mcp: Mapping[str, str] = field(default_factory=dict[str, str])


class Phase(StrEnum):
    """Where in its life a gateway is."""

    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """Who answers, and whether it can be given work.  `problem` is there also where it can, while part of it is damaged."""

    version: str
    node: NodeId
    pid: int
    state: Phase
    ready: bool
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """A wish to end the gateway, or to have it begin anew.  `timeout` is seconds; None is what is configured."""

    restart: bool = False
    timeout: float | None = None

    def __post_init__(self) -> None:
        # Not a number is not between these either.
        if self.timeout is not None and not 0 <= self.timeout <= TIMEOUT_MAX_S:
            raise Rejected(f"timeout must be between 0 and {TIMEOUT_MAX_S} seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """A stop on its way: how many turns still run, and the seconds they have left."""

    restart: bool
    running: int
    seconds_left: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockOff:
    """A node whose machine has a clock that is `off_ms` ahead or, below zero, behind; jobs and expiry do not go by it."""

    node: NodeId
    off_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """A gateway at a glance.  `accepted` is `settled` and `in_flight` together, always.

    `memory` says what the segments in `obligations` wait for, whosever they are.  `clocks_off` has every node, this one or
    another, whose clock is off.  While the store does not answer there
    are no counts, and `problem` says so.
    """

    pid: int
    node: NodeId
    version: str
    home: str
    url: str
    store: str
    state: Phase
    ready: bool
    started_at: int
    uptime_s: float
    running: int
    agent: AgentView = AgentView()
    questions: int = 0
    processes: int = 0
    accepted: int = 0
    settled: int = 0
    in_flight: int = 0
    turns: Mapping[turns.TurnState, int] = field(default_factory=dict[turns.TurnState, int])
    obligations: Obligations | None = None
    memory: Debt | None = None
    boot: Sequence[str] = ()
    clocks_off: Sequence[ClockOff] = ()
    drain: Drain | None = None
    problem: str | None = None
    # What is known to be damaged of the store, in the words of its database; what is kept elsewhere is served.
    damage: Sequence[str] = ()
