"""The gateway as a process of its own, and the commands that talk to it."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.cli.terminal import Terminal
from tests.cli.test_commands import read_until

PATIENCE_S = 30


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


@pytest.mark.parametrize("word", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_gateway_in_peace(terminal: Terminal, word: signal.Signals) -> None:
    with serving(terminal) as gateway:
        assert gateway.end(word) == 0
        assert "nothing was interrupted" in gateway.process.stdout.read()
    assert not (terminal.home / "gateway.sock").exists()


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
        assert gateway.end(signal.SIGINT) == 0
    turn = terminal.read("turns", "show", turn_id)
    assert (turn["state"], turn["cause"]) == ("interrupted", "shutdown_timeout")
    session = terminal.read("sessions", "show", "terminal")["session"]
    assert (session["resume_pending"], session["resume_reason"]) == (True, "shutdown_timeout")


def test_status_shows_a_running_gateway_and_nothing_else_is_69(terminal: Terminal) -> None:
    nobody = terminal.run("status")
    assert (nobody.returncode, "no gateway runs" in nobody.stderr) == (69, True)
    assert terminal.run("stop").returncode == 69
    assert terminal.run("restart").returncode == 69
    with serving(terminal) as gateway:
        status = terminal.read("status")
        assert (status["pid"], status["url"]) == (gateway.process.pid, gateway.url)
        assert (status["ready"], status["accepted"], status["home"]) == (True, 0, str(terminal.home))
        shown = terminal.run("status").stdout
        for word in (gateway.url, str(gateway.process.pid), "ready", "0 accepted = 0 settled + 0 in flight"):
            assert word in shown
        gateway.process.kill()
        gateway.process.wait()
        # What a killed gateway leaves behind does not look like one.
        assert terminal.run("status").returncode == 69


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


def test_nobody_who_connects_during_a_restart_is_refused(terminal: Terminal) -> None:
    """The listener stays open from one process to the next: a client waits a moment, and gets its answer.

    One that was let in by the old process in its very last moment may see its connection closed, never refused.
    """
    with serving(terminal) as gateway:
        restarting = terminal.start("restart")
        nodes: set[str] = set()
        while len(nodes) < 2:
            with contextlib.suppress(httpx2.ReadError, httpx2.RemoteProtocolError):
                nodes.add(httpx2.get(f"{gateway.url}/health", timeout=PATIENCE_S).json()["node"])
        assert restarting.wait(PATIENCE_S) == 0
        restarting.communicate()
        assert gateway.end(signal.SIGTERM) == 0


def test_nobody_takes_the_home_while_its_gateway_restarts(terminal: Terminal) -> None:
    """The lock goes from one process to the next; a command that comes in between waits for the gateway."""
    with serving(terminal) as gateway:
        restarting = terminal.start("restart")
        for number in range(4):
            asked = terminal.run("ask", f"are you there {number}")
            assert (asked.returncode, asked.stderr) == (0, "")
        restarting.communicate(timeout=PATIENCE_S)
        assert restarting.returncode == 0
        assert terminal.read("status")["pid"] == gateway.process.pid
        assert terminal.read("status")["accepted"] == 4


def test_a_second_gateway_is_told_who_owns_the_home(terminal: Terminal) -> None:
    with serving(terminal) as gateway:
        second = terminal.run("serve", "--port", "0")
        assert second.returncode == 75
        assert str(gateway.process.pid) in second.stderr
        assert terminal.read("status")["pid"] == gateway.process.pid


def test_a_port_that_is_taken_is_a_matter_of_configuration(terminal: Terminal) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = terminal.run("serve", "--port", str(taken.getsockname()[1]))
    assert done.returncode == 78
    assert "server.port" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_open_door_needs_a_key(terminal: Terminal) -> None:
    done = terminal.run("serve", "--host", "0.0.0.0", "--port", "0")
    assert done.returncode == 78
    assert "server.api_key" in done.stderr
    with serving(terminal, "--host", "0.0.0.0", HOLDFAST_SERVER__API_KEY="a-long-enough-key") as gateway:
        port = gateway.url.rpartition(":")[2]
        assert httpx2.get(f"http://127.0.0.1:{port}/api/status").status_code == 401
        assert terminal.read("status")["ready"]


def test_commands_go_through_the_running_gateway(terminal: Terminal) -> None:
    with serving(terminal):
        receipt = terminal.read("ask", "where is the lighthouse")
        assert (receipt["state"], "lighthouse" in receipt["text"]) == ("completed", True)
        assert "by the sea" in terminal.run("ask", "by the sea").stdout
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
        pruned = terminal.read("sessions", "prune", "--channel", "terminal", "--older-than-days", "0")
        assert pruned == {"pruned": 1}
        for words in (("turns", "show", "trn_0"), ("turns", "cancel", "trn_0"), ("sessions", "show", "nobody")):
            missing = terminal.run(*words)
            assert (missing.returncode, "there is no" in missing.stderr) == (2, True)


def test_commands_work_the_same_with_no_gateway(terminal: Terminal) -> None:
    receipt = terminal.read("ask", "count to 3")
    fork = terminal.read("sessions", "fork", "terminal", "--through", receipt["id"])
    assert (fork["turns"], fork["parent_id"]) == (1, receipt["session_id"])
    again = terminal.read("turns", "retry", receipt["id"])
    assert again["id"] != receipt["id"]
    assert terminal.run("turns", "cancel", receipt["id"]).returncode == 2
    assert terminal.read("sessions", "end", "terminal")["state"] == "ended"
    # A key is still a name for the last session that it had.
    assert terminal.read("sessions", "show", "terminal")["session"]["state"] == "ended"
    terminal.read("sessions", "delete", fork["id"])
    assert terminal.run("sessions", "show", fork["id"]).returncode == 2


def test_a_conversation_is_exported_for_people_and_for_programs(terminal: Terminal, tmp_path: Path) -> None:
    terminal.run("ask", "keep this")
    page = terminal.run("sessions", "export", "terminal").stdout
    assert page.startswith("# terminal\n")
    assert "\n> keep this\n" in page
    file = tmp_path / "out.json"
    assert terminal.run("sessions", "export", "terminal", "--format", "json", "--output", str(file)).returncode == 0
    assert json.loads(file.read_text())["items"][0]["text"] == "keep this"


def test_chat_goes_on_while_the_gateway_restarts(terminal: Terminal) -> None:
    """J8: what was shown stays, what is missing comes after the restart, and the next message is answered."""
    with serving(terminal) as gateway, terminal.start("chat") as chat:
        read_until(chat.stdout, "›")
        chat.stdin.write("count to 40 slowly\n")
        chat.stdin.flush()
        shown = read_until(chat.stdout, " 5")
        assert terminal.run("restart", "--timeout", "0").returncode == 0
        shown += read_until(chat.stdout, "›")
        assert "restart" in shown
        chat.stdin.write("are you back?\n")
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
        assert terminal.read("ask", "hello")["state"] == "completed"
        assert terminal.read("status")["node"] == before


def test_secrets_stay_out_of_what_the_gateway_shows(terminal: Terminal) -> None:
    """K1: the key is in no status, no log and no transcript, even when somebody types it."""
    key = "sk-a-secret-that-nobody-may-see"
    with serving(terminal, HOLDFAST_SERVER__API_KEY=key):
        terminal.run("ask", f"my key is {key}")
        everything: list[Any] = [terminal.read("status"), terminal.read("sessions", "show", "terminal")]
    assert key not in json.dumps(everything)


def test_the_lock_is_empty_after_the_end(terminal: Terminal) -> None:
    with serving(terminal) as gateway:
        lock = terminal.home / "gateway.lock"
        assert lock.read_text().strip() == str(gateway.process.pid)
        assert lock.stat().st_mode & 0o777 == 0o600
        gateway.end(signal.SIGTERM)
        assert lock.read_text() == ""
