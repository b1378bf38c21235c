"""Why a key gets a new session, and what a session tells about itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.sessions import COMPLETE_SUFFIX, SessionState, Source, conversation_key, reset_reason


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


def test_a_conversation_is_known_by_channel_chat_thread_and_user() -> None:
    """R5: the next message of the same place finds the same session."""
    assert conversation_key("telegram", Source(chat_id="42")) == "telegram:42"
    assert conversation_key("telegram", Source(chat_id="42", thread_id="7")) == "telegram:42:7"
    assert conversation_key("telegram", Source(chat_id="42", user="ann")) == "telegram:42::ann"
    assert conversation_key("slack", Source(chat_id="42")) != conversation_key("telegram", Source(chat_id="42"))


places = st.builds(
    Source, chat_id=st.text(":%a", max_size=4), thread_id=st.text(":%a", max_size=4), user=st.text(":%a", max_size=4)
)


@given(places, places)
def test_no_place_can_be_named_into_another_ones_conversation(one: Source, other: Source) -> None:
    same = conversation_key("chat", one) == conversation_key("chat", other)
    assert same == ((one.chat_id, one.thread_id, one.user) == (other.chat_id, other.thread_id, other.user))
