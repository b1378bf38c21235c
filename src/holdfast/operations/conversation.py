"""Sessions as they are shown: one of them, what was said in it, and what a search found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.core.excerpts import excerpt
from holdfast.core.journal import Stretch
from holdfast.core.sessions import Activity, Glance, SearchHit, SessionState, Source
from holdfast.core.transcript import Item
from holdfast.core.usage import Usage
from holdfast.ids import SessionId
from holdfast.operations.projection import project


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
            user_name=source.user_name or None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionView:
    """A session as it is shown.  `seq` is the cursor of its last entry.

    `model` is the one that answered last, or the one that was chosen since, as `chosen_model` says; null where none was
    called or chosen yet.  `label` is what people know it by: its title,
    or how its first message begins.  `activity` is what its turn is doing that is not settled yet.
    """

    id: SessionId
    key: str
    channel: str
    source: SourceView
    model: str | None
    chosen_model: str | None
    state: SessionState
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
        return project(
            cls,
            session,
            source=SourceView.of(session.source),
            model=session.model or glance.model,
            chosen_model=session.model,
            resume_pending=resume_reason is not None,
            resume_reason=resume_reason,
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
        return project(
            cls, hit, label=glance.label, channel=glance.session.channel, snippet=found.snippet, marks=found.marks
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What a search found.  While `indexing`, something older may be missing."""

    items: Sequence[HitView]
    indexing: bool


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
    """What happened in some turns of a conversation, before it is folded; `used` is what all turns used.

    Following the session after `seq` gives exactly what was not there yet when it was read.
    """

    session: SessionView
    entries: Sequence[Stretch]
    seq: int
    used: Usage
    next_cursor: str | None = None
