"""Why a key gets a new session, and what a session tells about itself."""

from __future__ import annotations

import pytest

from holdfast.core.sessions import COMPLETE_SUFFIX, SessionState, reset_reason


@pytest.mark.parametrize(
    ("latest", "reason"),
    [(None, None), (SessionState.OPEN, None), (SessionState.ENDED, None), (SessionState.SUSPENDED, "suspended")],
)
def test_a_new_session_says_that_the_one_before_it_was_suspended(latest: SessionState | None, reason: str | None) -> None:
    """R7."""
    assert reset_reason(latest) == reason


@pytest.mark.parametrize("channel", ["webhook", "cron", "api"])
def test_the_end_reason_of_a_one_shot_session_names_its_channel(channel: str) -> None:
    """W4."""
    assert channel + COMPLETE_SUFFIX == f"{channel}_complete"
