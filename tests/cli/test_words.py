"""What anybody may have written, as the commands show it and as they take it."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.cli.frame import visible
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


def test_choices_are_taken_as_they_are_written_everywhere_else(terminal: Terminal) -> None:
    assert terminal.read("ask", "count to 1", "--busy", "queue")["state"] == "completed"
    assert len(terminal.read("sessions", "list", "--state", "open")["items"]) == 1
    assert terminal.read("deliveries", "list", "--state", "pending")["items"] == []
    refused = terminal.type("sessions", "list", "--state", "OPEN")
    assert (refused.exit_code, "'open'" in refused.stderr) == (2, True)


def test_what_would_steer_a_terminal_is_shown_as_unreadable(terminal: Terminal) -> None:
    assert visible("a\x1b[2J\x00\r\x7f\x9b\tb\nc") == "a\ufffd[2J\ufffd\ufffd\ufffd\ufffd\tb\nc"
    raw = terminal.type("ask", "red \x1b[31m; count to 1")
    # Whoever reads a pipe gets what was said.
    assert "\x1b[31m" in raw.stdout
    shown = terminal.type("sessions", "show", "terminal").stdout
    assert "\x1b" not in shown
    assert "red \ufffd[31m" in shown
    assert "\x1b" not in terminal.type("sessions", "search", "red").stdout
