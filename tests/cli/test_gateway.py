"""The gateway as a process of its own, and the commands that talk to it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from holdfast.core.notes import RESTART_BANNER
from holdfast.home_files import SOCKET
from tests.cli.terminal import Terminal
from tests.cli.test_commands import read_until

PATIENCE_S = 30
WAITING = "waiting for the gateway…"
# The terminal becomes the one that sends Ctrl-C and its own end to the process.
ON_ITS_OWN_SCREEN = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


class Gateway:
    """A `holdfast serve` that has said where it listens."""

    def __init__(self, terminal: Terminal, process: subprocess.Popen[str]) -> None:
        self.terminal = terminal
        self.process = process
        self.shown = read_until(process.stdout, "Ctrl-C stops")
        found = re.search(r"http://\S+", self.shown)
        assert found
        self.url = found[0]

    def until(self, word: str) -> str:
        return read_until(self.process.stdout, word)

    def end(self, *signals: int) -> int:
        for each in signals:
            self.process.send_signal(each)
        return self.process.wait(PATIENCE_S)

    def start_turn(self, text: str, key: str = "terminal") -> str:
        """Send a message and return its turn once it runs."""
        with httpx2.Client(base_url=self.url) as web:
            session = web.post("/api/sessions", json={"key": key, "channel": "terminal"}).json()
            receipt = web.post(f"/api/sessions/{session['id']}/messages", json={"text": text}).json()
            deadline = time.monotonic() + PATIENCE_S
            while web.get(f"/api/turns/{receipt['turn_id']}").json()["state"] != "running":
                assert time.monotonic() < deadline
        return receipt["turn_id"]


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path / "home")


@contextlib.contextmanager
def serving(terminal: Terminal, *options: str, **variables: str) -> Iterator[Gateway]:
    with terminal.start("serve", "--no-open", "--port", "0", *options, **variables) as process:
        try:
            yield Gateway(terminal, process)
        finally:
            if process.poll() is None:
                process.kill()
                process.communicate()


@contextlib.contextmanager
def on_a_screen(
    terminal: Terminal, *words: str, hangs_up: bool = True
) -> Iterator[tuple[subprocess.Popen[bytes], io.FileIO]]:
    """Run a command on a terminal of its own; what is written to the screen is typed."""
    ours, theirs = os.openpty()
    words = ("-m", "holdfast", *words)
    command = [sys.executable, "-c", ON_ITS_OWN_SCREEN, *words] if hangs_up else [sys.executable, *words]
    with terminal.signals():
        process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=terminal.environment(), start_new_session=True
        )
    os.close(theirs)
    with io.FileIO(ours, "r+") as screen, process:
        try:
            yield process, screen
        finally:
            process.kill()


@pytest.mark.parametrize("word", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_gateway_in_peace(terminal: Terminal, word: signal.Signals) -> None:
    lock = terminal.home / "gateway.lock"
    with serving(terminal) as gateway:
        assert lock.read_text().strip() == str(gateway.process.pid)
        assert lock.stat().st_mode & 0o777 == 0o600
        assert gateway.end(word) == 0
        assert "nothing was interrupted" in gateway.process.stdout.read()
    assert not (terminal.home / "gateway.sock").exists()
    assert lock.read_text() == ""


def test_a_turn_may_finish_before_the_gateway_ends(terminal: Terminal) -> None:
    """R3"""
    with serving(terminal) as gateway:
        turn_id = gateway.start_turn("wait 1 seconds")
        assert gateway.end(signal.SIGTERM) == 0
        assert "1 turn still running" in gateway.process.stdout.read()
    assert terminal.read("turns", "show", turn_id)["state"] == "completed"


def test_a_second_signal_interrupts_what_still_runs(terminal: Terminal) -> None:
    """R4: the cause is recorded, and the next start finds the conversation resume pending (R5)."""
    with serving(terminal) as gateway:
        turn_id = gateway.start_turn("wait 60 seconds")
        gateway.process.send_signal(signal.SIGINT)
        gateway.until("still running")
        assert ": stopping, 1 turn still running" in terminal.type("status").stdout
        assert gateway.end(signal.SIGINT) == 0
    turn = terminal.read("turns", "show", turn_id)
    assert (turn["state"], turn["cause"]) == ("interrupted", "shutdown_timeout")
    session = terminal.read("sessions", "show", "terminal")["session"]
    assert (session["resume_pending"], session["resume_reason"]) == (True, "shutdown_timeout")


def test_status_shows_a_running_gateway_and_nothing_else_is_69(terminal: Terminal) -> None:
    nobody = terminal.run("status")
    assert (nobody.returncode, "no gateway runs" in nobody.stderr) == (69, True)
    assert terminal.type("stop").exit_code == 69
    assert terminal.type("restart").exit_code == 69
    with serving(terminal) as gateway:
        status = terminal.read("status")
        assert (status["pid"], status["url"]) == (gateway.process.pid, gateway.url)
        assert (status["ready"], status["accepted"], status["home"]) == (True, 0, str(terminal.home))
        shown = terminal.type("status").stdout
        counts = ("0 accepted = 0 settled + 0 in flight", "0 answers, 0 deliveries", "memory    0 waiting")
        for word in (gateway.url, str(gateway.process.pid), "ready", *counts):
            assert word in shown
        second = terminal.run("serve", "--port", "0")
        assert (second.returncode, str(gateway.process.pid) in second.stderr) == (75, True)
        assert terminal.read("status")["node"] == status["node"]
        for wrong in (("stop", "--timeout", "nan"), ("restart", "--timeout", "1e306"), ("sessions", "list", "--limit", "0")):
            assert terminal.type(*wrong).exit_code == 2, wrong
        gateway.process.kill()
        gateway.process.wait()
        # What a killed gateway leaves behind does not look like one.
        assert terminal.type("status").exit_code == 69


def test_stop_returns_when_the_home_is_free_again(terminal: Terminal) -> None:
    with serving(terminal) as gateway:
        gateway.start_turn("wait 1 seconds")
        stopped = terminal.run("stop")
        assert (stopped.returncode, stopped.stderr) == (0, "")
        assert f"pid {gateway.process.pid}" in stopped.stdout
        assert gateway.process.wait(PATIENCE_S) == 0
        with serving(terminal) as another:
            assert another.process.pid != gateway.process.pid


def test_restart_keeps_the_process_and_says_when_it_is_back(terminal: Terminal) -> None:
    """R4: what the drain had no time for is interrupted by a restart, not by a crash."""
    with serving(terminal) as gateway:
        before = terminal.read("status")
        turn_id = gateway.start_turn("wait 60 seconds")
        restarted = terminal.run("restart", "--timeout", "0.2")
        assert (restarted.returncode, restarted.stderr) == (0, "")
        after = terminal.read("status")
        assert (after["pid"], after["url"], after["ready"]) == (before["pid"], before["url"], True)
        assert after["node"] != before["node"]
        turn = terminal.read("turns", "show", turn_id)
        assert (turn["state"], turn["cause"]) == ("interrupted", "restart_timeout")
        assert gateway.end(signal.SIGTERM) == 0


@pytest.mark.parametrize("listener", ["tcp", "unix"])
def test_no_client_that_connects_during_a_restart_is_refused(terminal: Terminal, listener: str) -> None:
    """Both listeners stay open from one process to the next: a client waits a moment, and gets its answer.

    One that was let in by the old process in its very last moment may see its connection closed, never refused.
    """
    with serving(terminal) as gateway:
        restarting = terminal.start("restart")
        nodes: set[str] = set()
        while len(nodes) < 2:
            uds = str(terminal.home / SOCKET) if listener == "unix" else None
            with (
                contextlib.suppress(httpx2.ReadError, httpx2.RemoteProtocolError),
                httpx2.Client(transport=httpx2.HTTPTransport(uds=uds, verify=False), timeout=PATIENCE_S) as client,
            ):
                nodes.add(client.get(f"{gateway.url}/health").json()["node"])
        assert restarting.wait(PATIENCE_S) == 0
        restarting.communicate()
        assert gateway.end(signal.SIGTERM) == 0


def test_nobody_takes_the_home_while_its_gateway_restarts(terminal: Terminal) -> None:
    """The lock goes from one process to the next; a command that comes in between waits for the gateway."""
    with serving(terminal) as gateway:
        restarting = terminal.start("restart")
        asks = 0
        while restarting.poll() is None:
            asks += 1
            asked = terminal.type("ask", f"are you there; count to {asks}")
            # One that was being answered is told that the gateway restarts.
            assert (asked.exit_code, asked.stderr.strip()) in ((0, ""), (0, RESTART_BANNER), (0, WAITING))
        restarting.communicate()
        assert restarting.returncode == 0
        status = terminal.read("status")
        assert (status["pid"], status["accepted"]) == (gateway.process.pid, asks)


def test_a_port_that_is_taken_is_a_matter_of_configuration(terminal: Terminal) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = terminal.run("serve", "--port", str(taken.getsockname()[1]))
    assert done.returncode == 78
    assert "server.port" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_open_door_needs_a_key(terminal: Terminal) -> None:
    """K1: the key is in no status and no transcript, even when somebody types it."""
    done = terminal.type("serve", "--host", "0.0.0.0", "--port", "0")
    assert (done.exit_code, "server.api_key" in done.stderr) == (78, True)
    key = "sk-a-secret-that-nobody-may-see"
    with serving(terminal, "--host", "0.0.0.0", HOLDFAST_SERVER__API_KEY=key) as gateway:
        port = gateway.url.rpartition(":")[2]
        assert httpx2.get(f"http://127.0.0.1:{port}/api/status").status_code == 401
        assert terminal.read("status")["ready"]
        terminal.type("ask", f"my key is {key}; count to 1")
        everything: list[Any] = [terminal.read("status"), terminal.read("sessions", "show", "terminal")]
    assert key not in json.dumps(everything)


def test_commands_go_through_the_running_gateway(terminal: Terminal) -> None:
    with serving(terminal):
        receipt = terminal.read("ask", "where is the lighthouse; count to 1")
        assert (receipt["state"], "lighthouse" in receipt["text"]) == ("completed", True)
        # What some count as the end of a line, and a stream of events must not.
        text = "by\u2028the\u2029sea\x85and back"
        asked = terminal.run("ask", f"{text}; count to 1")
        assert (asked.returncode, text in asked.stdout) == (0, True), asked.stderr
        session_id = receipt["session_id"]
        assert [each["id"] for each in terminal.read("sessions", "list")["items"]] == [session_id]
        assert terminal.read("turns", "show", receipt["id"])["state"] == "completed"
        assert len(terminal.read("turns", "list", "terminal")["items"]) == 2
        assert len(terminal.read("sessions", "search", "lighthouse")["items"]) >= 2
        assert terminal.read("deliveries", "list")["items"] == []
        fork = terminal.read("sessions", "fork", "terminal")
        assert fork["parent_id"] == session_id
        assert terminal.read("sessions", "rename", fork["id"], "A copy")["title"] == "A copy"
        assert terminal.read("sessions", "suspend", fork["id"])["state"] == "suspended"
        assert terminal.read("sessions", "end", "terminal")["state"] == "ended"
        # A session stays until what was said in it is remembered.
        terminal.read("memory", "commit", session_id)
        pruned = terminal.read("sessions", "prune", "--channel", "terminal", "--older-than-days", "0")
        assert pruned == {"pruned": 1}
        for words in (("turns", "show", "trn_0"), ("turns", "cancel", "trn_0"), ("sessions", "show", "nobody")):
            missing = terminal.type(*words)
            assert (missing.exit_code, "there is no" in missing.stderr) == (2, True)


def test_commands_work_the_same_with_no_gateway(terminal: Terminal) -> None:
    receipt = terminal.read("ask", "count to 3")
    fork = terminal.read("sessions", "fork", "terminal", "--through", receipt["id"])
    assert (fork["turns"], fork["parent_id"]) == (1, receipt["session_id"])
    again = terminal.read("turns", "retry", receipt["id"])
    assert again["id"] != receipt["id"]
    assert terminal.type("turns", "cancel", receipt["id"]).exit_code == 2
    assert terminal.read("sessions", "end", "terminal")["state"] == "ended"
    # A key is still a name for the last session that it had.
    assert terminal.read("sessions", "show", "terminal")["session"]["state"] == "ended"
    terminal.read("sessions", "delete", fork["id"])
    assert terminal.type("sessions", "show", fork["id"]).exit_code == 2


def test_a_conversation_is_exported_for_people_and_for_programs(terminal: Terminal, tmp_path: Path) -> None:
    terminal.type("ask", "keep this: count to 1")
    page = terminal.type("sessions", "export", "terminal").stdout
    assert page.startswith("# keep this: count to 1\n")
    assert "\n> keep this: count to 1\n" in page
    # A page that is kept is read on another day.
    when = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
    assert re.search(rf"begun {when}\.\n\n## {when}\n", page)
    file = tmp_path / "out.json"
    assert terminal.type("sessions", "export", "terminal", "--format", "json", "--output", str(file)).exit_code == 0
    assert json.loads(file.read_text())["items"][0]["text"] == "keep this: count to 1"


def test_chat_goes_on_while_the_gateway_restarts(terminal: Terminal) -> None:
    """J8: what was shown stays, what is missing comes after the restart, and the next message is answered."""
    with serving(terminal) as gateway, terminal.start("chat") as chat:
        read_until(chat.stdout, "›")
        chat.stdin.write("count to 40 slowly\n")
        chat.stdin.flush()
        shown = read_until(chat.stdout, " 5")
        assert terminal.type("restart", "--timeout", "0").exit_code == 0
        shown += read_until(chat.stdout, "›")
        assert "restart" in shown
        chat.stdin.write("are you back? count to 1\n")
        chat.stdin.flush()
        assert "are you back?" in read_until(chat.stdout, "are you back?")
        chat.communicate("", timeout=PATIENCE_S)
        assert chat.returncode == 0
        assert gateway.end(signal.SIGTERM) == 0


def test_a_service_manager_is_told_everything(terminal: Terminal, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(PATIENCE_S)
        news: list[str] = []

        def hear(word: str) -> None:
            while not any(word in each for each in news):
                news.append(manager.recv(4096).decode())

        with serving(terminal, NOTIFY_SOCKET=str(tmp_path / "notify"), WATCHDOG_USEC="200000") as gateway:
            hear("READY=1")
            hear("WATCHDOG=1")
            gateway.process.send_signal(signal.SIGTERM)
            hear("STOPPING=1")
            assert gateway.process.wait(PATIENCE_S) == 0


def test_a_gateway_that_was_stopped_for_a_while_just_goes_on(terminal: Terminal) -> None:
    """The watchdog slept as long as the loop did, and takes nobody's silence for a stall."""
    with serving(terminal, HOLDFAST_GATEWAY__STALL_TIMEOUT="0.4") as gateway:
        before = terminal.read("status")["node"]
        gateway.process.send_signal(signal.SIGSTOP)
        time.sleep(1.5)
        gateway.process.send_signal(signal.SIGCONT)
        assert terminal.read("ask", "count to 1")["state"] == "completed"
        assert terminal.read("status")["node"] == before


