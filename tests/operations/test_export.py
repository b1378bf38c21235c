"""A conversation as people keep it."""

from __future__ import annotations

from dataclasses import replace

from holdfast.core.sessions import Glance, Session
from holdfast.core.transcript import Item, Role
from holdfast.ids import SessionId, TurnId
from holdfast.operations.conversation import SessionView, Transcript
from holdfast.operations.export import ExportFormat, file_name, markdown

SESSION = Session(
    id=SessionId("ses_1"), key="chat", channel="web", owner="local", one_shot=False, created_at=0, updated_at=0
)


def page(*items: Item) -> str:
    return markdown(Transcript(session=SessionView.of(Glance(session=SESSION), None), items=items, seq=0))


def item(role: Role, **facts: object) -> Item:
    return Item(role=role, turn_id=TurnId("trn_1"), at=0, **facts)  # type: ignore[arg-type]


def test_a_call_is_kept_with_what_it_was_about() -> None:
    """What a command printed says little without the command."""
    told = page(item(Role.TOOL, name="terminal", args={"command": "make test"}, outcome="ok", result="2 passed\n"))
    assert "- `terminal` make test (ok): 2 passed" in told


def test_what_was_asked_and_said_is_kept() -> None:
    told = page(item(Role.QUESTION, kind="asked", text="May I?"), item(Role.QUESTION, kind="answered", text="deny"))
    assert "**Asked:** May I?\n\n**Answered:** deny" in told


def test_a_summary_is_told_from_what_was_said() -> None:
    told = page(item(Role.NOTE, kind="compacted", text="They spoke of harbours.\nAnd ships."))
    assert "*Summary that the model reads instead of what is older: They spoke of harbours. And ships.*" in told


def test_a_file_is_called_as_its_conversation_is_known() -> None:
    for title, name in (
        (None, "chat.md"),
        ("../../Plan: A/B?", "B.md"),
        ("Größe & Gewicht", "Größe-Gewicht.md"),
        ("..", "ses_1.md"),
    ):
        view = SessionView.of(Glance(session=replace(SESSION, title=title)), None)
        assert file_name(view, ExportFormat.MARKDOWN) == name
