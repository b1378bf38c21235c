"""The supervisor and its folder, with real shells."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from holdfast.agent.processes import supervisor
from holdfast.agent.processes.background import BackgroundCommand, BackgroundProcesses, OutputLimits
from holdfast.agent.processes.control import Control
from holdfast.agent.processes.folder import CommandSpec, ProcessFolder, ProcessPhase, readable, whole
from holdfast.core.redaction import Redaction
from holdfast.errors import NotFound, Rejected, Unavailable
from holdfast.sandbox import Sandbox, SandboxKind, profile
from tests.engine.world import until
from tests.machine import CONFINING
from tests.processes.scene import HOME_ID, in_group, scene

SMALL = OutputLimits(head_bytes=1_000, segment_bytes=500, segments=3)


async def test_a_command_runs_and_its_output_and_exit_code_are_kept(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        process = await here.start("echo out; echo err >&2; exit 3")
        condition = await here.background.wait(process, 10)
        assert (condition.phase, condition.exit_code) == (ProcessPhase.ENDED, 3)
        assert here.output(process) == b"out\nerr\n"
        row = await here.store.processes.get(process.id)
        assert (row.pid, row.born) == (process.pid, process.born)
        assert row.pid > 0
        assert row.born > 0


async def test_nobody_else_may_read_what_a_command_was_given(tmp_path: Path) -> None:
    """SECURITY 3: files 0600, folders 0700."""
    async with scene(tmp_path) as here:
        process = await here.start("echo hello; sleep 60")
        await until(lambda: here.output(process))
        folder = here.background.folder(process).path
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in folder.rglob("*")}
        assert {"spec.json", "state.json", "keeper.json", "stdin", "control", "output"} <= set(modes)
        assert modes.pop("output") == 0o700
        assert set(modes.values()) == {0o600}


async def test_a_command_lives_in_a_session_of_its_own_and_so_does_its_supervisor(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        process = await here.start("sleep 60")
        condition = here.background.condition(process)
        assert condition.supervisor
        assert len({os.getsid(0), os.getsid(process.pid), os.getsid(condition.supervisor.pid)}) == 3


async def test_a_signal_that_ends_gateways_does_not_end_supervisors(tmp_path: Path) -> None:
    """A8: what a service manager sends to everybody is not the end of those who remember."""
    async with scene(tmp_path) as here:
        process = await here.start("exec sleep 60")
        condition = here.background.condition(process)
        assert condition.supervisor
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            os.kill(condition.supervisor.pid, number)
        os.kill(process.pid, signal.SIGTERM)
        condition = await here.background.wait(process, 10)
        assert (condition.phase, condition.exit_code) == (ProcessPhase.ENDED, -signal.SIGTERM)


async def test_output_keeps_its_beginning_and_its_end(tmp_path: Path) -> None:
    async with scene(tmp_path, limits=SMALL) as here:
        process = await here.start("for i in $(seq 1 2000); do echo line $i; done")
        await here.background.wait(process, 10)
        folder = here.background.folder(process)
        total = len("".join(f"line {i}\n" for i in range(1, 2001)))
        assert folder.size() == total
        files = list((folder.path / "output").iterdir())
        assert sum(each.stat().st_size for each in files) <= 1_000 + 3 * 500
        first = folder.read(0, 10_000)
        assert first.data.startswith(b"line 1\nline 2\n")
        assert (first.start, first.end, first.dropped) == (0, 1_000, 0)
        rest = folder.read(first.end, 10_000)
        assert rest.data.endswith(b"line 1999\nline 2000\n")
        assert rest.end == total
        assert rest.dropped == total - 1_000 - len(rest.data)
        assert folder.read(total, 100).data == b""


async def test_output_is_read_on_from_any_position(tmp_path: Path) -> None:
    async with scene(tmp_path, limits=SMALL) as here:
        process = await here.start("head -c 1800 /dev/zero | tr '\\0' x")
        await here.background.wait(process, 10)
        folder, position, data = here.background.folder(process), 0, b""
        while piece := folder.read(position, 37).data:
            data, position = data + piece, position + len(piece)
        assert data == b"x" * 1800


async def test_input_is_written_and_closed_by_whoever_comes_later(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        process = await here.start("cat; echo end")
        assert await here.background.type(process, b"one\n") == 4
        later = BackgroundProcesses(here.store.processes, here.home, HOME_ID)
        assert await later.type(process, b"two\n") == 4
        assert later.close_input(process)
        assert (await later.wait(process, 10)).exit_code == 0
        assert here.output(process) == b"one\ntwo\nend\n"
        with pytest.raises(Rejected, match="closed"):
            await here.background.type(process, b"three\n")


async def test_input_that_nobody_reads_does_not_block(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        process = await here.start("exec sleep 60")
        folder = here.background.folder(process)
        assert folder.type(b"x" * 1_000_000) < 1_000_000
        assert folder.type(b"x" * 1_000_000) == 0


async def test_a_terminal_where_one_is_asked_for(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        process = await here.start("test -t 0 && test -t 1 && test -t 2 && echo yes; stty size; cat; echo end", pty=True)
        await until(lambda: b"40 120" in here.output(process))
        await here.background.type(process, b"typed\n")
        await until(lambda: here.output(process).count(b"typed") == 2)
        here.background.close_input(process)
        assert (await here.background.wait(process, 10)).exit_code == 0
        assert readable(here.output(process)) == "yes\n40 120\ntyped\ntyped\nend\n"


async def test_a_terminal_takes_much_input_without_losing_any(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        process = await here.start("stty -echo; echo ready; wc -c", pty=True)
        await until(lambda: b"ready" in here.output(process))
        line = b"x" * 99 + b"\n"
        for _ in range(20):
            assert await here.background.type(process, line * 100) == 10_000
        here.background.close_input(process)
        assert (await here.background.wait(process, 10)).exit_code == 0
        assert here.output(process).split()[-1] == b"200000"


async def test_a_kill_reaches_the_whole_group(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        process = await here.start("sleep 60 & sleep 60 & echo up; wait")
        await until(lambda: here.output(process))
        assert len(in_group(process.pid)) == 3
        condition = await here.background.kill(process)
        assert (condition.phase, condition.exit_code) == (ProcessPhase.ENDED, -signal.SIGTERM)
        assert in_group(process.pid) == []


async def test_what_does_not_want_to_end_is_killed_after_a_grace(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        process = await here.start("trap '' TERM; echo up; while :; do sleep 1; done")
        await until(lambda: here.output(process))
        began = time.monotonic()
        condition = await here.background.kill(process, grace_ms=300)
        assert condition.exit_code == -signal.SIGKILL
        assert time.monotonic() - began >= 0.3


async def test_what_a_command_leaves_in_its_group_still_belongs_to_it(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        process = await here.start("(sleep 60; echo never) & echo started")
        await until(lambda: here.output(process) and process.pid not in in_group(process.pid))
        assert here.background.condition(process).phase is ProcessPhase.RUNNING
        condition = await here.background.kill(process)
        assert (condition.phase, condition.exit_code) == (ProcessPhase.ENDED, 0)
        assert in_group(process.pid) == []


async def test_one_that_escaped_from_its_group_does_not_hold_up_the_end(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        process = await here.start("setsid sh -c 'echo $$; exec sleep 60' & sleep 0.3; exit 4")
        condition = await here.background.wait(process, 10)
        assert (condition.phase, condition.exit_code) == (ProcessPhase.ENDED, 4)
        os.kill(int(here.output(process)), signal.SIGKILL)


async def test_a_killed_supervisor_is_a_lost_command(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        process = await here.start("sleep 60")
        condition = here.background.condition(process)
        assert condition.supervisor
        os.kill(condition.supervisor.pid, signal.SIGKILL)
        condition = await here.background.wait(process, 10)
        assert condition.phase is ProcessPhase.LOST
        here.background.kill_orphan(process)
        await until(lambda: in_group(process.pid) == [])


@pytest.mark.parametrize("field", ["born", "boot"])
async def test_another_process_with_the_same_number_is_not_taken_for_ours(field: str, tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        process = await here.start("exec sleep 60")
        folder = here.background.folder(process).path
        pid = json.loads((folder / "state.json").read_text())["pid"]
        for name in ("keeper.json", "state.json"):
            found = json.loads((folder / name).read_text())
            (folder / name).write_text(json.dumps({**found, field: {"born": 7, "boot": "another"}[field]}))
        assert here.background.condition(process).phase is ProcessPhase.LOST
        here.background.kill_orphan(process)
        # Ours by its number, and by nothing else: it is left alone.
        assert in_group(pid) == [pid]
        os.killpg(pid, signal.SIGKILL)


def test_a_command_whose_start_was_given_up_never_runs(tmp_path: Path) -> None:
    folder = ProcessFolder(tmp_path / "prc_1")
    argv = ["/bin/sh", "-c", f"touch {tmp_path / 'ran'}"]
    folder.prepare(
        CommandSpec(argv=argv, workdir="/", environment={}, pty=False, head_bytes=1_000, segment_bytes=1_000, segments=2)
    )
    assert folder.condition().phase is ProcessPhase.WAITING
    assert folder.prevent_start()
    late = subprocess.run(
        [sys.executable, "-I", "-S", supervisor.__file__, str(folder.path)], capture_output=True, check=True
    )
    assert late.stdout == b""
    assert not (tmp_path / "ran").exists()
    assert folder.condition().phase is ProcessPhase.LOST


async def test_a_command_that_cannot_be_written_down_does_not_run(tmp_path: Path) -> None:
    folder = ProcessFolder(tmp_path / "prc_1")
    argv = ["/bin/sh", "-c", f"touch {tmp_path / 'ran'}"]
    workdir = str(tmp_path)
    folder.prepare(
        CommandSpec(argv=argv, workdir=workdir, environment={}, pty=False, head_bytes=1_000, segment_bytes=1_000, segments=2)
    )
    (folder.path / "state.json.new").mkdir()
    argv = [sys.executable, "-I", "-S", supervisor.__file__, str(folder.path)]
    done = await asyncio.to_thread(subprocess.run, argv, capture_output=True, check=True)
    assert "state.json.new" in json.loads(done.stdout)["error"]
    # The process that was to become the command stays in these folders until it ends.
    await until(lambda: working_below(tmp_path) == [])
    assert not (tmp_path / "ran").exists()
    await until(lambda: folder.condition().phase is ProcessPhase.LOST)


def working_below(folder: Path) -> list[str]:
    """Return the processes that have their working folder in this one."""
    found: list[str] = []
    for place in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):
            if place.readlink().is_relative_to(folder):
                found.append(place.parent.name)
    return found


async def test_a_gateway_that_dies_while_it_starts_a_command_is_not_waited_for(tmp_path: Path) -> None:
    folder = ProcessFolder(tmp_path / "prc_1")
    argv = ["/bin/sh", "-c", "exit 3"]
    environment = {"ODD": os.fsdecode(b"\xff")}
    folder.prepare(
        CommandSpec(
            argv=argv, workdir="/", environment=environment, pty=False, head_bytes=1_000, segment_bytes=1_000, segments=2
        )
    )
    listens, speaks = os.pipe()
    os.close(listens)
    argv = [sys.executable, "-I", "-S", supervisor.__file__, str(folder.path)]
    await asyncio.to_thread(subprocess.run, argv, stdout=speaks, check=True)
    os.close(speaks)
    await until(lambda: folder.condition().phase is ProcessPhase.ENDED)
    assert folder.condition().exit_code == 3


async def test_a_supervisor_that_nobody_can_read_about_is_lost(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        process = await here.start("true")
        await here.background.wait(process, 10)
        (here.background.folder(process).path / "keeper.json").write_text("{")
        assert here.background.condition(process).phase is ProcessPhase.LOST


async def test_a_start_that_fails_leaves_neither_row_nor_folder(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        (tmp_path / "processes").write_text("in the way")
        with pytest.raises(Unavailable, match="could not be started"):
            await here.start("true")
        assert await here.store.processes.running(HOME_ID) == []


async def test_a_supervisor_whose_folder_is_gone_ends_with_its_command(tmp_path: Path) -> None:
    """Somebody has deleted the home: nobody will ever ask how it ended."""
    async with scene(tmp_path) as here:
        process = await here.start("sleep 0.5")
        condition = here.background.condition(process)
        assert condition.supervisor
        shutil.rmtree(here.background.folder(process).path)
        gone = Path(f"/proc/{condition.supervisor.pid}")
        await until(lambda: not gone.exists())


async def test_what_cannot_be_run_says_so_in_its_output(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        command = BackgroundCommand(text="no-such-program", argv=["no-such-program"], workdir=tmp_path, environment={})
        process = await here.background.start(command, here.session, here.turn)
        condition = await here.background.wait(process, 10)
        assert condition.exit_code == 127
        assert b"cannot be run" in here.output(process)


async def test_a_process_of_another_home_is_out_of_reach(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        process = await here.start("sleep 60")
        elsewhere = BackgroundProcesses(here.store.processes, here.home, "home_2")
        with pytest.raises(Rejected, match="another gateway"):
            elsewhere.condition(process)


async def test_secrets_in_a_command_are_masked(tmp_path: Path) -> None:
    """K1: a planted secret appears in no row, and in nothing that is shown."""
    async with scene(tmp_path, redaction=Redaction(["hunter2hunter2"])) as here:
        process = await here.start("echo hunter2hunter2")
        assert "hunter2" not in (await here.store.processes.get(process.id)).command
        await here.background.wait(process, 10)
        shown = await Control(here.store.processes, here.background).output(process.id, 0, 100)
        assert (shown.text, shown.end) == ("[redacted]\n", 15)
        with pytest.raises(NotFound):
            await here.store.processes.get("prc_none")  # type: ignore[arg-type]


def test_a_character_is_not_cut_in_two() -> None:
    text = "a€😀".encode()
    assert [whole(text[:cut]).decode() for cut in range(1, 9)] == ["a", "a", "a", "a€", "a€", "a€", "a€", "a€😀"]


def test_an_escape_sequence_is_not_cut_in_two() -> None:
    for written in (b"a\x1b[1;31mb", b"a\x1b]0;title\x07b", b"a\x1b]0;title\x1b\\b", b"a\x1b[2Kb"):
        for cut in range(len(written) + 1):
            begin = whole(written[:cut])
            assert readable(begin) + readable(written[len(begin) :]) == "ab", cut
    assert whole(b"a\x1b[" + b"1" * 100) == b"a\x1b[" + b"1" * 100


def test_output_reads_without_the_movements_of_a_terminal() -> None:
    written = b"\x1b[1;31mred\x1b[0m\x1b[2K\r\n\x1b]0;title\x07x\x00"
    assert readable(written) == "red\nx�"
    assert readable(written, colours=True) == "\x1b[1;31mred\x1b[0m\nx�"


@pytest.mark.parametrize("kind", CONFINING)
async def test_the_first_process_of_a_sandbox_is_nothing_that_a_command_left_running(
    kind: SandboxKind, tmp_path: Path
) -> None:
    sandbox = await Sandbox.find("on", profile(tmp_path), kinds=[kind])
    argv, _ = sandbox.wrap(["sleep", "60"], tmp_path)
    outer = await asyncio.create_subprocess_exec(*argv, start_new_session=True)
    try:
        # The program, the first process of the sandbox, and the command in it.
        await until(lambda: len(in_group(outer.pid)) == 3)
        _, first, command = sorted(in_group(outer.pid))
        assert supervisor.others_in_group(outer.pid)
        # Held there, it can neither reap the command nor end itself.
        os.kill(first, signal.SIGSTOP)
        os.kill(command, signal.SIGKILL)
        await until(lambda: sorted(in_group(outer.pid)) == [outer.pid, first])
        assert not supervisor.others_in_group(outer.pid)
    finally:
        os.killpg(outer.pid, signal.SIGKILL)
        await outer.wait()
