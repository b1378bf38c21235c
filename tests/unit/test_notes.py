"""What Holdfast says in its own name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core import notes
from holdfast.core.turns import Cause

OPENING = "[System note:"
EVENTS = {
    "restart_timeout": "gateway restart",
    "shutdown_timeout": "gateway shutdown",
    "disk_full": "gateway interruption (the disk was full)",
    "crash": "gateway interruption",
    "user": "gateway interruption",
    "superseded": "gateway interruption",
    "session_ended": "gateway interruption",
    "session_suspended": "gateway interruption",
    "model_unavailable": "gateway interruption",
    "": "gateway interruption",
    "a cause of a later version": "gateway interruption",
}
causes = st.one_of(st.sampled_from(sorted(EVENTS)), st.text())


def test_every_known_cause_has_its_name_here() -> None:
    assert set(Cause) <= EVENTS.keys()


@pytest.mark.parametrize("cause", [*EVENTS, *Cause])
def test_an_interruption_is_named_after_its_cause(cause: str) -> None:
    """R6."""
    assert notes.interruption(cause) == EVENTS[cause]


@pytest.mark.parametrize("cause", EVENTS)
def test_the_marker_tells_a_planned_stop_from_one_without_warning(cause: str) -> None:
    """R4, R9."""
    planned = cause in ("restart_timeout", "shutdown_timeout")
    unplanned = "the disk was full" if cause == "disk_full" else "the gateway stopped without warning"
    assert notes.interrupted(cause) == (f"Interrupted by a {EVENTS[cause]}." if planned else f"Interrupted: {unplanned}.")


@given(st.text(), causes, st.booleans())
def test_a_message_after_an_interruption_has_exactly_one_note(text: str, cause: str, tool_unanswered: bool) -> None:
    """R6: whatever else the transcript ends in, the interruption is what the note is about."""
    message = notes.before_message(text, interrupted_by=cause, tool_unanswered=tool_unanswered)
    assert message.startswith(OPENING)
    assert message.endswith(f"]\n\n{text}")
    note = message.removesuffix(text)
    assert note.count(OPENING) == 1
    assert notes.interruption(cause) in note


@given(st.text())
def test_a_message_after_an_unanswered_tool_result_has_a_note_about_that(text: str) -> None:
    """R6."""
    message = notes.before_message(text, interrupted_by=None, tool_unanswered=True)
    assert message.startswith(OPENING)
    assert message.endswith(f"]\n\n{text}")
    note = message.removesuffix(text)
    assert note.count(OPENING) == 1
    assert "tool result" in note
    assert "gateway" not in note


@given(st.text())
def test_any_other_message_has_no_note(text: str) -> None:
    """R6: the user's text is kept whole."""
    assert notes.before_message(text, interrupted_by=None, tool_unanswered=False) == text


@pytest.mark.parametrize(
    ("cause", "marker"),
    [
        (Cause.SESSION_ENDED, "Cancelled: the session was ended."),
        ("session_suspended", "Cancelled: the session was suspended."),
        (Cause.USER, "Cancelled."),
        ("", "Cancelled."),
        ("a cause of a later version", "Cancelled."),
    ],
)
def test_a_cancelled_turn_says_why_where_its_user_did_not_ask_for_it(cause: str, marker: str) -> None:
    """A1, J9."""
    assert notes.cancelled(cause) == marker


@given(causes)
def test_no_cause_however_odd_keeps_a_marker_from_being_shown(cause: str) -> None:
    """R11, R12."""
    assert notes.interrupted(cause).startswith("Interrupted")
    assert notes.cancelled(cause).startswith("Cancelled")


@pytest.mark.parametrize(("error", "marker"), [("no such model", "Failed: no such model"), ("", "Failed.")])
def test_a_failed_turn_says_what_went_wrong(error: str, marker: str) -> None:
    """A1."""
    assert notes.failed(error) == marker


def test_the_banners_promise_no_more_than_can_be_kept() -> None:
    """R1: resuming is hedged, because stuck-loop protection may intervene; a shutdown promises no return."""
    assert "restarting" in notes.RESTART_BANNER
    assert "try to resume" in notes.RESTART_BANNER
    assert "shutting down" in notes.SHUTDOWN_BANNER
    assert "resume" not in notes.SHUTDOWN_BANNER
