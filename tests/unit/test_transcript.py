"""The transcript is a fold of the journal: whatever was shown stands in it once, in its place."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core import notes
from holdfast.core.events import EntryKind
from holdfast.core.journal import CLOSING, Entry, acceptance
from holdfast.core.transcript import Item, Role, cut_off_by, fold, instructions, tool_unanswered
from holdfast.core.turns import Cause
from holdfast.ids import TurnId

SPOKEN = {EntryKind.TEXT: Role.ASSISTANT, EntryKind.REASONING: Role.REASONING}
CLOSING_KINDS = frozenset(each.kind for each in CLOSING.values())
LOST_CLOSINGS = (EntryKind.TURN_INTERRUPTED, EntryKind.TURN_CANCELLED)


def entry(kind: EntryKind, turn: str = "t1", attempt: int = 1, nth: int | None = None, **data: object) -> Entry:
    return Entry.read(session_id="s", seq=1, turn_id=turn, attempt=attempt, nth=nth, kind=kind, at=0, data=data)


@dataclass(frozen=True)
class Mark:
    """Where a piece of text was written; it is the text itself, so every piece is found again wherever it goes."""

    turn: str
    attempt: int
    nth: int

    def __str__(self) -> str:
        return f"<{self.turn} {self.attempt} {self.nth}>"

    @classmethod
    def of(cls, entry: Entry) -> Mark:
        assert entry.nth is not None
        return cls(entry.turn_id, entry.attempt, entry.nth)

    @classmethod
    def read(cls, text: str) -> list[Mark]:
        marks = [cls(turn, int(attempt), int(nth)) for turn, attempt, nth in re.findall(r"<(\S+) (\d+) (\d+)>", text)]
        assert "".join(map(str, marks)) == text
        return marks


def attempt_of(turn: str, attempt: int, steps: Sequence[str]) -> Iterator[Entry]:
    """Write what one attempt of a worker writes, step by step."""
    nth = 1
    yield entry(EntryKind.TURN_STARTED, turn, attempt, nth)
    started: list[str] = []
    for step in steps:
        nth += 1
        mark = str(Mark(turn, attempt, nth))
        match step:
            case "text" | "reasoning":
                yield entry(EntryKind(step), turn, attempt, nth, text=mark)
            case "note":
                yield entry(EntryKind.NOTE, turn, attempt, nth, text=mark)
            case "tool":
                started.append(mark)
                yield entry(EntryKind.TOOL_STARTED, turn, attempt, nth, call_id=mark, name=f"name {mark}", args={"of": mark})
            case "result" if started:
                call = started.pop()
                result = {"outcome": "ok", "result": f"result {call}"}
                yield entry(EntryKind.TOOL_FINISHED, turn, attempt, nth, call_id=call, name=f"name {call}", **result)
            case _:
                nth -= 1


STEPS = st.lists(st.sampled_from(["text", "text", "reasoning", "note", "tool", "result"]), max_size=5)


@st.composite
def turns(draw: st.DrawFn, turn: str) -> list[Entry]:
    """One turn as a store could hold it: attempts that are parked or interrupted, and perhaps an end."""
    entries = [entry(EntryKind.TURN_ACCEPTED, turn, 0, text=f"message of {turn}")]
    attempt = 0
    for fate in draw(st.lists(st.sampled_from(["parked", "interrupted"]), max_size=3)):
        attempt += 1
        entries += attempt_of(turn, attempt, draw(STEPS))
        if fate == "parked":
            nth = entries[-1].nth
            assert nth is not None
            entries.append(entry(EntryKind.APPROVAL_ASKED, turn, attempt, nth + 1, question_id="q", text="may I?"))
            entries.append(entry(EntryKind.APPROVAL_ANSWERED, turn, attempt, None, question_id="q", text="yes"))
        else:
            entries.append(entry(EntryKind.TURN_INTERRUPTED, turn, attempt, None, cause="crash"))
    match draw(st.sampled_from(["at rest", "running", "completed", "failed", "cancelled"])):
        case "at rest":
            return entries
        case "running":
            return [*entries, *attempt_of(turn, attempt + 1, draw(STEPS))]
        case "cancelled":
            entries += attempt_of(turn, attempt + 1, draw(STEPS))
            return [*entries, entry(EntryKind.TURN_CANCELLED, turn, attempt + 1, None, cause="user")]
        case end:
            entries += attempt_of(turn, attempt + 1, draw(STEPS))
            nth = entries[-1].nth
            assert nth is not None
            return [*entries, entry(EntryKind(f"turn.{end}"), turn, attempt + 1, nth + 1, text="all of it", error="no")]


def numbered(entries: Sequence[Entry]) -> list[Entry]:
    return [replace(each, seq=seq) for seq, each in enumerate(entries, 1)]


@st.composite
def journals(draw: st.DrawFn) -> list[Entry]:
    """The journal of a session whose turns were accepted in order, the later ones while the earlier ran."""
    lanes = [draw(turns(f"t{number}")) for number in range(1, draw(st.integers(1, 2)) + 1)]
    order = draw(st.permutations([lane for lane, entries in enumerate(lanes) for _ in entries]))
    names = {lane: number for number, lane in enumerate(dict.fromkeys(order))}
    ahead = [iter(lane) for lane in lanes]
    renamed = [next(ahead[names[lane]], None) for lane in order]
    rest = [each for lane in ahead for each in lane]
    return numbered([each for each in renamed if each is not None] + rest)


@st.composite
def delayed(draw: st.DrawFn) -> tuple[list[Entry], list[Entry]]:
    """A journal, and the same one in which entries of lost attempts arrive late, in any order, at any later place."""
    in_time = draw(journals())
    closed = [(each.turn_id, each.attempt) for each in in_time if each.kind in LOST_CLOSINGS]
    able = [each for each in in_time if (each.nth or 0) > 1 and (each.turn_id, each.attempt) in closed]
    # What is missing is always the end of what the worker wrote.
    first_late = {lost: draw(st.integers(2, 9)) for lost in closed}
    late = [each for each in able if (each.nth or 0) >= first_late[each.turn_id, each.attempt]]
    arrived = [each for each in in_time if each not in late]
    # Of a call that was seen to start and not to end, the store says before the marker that nobody knows its outcome.
    for each in [each for each in arrived if each.kind is EntryKind.TOOL_STARTED]:
        say_unknown(in_time, each)
        say_unknown(arrived, each)
    for each in draw(st.permutations(late)):
        same = [index for index, other in enumerate(arrived) if other.kind in CLOSING_KINDS and same_attempt(other, each)]
        arrived.insert(draw(st.integers(same[-1] + 1, len(arrived))), each)
    return in_time, numbered(arrived)


def say_unknown(journal: list[Entry], start: Entry) -> None:
    ends = [
        each for each in journal if each.kind is EntryKind.TOOL_FINISHED and each.data["call_id"] == start.data["call_id"]
    ]
    marker = [index for index, each in enumerate(journal) if each.kind in LOST_CLOSINGS and same_attempt(each, start)]
    if marker and not ends:
        data = {"call_id": start.data["call_id"], "name": start.data["name"], "outcome": "unknown"}
        journal.insert(marker[0], entry(EntryKind.TOOL_FINISHED, start.turn_id, start.attempt, None, **data))


def same_attempt(one: Entry, other: Entry) -> bool:
    return (one.turn_id, one.attempt) == (other.turn_id, other.attempt)


def spoken(items: Sequence[Item], turn: str, role: Role) -> str:
    return "".join(item.text for item in items if item.turn_id == turn and item.role is role)


def turn_ids(entries: Sequence[Entry]) -> list[str]:
    return list(dict.fromkeys(each.turn_id for each in entries))


@given(journals())
def test_every_word_that_was_shown_is_in_the_transcript_once_and_in_order(entries: list[Entry]) -> None:
    """J1."""
    items = fold(entries)
    for turn in turn_ids(entries):
        for kind, role in SPOKEN.items():
            written = [Mark.of(each) for each in entries if each.turn_id == turn and each.kind is kind]
            assert Mark.read(spoken(items, turn, role)) == written


@given(delayed())
def test_entries_that_arrive_late_stand_where_they_were_written(case: tuple[list[Entry], list[Entry]]) -> None:
    """J2, J4: above the marker and in order, as if they had never been late."""
    in_time, arrived = case
    assert fold(arrived) == fold(in_time)


@given(delayed())
def test_the_marker_stands_below_everything_of_its_attempt(case: tuple[list[Entry], list[Entry]]) -> None:
    """J2, J4: whatever arrives, and whenever."""
    _, arrived = case
    items = fold(arrived)
    for turn in turn_ids(arrived):
        mine = [item for item in items if item.turn_id == turn]
        lost = [each.attempt for each in arrived if each.turn_id == turn and each.kind is EntryKind.TURN_INTERRUPTED]
        markers = [index for index, item in enumerate(mine) if item.kind == "interrupted"]
        for attempt, marker in zip(lost, markers, strict=True):
            assert all(each.attempt <= attempt for item in mine[:marker] for each in marks_of(item))
            assert all(each.attempt > attempt for item in mine[marker:] for each in marks_of(item))


def marks_of(item: Item) -> list[Mark]:
    match item.role:
        case Role.ASSISTANT | Role.REASONING | Role.NOTE:
            return Mark.read(item.text)
        case Role.TOOL:
            return Mark.read(item.call_id or "")
        case _:
            return []


@given(delayed())
def test_exactly_what_a_lost_attempt_had_shown_is_marked_as_recovered(case: tuple[list[Entry], list[Entry]]) -> None:
    """J2."""
    _, arrived = case
    lost = {(each.turn_id, each.attempt) for each in arrived if each.kind is EntryKind.TURN_INTERRUPTED}
    for item in fold(arrived):
        if marks := marks_of(item):
            assert [item.recovered] * len(marks) == [(each.turn, each.attempt) in lost for each in marks]
        elif item.role in (Role.USER, Role.MARKER):
            assert not item.recovered


@given(journals(), st.data())
def test_a_transcript_only_grows_at_the_ends_of_its_turns(entries: list[Entry], data: st.DataObject) -> None:
    """J3: what a reader saw at any moment is how the final transcript begins, turn by turn."""
    seen = fold(entries[: data.draw(st.integers(0, len(entries)))])
    final = fold(entries)
    for turn in turn_ids(entries):
        before = [item for item in seen if item.turn_id == turn]
        after = [item for item in final if item.turn_id == turn]
        assert len(before) <= len(after)
        for old, new in zip(before, after, strict=False):
            assert (new.role, new.name, new.args, new.at) == (old.role, old.name, old.args, old.at)
            assert new.text.startswith(old.text)
        for role in SPOKEN.values():
            assert spoken(final, turn, role).startswith(spoken(seen, turn, role))


@given(journals(), st.data())
def test_a_journal_read_in_pages_folds_like_one_read_at_once(entries: list[Entry], data: st.DataObject) -> None:
    """J3, J8: a replay from any cursor, after what was there before it, is the same transcript."""
    cursor = data.draw(st.integers(0, len(entries)))
    seen = [each for each in entries if each.seq <= cursor]
    missing = (each for each in entries if each.seq > cursor)
    assert fold(each for part in (seen, missing) for each in part) == fold(entries)


@given(journals())
def test_text_is_joined_within_an_attempt_and_never_across_two(entries: list[Entry]) -> None:
    """J2: a second attempt begins its answer anew, so its words do not run into those of the first."""
    items = fold(entries)
    for item in items:
        if item.role in SPOKEN.values():
            assert len({mark.attempt for mark in marks_of(item)}) == 1
    for one, next_one in pairwise(items):
        if one.role in SPOKEN.values() and one.role is next_one.role and one.turn_id == next_one.turn_id:
            assert marks_of(one)[-1].attempt < marks_of(next_one)[0].attempt


@given(delayed())
def test_a_tool_card_has_the_arguments_of_its_start_and_the_result_of_its_end(
    case: tuple[list[Entry], list[Entry]],
) -> None:
    """J2, J4: one card per call, with name, arguments and outcome; a result that arrives late is better than unknown."""
    _, arrived = case
    cards = [item for item in fold(arrived) if item.role is Role.TOOL]
    started = [each.data["call_id"] for each in arrived if each.kind is EntryKind.TOOL_STARTED]
    ends = {(each.data["call_id"], each.data["outcome"]) for each in arrived if each.kind is EntryKind.TOOL_FINISHED}
    assert sorted(str(card.call_id) for card in cards) == sorted(map(str, started))
    for card in cards:
        call = card.call_id
        outcome = next((each for each in ("ok", "unknown") if (call, each) in ends), None)
        assert (card.name, card.args) == (f"name {call}", {"of": call})
        assert (card.outcome, card.result) == (outcome, f"result {call}" if outcome == "ok" else None)


@given(journals())
def test_turns_stand_in_the_order_of_their_acceptance(entries: list[Entry]) -> None:
    """T2."""
    accepted = [each.turn_id for each in entries if each.kind is EntryKind.TURN_ACCEPTED]
    assert turn_ids(fold(entries)) == accepted  # type: ignore[arg-type]
    assert [item.turn_id for item in fold(entries) if item.role is Role.USER] == accepted


@given(journals())
def test_the_message_opens_its_turn_and_the_marker_closes_it(entries: list[Entry]) -> None:
    """J2, J9: a cancelled turn keeps what it had shown above its marker."""
    items = fold(entries)
    for turn in turn_ids(entries):
        mine = [item for item in items if item.turn_id == turn]
        assert mine[0].role is Role.USER
        ends = {EntryKind.TURN_FAILED: "failed", EntryKind.TURN_CANCELLED: "cancelled"}
        end = next((ends[each.kind] for each in entries if each.turn_id == turn and each.kind in ends), None)
        assert [item.kind for item in mine if item.kind in ends.values()] == ([end] if end else [])
        assert end is None or mine[-1].kind == end


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.text(max_size=3), inner, max_size=2)),
    max_leaves=4,
)
keys = st.one_of(
    st.sampled_from(["text", "call_id", "name", "args", "result", "outcome", "cause", "error", "unreadable"]),
    st.text(max_size=3),
)
odd_entries = st.builds(
    Entry.read,
    session_id=st.just("s"),
    seq=st.integers(),
    turn_id=st.sampled_from(["t1", "t2"]),
    attempt=st.integers(0, 3),
    nth=st.one_of(st.none(), st.integers(0, 4)),
    kind=st.sampled_from(EntryKind),
    at=st.integers(),
    data=st.dictionaries(keys, json_values, max_size=4),
)


@given(st.lists(odd_entries, max_size=12))
def test_no_data_however_odd_keeps_a_transcript_from_being_read(entries: list[Entry]) -> None:
    """R11: one bad entry does not take its neighbours with it."""
    items = fold(entries)
    assert items == fold(iter(entries))
    for item in items:
        assert isinstance(item.text, str)
        assert all(isinstance(each, str | None) for each in (item.call_id, item.name, item.result, item.outcome, item.kind))
        json.dumps(item.args)


@given(st.lists(odd_entries, max_size=12))
def test_every_text_is_shown_once_whatever_stands_around_it(entries: list[Entry]) -> None:
    """J1: whatever is not left out on purpose, because its turn was undone or stands in another."""
    out = {each.turn_id for each in entries if each.kind is EntryKind.TURN_UNDONE or "joined" in each.data}
    marked = [
        replace(each, event=type(each.event)(text=f"<{number} 0 0>"), stored=None) if each.kind in SPOKEN else each
        for number, each in enumerate(entries)
        if each.turn_id not in out
    ]
    shown = "".join(item.text for item in fold(marked) if item.role in SPOKEN.values())
    assert sorted(re.findall(r"<\d+ 0 0>", shown)) == sorted(
        str(each.data["text"]) for each in marked if each.kind in SPOKEN
    )


@pytest.mark.parametrize(
    ("kind", "data", "text"),
    [
        (EntryKind.TURN_INTERRUPTED, {"cause": "crash"}, notes.interrupted("crash")),
        (EntryKind.TURN_INTERRUPTED, {"cause": "restart_timeout"}, notes.interrupted("restart_timeout")),
        (EntryKind.TURN_INTERRUPTED, {}, notes.interrupted("")),
        (EntryKind.TURN_CANCELLED, {"cause": "session_ended"}, notes.cancelled("session_ended")),
        (EntryKind.TURN_CANCELLED, {}, notes.cancelled("")),
        (EntryKind.TURN_FAILED, {"error": "no such model"}, notes.failed("no such model")),
        (EntryKind.TURN_FAILED, {}, notes.failed("")),
    ],
)
def test_an_end_that_is_no_answer_says_what_it_is(kind: EntryKind, data: dict[str, object], text: str) -> None:
    """A1: the outcome of a turn is visible."""
    (marker,) = fold([entry(kind, **data)])
    assert (marker.role, marker.kind, marker.text) == (Role.MARKER, kind.value.removeprefix("turn."), text)


def test_every_kind_of_entry_is_folded() -> None:
    silent = {
        EntryKind.TURN_STARTED,
        EntryKind.TURN_DEFERRED,
        EntryKind.TURN_COMPLETED,
        EntryKind.TURN_RECOVERED,
        EntryKind.TURN_UNDONE,
        # It changes what stands there.
        EntryKind.TURN_REVISED,
        EntryKind.USAGE,
    }
    assert {kind for kind in EntryKind if not fold([entry(kind)])} == silent


def test_a_message_says_what_it_was_last_changed_to() -> None:
    entries = [
        entry(EntryKind.TURN_ACCEPTED, text="one", prior=[{"speaker": "user", "text": "before"}]),
        entry(EntryKind.TURN_REVISED, text="two"),
        entry(EntryKind.TURN_REVISED, text="three"),
        entry(EntryKind.MESSAGE_JOINED, text="joined", turn_id="other"),
    ]
    assert [(item.role, item.text) for item in fold(entries)] == [
        (Role.PRIOR, "before"),
        (Role.USER, "three"),
        (Role.USER, "joined"),
    ]
    assert acceptance(entries).text == "three"


def test_a_question_and_its_answer_stand_in_the_transcript() -> None:
    asked = entry(EntryKind.APPROVAL_ASKED, nth=2, text="may I?")
    answered = entry(EntryKind.APPROVAL_ANSWERED, text="yes")
    assert [(item.role, item.kind, item.text) for item in fold([asked, answered])] == [
        (Role.QUESTION, "asked", "may I?"),
        (Role.QUESTION, "answered", "yes"),
    ]


def test_a_result_without_its_start_is_a_card_of_its_own() -> None:
    (card,) = fold([entry(EntryKind.TOOL_FINISHED, call_id="c", name="fetch", outcome="ok", result="done")])
    assert (card.role, card.name, card.outcome, card.result) == (Role.TOOL, "fetch", "ok", "done")


def test_a_result_that_arrives_late_is_better_than_unknown() -> None:
    """J4: it stands where it was written, above the entry in which the store said that nobody knew."""
    started = entry(EntryKind.TOOL_STARTED, nth=2, call_id="c", name="fetch")
    unknown = entry(EntryKind.TOOL_FINISHED, call_id="c", name="fetch", outcome="unknown")
    late = entry(EntryKind.TOOL_FINISHED, nth=3, call_id="c", name="fetch", outcome="ok", result="done")
    marker = entry(EntryKind.TURN_INTERRUPTED, cause="crash")
    assert [(item.outcome, item.kind) for item in fold([started, unknown, marker])] == [
        ("unknown", None),
        (None, "interrupted"),
    ]
    assert [(item.outcome, item.kind) for item in fold([started, unknown, marker, late])] == [
        ("ok", None),
        (None, "interrupted"),
    ]


@pytest.mark.parametrize("odd", [None, 7, 1.5, True, ["a"], {"a": "b"}])
def test_a_value_that_is_no_text_is_shown_as_none(odd: object) -> None:
    """R11: what an older version or a damaged disk left behind is not taken for words."""
    (card,) = fold([entry(EntryKind.TOOL_FINISHED, call_id=odd, name=odd, outcome=odd, result=odd, text=odd)])
    assert (card.call_id, card.name, card.outcome, card.result, card.text) == ("", "", "", None, "")
    (marker,) = fold([entry(EntryKind.TURN_INTERRUPTED, cause=odd)])
    assert marker.text == notes.interrupted("")


def test_a_second_result_of_a_call_does_not_hide_the_first() -> None:
    """J1: what was shown stays as it was shown."""
    results = [
        entry(EntryKind.TOOL_FINISHED, call_id="c", name="fetch", outcome=each, result=each) for each in ("ok", "error")
    ]
    items = fold([entry(EntryKind.TOOL_STARTED, call_id="c", name="fetch"), *results])
    assert [item.result for item in items] == ["ok", "error"]


def test_the_words_of_two_attempts_stand_apart_even_with_nothing_between_them() -> None:
    """J2."""
    items = fold(
        [entry(EntryKind.TEXT, attempt=1, nth=2, text="Let me"), entry(EntryKind.TEXT, attempt=2, nth=2, text="Let me see")]
    )
    assert [item.text for item in items] == ["Let me", "Let me see"]


def test_a_call_that_is_run_again_finishes_the_card_of_the_second_run() -> None:
    """R10: the first stays open, as the interruption left it."""
    first = [
        entry(EntryKind.TOOL_STARTED, attempt=1, nth=2, call_id="c", name="fetch"),
        entry(EntryKind.TURN_INTERRUPTED, attempt=1),
    ]
    second = [
        entry(EntryKind.TOOL_STARTED, attempt=2, nth=2, call_id="c", name="fetch"),
        entry(EntryKind.TOOL_FINISHED, attempt=2, nth=3, call_id="c", name="fetch", outcome="ok", result="done"),
    ]
    cut, marker, done = fold(first + second)
    assert (cut.outcome, cut.recovered, marker.role) == (None, True, Role.MARKER)
    assert (done.outcome, done.recovered) == ("ok", False)


@pytest.mark.timeout(20)
def test_a_very_long_turn_is_folded_in_time_that_grows_with_its_length() -> None:
    """J1: whoever reads a day's work must not wait for minutes, as when every entry looks at all that came before it."""
    message = entry(EntryKind.TURN_ACCEPTED, attempt=0)
    pieces = [entry(EntryKind.TEXT, nth=nth, text="word ") for nth in range(1, 60_001)]
    _, answer, _ = fold([message, *pieces[:40_000], entry(EntryKind.TURN_INTERRUPTED), *pieces[40_000:]])
    assert answer.text == "word " * 60_000


