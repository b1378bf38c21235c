"""The monitor keeps what was promised about background commands."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.agent.processes.background import RETENTION_DAYS, BackgroundProcesses, Orphans
from holdfast.agent.processes.folder import CommandSpec, ProcessPhase
from holdfast.agent.processes.monitor import MATCHES_MAX, ProcessMonitor
from holdfast.agent.processes.notices import spoken
from holdfast.agent.processes.patterns import check
from holdfast.core.intake import Inbound, Receipt
from holdfast.core.processes import Process, ProcessEvent, ProcessState
from holdfast.core.turns import Cause, Mode
from holdfast.errors import KeyReused, QueueFull, Rejected, Unavailable
from holdfast.ids import new_process_id
from holdfast.offload.pool import Pool
from tests.engine.world import Altered, ManualClock, until
from tests.processes.scene import HOME_ID, SOURCE, Scene, in_group, scene


async def ended(here: Scene, process: Process) -> Process:
    async def look() -> Process | None:
        row = await here.store.processes.get(process.id)
        return row if row.state is not ProcessState.RUNNING else None

    return await until(look)


async def test_a_promise_to_tell_is_kept_once_with_everything_that_leads_back(tmp_path: Path) -> None:
    """A5: channel, chat, thread, user and session; the message carries them all."""
    async with scene(tmp_path) as here, here.watched():
        process = await here.start("echo working; exit 3", notifies=True)
        row = await ended(here, process)
        assert (row.state, row.exit_code) == (ProcessState.EXITED, 3)
        (told,) = here.accepted
        assert (told.conversation, told.channel, told.owner) == ("telegram:42", "telegram", "local")
        assert (told.source, told.reply_to) == (SOURCE, "telegram:42")
        assert (told.mode, told.delivers_later) == (Mode.DETACHED, True)
        assert told.dedupe_key == f"process:{process.id}:ended"
        assert told.text.startswith("[System note: ")
        assert "`echo working; exit 3`" in told.text
        assert "exit code 3 after 0." in told.text
        assert f"<output-of-{process.id}>\nworking\n</output-of-{process.id}>" in told.text
        turn = (await here.store.turns.list(here.session.id))[-1]
        assert turn.mode is Mode.DETACHED


async def test_nothing_promised_is_nothing_told(tmp_path: Path) -> None:
    async with scene(tmp_path) as here, here.watched():
        await ended(here, await here.start("echo quiet"))
        assert here.accepted == []


async def test_what_ended_while_nobody_watched_is_told_afterwards(tmp_path: Path) -> None:
    """A8: an end that no gateway saw is still told."""
    async with scene(tmp_path) as here:
        process = await here.start("exit 0", notifies=True)
        await here.background.wait(process, 10)
        assert (await here.store.processes.get(process.id)).state is ProcessState.RUNNING
        async with here.watched():
            await ended(here, process)
        assert len(here.accepted) == 1


async def test_cut_off_between_telling_and_writing_it_down_it_is_told_once(tmp_path: Path) -> None:
    """A8: exactly one turn, wherever the gateway is cut off."""

    async def cut_off(*_: object) -> Process:
        raise asyncio.CancelledError

    async with scene(tmp_path) as here:
        process = await here.start("echo once", notifies=True)
        await here.background.wait(process, 10)
        processes = Altered(here.store.processes, end=cut_off)
        with pytest.raises(asyncio.CancelledError):
            await ProcessMonitor(processes, here.store.sessions, here.background, here.accept).run()
        assert len(here.accepted) == 1
        async with here.watched():
            await ended(here, process)
        assert len(here.accepted) == 1
        assert len(await here.store.turns.list(here.session.id)) == 2


async def test_a_message_that_cannot_be_accepted_now_is_accepted_later(tmp_path: Path) -> None:
    refusals: list[Exception] = [Unavailable("no store"), QueueFull("flooded")]

    async with scene(tmp_path) as here:

        async def accept(message: Inbound) -> Receipt:
            if refusals:
                raise refusals.pop()
            return await here.accept(message)

        process = await here.start("true", notifies=True)
        running = asyncio.create_task(
            ProcessMonitor(here.store.processes, here.store.sessions, here.background, accept).run()
        )
        try:
            await ended(here, process)
        finally:
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running
        assert refusals == []
        assert len(here.accepted) == 1


async def test_the_same_end_in_other_words_is_the_same_message(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:

        async def accept(message: Inbound) -> Receipt:
            raise KeyReused(message.dedupe_key or "", "trn_first")

        process = await here.start("true", notifies=True)
        await here.background.wait(process, 10)
        running = asyncio.create_task(
            ProcessMonitor(here.store.processes, here.store.sessions, here.background, accept).run()
        )
        try:
            assert (await ended(here, process)).state is ProcessState.EXITED
        finally:
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running


async def test_a_killed_supervisor_is_told_as_lost_and_its_command_ends(tmp_path: Path) -> None:
    async with scene(tmp_path) as here, here.watched():
        process = await here.start("sleep 60", notifies=True)
        supervisor = here.background.condition(process).supervisor
        assert supervisor
        os.kill(supervisor.pid, signal.SIGKILL)
        row = await ended(here, process)
        assert (row.state, row.exit_code) == (ProcessState.LOST, None)
        (told,) = here.accepted
        assert "without an exit code" in told.text
        await until(lambda: in_group(process.pid) == [])


async def test_an_end_is_seen_at_once_and_not_by_looking_again(tmp_path: Path) -> None:
    """The clock stands still, so nothing but the kernel's hint can wake the monitor."""
    async with scene(tmp_path, ManualClock()) as here, here.watched():
        process = await here.start("read line", notifies=True)
        await until(lambda: len(here.clock.naps) >= 2)  # type: ignore[attr-defined]
        await here.background.type(process, b"go\n")
        assert (await ended(here, process)).exit_code == 0


