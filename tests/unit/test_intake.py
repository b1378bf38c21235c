"""What tells a repeated message from another one under the same key."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.core.intake import Cursor, Inbound
from holdfast.core.sessions import Source
from holdfast.core.turns import Mode

# JSON may carry half a surrogate pair; it is no reason to fall over.
any_text = st.text(st.characters())
FIRST = Inbound(conversation="telegram:1", text="hello", channel="telegram")


@given(any_text, any_text, any_text, any_text)
@example("a\nb", "c", "a", "b\nc")
@example("", "1\na\nb", "1", "a\nb")
@example("a", "\ud800", "a", "\ud801")
def test_only_the_same_message_in_the_same_conversation_has_the_same_hash(
    conversation: str, text: str, other_conversation: str, other_text: str
) -> None:
    """A3: same key and body, same turn; another body is refused."""
    one = replace(FIRST, conversation=conversation, text=text)
    other = replace(FIRST, conversation=other_conversation, text=other_text)
    same = (conversation, text) == (other_conversation, other_text)
    assert (one.body_hash() == other.body_hash()) is same
    assert one.body_hash() == replace(one).body_hash()


@pytest.mark.parametrize(
    "change",
    [
        {"dedupe_key": "another"},
        {"source": Source(user="someone")},
        {"mode": Mode.DETACHED},
        {"reply_to": "telegram:1"},
        {"delivers_later": False},
        {"cursor": Cursor(channel="telegram", position="7")},
    ],
    ids=lambda change: next(iter(change)),
)
def test_how_a_message_came_does_not_make_it_another_message(change: dict[str, object]) -> None:
    """A3: a sender that repeats itself may do so over another connection."""
    assert replace(FIRST, **change).body_hash() == FIRST.body_hash()


def test_the_hash_of_a_message_is_the_same_in_every_version() -> None:
    """A3: a repeat that comes after an upgrade is compared with what the older version stored."""
    assert FIRST.body_hash() == "43cb13c03884fb8cf09e730c439b38947ee401662d212d99b563564c5ae6db4a"


def test_a_message_delivers_later_and_is_remembered_unless_its_channel_says_otherwise() -> None:
    """A1, A2, M1."""
    assert (FIRST.delivers_later, FIRST.remembers, FIRST.one_shot, FIRST.mode) == (True, True, False, Mode.CONVERSATION)