@pytest.mark.parametrize("cause", [*Cause, "a cause of a later version"])
def test_what_follows_an_interruption_knows_its_cause(cause: str) -> None:
    """R6."""
    assert cut_off_by([entry(EntryKind.TEXT, text="so"), entry(EntryKind.TURN_INTERRUPTED, cause=cause)]) == cause
    accepted = entry(EntryKind.TURN_ACCEPTED, turn="t2", attempt=0)
    assert cut_off_by([entry(EntryKind.TURN_INTERRUPTED, cause=cause), accepted]) == cause


@pytest.mark.parametrize(
    ("kind", "cause"),
    [(EntryKind.TURN_COMPLETED, None), (EntryKind.TURN_FAILED, "crash"), (EntryKind.TURN_CANCELLED, "crash")],
)
def test_only_a_completed_turn_ends_the_memory_of_an_interruption(kind: EntryKind, cause: str | None) -> None:
    """R5."""
    assert cut_off_by([]) is None
    assert cut_off_by([entry(EntryKind.TURN_INTERRUPTED, cause="crash"), entry(kind, attempt=2)]) == cause


TOOL = [entry(EntryKind.TOOL_STARTED, call_id="c"), entry(EntryKind.TOOL_FINISHED, call_id="c", outcome="ok", result="3")]


