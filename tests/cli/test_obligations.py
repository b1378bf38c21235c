"""What waits, runs and is due, as a user sees it and decides about it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal import Terminal
from tests.cli.test_gateway import PATIENCE_S, serving

PNG = b"\x89PNG\r\n\x1a\n" + bytes(16)
DANGEROUS = "run: rm -rf ../elsewhere; count to 2"


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path / "home")


def fails(terminal: Terminal, *words: str, code: int = 2) -> str:
    """Run a command that must fail in one line, and return that."""
    done = terminal.type(*words)
    assert done.exit_code == code, done.output
    assert done.stderr.startswith("holdfast: ")
    assert "Traceback" not in done.stderr
    return done.stderr


def test_an_approval_is_waited_for_listed_and_given_for_the_session(terminal: Terminal) -> None:
    asked = terminal.run("ask", DANGEROUS)
    assert asked.returncode == 1
    assert "rm -rf ../elsewhere" in asked.stderr
    (open_,) = terminal.read("approvals", "list")["items"]
    assert open_["detail"]["command"] == "rm -rf ../elsewhere"
    assert f"holdfast approvals approve {open_['id']}" in asked.stderr
    shown = terminal.type("approvals", "list").stdout
    for word in ("rm -rf ../elsewhere", open_["id"], "holdfast approvals deny"):
        assert word in shown
    decided = terminal.read("approvals", "approve", open_["id"], "--for", "session")
    assert (decided["decision"], decided["turn"]["id"]) == ("session", open_["turn_id"])
    assert terminal.read("turns", "show", open_["turn_id"])["state"] == "completed"
    assert "has been answered" in fails(terminal, "approvals", "approve", open_["id"])
    # It is not asked again in this session, but in every other.
    assert terminal.read("ask", DANGEROUS)["state"] == "completed"
    other = terminal.type("ask", DANGEROUS, "--session", "other", "--json")
    assert other.exit_code == 1
    (grant,) = terminal.read("approvals", "grants")["items"]
    assert grant["session_id"] == open_["session_id"]
    assert grant["id"] in terminal.type("approvals", "grants").stdout
    assert terminal.read("approvals", "revoke", grant["id"])["id"] == grant["id"]
    assert "there is no grant" in fails(terminal, "approvals", "revoke", grant["id"])
    (waiting,) = terminal.read("approvals", "list", "--session", "other")["items"]
    denied = terminal.type("approvals", "deny", waiting["turn_id"])
    assert (denied.exit_code, "denied" in denied.stdout) == (0, True)
    items = terminal.read("sessions", "show", "other")["items"]
    assert any(item["role"] == "tool" and "denied" in (item["result"] or "") for item in items)
    assert terminal.type("approvals", "list").stdout == "Nothing waits for you.\n"


def test_a_question_is_not_approved_but_answered(terminal: Terminal) -> None:
    terminal.type("ask", "ask me which port; count to 1")
    (open_,) = terminal.read("approvals", "list")["items"]
    refused = fails(terminal, "approvals", "approve", open_["id"])
    assert f"holdfast turns answer {open_['turn_id']} TEXT" in refused
    assert "'always'" in terminal.type("approvals", "approve", open_["id"], "--for", "ever").stderr
    terminal.read("turns", "answer", open_["turn_id"], "Bergen")


def test_a_message_behind_a_question_says_so_and_how_that_is_answered(terminal: Terminal) -> None:
    """A2: nobody waits without being told what for."""
    terminal.type("ask", DANGEROUS)
    (open_,) = terminal.read("approvals", "list")["items"]
    behind = terminal.type("ask", "count to 3")
    assert (behind.exit_code, behind.stdout) == (1, "")
    assert "an earlier one waits for an answer" in behind.stderr
    assert f"holdfast approvals approve {open_['id']}" in behind.stderr
    told = json.loads(terminal.type("ask", "count to 4", "--json").stdout)
    assert (told["state"], told["text"], told["question"]["id"]) == ("queued", "", open_["id"])
    terminal.read("approvals", "deny", open_["id"])
    assert "1 2 3 4 5" in terminal.read("ask", "count to 5")["text"]
    states = [turn["state"] for turn in terminal.read("turns", "list", "terminal")["items"]]
    assert states == ["completed"] * 4


def test_a_question_that_an_earlier_turn_asks_meanwhile_is_told_as_well(terminal: Terminal) -> None:
    with serving(terminal):
        first = terminal.start("ask", f"wait 2 seconds; {DANGEROUS}")
        while not terminal.read("status")["running"]:
            pass
        behind = terminal.run("ask", "count to 3")
        assert (behind.returncode, behind.stdout) == (1, "")
        assert "an earlier one waits for an answer" in behind.stderr
        first.communicate(timeout=PATIENCE_S)


def test_what_a_helper_waits_for_is_told_beside_the_answer(terminal: Terminal) -> None:
    with serving(terminal):
        asking = terminal.start("ask", "delegate: run: rm -rf ../elsewhere")
        assert asking.stderr
        assert "waits for your word" in asking.stderr.readline()
        (open_,) = terminal.read("approvals", "list")["items"]
        terminal.read("approvals", "deny", open_["id"])
        said, _ = asking.communicate(timeout=PATIENCE_S)
        assert (asking.returncode, "waits for your word" in said) == (0, False)


def ended(terminal: Terminal, process_id: str) -> Any:
    deadline = time.monotonic() + PATIENCE_S
    while (process := terminal.read("processes", "show", process_id))["state"] == "running":
        assert time.monotonic() < deadline
    return process


def test_a_background_command_is_listed_read_and_ended(terminal: Terminal) -> None:
    assert terminal.run("processes", "list").returncode == 2
    terminal.home.mkdir(exist_ok=True)
    (terminal.home / "holdfast.toml").write_text('[tools.terminal]\napproval = "allow"\n')
    with serving(terminal):
        terminal.read("ask", "background: echo ready && sleep 600; count to 1")
        (process,) = terminal.read("processes", "list", "--state", "running")["items"]
        assert process["command"] == "echo ready && sleep 600"
        assert process["id"] in terminal.type("processes", "list", "--session", "terminal").stdout
        status = terminal.type("status").stdout
        assert "1 background process, 0 open questions" in status
        for word in ("model", "demonstration", "terminal", "sandbox"):
            assert word in status
        following = terminal.start("processes", "log", process["id"], "--follow")
        assert following.stdout.readline() == "ready\n"
        assert terminal.read("processes", "kill", process["id"])["state"] == "exited"
        assert following.communicate(timeout=PATIENCE_S) == ("", "")
        assert following.returncode == 0
        assert ended(terminal, process["id"])["exit_code"] != 0
        log = terminal.read("processes", "log", process["id"])
        assert (log["text"], log["begin"], log["end"]) == ("ready\n", 0, 6)
        assert terminal.type("processes", "log", process["id"], "--after", "2").stdout == "ady\n"
        for command in ("show", "log", "kill"):
            assert "there is no process" in fails(terminal, "processes", command, "prc_0")
        assert "leave out --json" in fails(terminal, "processes", "log", process["id"], "-f", "--json")
    # Looking is possible without a gateway, too.
    assert terminal.read("processes", "show", process["id"])["state"] == "exited"


def test_a_job_is_added_run_and_removed(terminal: Terminal) -> None:
    added = terminal.read("jobs", "add", "tides", "--schedule", "30 7 * * *", "--prompt", "count to 2")
    assert (added["name"], added["schedule"], added["paused"]) == ("tides", "30 7 * * *", False)
    assert "30 7 * * *" in terminal.type("jobs", "list").stdout
    ran = terminal.read("jobs", "run", "tides")
    assert terminal.read("turns", "show", ran["turn_id"])["state"] == "completed"
    job = terminal.read("jobs", "show", "tides")
    assert [(each["turn_id"], each["outcome"]) for each in job["slots"]] == [(ran["turn_id"], "ran")]
    assert ran["turn_id"] in terminal.type("jobs", "show", "tides").stdout
    assert terminal.type("jobs", "pause", "tides").stdout == "tides is paused.\n"
    assert terminal.read("jobs", "list")["items"][0]["next_at"] is None
    assert "due next" in terminal.type("jobs", "resume", "tides").stdout
    wrong = fails(terminal, "jobs", "add", "tides", "--schedule", "often", "--prompt", "x")
    assert '"30 7 * * 1-5"' in wrong
    terminal.read("jobs", "add", "once", "--schedule", "at 2031-05-04T09:30", "--prompt", "x")
    assert "2031-05-04" in terminal.type("jobs", "list").stdout
    assert "is in the past" in fails(terminal, "jobs", "add", "late", "--schedule", "at 2001-05-04T09:30", "--prompt", "x")
    terminal.read("jobs", "remove", "once")
    assert terminal.read("jobs", "remove", "tides") == {"removed": "tides"}
    for command in ("show", "run", "pause", "resume", "remove"):
        assert "there is no job 'tides'" in fails(terminal, "jobs", command, "tides")
    assert "holdfast jobs add" in terminal.type("jobs", "list").stdout


def test_what_is_remembered_is_shown_found_and_forgotten(terminal: Terminal) -> None:
    added = terminal.read("memory", "add", "likes the sea")
    assert "likes the sea" in terminal.type("memory", "show").stdout
    assert [each["id"] for each in terminal.read("memory", "search", "sea")["items"]] == [added["id"]]
    assert terminal.type("memory", "search", "hills").stdout == "Nothing of the kind is remembered.\n"
    assert terminal.read("memory", "forget", added["id"])["forgotten"] == 1
    assert "there is no memory" in fails(terminal, "memory", "forget", added["id"])


def test_a_picture_goes_along_with_a_question(terminal: Terminal, tmp_path: Path) -> None:
    picture = tmp_path / "without an ending"
    picture.write_bytes(PNG)
    assert terminal.read("ask", "what is this? count to 1", "--image", str(picture))["state"] == "completed"
    notes = tmp_path / "notes.png"
    notes.write_text("these are no pixels")
    assert "notes.png is not an image" in fails(terminal, "ask", "and this?", "--image", str(notes))
    with notes.open("wb") as file:
        file.truncate(6 * 1024 * 1024)
    assert "is too large" in fails(terminal, "ask", "and this?", "--image", str(notes))
    five = [word for _ in range(5) for word in ("--image", str(picture))]
    assert "4 images at most" in fails(terminal, "ask", "and these?", *five)
    assert terminal.type("ask", "and that?", "--image", str(tmp_path / "none")).exit_code == 2


def test_a_session_is_compacted_as_a_turn(terminal: Terminal) -> None:
    terminal.read("ask", "count to 1")
    compacted = terminal.read("sessions", "compact", "terminal")
    assert compacted["state"] == "completed"
    assert [each["id"] for each in terminal.read("turns", "list", "terminal")["items"]][-1] == compacted["id"]
    terminal.read("sessions", "end", "terminal")
    assert "cannot be compacted" in fails(terminal, "sessions", "compact", "terminal")