def test_ctrl_c_cancels_what_was_asked(terminal: Terminal) -> None:
    """J9: it is the user's wish and no crash, so it is no strike, whoever runs the turn."""

    def interrupt() -> Any:
        with terminal.start("ask", "count to 500 slowly") as asking:
            read_until(asking.stdout, " 2 ")
            asking.send_signal(signal.SIGINT)
            asking.communicate(timeout=PATIENCE_S)
        assert asking.returncode == 1
        found = terminal.read("sessions", "show", "terminal")
        assert not found["session"]["resume_pending"]
        return terminal.read("turns", "show", found["items"][-1]["turn_id"])

    alone = interrupt()
    with serving(terminal):
        guest = interrupt()
    for turn in (alone, guest):
        assert (turn["state"], turn["cause"]) == ("cancelled", "user")
    assert guest["session_id"] == alone["session_id"]


def test_ctrl_c_at_the_prompt_of_a_chat_leaves_it(terminal: Terminal) -> None:
    with on_a_screen(terminal, "chat") as (chat, screen):
        read_until(screen, "›")
        screen.write(b"\x03")
        assert chat.wait(PATIENCE_S) == 1
    assert terminal.type("ask", "count to 1").exit_code == 0


def test_a_chat_stops_and_answers_the_turn_that_its_message_joined(terminal: Terminal) -> None:
    with serving(terminal, HOLDFAST_GATEWAY__BUSY="steer") as gateway, terminal.start("chat") as chat:
        read_until(chat.stdout, "›")
        asking = gateway.start_turn("count to 15 slowly; ask me which tide")
        chat.stdin.write("mind the tide\n")
        chat.stdin.flush()
        read_until(chat.stdout, "? which tide")
        chat.stdin.write("the spring tide\n")
        chat.stdin.flush()
        # The prompt may come with the same piece.
        if "›" not in read_until(chat.stdout, "You answered: “the spring tide”").rpartition("tide”")[2]:
            read_until(chat.stdout, "›")
        assert terminal.read("turns", "show", asking)["state"] == "completed"
        counting = gateway.start_turn("count to 900 slowly")
        chat.stdin.write("mind the tide\n")
        chat.stdin.flush()
        read_until(chat.stdout, "I noticed")
        chat.send_signal(signal.SIGINT)
        read_until(chat.stdout, "›")
        turn = terminal.read("turns", "show", counting)
        assert (turn["state"], turn["cause"]) == ("cancelled", "user")
        chat.communicate("", timeout=PATIENCE_S)
        assert chat.returncode == 0


