"""A conversation that has rested long enough gives way to a new one, in the transaction that accepts the message."""

from __future__ import annotations

import pytest

from holdfast.core import processes, sessions
from holdfast.core.resets import Reset, When
from holdfast.core.turns import TurnState
from tests.conformance.scenes import MINUTE, Scene

HOUR = 60 * MINUTE
IDLE = Reset(when=When.IDLE, idle_ms=HOUR)


async def test_an_idle_session_gives_way_and_its_memory_is_owed(scene: Scene) -> None:
    """M11: giving way is a boundary."""
    before = await scene.finished("one")
    scene.now += HOUR
    receipt = await scene.accept("two", reset=IDLE)
    old, new = [await scene.store.sessions.get(each) for each in (before.session_id, receipt.session_id)]
    assert (old.state, old.end_reason, old.ended_at) == (sessions.SessionState.ENDED, "idle_reset", scene.now)
    assert (new.auto_reset_reason, new.parent_id, new.turns) == ("idle", old.id, 1)
    assert [each.state for each in await scene.store.segments.of_session(old.id)] == ["sealed"]


async def test_a_session_in_use_stays(scene: Scene) -> None:
    before = await scene.finished("one")
    scene.now += HOUR - 1
    assert (await scene.accept("two", reset=IDLE)).session_id == before.session_id


async def test_a_new_day_begins_with_a_new_session(scene: Scene) -> None:
    before = await scene.finished("one")
    scene.now += 10
    receipt = await scene.accept("two", reset=Reset(when=When.DAILY, day_began_at=scene.now - 5))
    assert receipt.session_id != before.session_id
    assert (await scene.store.sessions.get(receipt.session_id)).auto_reset_reason == "daily"


async def test_a_session_with_a_turn_in_flight_never_gives_way(scene: Scene) -> None:
    """A1: what was promised in it is still to come."""
    turn = await scene.running("one")
    scene.now += 10 * HOUR
    assert (await scene.accept("two", reset=IDLE)).session_id == turn.session_id
    assert await scene.state(turn) is TurnState.RUNNING


async def test_a_session_that_is_resume_pending_never_gives_way(scene: Scene) -> None:
    """R5: the next message continues the same session, however late it comes."""
    turn = await scene.interrupted("one")
    scene.now += 10 * HOUR
    assert (await scene.accept("two", reset=IDLE)).session_id == turn.session_id


@pytest.mark.parametrize("when", [When.IDLE, When.DAILY])
async def test_a_session_with_a_running_process_never_gives_way(scene: Scene, when: When) -> None:
    """A8, S3: what was promised about its end is kept where it was promised."""
    turn = await scene.running("one")
    process = scene.process(turn)
    await scene.store.processes.add(process)
    await scene.finish(turn)
    scene.now += 10 * HOUR
    reset = Reset(when=when, idle_ms=HOUR, day_began_at=scene.now - 1)
    held = await scene.finished("two", reset=reset)
    assert held.session_id == turn.session_id
    await scene.store.processes.end(process.id, processes.ProcessEvent.EXIT, 0, scene.now)
    scene.now += 10 * HOUR
    reset = Reset(when=when, idle_ms=HOUR, day_began_at=scene.now - 1)
    assert (await scene.accept("three", reset=reset)).session_id != turn.session_id


async def test_a_first_message_and_a_one_shot_reset_nothing(scene: Scene) -> None:
    first = await scene.accept("one", reset=IDLE)
    assert (await scene.store.sessions.get(first.session_id)).auto_reset_reason is None
    hook = await scene.finished("hook", conversation="hook:1", one_shot=True)
    scene.now += 10 * HOUR
    again = await scene.accept("hook", conversation="hook:1", one_shot=True, reset=IDLE)
    assert (await scene.store.sessions.get(hook.session_id)).end_reason == "telegram_complete"
    assert (await scene.store.sessions.get(again.session_id)).auto_reset_reason is None
