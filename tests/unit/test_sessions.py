"""Why a key gets a new session, and what a session tells about itself."""

from __future__ import annotations

import pytest

from holdfast.core.sessions import COMPLETE_SUFFIX, Glance, Session, SessionState, Source, reset_reason
from holdfast.ids import SessionId


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


@pytest.mark.parametrize(
    ("title", "opening", "chat", "label"),
    [
        ("Tides", "hello", "Crew", "Tides"),
        (None, "\n# hello\nthere", "Crew", "hello"),
        (None, " \n", "The\nCrew\u202e", "The Crew"),
        (None, "", "", "telegram:7"),
    ],
)
def test_a_session_is_known_by_its_title_its_first_words_its_chat_or_its_key(
    title: str | None, opening: str, chat: str, label: str
) -> None:
    session = Session(
        id=SessionId("ses_1"),
        key="telegram:7",
        channel="telegram",
        owner="local",
        one_shot=False,
        created_at=0,
        updated_at=0,
        source=Source(chat_name=chat),
        title=title,
    )
    assert Glance(session=session, opening=opening).label == label
