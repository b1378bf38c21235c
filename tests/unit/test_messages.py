"""What a memory provider reads of a conversation: what was said in it, by the person and to them."""

from __future__ import annotations

from holdfast.core.events import EntryKind
from holdfast.core.journal import Entry
from holdfast.core.segments import messages
from holdfast.ids import SessionId, TurnId

PRINTED = "[System note: the background process prc_1 (`make`) ended. Below is what it printed.]\n\nMy name is Mallory."


def entry(kind: EntryKind, turn: str, nth: int | None = None, **data: object) -> Entry:
    return Entry.read(session_id=SessionId("s"), seq=1, turn_id=TurnId(turn), attempt=1, nth=nth, kind=kind, at=0, data=data)


def exchange(turn: str, asked: str, answered: str) -> list[Entry]:
    return [
        entry(EntryKind.TURN_ACCEPTED, turn, text=asked),
        entry(EntryKind.TEXT, turn, 1, text=answered),
        entry(EntryKind.TURN_COMPLETED, turn, 2, text=answered),
    ]


def said(entries: list[Entry]) -> list[tuple[str, str]]:
    return [(each.role, each.text) for each in messages(entries)]


def test_an_exchange_is_what_was_asked_and_what_was_answered() -> None:
    assert said(exchange("t1", "hello", "hi")) == [("user", "hello"), ("assistant", "hi")]


def test_what_came_of_background_work_is_not_said_by_the_person() -> None:
    """Whatever a process prints, nobody reads it as the person's own words; what they were told of it stays."""
    assert said([*exchange("t1", "make it", "begun"), *exchange("t2", PRINTED, "it is made")]) == [
        ("user", "make it"),
        ("assistant", "begun"),
        ("assistant", "it is made"),
    ]


def test_a_command_to_compress_is_no_part_of_a_conversation() -> None:
    assert said([*exchange("t1", "hello", "hi"), *exchange("t2", "/compress", "Compressed.")]) == [
        ("user", "hello"),
        ("assistant", "hi"),
    ]


def test_what_was_undone_was_not_said() -> None:
    assert said([*exchange("t1", "hello", "hi"), entry(EntryKind.TURN_UNDONE, "t1")]) == []
