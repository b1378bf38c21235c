"""How much of what a provider recalls is taken, and for whom it is asked at all."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from holdfast.core import recall
from holdfast.core.facts import Recollection
from holdfast.core.sessions import Session
from holdfast.core.turns import Turn
from holdfast.ids import SessionId, TurnId


def session(**changes: Any) -> Session:
    facts = {"id": SessionId("ses"), "key": "k", "channel": "telegram", "owner": "local", "one_shot": False}
    return Session(**{**facts, "created_at": 0, "updated_at": 0, **changes})


def turn(**changes: Any) -> Turn:
    return Turn(**{"id": TurnId("trn"), "session_id": SessionId("ses"), "ordinal": 1, "accepted_at": 0, **changes})


@pytest.mark.parametrize(
    ("asked", "of"),
    [
        (True, {}),
        (True, {"owner": "ada", "channel": "api"}),
        (False, {"channel": "webhook"}),
        (False, {"one_shot": True}),
    ],
)
def test_strangers_and_single_errands_are_reminded_of_nothing(asked: bool, of: dict[str, Any]) -> None:
    """Security 8: what is known of the operator is not for those who only send a webhook."""
    assert recall.reminds(session(**of), turn()) is asked


def test_a_message_that_is_only_repeated_needs_no_memory() -> None:
    assert not recall.reminds(session(), turn(verbatim=True))


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("what is\n my  name?", "what is my name?"),
        ("", ""),
        (" \x00 ", ""),
        ("/compress", ""),
        ("[System note: the background command has ended.]\n\nkey=1234", ""),
        ("x" * 10_000, "x" * recall.QUERY_MAX_CHARS),
    ],
)
def test_what_is_looked_for_is_the_message_in_one_line(text: str, query: str) -> None:
    assert recall.query(text) == query


def taken(*texts: str, limit: int = 8) -> list[str]:
    return [each.text for each in recall.bounded([Recollection(text=text) for text in texts], limit)]


def test_what_cannot_be_seen_is_not_taken() -> None:
    assert taken("a\x00b\x1b[31mc\r\n\u2028d\u202ee\ud800f", " \n\t", "") == ["a b [31mc de f"]
    # But what belongs to words and pictures is.
    assert taken("نمی\u200cخواهم 👩\u200d🚀") == ["نمی\u200cخواهم 👩\u200d🚀"]


def test_an_id_that_nobody_could_type_is_none() -> None:
    ids: list[Any] = ["m1", "viking://user/a", "a\x1b[2J", "a\nb", "x" * 201, 7, None]
    found = recall.bounded([Recollection(text=str(number), id=each) for number, each in enumerate(ids)], 8)
    assert [each.id for each in found] == ["m1", "viking://user/a", None, None, None, None, None]


def test_each_thing_is_taken_once_and_the_best_come_first() -> None:
    assert taken("Likes tea.", "Is 40.", "likes  TEA") == ["Likes tea.", "Is 40."]


def test_no_more_is_taken_than_was_asked_for_however_much_comes() -> None:
    def endless() -> Iterator[Recollection]:
        for number in count():
            yield Recollection(text=f"fact {number}", id=str(number))

    assert [each.id for each in recall.bounded(endless(), 3)] == ["0", "1", "2"]
    assert len(recall.bounded(endless(), 10_000)) == recall.RECALLED_MAX


def test_a_text_of_any_length_is_cut_and_all_together_are_bounded() -> None:
    (long,) = taken("x" * 10_000_000)
    assert long == "x" * (recall.RECALLED_EACH_MAX_CHARS - 1) + "…"
    many = taken(*(f"{number}{'y' * 10_000}" for number in range(50)), limit=50)
    assert len(many) == recall.RECALLED_MAX_CHARS // recall.RECALLED_EACH_MAX_CHARS


@pytest.mark.parametrize("garbage", [None, 7, "text", [None], ["text"], [{"text": "x"}], [Recollection(text=7)]])  # type: ignore[arg-type] - That is the point.
def test_what_is_no_recollection_is_an_error_and_not_a_memory(garbage: Any) -> None:
    with pytest.raises(TypeError):
        recall.bounded(garbage, 8)
