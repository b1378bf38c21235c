"""A session is one durable conversation; a one-shot session lives for a single turn."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from holdfast.core.legible import one_line
from holdfast.core.moves import move
from holdfast.ids import SessionId, TurnId

# After this many interruptions in a row a session would only crash the gateway again.
STRIKES_MAX = 3
# From this many on a session is a suspect: its turn runs alone, so that the next crash shows whether it is the cause.
STRIKES_SUSPECT = STRIKES_MAX - 1
# For how long nothing begins beside a suspect.  Each further attempt doubles it, so that it outlasts any cause in the end.
_ALONE_FIRST_MS = 2_000
_ALONE_MAX_MS = 300_000
# The end reason of a one-shot session is its channel and this: webhook_complete, cron_complete, api_complete.
COMPLETE_SUFFIX = "_complete"
# The end reason of a conversation that was idle for too long.
EXPIRED = "expired"
# The owner of a session that was removed and whose rows are on their way out.  No owner is called that.
NO_OWNER = ""
# What a conversation without a title is called by is the beginning of what was first said in it.
LABEL_MAX_CHARS = 80
# The kind of a hit that is no entry.
TITLE = "title"
# A message may begin with a heading; its marks are no part of what it is called by.
_HEADING = re.compile(r"^\s*#{1,6}\s+")


class SessionState(StrEnum):
    OPEN = "open"
    SUSPENDED = "suspended"
    ENDED = "ended"


class SessionEvent(StrEnum):
    SUSPEND = "suspend"
    END = "end"


# A suspended session can still end, never open again: the next message of its key starts a new session.
MOVES: Mapping[tuple[SessionState, SessionEvent], SessionState] = MappingProxyType(
    {
        (SessionState.OPEN, SessionEvent.SUSPEND): SessionState.SUSPENDED,
        (SessionState.OPEN, SessionEvent.END): SessionState.ENDED,
        (SessionState.SUSPENDED, SessionEvent.END): SessionState.ENDED,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where the messages of a session come from, readable to tools for routing."""

    chat_id: str = ""
    chat_name: str = ""
    chat_type: str = ""
    thread_id: str = ""
    # The id of the user.
    user: str = ""
    user_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One conversation."""

    id: SessionId
    # What its messages are addressed to; at most one session in use has it.
    key: str
    # The channel of its first message.
    channel: str
    # The person or tenant that it belongs to.
    owner: str
    # Whether it ends with its turn.
    one_shot: bool
    # When it began, in milliseconds since 1970.
    created_at: int
    # When something last happened in it.
    updated_at: int
    # Where its messages come from.
    source: Source = field(default_factory=Source)
    state: SessionState = SessionState.OPEN
    # Its name; None until it gets one.
    title: str | None = None
    # The session that it is a copy of.
    parent_id: SessionId | None = None
    # Why it began automatically in place of the one before it.
    auto_reset_reason: str | None = None
    # Why it ended.
    end_reason: str | None = None
    # When it ended.
    ended_at: int | None = None
    # The number of the last entry of its journal.
    seq: int = 0
    # How many turns it has had.
    turns: int = 0
    # How many of its turns have completed.
    generation: int = 0
    # How many interruptions in a row it has had without an answer.
    strikes: int = 0
    # Whether it is kept at the top of lists.
    pinned: bool = False
    # Whether lists leave it out.
    archived: bool = False
    # The model that was chosen for it, as provider:model; None for the configured one.
    model: str | None = None

    def on(self, event: SessionEvent) -> SessionState:
        """Return the state after `event`."""
        return move(MOVES, self.id, self.state, event)


class Activity(StrEnum):
    """What the turn of a session is doing that is not settled yet.  One that is `RETRYING` waits for its model."""

    QUEUED = "queued"
    RETRYING = "retrying"
    RUNNING = "running"
    WAITING = "waiting"


@dataclass(frozen=True, slots=True, kw_only=True)
class Glance:
    """A session as a list shows it: with what it is at, how its first message begins, and which model answered last."""

    session: Session
    activity: Activity | None = None
    opening: str = ""
    model: str | None = None

    @property
    def label(self) -> str:
        """Return what people know it by: its title, else how its first message begins, else its chat, else its key."""
        lines = (one_line(_HEADING.sub("", line)) for line in self.opening.splitlines())
        chat = one_line(self.session.source.chat_name)
        line = self.session.title or next(filter(None, lines), "") or chat or self.session.key
        return line if len(line) <= LABEL_MAX_CHARS else line[: LABEL_MAX_CHARS - 1].rstrip() + "…"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDeleted:
    """A session that was deleted."""

    id: SessionId


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionsMissed:
    """Changes may have been missed, so those who watch sessions read all of them again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """One message or answer that a search found, or a session that is called so.

    A title has no turn, 0 as its `seq` and `title` as its kind; `at` is when its session was last used.
    """

    session_id: SessionId
    turn_id: TurnId | None
    seq: int
    kind: str
    at: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFindings:
    """What a search found."""

    hits: tuple[SearchHit, ...] = ()
    # Words are still being indexed, so that something older may be missing.
    is_indexing: bool = False


def alone_ms(attempt: int) -> int:
    """Return for how long nothing begins beside a suspect in its nth attempt."""
    return min(_ALONE_FIRST_MS << min(max(attempt - STRIKES_MAX, 0), 10), _ALONE_MAX_MS)


def reset_reason(latest: SessionState | None) -> str | None:
    """Return why a key with no open session gets a new one; None when it is simply the first, or the last one ended."""
    return "suspended" if latest is SessionState.SUSPENDED else None
