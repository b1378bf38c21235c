"""When a model that cannot answer is asked again, by whom, and for how long a turn waits for it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.events import EntryKind
from holdfast.core.journal import Entry
from holdfast.core.outages import (
    MODEL,
    PAUSE_MAX_MS,
    PAUSE_MIN_MS,
    RETRY_AFTER_MAX_MS,
    Circuit,
    retry_at,
    waiting_since,
)
from holdfast.core.turns import Mode

DAY_MS = 86_400_000
NOW = 1_700_000_000_000


def test_a_circuit_that_never_failed_lets_everything_through() -> None:
    assert Circuit().may_ask("a", 0)
    assert Circuit().asked("a") == Circuit()


def test_an_open_circuit_lets_one_request_through_when_its_time_is_over() -> None:
    shut = Circuit().failed("a", 1_000, 500)
    assert not shut.may_ask("a", 1_499)
    assert shut.may_ask("a", 1_500)
    assert not shut.asked("a").may_ask("a", 1_500)


def test_failures_of_requests_that_were_under_way_together_count_as_one() -> None:
    shut = Circuit().failed("a", 1_000, 500)
    assert shut.failed("a", 1_100, 9_000) is shut


def test_a_probe_that_fails_opens_the_circuit_anew_and_an_answer_closes_it() -> None:
    probed = Circuit().failed("a", 1_000, 500).asked("a")
    again = probed.failed("a", 1_600, 700).left()
    assert (again.open_until("a"), again.is_probed) == (2_300, False)
    assert probed.answered("a") == Circuit()


def test_a_probe_that_is_called_off_leaves_its_place_to_the_next() -> None:
    probed = Circuit().failed("a", 1_000, 500).asked("a")
    assert probed.left().may_ask("a", 1_500)


def test_a_model_that_has_not_failed_itself_is_asked_at_once_by_one_request() -> None:
    shut = Circuit().failed("a", 1_000, 500)
    assert shut.may_ask("b", 1_000)
    assert not shut.asked("b").may_ask("b", 1_000)
    assert not shut.asked("b").may_ask("a", 1_500)


def test_models_that_fail_share_their_pause() -> None:
    both = Circuit().failed("a", 1_000, 500).asked("b").failed("b", 1_000, 500).left()
    again = both.asked("a").failed("a", 1_500, 1_000).left()
    assert not again.may_ask("b", 2_499)
    assert again.may_ask("b", 2_500)


def test_a_long_pause_that_one_model_asks_for_does_not_bind_another() -> None:
    """A model whose limit is used up does not keep one away that only stumbled."""
    both = Circuit().failed("a", 1_000, 300_000).asked("b").failed("b", 1_000, 500).left()
    assert both.may_ask("b", 1_500)
    assert not both.may_ask("a", 300_999)


def test_a_model_that_answers_is_free_while_another_fails() -> None:
    shut = Circuit().failed("a", 1_000, 500).asked("b").answered("b").left()
    assert shut.asked("b").may_ask("b", 1_000)
    assert not shut.may_ask("a", 1_499)
    assert shut.asked("a").answered("a") == Circuit()
    assert not shut.failed("b", 1_200, 500).may_ask("b", 1_300)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["fail", "answer", "leave"]), st.integers(0, 2_000))))
def test_a_provider_that_does_not_answer_gets_one_request_at_a_time(steps: list[tuple[str, str, int]]) -> None:
    """W4: whichever models are asked; and the circuit is closed when none fails."""
    circuit, now = Circuit(), 0
    for model, outcome, later_ms in steps:
        now += later_ms
        if not circuit.may_ask(model, now):
            continue
        is_probe = circuit.doubts(model)
        circuit = circuit.asked(model)
        others = [each for each in "abc" if circuit.doubts(each)]
        assert not is_probe or not any(circuit.may_ask(each, now + 10**9) for each in others)
        match outcome:
            case "fail":
                circuit = circuit.failed(model, now, 500)
                assert not circuit.may_ask(model, now)
            case "answer":
                circuit = circuit.answered(model)
                assert not circuit.doubts(model)
            case _:
                pass
        circuit = circuit.left() if is_probe else circuit
        assert not circuit.is_probed
        assert circuit.failing or circuit == Circuit()


@pytest.mark.parametrize("mode", [Mode.CONVERSATION, Mode.DETACHED])
@given(
    waited_ms=st.none() | st.integers(0, DAY_MS - 1),
    retry_after_s=st.none() | st.floats(0, 1e6),
    limit_ms=st.integers(1, DAY_MS),
)
def test_a_turn_waits_until_its_time_is_over(
    mode: Mode, waited_ms: int | None, retry_after_s: float | None, limit_ms: int
) -> None:
    """A1: it is tried again in time, never at once, and never long after the limit."""
    since = None if waited_ms is None else NOW - waited_ms
    again = retry_at(mode, since, NOW, limit_ms, retry_after_s)
    if waited_ms is not None and waited_ms >= limit_ms:
        assert again is None
        return
    assert again is not None
    left_ms = limit_ms - (waited_ms or 0)
    assert PAUSE_MIN_MS <= again - NOW <= max(RETRY_AFTER_MAX_MS, PAUSE_MAX_MS)
    assert again - NOW <= max(left_ms, PAUSE_MIN_MS)


@given(waited_ms=st.none() | st.integers(0, DAY_MS))
def test_a_client_with_an_open_connection_is_told_at_once(waited_ms: int | None) -> None:
    """A3"""
    assert retry_at(Mode.SYNCHRONOUS, waited_ms and NOW - waited_ms, NOW, DAY_MS, 2) is None


def test_what_a_server_asks_for_is_heeded_and_a_long_outage_is_asked_about_rarely() -> None:
    assert retry_at(Mode.DETACHED, None, NOW, DAY_MS, 7) == NOW + 7_000
    assert retry_at(Mode.DETACHED, NOW - 60_000, NOW, DAY_MS, 7) == NOW + 30_000
    assert retry_at(Mode.DETACHED, NOW - 3_600_000, NOW, DAY_MS, None) == NOW + PAUSE_MAX_MS


def test_a_clock_that_went_back_is_no_time_waited() -> None:
    """C1"""
    assert retry_at(Mode.DETACHED, NOW + DAY_MS, NOW, DAY_MS, None) == NOW + PAUSE_MIN_MS


def entry(kind: EntryKind, at: int, turn_id: str = "turn", **data: object) -> Entry:
    return Entry.read(session_id="s", seq=at, turn_id=turn_id, attempt=1, nth=at, kind=kind, at=at, data=data)


def test_a_turn_waits_since_its_first_note_after_its_last_output() -> None:
    waits = entry(EntryKind.NOTE, 2, waiting=MODEL)
    assert waiting_since([], "turn") is None
    assert waiting_since([entry(EntryKind.TURN_STARTED, 1), waits, entry(EntryKind.NOTE, 3, waiting=MODEL)], "turn") == 2
    assert waiting_since([waits, entry(EntryKind.TEXT, 3, text="so")], "turn") == 2
    assert waiting_since([waits, entry(EntryKind.USAGE, 3)], "turn") is None
    assert waiting_since([waits, entry(EntryKind.USAGE, 3), entry(EntryKind.NOTE, 4, waiting=MODEL)], "turn") == 4
    assert (
        waiting_since([entry(EntryKind.NOTE, 2, "other", waiting=MODEL), entry(EntryKind.NOTE, 3, text="hm")], "turn")
        is None
    )
