"""The commands, as a user types them."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from typing import IO, Any

import pytest

from tests.cli.terminal import Terminal


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path / "home")


def read_until(stream: IO[Any], word: str) -> str:
    """Read what a process shows until a word appears in it."""
    shown = ""
    while word not in shown:
        piece = os.read(stream.fileno(), 4096).decode()
        assert piece, f"the process ended before it showed {word!r}: {shown!r}"
        shown += piece
    return shown


def test_ask_answers_on_stdout_and_tells_success(terminal: Terminal) -> None:
    done = terminal.run("ask", "hello there")
    assert done.returncode == 0, done.stderr
    assert "hello there" in done.stdout
    assert "demonstration agent" in done.stdout


def test_ask_prints_the_receipt_for_scripts(terminal: Terminal) -> None:
    receipt = terminal.read("ask", "hello; count to 1")
    assert receipt["state"] == "completed"
    assert receipt["accepted_at"] <= receipt["started_at"] <= receipt["answered_at"]
    assert "hello" in receipt["text"]
    assert terminal.read("turns", "show", receipt["id"])["session_id"] == receipt["session_id"]


def test_a_second_question_continues_the_conversation(terminal: Terminal) -> None:
    first, second = terminal.read("ask", "count to 1"), terminal.read("ask", "count to 2")
    assert first["session_id"] == second["session_id"]
    assert terminal.read("ask", "count to 3", "--session", "other")["session_id"] != first["session_id"]
    listed = terminal.read("sessions", "list")["items"]
    assert {(each["key"], each["turns"]) for each in listed} == {("terminal", 2), ("other", 1)}
    assert [each["id"] for each in terminal.read("turns", "list", "terminal")["items"]] == [first["id"], second["id"]]


def test_search_finds_messages_and_answers(terminal: Terminal) -> None:
    terminal.type("ask", "where is the lighthouse; count to 1")
    hits = terminal.read("sessions", "search", "LIGHTHOUSE")["items"]
    assert {hit["kind"] for hit in hits} == {"turn.accepted", "turn.completed"}
    assert terminal.read("sessions", "search", "nowhere")["items"] == []
    terminal.type("sessions", "rename", "terminal", "Zürich by train")
    assert len(terminal.read("sessions", "search", "lighth")["items"]) == len(hits)
    (title,) = terminal.read("sessions", "search", "zur", "tra")["items"]
    assert (title["kind"], title["text"], title["turn_id"]) == ("title", "Zürich by train", None)
    assert re.search(r"title +Zürich by train", terminal.type("sessions", "search", "zur").stdout)


def test_an_answer_cut_by_kill_9_is_still_there(terminal: Terminal) -> None:
    """J1: every word that was on the screen is in the transcript after the crash, and the marker says what happened."""
    with terminal.start("ask", "tell me everything") as process:
        shown = read_until(process.stdout, "journal")
        process.kill()
    assert process.returncode == -signal.SIGKILL
    # The next start recovers; until then nobody could have noticed.
    assert terminal.type("ask", "are you back? count to 1").exit_code == 0
    items = terminal.read("sessions", "show", "terminal")["items"]
    first = [item for item in items if item["turn_id"] == items[0]["turn_id"]]
    recovered = "".join(item["text"] for item in first if item["role"] == "assistant")
    assert recovered.startswith(shown)
    assert all(item["recovered"] for item in first if item["role"] in ("assistant", "reasoning", "tool"))
    assert (first[-1]["role"], first[-1]["kind"]) == ("marker", "interrupted")
    assert items[-1]["role"] == "assistant"


def test_chat_shows_what_was_said_before_and_answers(terminal: Terminal) -> None:
    terminal.type("ask", "remember the tide; count to 1")
    done = terminal.run("chat", stdin="and now? count to 1\n")
    assert done.returncode == 0, done.stderr
    assert "remember the tide" in done.stdout
    assert "You wrote: “and now? count to 1”" in done.stdout


def test_the_owner_of_the_home_is_named_to_a_second_one(terminal: Terminal) -> None:
    with terminal.start("chat") as owner:
        read_until(owner.stdout, "Ctrl-D")
        refused = terminal.run("ask", "me too")
        assert refused.returncode == 75
        assert str(owner.pid) in refused.stderr
        # Looking is always allowed.
        assert terminal.run("sessions", "list").returncode == 0
        owner.communicate("", timeout=30)
    assert owner.returncode == 0


@pytest.mark.parametrize(
    ("text", "where", "hint"),
    [
        ("[gateway]\nresum = 'auto'\n", ":2:", "did you mean resume?"),
        ("[gateway]\nresume = 'sometimes'\n", ":2:", "'on_message', 'auto'"),
        ("[gateway]\ndrain_timeout = -1\n", ":2:", "not negative"),
        ("[stor]\nurl = 'sqlite'\n", ":1:", "did you mean store?"),
        ("[store]\nurl = 7\n", ":2:", "text in quotes"),
        ("[sessions]\nretention_days = { webhook = 'x' }\n", ":2:", "not negative"),
        ("[sessions]\nretention_days = 7\n", ":2:", "must be a table"),
        ("[sessions]\nreset = 'weekly'\n", ":2:", "'daily'"),
        ("[sessions]\nreset_by_channel = { telegram = 'often' }\n", ":2:", "'idle'"),
        ("[sessions]\ndaily_at = '25:00'\n", ":2:", "a time of day"),
        ("[gateway]\non_crash = 'cry'\n", ":2:", "'suspend'"),
        ("[gateway\n", ":1:", "]"),
    ],
)
def test_a_wrong_configuration_is_refused_with_its_line(terminal: Terminal, text: str, where: str, hint: str) -> None:
    terminal.home.mkdir()
    (terminal.home / "holdfast.toml").write_text(text)
    done = terminal.type("sessions", "list")
    assert done.exit_code == 78
    assert f"holdfast.toml{where}" in done.stderr
    assert hint in done.stderr
    assert "Traceback" not in done.stderr


def test_a_wrong_variable_is_named(terminal: Terminal) -> None:
    done = terminal.run("sessions", "list", HOLDFAST_GATEWAY__RESUME="sometimes")
    assert done.returncode == 78
    assert "HOLDFAST_GATEWAY__RESUME" in done.stderr


def test_a_store_that_is_none_is_refused_and_left_alone(terminal: Terminal) -> None:
    terminal.home.mkdir()
    (terminal.home / "holdfast.db").write_text("these are my notes, not a database\n" * 50)
    done = terminal.run("ask", "hello")
    assert done.returncode == 78
    assert "not a Holdfast store" in done.stderr
    assert (terminal.home / "holdfast.db").read_text().startswith("these are my notes")


def test_postgres_that_does_not_answer_is_unavailable(terminal: Terminal) -> None:
    done = terminal.run("ask", "hello", HOLDFAST_STORE__URL="postgresql://nobody@127.0.0.1:9/none")
    assert done.returncode == 69
    assert "does not answer" in done.stderr
    assert "holdfast: postgresql://127.0.0.1:9/none: " in done.stderr


def test_nothing_there_yet_is_said_with_what_to_do(terminal: Terminal) -> None:
    done = terminal.run("sessions", "list")
    assert done.returncode == 2
    assert "holdfast ask hello" in done.stderr


def test_the_drill_finds_every_promise_kept(terminal: Terminal) -> None:
    """A1 A2 A3 J1 D1 X1: ten kills of a real process at random moments."""
    verdict = terminal.read("drill", "--kills", "10")
    assert verdict["violations"] == []
    assert verdict["accepted"] > 0
    assert verdict["completed"] + verdict["given_up"] == verdict["accepted"]
    assert verdict["shown"] > verdict["accepted"]


def test_the_drill_goes_through_a_channel_of_people(terminal: Terminal) -> None:
    """A1 D1 D2 D3: each message is answered once in its own chat, or labelled."""
    verdict = terminal.read("drill", "--channel", "telegram", "--kills", "1")
    assert verdict["violations"] == []
    assert (verdict["channel"], verdict["kills"]) == ("telegram", 1)
    assert verdict["answered"] + verdict["joined"] + verdict["given_up"] == verdict["written"] > 0


def test_a_list_of_sessions_has_room_for_what_is_there(terminal: Terminal) -> None:
    terminal.read("ask", "count to 1", "--session", "a-key-that-some-program-has-made-up-for-itself")
    plain = terminal.run("sessions", "list", COLUMNS="80").stdout
    assert "title" not in plain
    assert "made-up" not in plain
    terminal.read("sessions", "rename", "a-key-that-some-program-has-made-up-for-itself", "Tides")
    titled = terminal.run("sessions", "list").stdout
    assert "title" in titled
    assert "Tides" in titled
