"""Background processes: known before they run, found again by their home, and ended once."""

from __future__ import annotations

import pytest

from holdfast.core.processes import ProcessEvent, ProcessState
from holdfast.errors import NotFound, Stale
from holdfast.ids import ProcessId, SessionId
from tests.conformance.scenes import MINUTE, Scene

HOME = "/home/holdfast"
NOBODY = ProcessId("nobody")


async def test_a_process_is_kept_in_full(scene: Scene) -> None:
    """A8: whoever finds it again needs nothing else to keep what was promised."""
    turn = await scene.running()
    process = scene.process(turn, notifies=True, patterns=("ready", "grün"), reply_to="telegram:1", pid=7, born=8, watched=9)
    await scene.store.processes.add(process)
    await scene.reopen()
    assert await scene.store.processes.get(process.id) == process
    assert await scene.store.processes.running(HOME) == [process]
    assert await scene.store.processes.running("/elsewhere") == []


async def test_a_process_has_its_pid_once_it_runs(scene: Scene) -> None:
    process = scene.process(await scene.running())
    await scene.store.processes.add(process)
    await scene.store.processes.began(process.id, 41, 1234)
    found = await scene.store.processes.get(process.id)
    assert (found.pid, found.born, found.state) == (41, 1234, ProcessState.RUNNING)
    with pytest.raises(NotFound):
        await scene.store.processes.began(NOBODY, 1, 1)


async def test_what_was_looked_at_stays_looked_at(scene: Scene) -> None:
    """A8: a match is told once."""
    process = scene.process(await scene.running())
    await scene.store.processes.add(process)
    for position in (100, 50):
        await scene.store.processes.watched(process.id, position)
    assert (await scene.store.processes.get(process.id)).watched == 100


@pytest.mark.parametrize(
    ("event", "code", "state"),
    [
        (ProcessEvent.EXIT, 0, ProcessState.EXITED),
        (ProcessEvent.EXIT, -9, ProcessState.EXITED),
        (ProcessEvent.LOSE, None, ProcessState.LOST),
    ],
)
async def test_a_process_ends_once(scene: Scene, event: ProcessEvent, code: int | None, state: ProcessState) -> None:
    """P1: whoever comes second gets what the first has seen."""
    process = scene.process(await scene.running())
    await scene.store.processes.add(process)
    scene.now += MINUTE
    ended = await scene.store.processes.end(process.id, event, code, scene.now)
    assert (ended.state, ended.exit_code, ended.ended_at) == (state, code, scene.now)
    for other, its_code in ((ProcessEvent.EXIT, 1), (ProcessEvent.LOSE, None)):
        assert await scene.store.processes.end(process.id, other, its_code, scene.now + 1) == ended
    assert await scene.store.processes.get(process.id) == ended
    assert await scene.store.processes.running(HOME) == []


async def test_an_exit_without_its_code_is_refused(scene: Scene) -> None:
    process = scene.process(await scene.running())
    await scene.store.processes.add(process)
    with pytest.raises(Stale):
        await scene.store.processes.end(process.id, ProcessEvent.EXIT, None, scene.now)


async def test_an_unknown_process_is_not_found(scene: Scene) -> None:
    with pytest.raises(NotFound):
        await scene.store.processes.get(NOBODY)
    with pytest.raises(NotFound):
        await scene.store.processes.end(NOBODY, ProcessEvent.LOSE, None, scene.now)
    assert not await scene.store.processes.remove(NOBODY)


async def test_processes_are_listed_by_owner_session_and_state(scene: Scene) -> None:
    mine, other = await scene.running(conversation="a"), await scene.running(conversation="b")
    added: list[ProcessId] = []
    for turn in (mine, other, mine):
        scene.now += 1
        process = scene.process(turn)
        await scene.store.processes.add(process)
        added.append(process.id)
    await scene.store.processes.end(added[0], ProcessEvent.EXIT, 0, scene.now)
    theirs = scene.process(await scene.running(conversation="c", owner="somebody"), owner="somebody")
    await scene.store.processes.add(theirs)

    async def ids(session_id: SessionId | None = None, **changes: object) -> list[ProcessId]:
        found = await scene.store.processes.list("local", session_id, **changes)  # pyright: ignore[reportArgumentType] - By name.
        return [process.id for process in found]

    newest = added[::-1]
    assert await ids() == newest
    assert await ids(mine.session_id) == [added[2], added[0]]
    assert await ids(state=ProcessState.RUNNING) == newest[:2]
    assert await ids(mine.session_id, state=ProcessState.EXITED) == [added[0]]
    assert await ids(limit=1) == newest[:1]
    assert await ids(before=newest[0]) == newest[1:]
    assert await scene.store.processes.list("local", theirs.session_id) == []


async def test_a_process_is_forgotten_on_wish_and_with_its_session(scene: Scene) -> None:
    turn = await scene.running()
    first, second = scene.process(turn), scene.process(turn)
    for process in (first, second):
        await scene.store.processes.add(process)
    assert await scene.store.processes.remove(first.id)
    await scene.store.sessions.delete(turn.session_id, scene.now)
    assert await scene.store.processes.list("local") == []


async def test_a_session_whose_process_runs_is_not_pruned(scene: Scene) -> None:
    """A8, S3, W6: else nobody would be told of its end."""
    turn = await scene.running(one_shot=True, channel="webhook")
    process = scene.process(turn)
    await scene.store.processes.add(process)
    await scene.finish(turn, memory_owner=None)
    assert await scene.store.sessions.prune("webhook", scene.now) == 0
    await scene.store.processes.end(process.id, ProcessEvent.LOSE, None, scene.now)
    assert await scene.store.sessions.prune("webhook", scene.now) == 1
