"""What the rows of a chat are known by."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.chats import Place, conversation_of


def test_a_conversation_is_known_by_account_chat_thread_and_person() -> None:
    """R5: the next message of the same place finds the same session."""
    assert conversation_of("tg", Place(chat_id="42")) == "tg:42"
    assert conversation_of("tg", Place(chat_id="42", thread_id="7")) == "tg:42:7"
    assert conversation_of("tg", Place(chat_id="42", thread_id="7"), "ann") == "tg:42:7:ann"


texts = st.text(":%a", min_size=1, max_size=4)
places = st.builds(Place, chat_id=texts, thread_id=texts | st.just(""))


@given(places, texts, places, texts)
def test_no_place_can_be_named_into_another_ones_conversation(one: Place, ann: str, other: Place, bob: str) -> None:
    assert (conversation_of("tg", one, ann) == conversation_of("tg", other, bob)) == ((one, ann) == (other, bob))
    assert (conversation_of("tg", one) == conversation_of("tg", other)) == (one == other)