def test_a_gateway_whose_terminal_is_gone_restarts_and_stops_all_the_same(terminal: Terminal) -> None:
    with on_a_screen(terminal, "serve", "--no-open", "--port", "0") as (gateway, screen):
        read_until(screen, "Ctrl-C stops")
        before = terminal.read("status")["node"]
        # The kernel says so with a SIGHUP, which is taken as a stop, unless nobody passes it on.
        screen.close()
        assert gateway.wait(PATIENCE_S) == 0
    with on_a_screen(terminal, "serve", "--no-open", "--port", "0", hangs_up=False) as (gateway, screen):
        read_until(screen, "Ctrl-C stops")
        screen.close()
        assert terminal.type("restart").exit_code == 0
        assert terminal.read("status")["node"] != before
        gateway.send_signal(signal.SIGTERM)
        assert gateway.wait(PATIENCE_S) == 0


def test_a_gateway_under_nohup_outlives_its_terminal(terminal: Terminal) -> None:
    """Also as the process that takes its place; it still hears every other word."""
    patient = Terminal(terminal.home, ignored=[signal.SIGHUP])
    with on_a_screen(patient, "serve", "--no-open", "--port", "0") as (gateway, screen):
        read_until(screen, "Ctrl-C stops")
        before = terminal.read("status")["node"]
        screen.close()
        assert terminal.type("restart").exit_code == 0
        gateway.send_signal(signal.SIGHUP)
        assert terminal.read("ask", "count to 1")["state"] == "completed"
        assert terminal.read("status")["node"] != before
        gateway.send_signal(signal.SIGINT)
        assert gateway.wait(PATIENCE_S) == 0


def test_a_gateway_whose_reader_has_left_stops_all_the_same(terminal: Terminal) -> None:
    with serving(terminal) as gateway:
        gateway.process.stdout.close()
        turn_id = gateway.start_turn("wait 1 seconds")
        assert gateway.end(signal.SIGTERM) == 0
    assert terminal.read("turns", "show", turn_id)["state"] == "completed"


def test_whoever_waits_for_the_gateway_is_told_once_and_then_how_to_go_on(terminal: Terminal) -> None:
    """R5: the answer was cut off by the end of the gateway, and its reader learns so from the next one."""
    with serving(terminal) as gateway, terminal.start("ask", "count to 3; wait 60 seconds") as asking:
        read_until(asking.stdout, "3")
        gateway.process.kill()
        shown = read_until(asking.stderr, "waiting for the gateway")
        with serving(terminal):
            shown += asking.communicate(timeout=PATIENCE_S)[1]
    assert asking.returncode == 1
    assert shown.count("waiting for the gateway") == 1
    (turn,) = terminal.read("turns", "list", "terminal")["items"]
    assert f"go on with `holdfast turns retry {turn['id']}`" in shown
