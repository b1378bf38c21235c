"""kill -9 of whoever looks after background commands: nothing runs twice, nothing is told twice, nothing is forgotten."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest

from holdfast.agent.processes.background import FOLDER
from holdfast.agent.processes.folder import ProcessPhase
from holdfast.core.processes import ProcessState
from holdfast.core.turns import Mode
from tests.engine.world import until
from tests.processes.scene import HOME_ID, end_all, in_group, opened, scene

WRITES_MIN = 6


def host(home: Path, *arguments: str) -> subprocess.Popen[bytes]:
    # In a group of its own, so that a test can end all of it at once.
    return subprocess.Popen(
        [sys.executable, "-m", "tests.processes.host", str(home), *arguments], start_new_session=True, stderr=subprocess.PIPE
    )


def finished(program: subprocess.Popen[bytes]) -> int:
    _, said = program.communicate(timeout=60)
    assert program.returncode in (0, -signal.SIGKILL), said.decode()
    return program.returncode


@pytest.mark.parametrize("when", [pytest.param("before", marks=pytest.mark.long), "after"])
async def test_killed_beside_any_write_the_promise_is_kept_once(when: str, tmp_path: Path) -> None:
    """A8: whatever write of the gateway is its last, the command runs at most once and its end is told exactly once."""
    for nth in count(1):
        home = tmp_path / str(nth)
        home.mkdir()
        try:
            killed = await asyncio.to_thread(finished, host(home, "echo ran >> ran; echo ERROR; exit 3", str(nth), when))
            if not killed:
                assert nth > WRITES_MIN
                return
            assert await asyncio.to_thread(finished, host(home, "")) == 0
            await _check(home)
        finally:
            end_all(home)


async def _check(home: Path) -> None:
    async with opened(home) as here:
        rows = await here.store.processes.list("local")
        told = [each for each in await here.store.turns.list(here.session.id) if each.mode is Mode.DETACHED]
        texts = [await here.store.turns.asked(each.id) for each in told]
        ends = [each for each in texts if "exit code 3" in each or "was never started" in each]
        ran = (home / "ran").read_text() if (home / "ran").exists() else ""
        assert len(rows) == len(ends) <= 1
        for row in rows:
            assert (row.state, row.exit_code, ran) in ((ProcessState.EXITED, 3, "ran\n"), (ProcessState.LOST, None, ""))
            assert len(texts) - len(ends) == (row.state is ProcessState.EXITED)


_WAITING = """
import asyncio, sys, uvloop
from pathlib import Path
from holdfast.agent.processes.foreground import run
from holdfast.clock import SystemClock

argv = ["/bin/sh", "-c", "echo $$ > began; kill -s KILL $PPID; sleep 300"]
loops = {"asyncio": asyncio.run, "uvloop": uvloop.run}
loops[sys.argv[1]](run(argv, Path(sys.argv[2]), {}, 300, SystemClock(), pty=sys.argv[3] == "pty"))
"""


@pytest.mark.parametrize("terminal", ["pty", "pipe"])
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
async def test_a_command_that_is_waited_for_ends_even_if_its_gateway_dies_as_it_starts(
    tmp_path: Path, loop: str, terminal: str
) -> None:
    """R10: its guard knows it before it runs; the command itself is what kills the gateway."""
    killed = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", _WAITING, loop, str(tmp_path), terminal])
    assert killed.returncode == -signal.SIGKILL
    group = int((tmp_path / "began").read_text())
    await until(lambda: in_group(group) == [])


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_a_command_outlives_the_whole_group_of_its_gateway(number: int, tmp_path: Path) -> None:
    """A8: it goes on while no gateway runs, takes input from the next one, and its end is told there."""
    first = host(tmp_path, "echo up; read line; echo got $line")
    try:
        await until(lambda: any(each.read_bytes() == b"up\n" for each in (tmp_path / FOLDER).glob("*/output/*")))
    finally:
        os.killpg(first.pid, number)
        await asyncio.to_thread(first.communicate)
    async with scene(tmp_path) as here:
        (process,) = await here.store.processes.running(HOME_ID)
        assert here.background.condition(process).phase is ProcessPhase.RUNNING
        async with here.watched():
            await here.background.type(process, b"word\n")

            async def over() -> bool:
                return (await here.store.processes.get(process.id)).state is ProcessState.EXITED

            await until(over)
        (told,) = here.accepted
        assert "got word" in told.text
