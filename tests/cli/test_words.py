"""What anybody may have written, as the commands show it and as they take it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console

from holdfast.cli.answer import outcome
from holdfast.cli.bar import bar
from holdfast.cli.control import print_status
from holdfast.cli.frame import print_json, visible
from holdfast.core.turns import TurnState
from holdfast.ids import NodeId, SessionId, TurnId
from holdfast.operations.gateway import Phase, Status
from holdfast.operations.turns import TurnView
from tests.cli.terminal import Terminal


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path / "home")


def test_brackets_are_text_and_no_markup(terminal: Terminal) -> None:
    terminal.read("ask", "count to 1", "--session", "[/b]:key:")
    terminal.read("sessions", "rename", "[/b]:key:", "[/x]:key:")
    listed = terminal.type("sessions", "list")
    assert listed.exit_code == 0, listed.output
    assert "[/b]:key:" in listed.stdout
    assert "[/x]:key:" in listed.stdout
    assert "[/b]:key:" in terminal.type("chat", "--session", "[/b]:key:").stdout
    assert terminal.type("sessions", "show", "[/b]:key:").exit_code == 0


def test_what_is_remembered_is_text_and_no_markup(terminal: Terminal) -> None:
    terminal.read("memory", "add", "[bold]likes[/bold] [/] :tea:")
    for words in (("memory", "show"), ("memory", "search", "likes"), ("memory", "show", "--markdown")):
        assert "[bold]likes[/bold] [/] :tea:" in terminal.type(*words).stdout


def test_json_steers_no_terminal_and_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"text": "a\x1b[2J\x9b\x7f\u202eb\nc"})
    shown = capsys.readouterr().out
    assert not set(shown) & set("\x1b\x9b\x7f\u202e")
    assert json.loads(shown) == {"text": "a\x1b[2J\x9b\x7f\u202eb\nc"}


def test_a_bar_says_what_it_is_about_as_it_is() -> None:
    told = "replaying into http:http://[fd00::1]:9300/[/]"
    with bar(quiet=False) as progress:
        progress.add_task(told, total=1)
        console = Console(width=120)
        with console.capture() as shown:
            console.print(progress.get_renderable())
    assert told in shown.get()


def test_choices_are_taken_as_they_are_written_everywhere_else(terminal: Terminal) -> None:
    assert terminal.read("ask", "count to 1", "--busy", "queue")["state"] == "completed"
    assert len(terminal.read("sessions", "list", "--state", "open")["items"]) == 1
    assert terminal.read("deliveries", "list", "--state", "pending")["items"] == []
    refused = terminal.type("sessions", "list", "--state", "OPEN")
    assert (refused.exit_code, "'open'" in refused.stderr) == (2, True)


def test_what_would_steer_a_terminal_is_shown_as_unreadable(terminal: Terminal) -> None:
    assert visible("a\x1b[2J\x00\r\x7f\x9b\tb\nc") == "a\ufffd[2J\ufffd\ufffd\ufffd\ufffd\tb\nc"
    # Nor does anything read otherwise than it is; what belongs to a script stays.
    assert visible("a\u202eb\u2066c \u200fשלום") == "a\ufffdb\ufffdc \u200fשלום"
    raw = terminal.type("ask", "red \x1b[31m; count to 1")
    # Whoever reads a pipe gets what was said.
    assert "\x1b[31m" in raw.stdout
    shown = terminal.type("sessions", "show", "terminal").stdout
    assert "\x1b" not in shown
    assert "red \ufffd[31m" in shown
    assert "\x1b" not in terminal.type("sessions", "search", "red").stdout


def test_a_session_is_named_by_its_id_too_and_never_made_with_such_a_key(terminal: Terminal) -> None:
    first = terminal.read("ask", "count to 1", "--session", "tides")
    assert terminal.read("ask", "count to 1", "--session", first["session_id"])["session_id"] == first["session_id"]
    assert "session tides" not in terminal.type("chat", "--session", first["session_id"]).stdout
    for command in (("ask", "hello", "--session", "ses_nobody"), ("chat", "--session", "ses_nobody")):
        refused = terminal.type(*command)
        assert (refused.exit_code, "no session ses_nobody" in refused.stderr) == (2, True)
    assert [each["key"] for each in terminal.read("sessions", "list")["items"]] == ["tides"]
    assert terminal.read("sessions", "show", first["session_id"])["session"]["key"] == "tides"


def test_a_question_says_how_it_is_answered(terminal: Terminal) -> None:
    asked = terminal.type("ask", "ask me which port")
    assert asked.exit_code == 1
    (turn,) = terminal.read("turns", "list", "terminal")["items"]
    assert turn["state"] == "waiting"
    assert "which port" in asked.stderr
    assert f"holdfast turns answer {turn['id']} TEXT" in asked.stderr
    assert terminal.read("turns", "answer", turn["id"], "Bergen")["id"] == turn["id"]
    assert "Bergen" in terminal.type("sessions", "show", "terminal").stdout


def test_an_answer_that_was_cut_off_says_how_to_go_on() -> None:
    cut = TurnView(
        id=TurnId("trn_1"),
        session_id=SessionId("ses_1"),
        state=TurnState.INTERRUPTED,
        cause="restart_timeout",
        attempt=1,
        accepted_at=1,
        started_at=2,
        answered_at=None,
        delivered_at=None,
        error=None,
    )
    said = outcome(cut, None)
    assert said == "the answer was cut off (restart_timeout); go on with `holdfast turns retry trn_1`"


def test_chat_takes_the_next_line_for_the_question_that_is_still_open(terminal: Terminal) -> None:
    terminal.type("ask", "ask me which port; count to 2")
    (turn,) = terminal.read("turns", "list", "terminal")["items"]
    left = terminal.run("chat", stdin="")
    assert "? which port" in left.stdout
    assert terminal.read("turns", "show", turn["id"])["state"] == "waiting"
    talked = terminal.run("chat", stdin="\nBergen\n")
    assert talked.returncode == 0, talked.stderr
    assert talked.stdout.count("? which port") == 1
    assert [each["id"] for each in terminal.read("turns", "list", "terminal")["items"]] == [turn["id"]]
    assert terminal.read("turns", "show", turn["id"])["state"] == "completed"


def test_what_the_store_could_not_be_asked_is_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    glance = Status(
        pid=1,
        node=NodeId("nod_1"),
        version="1",
        home="/[/home]",
        url="http://[::1]:8420",
        store="postgresql://h/x",
        state=Phase.READY,
        ready=False,
        started_at=0,
        uptime_s=1,
        running=0,
        problem="PostgreSQL [/gone] does not answer",
    )
    print_status(glance)
    shown = capsys.readouterr().out
    assert "Holdfast 1: PostgreSQL [/gone] does not answer\n" in shown
    assert shown.count("unknown") == 2
    assert "accepted" not in shown
    assert "/[/home]" in shown
    assert "http://[::1]:8420" in shown


def test_lists_show_the_newest_and_say_what_they_leave_out(terminal: Terminal) -> None:
    turns = [terminal.read("ask", "count to 1")["id"] for _ in range(3)]
    shown = terminal.type("turns", "list", "terminal", "--limit", "2").stdout
    assert turns[0] not in shown
    assert shown.index(turns[1]) < shown.index(turns[2])
    assert "1 earlier turn not shown" in shown
    assert "shown" not in terminal.type("turns", "list", "terminal", "--limit", "3").stdout
    first = terminal.type("turns", "list", "terminal", "--limit", "1", "--cursor", "0~").stdout
    assert (turns[0] in first, turns[1] in first, "There are more" in first) == (True, False, True)
    terminal.read("ask", "count to 1", "--session", "other")
    listed = terminal.type("sessions", "list", "--limit", "1").stdout
    assert "There are more; go on with --cursor " in listed
    assert "more" not in terminal.type("sessions", "list", "--limit", "2").stdout