def row(here: Scene, **changes: object) -> Process:
    process = Process(
        id=new_process_id(here.clock.now_ms()),
        session_id=here.session.id,
        turn_id=here.turn.id,
        owner=here.session.owner,
        home=HOME_ID,
        command="true",
        workdir="/",
        started_at=here.clock.now_ms(),
        notifies=True,
    )
    return replace(process, **changes)  # type: ignore[arg-type]


async def test_a_row_whose_command_was_never_started_does_not_run_for_ever(tmp_path: Path) -> None:
    """The gateway died between the row and the start."""
    async with scene(tmp_path) as here, here.watched():
        process = row(here)
        await here.store.processes.add(process)
        here.background.changed.set()
        assert (await ended(here, process)).state is ProcessState.LOST
        assert "was never started" in here.accepted[0].text


async def test_a_command_that_was_about_to_be_started_never_is(tmp_path: Path) -> None:
    """The gateway died between the folder and the start."""
    async with scene(tmp_path) as here:
        process = row(here)
        await here.store.processes.add(process)
        folder = here.background.folder(process)
        folder.path.parent.mkdir()
        folder.prepare(
            CommandSpec(argv=["true"], workdir="/", environment={}, pty=False, head_bytes=1, segment_bytes=1, segments=1)
        )
        async with here.watched():
            assert (await ended(here, process)).state is ProcessState.LOST
        assert "was never started" in here.accepted[0].text
        assert not folder.prevent_start()


async def test_a_command_that_was_started_and_not_recorded_is_found_again(tmp_path: Path) -> None:
    """The gateway died between the start and its record."""
    async with scene(tmp_path) as here:

        async def forget(*_: object) -> None:
            raise Unavailable("gone")

        here.background = BackgroundProcesses(Altered(here.store.processes, began=forget), here.home, HOME_ID)
        process = await here.start("read line; exit 5", notifies=True)
        assert (await here.store.processes.get(process.id)).pid == 0
        here.background = BackgroundProcesses(here.store.processes, here.home, HOME_ID)
        async with here.watched():

            async def begun() -> bool:
                return (await here.store.processes.get(process.id)).pid == process.pid

            await until(begun)
            here.background.close_input(process)
            assert (await ended(here, process)).exit_code == 5


