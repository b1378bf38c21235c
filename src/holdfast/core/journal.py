"""The journal: what happened, in the order it became durable.  Everything a user sees is a fold of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Self

import msgspec

from holdfast.core import events
from holdfast.core.events import (
    Data,
    EntryKind,
    Event,
    Reasoning,
    Text,
    TokensUsed,
    ToolFinished,
    ToolStarted,
    TurnAccepted,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnInterrupted,
    TurnRevised,
)
from holdfast.core.turns import TurnState
from holdfast.ids import SessionId, TurnId

# The event that records a turn's arrival in a settled state.
CLOSING: Mapping[TurnState, type[TurnCompleted | TurnFailed | TurnCancelled | TurnInterrupted]] = MappingProxyType(
    {
        TurnState.COMPLETED: TurnCompleted,
        TurnState.FAILED: TurnFailed,
        TurnState.CANCELLED: TurnCancelled,
        TurnState.INTERRUPTED: TurnInterrupted,
    }
)

# The ends of an attempt.
ENDS = (TurnCompleted, TurnFailed, TurnCancelled, TurnInterrupted)
# What comes in pieces.
WORDS = (Text, Reasoning)

# What an agent produces while it works, and what is looked for after its worker is lost.
OUTPUT = (Text, Reasoning, ToolStarted, ToolFinished)

# Output needs no permission to be kept on disk while the store is away, and may arrive late.  The start of a tool call does
# need it: it must reach the store before the tool runs, because another node may own the turn by now.
LATE = (Text, Reasoning, ToolFinished, TokensUsed)
# Of that, what a later attempt cannot have said itself.
_NEWS = (ToolFinished, TokensUsed)

# Kinds whose `text` the full-text search covers.
SEARCHED = frozenset({EntryKind.TURN_ACCEPTED, EntryKind.TURN_COMPLETED})


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftEntry:
    """An entry that is not durable yet and so must not be shown."""

    # When it happened, in milliseconds since 1970.
    at: int
    event: Event

    @classmethod
    def read(cls, kind: str, at: int, data: Data) -> Self:
        """Return a draft from its content as JSON has it."""
        return cls(at=at, event=events.converted(kind, data)[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One durable entry."""

    session_id: SessionId
    # Gapless per session, from 1.  It is the cursor of every reader.
    seq: int
    turn_id: TurnId
    # Which attempt of the turn wrote it; 0 before the first.
    attempt: int
    # Gapless per attempt, from 1, for what the worker itself wrote, so that a late entry still finds its place; else None.
    nth: int | None
    # When it happened, in milliseconds since 1970.
    at: int
    event: Event
    # The content as it is stored, where `event` does not say exactly the same: malformed, or with fields of a newer version.
    stored: Data | None = None

    @classmethod
    def read(
        cls,
        *,
        session_id: SessionId,
        seq: int,
        turn_id: TurnId,
        attempt: int,
        nth: int | None,
        kind: str,
        at: int,
        data: Data | str,
    ) -> Self:
        """Return an entry from its content, which is the text of a row or an object that came over the wire."""
        event, stored = events.decoded(kind, data) if isinstance(data, str) else events.converted(kind, data)
        return cls(
            session_id=session_id, seq=seq, turn_id=turn_id, attempt=attempt, nth=nth, at=at, event=event, stored=stored
        )

    @property
    def kind(self) -> str:
        """The name of its kind, which is that of no `EntryKind` where a newer version wrote it."""
        return self.event.kind

    @property
    def data(self) -> Data:
        """Its content as JSON has it, for readers in other processes."""
        return events.content(self.event) if self.stored is None else self.stored


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryRecord:
    """An entry as clients read it, of a kind that they may not know."""

    session_id: SessionId
    seq: int
    turn_id: TurnId
    attempt: int
    nth: int | None
    kind: str
    at: int
    data: Data

    @classmethod
    def of(cls, entry: Entry) -> Self:
        """Return an entry as it is sent."""
        return cls(
            session_id=entry.session_id,
            seq=entry.seq,
            turn_id=entry.turn_id,
            attempt=entry.attempt,
            nth=entry.nth,
            kind=entry.kind,
            at=entry.at,
            data=entry.data,
        )

    @property
    def entry(self) -> Entry:
        """The entry that was sent."""
        return Entry.read(
            session_id=self.session_id,
            seq=self.seq,
            turn_id=self.turn_id,
            attempt=self.attempt,
            nth=self.nth,
            kind=self.kind,
            at=self.at,
            data=self.data,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch(EntryRecord):
    """One entry, or a run of words that stands for several: those from `since` to `seq`.

    It has the number of its last one, so that a reader continues after it, and the time at which it began.
    """

    since: int


def takes_late(late: Entry, state: TurnState, attempt: int) -> bool:
    """Return whether a turn, by its state and attempt, takes an entry of a worker that has lost it.

    A cancel is final: what was not in the journal before it is not shown after it.  Usage is shown nowhere, and counts all
    the same.
    """
    if late.nth is None or not isinstance(late.event, LATE) or late.attempt > attempt:
        return False
    if state is TurnState.CANCELLED:
        return isinstance(late.event, TokensUsed)
    if late.attempt < attempt:
        # The attempt that followed did not know the words, and says them itself.
        return isinstance(late.event, _NEWS)
    # The worker of a live attempt writes by itself, and one that has ended its turn has left nothing out.
    return state in (TurnState.QUEUED, TurnState.INTERRUPTED)


def acceptance(entries: Iterable[Entry]) -> TurnAccepted:
    """Return the message that the entries of one turn begin with, as it was revised."""
    accepted = TurnAccepted(text="")
    for each in entries:
        if isinstance(each.event, TurnAccepted):
            accepted = each.event
        elif isinstance(each.event, TurnRevised):
            accepted = msgspec.structs.replace(accepted, text=each.event.text)
    return accepted


def ends_attempt(event: Event) -> bool:
    """Return whether an event is the end of an attempt."""
    return isinstance(event, ENDS)


def settles(event: Event) -> bool:
    """Return whether a turn comes to rest with an event.  An interruption after which the turn continues is not an end."""
    return isinstance(event, ENDS) and not (isinstance(event, TurnInterrupted) and event.continues)


def join(entries: Iterable[Entry]) -> list[Stretch]:
    """Return entries in `seq` order with each unbroken run of words as one: every fold of them is the same."""
    runs: list[list[Entry]] = []
    for entry in entries:
        if runs and _goes_on(runs[-1][-1], entry):
            runs[-1].append(entry)
        else:
            runs.append([entry])
    return [_stretch(run) for run in runs]


def _goes_on(before: Entry, entry: Entry) -> bool:
    """Return whether an entry holds the very next words of the same speech."""
    same = (entry.event.kind, entry.turn_id, entry.attempt) == (before.event.kind, before.turn_id, before.attempt)
    if not same or before.nth is None or (entry.seq, entry.nth) != (before.seq + 1, before.nth + 1):
        return False
    return _is_words(before) and _is_words(entry)


def _is_words(entry: Entry) -> bool:
    # What says more than its text, or could not be read, stands for itself.
    return entry.stored is None and isinstance(entry.event, WORDS)


def _stretch(run: list[Entry]) -> Stretch:
    first, last = run[0], run[-1]
    data = first.data if len(run) == 1 else {"text": "".join(_words(each.event) for each in run)}
    return Stretch(
        session_id=first.session_id,
        seq=last.seq,
        turn_id=first.turn_id,
        attempt=first.attempt,
        nth=last.nth,
        kind=first.kind,
        at=first.at,
        data=data,
        since=first.seq,
    )


def _words(event: Event) -> str:
    return event.text if isinstance(event, WORDS) else ""
