"""How the parts of an answer look in a terminal."""

from __future__ import annotations

import pytest

from holdfast.cli import cards
from holdfast.core.events import ApprovalAsked, EntryKind
from holdfast.core.journal import Entry
from holdfast.core.questions import APPROVAL_CHOICES, About
from holdfast.core.usage import Usage
from holdfast.ids import SessionId, TurnId
from holdfast.operations.approvals import ApprovalView

TURN = TurnId("trn_01m7hdmextfc9mxh41341dg5f4")


def asked(**data: object) -> ApprovalView:
    place = {"session_id": SessionId("ses_1"), "seq": 1, "turn_id": TURN, "attempt": 1, "nth": 1, "at": 1}
    entry = Entry.read(**place, kind=EntryKind.APPROVAL_ASKED, data={"question_id": "q", "text": "Which way?", **data})
    assert isinstance(entry.event, ApprovalAsked)
    return cards.asked(entry, entry.event)


def test_a_call_is_one_line_with_what_matters() -> None:
    line = cards.card("terminal", {"timeout": 5, "command": "make  test\nmake lint"}, "ok", "all\ngreen", 1234)
    assert line.plain == "✓ terminal  make test make lint  1.2 s  → all green"
    assert cards.card("wait", {"seconds": 3}, "error", None).plain == "✗ wait  3"
    assert cards.card("wait", None, "unknown", "").plain == "? wait  "
    assert cards.card("todo", {"items": ["a", "b"], "done": True}, None, None).plain == "· todo  a, b"
    narrow = cards.card("terminal", {"command": "x" * 200}, "ok", "y" * 200, 5, width=60)
    assert (narrow.cell_len, "y" in narrow.plain) == (60, False)


def test_nothing_in_a_card_steers_the_terminal() -> None:
    line = cards.card("t\x1b[2J", {"command": "a\x1b]0;b"}, "ok", "c\x07")
    assert "\x1b" not in line.plain
    assert "\x07" not in line.plain
    shown = cards.question(asked(text="a\x1b[2J", detail={"command": "b\x1b[2J"}, choices=["c\x1b[2J"])).plain
    assert "\x1b" not in shown


@pytest.mark.parametrize(("took", "said"), [(3, "3 ms"), (949, "949 ms"), (950, "0.9 s"), (61_000, "1 min 1 s")])
def test_times_are_as_long_as_people_say(took: int, said: str) -> None:
    assert cards.duration(took) == said


def test_what_was_used_is_said_with_its_price_where_that_is_known() -> None:
    used = Usage(model="openai:gpt-5", input_tokens=12_345, output_tokens=678, cached_tokens=500, cost_micros=22_200)
    assert cards.usage(used).plain == "openai:gpt-5 · 12.3k in (500 cached), 678 out · $0.0222"
    assert cards.usage(Usage(input_tokens=1, output_tokens=2)).plain == "1 in, 2 out"
    assert cards.usage(Usage(input_tokens=1, output_tokens=2, cost_micros=7)).plain == "1 in, 2 out · under $0.0001"


def test_an_approval_shows_its_command_once_and_how_it_is_answered() -> None:
    detail = {"command": "rm -rf build", "workdir": "/work", "reasons": ["deletes", "forces"], "background": False}
    question = asked(about="approval", text="May I run this?", choices=list(APPROVAL_CHOICES), detail=detail)
    assert question.about is About.APPROVAL
    assert cards.question(question).plain == (
        "! May I run this?\n  command: rm -rf build\n  workdir: /work\n  reasons: deletes, forces"
    )
    again = asked(about="approval", text="May I run rm -rf build?", detail={"command": "rm -rf build"})
    assert cards.question(again).plain == "! May I run rm -rf build?"
    assert cards.how_to_answer(question) == (
        f"answer with `holdfast approvals approve {question.id}` or `holdfast approvals deny {question.id}`"
    )
    assert cards.choices(question) == "[o]nce  [s]ession  [a]lways  [d]eny"
    typed = ["o", "S", " a ", "d", "n", "yes", "not that folder"]
    assert [cards.reply(question, each) for each in typed] == [
        "once",
        "session",
        "always",
        "deny",
        "deny",
        "yes",
        "not that folder",
    ]


def test_a_spent_budget_is_allowed_again_in_its_own_words() -> None:
    question = asked(about="budget", text="Go on with as much again?", choices=["continue", "stop"])
    assert cards.choices(question) == "[c]ontinue  [s]top"
    assert [cards.reply(question, each) for each in ("c", "s", "y", "n", "continue", "why?")] == [
        "continue",
        "stop",
        "continue",
        "stop",
        "continue",
        "why?",
    ]
    assert (cards.decided(question, yes=True), cards.decided(question, yes=False)) == ("continue", "stop")


def test_a_question_is_answered_with_a_number_or_in_words() -> None:
    question = asked(choices=["north", "south"])
    assert cards.question(question).plain == "? Which way?\n  1  north\n  2  south"
    assert [cards.reply(question, each) for each in ("2", "3", "0", "up", "o")] == ["south", "3", "0", "up", "o"]
    assert cards.reply(asked(), "2") == "2"
    assert cards.how_to_answer(question) == f"answer with `holdfast turns answer {TURN} TEXT`"


def test_an_entry_of_an_older_journal_is_a_plain_question() -> None:
    old = asked()
    assert (old.about, old.choices, old.detail, old.expires_at) == (About.ANSWER, (), {}, None)
