"""How long the output of a lost attempt is looked for, and what the marker says meanwhile."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core import notes
from holdfast.core.events import EntryKind
from holdfast.core.journal import OUTPUT, Entry
from holdfast.core.notes import Recovery
from holdfast.core.recovery import GIVE_UP_AGE_MS, TRIES_MAX, LookVerdict, Sight, after_look, is_too_old
from holdfast.core.transcript import Role, fold
from holdfast.core.turns import Cause
from tests.tables import every

AGES = (0, 1, GIVE_UP_AGE_MS - 1, GIVE_UP_AGE_MS)
OLD = (GIVE_UP_AGE_MS + 1, 10 * GIVE_UP_AGE_MS)
TRIES = range(TRIES_MAX + 3)


@every("sight, tries, age", itertools.product(Sight, TRIES, AGES))
def test_a_search_goes_on_until_it_finds_something_or_has_looked_often_enough(sight: Sight, tries: int, age: int) -> None:
    """J4 J6: what arrives costs nothing, however often it is looked at; what is sealed costs a try, and has twelve."""
    expected = {
        Sight.FOUND: LookVerdict.RESOLVE,
        Sight.ARRIVING: LookVerdict.WAIT,
        Sight.SEALED: LookVerdict.CHARGE if tries < 11 else LookVerdict.GIVE_UP,
    }
    assert after_look(sight, tries, age) is expected[sight]
    assert not is_too_old(age)


@every("sight, tries, age", itertools.product(Sight, TRIES, OLD))
def test_a_search_that_is_too_old_is_over_whatever_there_is_to_see(sight: Sight, tries: int, age: int) -> None:
    """J7: after a day nobody looks any more."""
    assert after_look(sight, tries, age) is LookVerdict.GIVE_UP
    assert is_too_old(age)


def test_the_limits_are_those_that_were_promised() -> None:
    """J6 J7."""
    assert (TRIES_MAX, GIVE_UP_AGE_MS) == (12, 24 * 60 * 60 * 1000)


@given(st.lists(st.sampled_from(Sight), max_size=40))
def test_any_history_of_looks_ends_after_twelve_that_found_nothing(sights: list[Sight]) -> None:
    """J6: looks at what arrives may come between them in any number."""
    tries = 0
    for count, sight in enumerate(sights):
        verdict = after_look(sight, tries, 0)
        if verdict is LookVerdict.GIVE_UP:
            assert sights[: count + 1].count(Sight.SEALED) == 12
            return
        if verdict is LookVerdict.RESOLVE:
            assert sight is Sight.FOUND
            return
        tries += verdict is LookVerdict.CHARGE
    assert tries == sights.count(Sight.SEALED) < 12


OUTPUT_KINDS = frozenset(each.kind for each in OUTPUT)


def entry(kind: EntryKind, attempt: int = 1, nth: int | None = None, **data: object) -> Entry:
    return Entry.read(session_id="s", seq=1, turn_id="t", attempt=attempt, nth=nth, kind=kind, at=0, data=data)


ACCEPTED = entry(EntryKind.TURN_ACCEPTED, 0, text="hello")
STARTED = entry(EntryKind.TURN_STARTED, 1, 1)
EARLY = entry(EntryKind.TEXT, 1, 2, text="early ")
LATE = entry(EntryKind.TEXT, 1, 3, text="late")
PENDING = entry(EntryKind.TURN_INTERRUPTED, cause="crash", recovery="pending")
PLAIN = entry(EntryKind.TURN_INTERRUPTED, cause="crash")
RESOLVED = entry(EntryKind.TURN_RECOVERED, found=0)

WAITS = notes.interrupted("crash", Recovery.PENDING)
FOUND = notes.interrupted("crash", Recovery.OUTPUT)
NEUTRAL = notes.interrupted("crash")

CASES: dict[str, tuple[list[Entry], str]] = {
    "nothing was ever said": ([PLAIN], NEUTRAL),
    "all of it was in the store": ([EARLY, PLAIN], FOUND),
    "it came late": ([PLAIN, LATE], FOUND),
    "more may come": ([PENDING], WAITS),
    "some is there and more may come": ([EARLY, PENDING], WAITS),
    "some came late and more may come": ([PENDING, LATE], WAITS),
    "nothing came": ([PENDING, RESOLVED], NEUTRAL),
    "nothing came but some was there": ([EARLY, PENDING, RESOLVED], FOUND),
    "it came and was counted": ([PENDING, LATE, RESOLVED], FOUND),
    "it came after it was given up": ([PENDING, RESOLVED, LATE], FOUND),
}


@pytest.mark.parametrize(("entries", "text"), CASES.values(), ids=CASES.keys())
def test_the_marker_says_what_became_of_the_output(entries: list[Entry], text: str) -> None:
    """J2 J3 J4 J6: one marker, below everything of its attempt, whose text depends on the entries alone."""
    items = fold([ACCEPTED, STARTED, *entries])
    assert [item.role for item in items if item.role is Role.MARKER] == [Role.MARKER]
    assert (items[-1].kind, items[-1].text, items[-1].recovered) == ("interrupted", text, False)
    said = "".join(item.text for item in items[1:-1])
    assert said == "".join(str(each.data["text"]) for each in (EARLY, LATE) if each in entries)
    assert all(item.recovered for item in items[1:-1])


@pytest.mark.parametrize("kind", sorted({*OUTPUT_KINDS, EntryKind.NOTE, EntryKind.APPROVAL_ASKED}))
def test_whatever_an_agent_brings_forth_is_output(kind: EntryKind) -> None:
    """J4: a tool card is as good as a word."""
    items = fold([ACCEPTED, STARTED, PLAIN, entry(kind, 1, 2, text="so", call_id="c", name="n")])
    assert items[-1].text == (FOUND if kind in OUTPUT_KINDS else NEUTRAL)


def test_each_attempt_has_its_own_marker_and_its_own_search() -> None:
    """J2: what is known of the second says nothing about the first."""
    again = [
        entry(EntryKind.TURN_STARTED, 2, 1),
        entry(EntryKind.TEXT, 2, 2, text="again"),
        entry(EntryKind.TURN_INTERRUPTED, 2, cause="crash", recovery="pending"),
        entry(EntryKind.TURN_RECOVERED, 2, found=1),
    ]
    markers = [item.text for item in fold([ACCEPTED, STARTED, EARLY, PENDING, *again]) if item.role is Role.MARKER]
    assert markers == [WAITS, FOUND]
    markers = [item.text for item in fold([ACCEPTED, STARTED, PENDING, *again, RESOLVED]) if item.role is Role.MARKER]
    assert markers == [NEUTRAL, FOUND]


def test_the_end_of_a_search_does_not_cut_the_words_of_a_later_attempt_in_two() -> None:
    """J1."""
    running = [entry(EntryKind.TURN_STARTED, 2, 1), entry(EntryKind.TEXT, 2, 2, text="one "), RESOLVED]
    items = fold([ACCEPTED, STARTED, PENDING, *running, entry(EntryKind.TEXT, 2, 3, text="two")])
    assert [item.text for item in items][2:] == ["one two"]


@pytest.mark.parametrize("recovery", Recovery)
def test_no_marker_ever_says_that_nothing_was_recovered(recovery: Recovery) -> None:
    """J3: what is not there yet may still arrive."""
    text = notes.interrupted("crash", recovery)
    assert text.startswith("Interrupted")
    assert ("pending" in text) is (recovery is Recovery.PENDING)
    assert ("recovered from the run journal" in text) is (recovery is Recovery.OUTPUT)
    assert not any(word in text for word in ("nothing", "no output", "not recovered"))


@pytest.mark.parametrize(
    ("cause", "recovery"), list(itertools.product((Cause.RESTART_TIMEOUT, Cause.SHUTDOWN_TIMEOUT), Recovery))
)
def test_a_planned_stop_keeps_its_name(cause: Cause, recovery: Recovery) -> None:
    """R4."""
    assert notes.interrupted(cause, recovery) == f"Interrupted by a {notes.interruption(cause)}."