@pytest.mark.parametrize(
    ("before", "unanswered"),
    [
        ([], False),
        (TOOL, True),
        (TOOL[:1], False),
        ([*TOOL, entry(EntryKind.TEXT, text="three")], False),
        ([*TOOL, entry(EntryKind.TURN_FAILED, error="no")], True),
        ([*TOOL, entry(EntryKind.NOTE, text="restarting")], True),
    ],
)
def test_a_tool_result_that_no_word_followed_is_unanswered(before: list[Entry], unanswered: bool) -> None:
    """R6."""
    mine = [entry(EntryKind.TURN_ACCEPTED, turn="t2", attempt=0, text="and?"), replace(TOOL[0], turn_id="t2")]
    assert tool_unanswered(fold(before + mine), "t2") is unanswered  # type: ignore[arg-type]


def test_messages_that_wait_behind_a_turn_do_not_answer_for_it() -> None:
    """R6: the note looks at what stands before the turn, not at what stands after it."""
    waiting = [entry(EntryKind.TURN_ACCEPTED, turn=turn, attempt=0, text="?") for turn in ("t2", "t3")]
    assert tool_unanswered(fold(TOOL + waiting), "t2")  # type: ignore[arg-type]


def test_a_message_that_joined_ends_no_interruption() -> None:
    """R6: only an answer does."""
    cut = entry(EntryKind.TURN_INTERRUPTED, cause="crash")
    assert cut_off_by([cut, entry(EntryKind.TURN_COMPLETED, joined="t0")]) == "crash"
    assert cut_off_by([cut, entry(EntryKind.TURN_COMPLETED)]) is None


