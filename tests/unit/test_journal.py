"""Joined words say what the pieces said: no fold can tell them apart, and no reader misses one or sees one twice."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given

from holdfast.core.events import (
    UNREADABLE,
    EntryKind,
    Event,
    Picture,
    Text,
    ToolFinished,
    TurnAccepted,
    TurnCompleted,
    TurnInterrupted,
    UnknownEvent,
    content,
    decoded,
)
from holdfast.core.journal import Entry, EntryRecord, join, takes_late
from holdfast.core.transcript import fold
from holdfast.core.turns import TurnState
from tests.unit.test_transcript import delayed


def entry(
    seq: int, kind: EntryKind = EntryKind.TEXT, turn: str = "t1", attempt: int = 1, nth: int | None = None, **data: object
):
    return Entry.read(session_id="s", seq=seq, turn_id=turn, attempt=attempt, nth=nth, kind=kind, at=seq, data=data)


def covered(entries: Sequence[Entry]) -> list[int]:
    return [seq for each in join(entries) for seq in range(each.since, each.seq + 1)]


@given(delayed())
def test_what_is_joined_reads_as_before_and_stands_for_every_entry_once(journal: tuple[list[Entry], list[Entry]]) -> None:
    entries = [replace(each, at=each.seq) for each in journal[1]]
    joined = [each.entry for each in join(entries)]
    assert fold(joined) == fold(entries)
    assert covered(entries) == [each.seq for each in entries]
    # What is joined already stays as it is.
    assert [replace(each, since=0) for each in join(joined)] == [replace(each, since=0) for each in join(entries)]


def test_a_run_of_words_is_one_with_the_number_of_its_last() -> None:
    (stretch,) = join([entry(seq, nth=seq - 2, text=word) for seq, word in enumerate(["one ", "two ", "three"], 4)])
    assert (stretch.since, stretch.seq, stretch.nth, stretch.at) == (4, 6, 4, 4)
    assert stretch.data == {"text": "one two three"}


def test_only_the_very_next_words_of_the_same_speech_are_joined() -> None:
    first = entry(1, nth=1, text="a")
    apart = [
        entry(3, nth=2, text="b"),
        entry(2, nth=3, text="b"),
        entry(2, nth=None, text="b"),
        entry(2, nth=2, turn="t2", text="b"),
        entry(2, nth=2, attempt=2, text="b"),
        entry(2, EntryKind.REASONING, nth=2, text="b"),
        entry(2, nth=2, unreadable=True),
        entry(2, nth=2, text="b", lang="en"),
    ]
    for other in apart:
        assert [(each.since, each.data) for each in join([first, other])] == [(1, first.data), (other.seq, other.data)]
    notes = [entry(1, EntryKind.NOTE, nth=1, text="a"), entry(2, EntryKind.NOTE, nth=2, text="b")]
    assert len(join(notes)) == 2


WORDS = {EntryKind.TEXT, EntryKind.REASONING}
NEWS = {EntryKind.TOOL_FINISHED, EntryKind.USAGE}


def taken(state: TurnState, attempt: int) -> set[EntryKind]:
    """Return what a turn at an attempt takes of its second."""
    return {kind for kind in EntryKind if takes_late(entry(1, kind, attempt=2, nth=7), state, attempt)}


@pytest.mark.parametrize("state", TurnState)
def test_what_a_turn_takes_late_of_the_attempt_that_was_its_last(state: TurnState) -> None:
    """J4 J9: all of it while it is cut off, what was spent when it is cancelled, and nothing where its worker writes."""
    expected = {TurnState.QUEUED: WORDS | NEWS, TurnState.INTERRUPTED: WORDS | NEWS, TurnState.CANCELLED: {EntryKind.USAGE}}
    assert taken(state, 2) == expected.get(state, set())


@pytest.mark.parametrize("state", TurnState)
def test_what_a_turn_takes_late_of_an_earlier_attempt(state: TurnState) -> None:
    """J4 J9: not its words, which are said again by now; and nothing that is shown when it is cancelled."""
    assert taken(state, 3) == ({EntryKind.USAGE} if state is TurnState.CANCELLED else NEWS)


@pytest.mark.parametrize("state", TurnState)
def test_no_turn_takes_late_what_no_worker_wrote_or_what_was_never_begun(state: TurnState) -> None:
    """J2: without a number of its own it could be taken twice."""
    assert taken(state, 1) == set()
    assert not any(takes_late(entry(1, kind, attempt=2), state, attempt) for kind in EntryKind for attempt in (2, 3))


@pytest.mark.parametrize(
    ("kind", "text", "event"),
    [
        ("text", '{"text":"hi","lang":"en"}', Text(text="hi")),
        ("text", "{}", Text(text="")),
        ("tool.finished", '{"call_id":7,"name":"look","outcome":"ok"}', ToolFinished(call_id="", name="look", outcome="ok")),
        ("turn.completed", "not JSON", TurnCompleted()),
        ("hologram", '{"depth":3}', UnknownEvent(kind="hologram", data={"depth": 3})),
    ],
)
def test_what_is_not_as_this_version_writes_it_is_read_with_defaults_and_served_as_it_is(
    kind: str, text: str, event: Event
) -> None:
    """R11: fields that are missing or wrong are empty, and nothing that a newer version wrote is lost."""
    read = Entry.read(session_id="s", seq=1, turn_id="t", attempt=1, nth=1, kind=kind, at=0, data=text)
    assert (read.kind, read.event) == (kind, event)
    assert read.data == (UNREADABLE if text == "not JSON" else json.loads(text))
    assert EntryRecord.of(read).entry.data == read.data


def test_what_this_version_writes_is_read_as_it_was_written() -> None:
    """R11: byte for byte, so that two versions can share a store."""
    for event in (
        Text(text="a"),
        ToolFinished(call_id="c", name="look", outcome="ok", result=None),
        TurnInterrupted(cause="crash", continues=False),
        TurnAccepted(text="a", images=(Picture(media_type="image/png", bytes=3),)),
    ):
        written = msgspec.json.encode(event)
        assert decoded(event.kind, written) == (event, None)
        assert msgspec.json.encode(content(event)) == written
