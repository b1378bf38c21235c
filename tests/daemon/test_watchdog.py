"""A loop that stands still is seen from outside of it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import psutil
import pytest

from holdfast.daemon import watchdog_process
from holdfast.daemon.watchdog import Watchdog

SCRIPT = Path(__file__).with_name("stalling.py")


def test_a_stalled_process_shows_its_stacks_and_begins_anew_with_the_same_id(tmp_path: Path) -> None:
    """The second life is the same process: its service manager, or its terminal, notices nothing."""
    marks = tmp_path / "marks"
    done = subprocess.run([sys.executable, SCRIPT, marks, "sleep"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    pids = marks.read_text().split()
    assert (len(pids), len(set(pids))) == (2, 1)
    assert "has not moved" in done.stderr
    assert "stalling.py" in done.stderr
    assert "in main" in done.stderr


@pytest.mark.parametrize("stall", ["log", "print"])
def test_a_process_that_stalls_because_nobody_reads_begins_anew_all_the_same(tmp_path: Path, stall: str) -> None:
    """The loop holds the lock of its log, or of its output, for as long as it waits; so do the stacks for their reader."""
    marks = tmp_path / "marks"
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b"x" * 65_536)
    os.set_blocking(writer, True)
    try:
        words = [sys.executable, SCRIPT, marks, stall]
        with subprocess.Popen(words, stdout=writer, stderr=writer) as process:
            try:
                assert process.wait(30) == 0
            finally:
                process.kill()
    finally:
        os.close(reader)
        os.close(writer)
    pids = marks.read_text().split()
    assert (len(pids), len(set(pids))) == (2, 1)


@pytest.mark.parametrize("how", ["sleep", "search"])
def test_a_stalled_gateway_comes_back_and_its_turns_as_after_a_crash(tmp_path: Path, how: str) -> None:
    """R9: the same process, the same address, the home never free; what was shown is still there."""
    with blockable(tmp_path / "home", how, stall_s=1) as process:
        with httpx2.Client(base_url=process.stdout.readline().strip(), timeout=30) as web:
            before = web.get("/health").json()
            session = web.post("/api/sessions", json={}).json()["id"]
            turn = web.post(f"/api/sessions/{session}/messages", json={"text": "count to 500 slowly"}).json()["turn_id"]
            with web.stream("GET", f"/api/sessions/{session}/events") as events:
                assert any('"kind":"text"' in line for line in events.iter_lines())
            process.send_signal(signal.SIGUSR1)
            assert process.stdout.readline().strip() == str(web.base_url).rstrip("/")
            after = web.get("/health").json()
            assert (after["pid"], after["node"] != before["node"]) == (before["pid"], True)
            found = web.get(f"/api/turns/{turn}").json()
            assert (found["state"], found["cause"]) == ("interrupted", "crash")
            items = web.get(f"/api/sessions/{session}/messages").json()["items"]
            assert [item["role"] for item in items][-2:] == ["assistant", "marker"]
            assert any(turn in line for line in web.get("/api/status").json()["boot"])
        process.terminate()
        assert "has not moved" in process.communicate(timeout=30)[1]
        assert process.returncode == 0


def test_a_gateway_whose_interpreter_is_held_is_killed_and_its_stack_shown(tmp_path: Path) -> None:
    """S6: nothing inside the process runs any more, so it is seen from outside; what was accepted is still there."""
    home = tmp_path / "home"
    with blockable(home, "hold", stall_s=1) as process:
        with httpx2.Client(base_url=process.stdout.readline().strip(), timeout=30) as web:
            session = web.post("/api/sessions", json={}).json()["id"]
            turn = web.post(f"/api/sessions/{session}/messages", json={"text": "count to 500 slowly"}).json()["turn_id"]
        process.send_signal(signal.SIGUSR1)
        said = process.communicate(timeout=30)[1]
    assert process.returncode == -signal.SIGKILL
    assert "has not moved for 1 s and cannot begin anew" in said
    assert "in hold_the_interpreter" in said
    with blockable(home, "sleep", stall_s=60) as again:
        with httpx2.Client(base_url=again.stdout.readline().strip(), timeout=30) as web:
            assert web.get(f"/api/turns/{turn}").json()["state"] == "interrupted"
        again.terminate()
        again.communicate(timeout=30)


@pytest.mark.parametrize("how", ["hold", pytest.param("search", marks=pytest.mark.long)])
def test_a_signal_ends_a_gateway_in_time_while_its_loop_is_held(tmp_path: Path, how: str) -> None:
    """S7: the loop cannot hear the signal, so the watchdog process does, and kills the gateway when its time is up."""
    with blockable(tmp_path / "home", how, stall_s=600) as process:
        process.stdout.readline()
        process.send_signal(signal.SIGUSR1)
        process.terminate()
        began = time.monotonic()
        said = process.communicate(timeout=60)[1]
    assert process.returncode == -signal.SIGKILL
    assert watchdog_process.MARGIN_S <= time.monotonic() - began < watchdog_process.MARGIN_S + 15
    assert "has not stopped in time" in said
    assert "blockable.py" in said


def test_a_gateway_that_was_suspended_is_left_alone(tmp_path: Path) -> None:
    """Ctrl-Z stops the gateway, not the watchdog process, and is no stall."""
    with blockable(tmp_path / "home", "sleep", stall_s=1.5) as process:
        with httpx2.Client(base_url=process.stdout.readline().strip(), timeout=30) as web:
            before = web.get("/health").json()
            process.send_signal(signal.SIGSTOP)
            time.sleep(3)
            process.send_signal(signal.SIGCONT)
            assert web.get("/health").json()["node"] == before["node"]
        process.terminate()
        assert "has not moved" not in process.communicate(timeout=30)[1]


def test_a_watchdog_process_ends_with_its_gateway(tmp_path: Path) -> None:
    with blockable(tmp_path / "home", "sleep", stall_s=60) as process:
        process.stdout.readline()
        found = watchdog_process_of(process.pid)
        process.kill()
        found.wait(30)


def test_a_watchdog_process_that_is_killed_is_replaced_and_a_held_loop_is_still_found(tmp_path: Path) -> None:
    """S6: the watchdog process is an ordinary process, and whatever ends it must not leave the gateway unwatched."""
    with blockable(tmp_path / "home", "sleep", stall_s=1) as process:
        url = process.stdout.readline()
        first = watchdog_process_of(process.pid)
        first.kill()
        first.wait(30)
        assert watchdog_process_of(process.pid).pid != first.pid
        process.send_signal(signal.SIGUSR1)
        # The same process has begun anew.
        assert process.stdout.readline() == url
        process.terminate()
        said = process.communicate(timeout=30)[1]
    assert said.count("has ended (-9) and was started again") == 1
    assert "has not moved for 1 s" in said


async def test_a_watchdog_process_that_is_killed_again_and_again_is_not_started_again_and_again() -> None:
    watchdog = Watchdog(0.2, 1)
    async with watchdog.watching(lambda: None):
        for _ in range(2):
            last = await asyncio.to_thread(watchdog_process_of, os.getpid())
            last.kill()
            await asyncio.to_thread(last.wait, 30)
        await asyncio.sleep(0.2)
        assert not sentries_of(os.getpid())
    watchdog.close()


@pytest.mark.long
def test_a_watchdog_process_that_is_started_during_a_drain_knows_its_end() -> None:
    """S7: the one before was told that the gateway stops, and took it to its grave."""
    done = subprocess.run([sys.executable, SCRIPT.with_name("draining.py")], capture_output=True, text=True, timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert "has not stopped in time" in done.stderr


def sentries_of(gateway: int) -> list[psutil.Process]:
    return [each for each in psutil.Process(gateway).children() if is_watchdog_process(each)]


def is_watchdog_process(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE and "watchdog_process.py" in " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return False


def watchdog_process_of(gateway: int) -> psutil.Process:
    """Return the watchdog process of a gateway, waiting for one that has yet to start."""
    until = time.monotonic() + 30
    while not (found := sentries_of(gateway)):
        assert time.monotonic() < until, "the gateway has no watchdog process"
        time.sleep(0.02)
    return found[0]


@contextlib.contextmanager
def blockable(home: Path, how: str, *, stall_s: float) -> Iterator[subprocess.Popen[str]]:
    """Run a gateway that SIGUSR1 makes stand still, by sleeping, searching, or holding the interpreter."""
    words = [sys.executable, "-u", SCRIPT.with_name("blockable.py"), home, how, str(stall_s)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
