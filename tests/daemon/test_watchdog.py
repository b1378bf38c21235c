"""A loop that stands still is seen from outside of it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path

from holdfast.daemon.watchdog import Watchdog

SCRIPT = Path(__file__).with_name("stalling.py")


def test_a_stalled_process_shows_its_stacks_and_begins_anew_with_the_same_id(tmp_path: Path) -> None:
    """The second life is the same process: its service manager, or its terminal, notices nothing."""
    marks = tmp_path / "marks"
    done = subprocess.run([sys.executable, SCRIPT, marks], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    pids = marks.read_text().split()
    assert (len(pids), len(set(pids))) == (2, 1)
    assert "has not moved" in done.stderr
    assert "stalling.py" in done.stderr
    assert "in main" in done.stderr


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