def test_an_interruption_that_was_undone_is_not_spoken_of() -> None:
    """R6: what it had shown is not in the transcript any more."""
    assert cut_off_by([entry(EntryKind.TURN_INTERRUPTED, cause="crash"), entry(EntryKind.TURN_UNDONE)]) is None


PRIOR = [
    {"speaker": "system", "text": "be brief"},
    {"speaker": "user", "text": "my name is Ada"},
    {"speaker": "assistant", "text": "hello Ada"},
]


def test_what_a_client_says_was_said_before_stands_above_its_message() -> None:
    items = fold(
        [entry(EntryKind.TURN_ACCEPTED, attempt=0, text="who am I?", prior=PRIOR), entry(EntryKind.TEXT, nth=1, text="Ada")]
    )
    assert [(item.role, item.kind, item.text) for item in items] == [
        (Role.PRIOR, "system", "be brief"),
        (Role.PRIOR, "user", "my name is Ada"),
        (Role.PRIOR, "assistant", "hello Ada"),
        (Role.USER, None, "who am I?"),
        (Role.ASSISTANT, None, "Ada"),
    ]


def test_what_was_said_before_does_not_run_into_the_answer() -> None:
    """Two pieces of one voice are joined, but what a client recalls was not said in this turn."""
    items = fold(
        [entry(EntryKind.TURN_ACCEPTED, attempt=0, text="go on", prior=PRIOR[2:]), entry(EntryKind.TEXT, nth=1, text="more")]
    )
    assert [item.text for item in items if item.role is Role.ASSISTANT] == ["more"]


@pytest.mark.parametrize("prior", [None, "x", [1], [{"speaker": "nobody", "text": "x"}], [{"speaker": "user"}], {}])
def test_what_is_no_record_of_what_was_said_is_left_out(prior: object) -> None:
    """R11: a field that cannot be read is dropped, and the message kept."""
    items = fold([entry(EntryKind.TURN_ACCEPTED, attempt=0, text="hello", prior=prior)])
    assert [(item.role, item.text) for item in items] == [(Role.USER, "hello")]


def test_instructions_are_those_of_one_turn_alone() -> None:
    items = fold(
        [
            entry(EntryKind.TURN_ACCEPTED, "t1", attempt=0, text="one", prior=PRIOR),
            entry(EntryKind.TURN_ACCEPTED, "t2", attempt=0, text="two", prior=[{"speaker": "system", "text": "be long"}]),
        ]
    )
    assert instructions(items, TurnId("t1")) == ["be brief"]
    assert instructions(items, TurnId("t2")) == ["be long"]
    assert instructions(items, TurnId("t3")) == []