async def test_what_another_home_looks_after_is_left_alone(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        process = row(here, home="home_2")
        await here.store.processes.add(process)
        own = await here.start("true")
        async with here.watched():
            await ended(here, own)
        assert (await here.store.processes.get(process.id)).state is ProcessState.RUNNING


async def test_matching_output_is_told_while_the_command_runs(tmp_path: Path) -> None:
    async with scene(tmp_path) as here, here.watched():
        process = await here.start("echo starting; echo listening on 80; sleep 60", patterns=(r"listening on \d+",))
        await until(lambda: here.accepted)
        (told,) = here.accepted
        assert "listening on 80" in told.text
        assert "starting" not in told.text.partition("]")[2]
        assert told.dedupe_key == f"process:{process.id}:output:25"

        async def noted() -> bool:
            return (await here.store.processes.get(process.id)).watched == 25

        await until(noted)


async def test_matches_are_told_now_and_then_and_not_for_ever(tmp_path: Path) -> None:
    clock = ManualClock()
    async with scene(tmp_path, clock) as here, here.watched():
        process = await here.start("while read line; do echo ERROR $line; done", patterns=("ERROR",))
        folder = here.background.folder(process)
        for nth in range(1, MATCHES_MAX + 3):
            await here.background.type(process, f"first {nth}\n".encode())
            await until(lambda nth=nth: f"first {nth}\n".encode() in folder.tail(100).data)
            seen = len(clock.naps)
            await clock.advance(10_000)
            await clock.asleep(seen + 1)
        assert len(here.accepted) == MATCHES_MAX
        assert [each for each in here.accepted if "last such message" in each.text] == here.accepted[-1:]
        assert len({each.dedupe_key for each in here.accepted}) == MATCHES_MAX


async def test_what_matches_too_soon_waits_and_is_told_together(tmp_path: Path) -> None:
    clock = ManualClock()
    async with scene(tmp_path, clock) as here, here.watched():
        process = await here.start("while read line; do echo ERROR $line; done", patterns=("ERROR",))
        folder = here.background.folder(process)
        for word in ("one", "two", "three"):
            await here.background.type(process, f"{word}\n".encode())
            await until(lambda word=word: word.encode() in folder.tail(100).data)
            seen = len(clock.naps)
            await clock.advance(600)
            await clock.asleep(seen + 1)
        assert ["ERROR one" in each.text for each in here.accepted] == [True]
        await clock.advance(10_000)
        await until(lambda: len(here.accepted) == 2)
        assert "ERROR two\nERROR three" in here.accepted[1].text


async def test_cut_off_while_telling_a_match_it_is_told_once(tmp_path: Path) -> None:
    async def cut_off(*_: object) -> None:
        raise asyncio.CancelledError

    async with scene(tmp_path) as here:
        process = await here.start("echo ERROR 1; read line; echo ERROR 2", patterns=("ERROR",))
        await until(lambda: here.output(process))
        processes = Altered(here.store.processes, watched=cut_off)
        with pytest.raises(asyncio.CancelledError):
            await ProcessMonitor(processes, here.store.sessions, here.background, here.accept).run()
        assert len(here.accepted) == 1
        here.background.close_input(process)
        await here.background.wait(process, 10)
        async with here.watched():
            await ended(here, process)
        told = [each.text.partition("]")[2] for each in here.accepted]
        assert [("ERROR 1" in each, "ERROR 2" in each) for each in told] == [(True, False), (False, True)]


async def test_a_line_without_an_end_is_looked_at_when_the_command_ends(tmp_path: Path) -> None:
    async with scene(tmp_path) as here, here.watched():
        process = await here.start("printf 'no newline: ERROR'", patterns=("ERROR",))
        await ended(here, process)
        assert len(here.accepted) == 1


@pytest.mark.parametrize("pattern", [r"(1|1)*x", "(1|1)" * 40 + "x"])
async def test_patterns_that_take_for_ever_are_given_up(tmp_path: Path, pattern: str) -> None:
    """S6: any pattern is taken; one that takes for ever costs its own watch and nothing else."""
    async with scene(tmp_path) as here, here.watched():
        process = await here.start(f"echo {'1' * 100}; read line", patterns=(pattern,))
        await until(lambda: here.accepted)
        here.background.close_input(process)
        await ended(here, process)
        (told,) = here.accepted
        assert "not watched for any longer" in told.text


@pytest.mark.parametrize("patterns", [["("], [""], ["x" * 201], ["["], ["a"] * 11])
async def test_a_pattern_that_is_invalid_is_refused(patterns: list[str], pool: Pool) -> None:
    with pytest.raises(Rejected, match="watch_patterns"):
        await check(pool, patterns)


@pytest.mark.parametrize("pattern", ["ERROR|FATAL", r"https?://\S+:\d+", "(a+)+$", r"(a)\1", "(?i)done"])
async def test_any_valid_pattern_is_taken(pattern: str, pool: Pool) -> None:
    await check(pool, [pattern])


async def test_what_is_old_and_has_ended_is_removed(tmp_path: Path) -> None:
    clock = ManualClock()
    async with scene(tmp_path, clock) as here:
        old, running = await here.start("true"), await here.start("sleep 60")
        await here.background.wait(old, 10)
        await here.store.processes.end(old.id, ProcessEvent.EXIT, 0, clock.now_ms())
        assert await here.background.clean() == 0
        await clock.advance(RETENTION_DAYS * 86_400_000 + 1)
        assert await here.background.clean() == 1
        assert not here.background.folder(old).path.exists()
        assert here.background.condition(running).phase is ProcessPhase.RUNNING
        assert [each.id for each in await here.store.processes.list("local")] == [running.id]


async def test_what_belongs_to_nothing_is_counted_ended_and_removed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with scene(tmp_path) as here:
        gone, running = await here.start("true"), await here.start("read line")
        await here.background.wait(gone, 10)
        for process in (gone, running):
            await here.store.processes.remove(process.id)
        await here.store.processes.add(row(here))
        assert await here.background.orphans() == Orphans(running=1, ended=1, rows=1)
        with caplog.at_level(logging.WARNING):
            async with here.watched():
                await until(lambda: not here.background.folder(gone).path.exists())
                assert (await here.background.wait(running, 10)).phase is ProcessPhase.ENDED
        assert "1 run and 1 have ended that belong to no session; 1 have lost their folder" in caplog.text
        # It was told to end, and is removed the next time.
        assert await here.background.clean() == 1


async def test_a_session_that_was_deleted_with_its_processes_disturbs_nobody(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        process = await here.start("read line", notifies=True)
        async with here.watched():
            await here.store.settlement.cancel(here.turn.id, Cause.USER, 1)
            await here.store.settlement.end_session(here.session.id, "over", 1)
            assert await here.store.sessions.delete(here.session.id, 2)
            here.background.close_input(process)
            assert (await here.background.wait(process, 10)).phase is ProcessPhase.ENDED
            receipt = await here.accept(Inbound(conversation="telegram:43", text="go", channel="telegram"))
            here.session = await here.store.sessions.get(receipt.session_id)
            here.turn = await here.store.turns.get(receipt.turn_id)
            other = await here.start("true", notifies=True)
            await ended(here, other)
        assert [each.dedupe_key for each in here.accepted] == [None, f"process:{other.id}:ended"]


def test_durations_read_as_people_say_them() -> None:
    assert [spoken(ms) for ms in (0, 1_234, 61_000, 3_600_000)] == ["0.0 s", "1.2 s", "1 min 1 s", "1 h 0 min"]
