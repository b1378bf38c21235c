"""A loop that stands still is seen from outside of it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import httpx2
import pytest

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


def test_a_stalled_gateway_comes_back_and_its_turns_as_after_a_crash(tmp_path: Path) -> None:
    """R9: the same process, the same address, the home never free; what was shown is still there."""
    script = SCRIPT.with_name("blockable.py")
    words = [sys.executable, "-u", script, tmp_path / "home"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
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
        finally:
            if process.poll() is None:
                process.kill()


async def test_a_loop_that_moves_is_left_alone() -> None:
    stalled = threading.Event()
    watchdog = Watchdog(0.1, stalled.set)
    async with watchdog.watching():
        for _ in range(20):
            await asyncio.sleep(0.02)
    assert not stalled.is_set()


async def test_a_machine_that_slept_is_not_a_stall() -> None:
    """After a suspend both the loop and the thread wake up late, and the thread may be first."""
    stalled, slept = threading.Event(), [0.0]
    base = asyncio.get_running_loop().time

    def monotonic() -> float:
        return base() + slept[0]

    watchdog = Watchdog(0.4, stalled.set, monotonic)
    async with watchdog.watching():
        slept[0] = 3_600.0
        await asyncio.sleep(0.5)
    assert not stalled.is_set()
