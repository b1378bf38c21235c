"""Tasks that were handed on: who works for whom, and whose end is still to be told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.core.delegation import DelegatedTask, child_message, result_message
from holdfast.core.intake import Inbound, Receipt
from holdfast.core.turns import Cause, Turn, TurnEvent, TurnState
from holdfast.ids import new_session_id, new_turn_id
from tests.conformance.scenes import Scene


async def accept(scene: Scene, message: Inbound) -> Receipt:
    return await scene.store.intake.accept(message, new_turn_id(scene.now), new_session_id(scene.now), scene.now)


async def sent(scene: Scene, parent: Turn, number: int = 1, *, later: bool = True) -> Receipt:
    """Let a running turn hand a task on."""
    session = await scene.store.sessions.get(parent.session_id)
    return await accept(
        scene, child_message(DelegatedTask(goal=f"goal {number}"), session, parent, f"{parent.id}:call", number, later=later)
    )


async def ended(scene: Scene, child: Receipt, event: TurnEvent = TurnEvent.FINISH) -> Turn:
    claimed = {turn.id: turn for turn in await scene.claim()}
    mine = await scene.start(claimed.pop(child.turn_id))
    for other in claimed.values():
        await scene.store.turns.release(other)
    return await scene.finish(mine, event=event, cause="user" if event is TurnEvent.CANCEL else None)


async def owed(scene: Scene, since: int = 0, limit: int = 10) -> list[str]:
    return [turn.id for turn in await scene.store.turns.unreported(since, limit)]


async def bring_home(scene: Scene, child: Receipt, parent: Turn) -> Receipt:
    turn = await scene.store.turns.get(child.turn_id)
    session = await scene.store.sessions.get(parent.session_id)
    entries = await scene.store.journal.read_turn(turn.id)
    return await accept(scene, result_message(turn, entries, await scene.store.turns.asked(turn.id), session, parent))


async def test_a_repeated_call_finds_its_children(scene: Scene) -> None:
    """A3: the same call hands the same task on once."""
    parent = await scene.running()
    first, again = await sent(scene, parent), await sent(scene, parent)
    assert (again.turn_id, again.duplicate) == (first.turn_id, True)
    assert (await sent(scene, parent, 2)).turn_id != first.turn_id


async def test_who_works_for_a_turn_is_known_until_they_rest(scene: Scene) -> None:
    parent, other = await scene.running(), await scene.running(conversation="another")
    first, second = await sent(scene, parent), await sent(scene, parent, 2, later=False)
    await sent(scene, other)
    assert [turn.id for turn in await scene.store.turns.at_work_for(parent.id)] == sorted([first.turn_id, second.turn_id])
    await ended(scene, first)
    assert [turn.id for turn in await scene.store.turns.at_work_for(parent.id)] == [second.turn_id]


@pytest.mark.parametrize("event", [TurnEvent.FINISH, TurnEvent.FAIL, TurnEvent.CANCEL])
async def test_every_end_is_owed_until_it_has_come_home(scene: Scene, event: TurnEvent) -> None:
    """A6: however a task ended, it is told once; telling it again is the same message."""
    parent = await scene.running()
    child = await sent(scene, parent)
    assert await owed(scene) == []
    await ended(scene, child, event)
    assert await owed(scene) == [child.turn_id]
    first = await bring_home(scene, child, parent)
    assert await owed(scene) == []
    assert (await bring_home(scene, child, parent)).turn_id == first.turn_id
    assert first.session_id == parent.session_id


async def test_what_was_given_up_is_told_too(scene: Scene) -> None:
    """S2: a task that was interrupted too often has ended."""
    parent = await scene.running()
    child = await sent(scene, parent)
    for _ in range(3):
        await scene.interrupt(await scene.claim_and_start(child.turn_id))
    assert await scene.state(child) is TurnState.INTERRUPTED
    assert await owed(scene) == [child.turn_id]


async def test_nothing_is_owed_for_what_was_waited_for_or_was_no_task(scene: Scene) -> None:
    parent = await scene.running()
    await ended(scene, await sent(scene, parent, later=False))
    # Whoever names a conversation like a task does not make it one.
    session = await scene.store.sessions.get(parent.session_id)
    forged = replace(child_message(DelegatedTask(goal="x"), session, parent, "forged", 1, later=True), channel="chat")
    await ended(scene, await accept(scene, forged))
    assert await owed(scene) == []


async def test_what_ended_with_whoever_wanted_it_is_not_owed(scene: Scene) -> None:
    parent = await scene.running()
    cancelled, finished = await sent(scene, parent), await sent(scene, parent, 2)
    await ended(scene, finished)
    await scene.store.settlement.cancel(parent.id, Cause.USER, scene.now)
    assert await scene.state(cancelled) is TurnState.CANCELLED
    assert await owed(scene) == [finished.turn_id]
    await scene.store.sessions.delete(parent.session_id, scene.now)
    assert await owed(scene) == []


async def test_only_so_much_and_so_far_back_is_looked_for(scene: Scene) -> None:
    parent = await scene.running()
    children = [await sent(scene, parent, number) for number in range(1, 4)]
    for child in children:
        await ended(scene, child)
    assert await owed(scene, limit=2) == sorted(child.turn_id for child in children)[:2]
    assert await owed(scene, since=scene.now - 1) == sorted(child.turn_id for child in children)
    assert await owed(scene, since=scene.now) == []


async def test_the_end_of_a_task_is_not_owed_to_a_session_that_is_being_removed(scene: Scene) -> None:
    """W8: its rows go in steps, and nobody reads it any more from the first of them on."""
    parent = await scene.running()
    child = await ended(scene, await sent(scene, parent))
    assert await owed(scene) == [child.id]
    await scene.sql("UPDATE sessions SET owner = '' WHERE id = :id", id=parent.session_id)
    assert await owed(scene) == []
    await scene.sql("UPDATE sessions SET owner = 'local' WHERE id = :id", id=parent.session_id)
