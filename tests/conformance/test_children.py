"""Turns that work for another turn: they know it, and they are cancelled with it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from holdfast.core.intake import Busy, Receipt
from holdfast.core.turns import Cause, Mode, Turn, TurnState
from holdfast.errors import IllegalMove, NotFound, Stale
from holdfast.ids import SessionId, TurnId
from holdfast.store import cancellation, intake
from holdfast.store.database import POSTGRES
from tests.conformance.scenes import MINUTE, Scene, on_postgres
from tests.conformance.test_concurrency import race
from tests.conformance.test_wakes import heard_of


async def child(scene: Scene, parent: Turn | Receipt, name: str = "child:1", **changes: object) -> Receipt:
    parent_id = parent.id if isinstance(parent, Turn) else parent.turn_id
    facts = {"conversation": name, "channel": "delegate", "one_shot": True, "mode": Mode.DETACHED}
    return await scene.accept("do this", **{**facts, "parent_turn_id": parent_id, **changes})


async def test_a_child_knows_whom_it_works_for(scene: Scene) -> None:
    parent = await scene.running()
    receipt = await child(scene, parent)
    assert (await scene.store.turns.get(receipt.turn_id)).parent_turn_id == parent.id
    session = await scene.store.sessions.get(receipt.session_id)
    assert (session.parent_id, session.auto_reset_reason) == (parent.session_id, None)
    assert (await scene.store.turns.get(parent.id)).parent_turn_id is None


async def test_a_child_of_a_suspended_conversation_is_a_child_all_the_same(scene: Scene) -> None:
    """R7: the session that follows a suspended one is told from one that works for another."""
    await scene.store.settlement.suspend_session((await scene.finished(conversation="child:1")).session_id, scene.now)
    parent = await scene.running()
    session = await scene.store.sessions.get((await child(scene, parent, one_shot=False)).session_id)
    assert (session.parent_id, session.auto_reset_reason) == (parent.session_id, None)


async def test_a_child_outlives_a_parent_that_completes(scene: Scene) -> None:
    """A6: what runs in the background arrives later."""
    parent = await scene.running()
    receipt = await child(scene, parent)
    await scene.finish(parent)
    assert await scene.state(receipt) is TurnState.QUEUED
    late = await child(scene, parent, "child:2")
    assert await scene.state(late) is TurnState.QUEUED


async def test_a_session_is_not_pruned_while_somebody_works_for_it(scene: Scene) -> None:
    """A6, S3, W6: else the result that was promised would have nowhere to come home to."""
    parent = await scene.running(one_shot=True, channel="webhook")
    receipt = await child(scene, parent)
    await scene.finish(parent, memory_owner=None)
    assert await scene.store.sessions.prune("webhook", scene.now) == 0
    await scene.finish(await scene.claim_and_start(receipt.turn_id), memory_owner=None)
    assert await scene.store.sessions.prune("webhook", scene.now) == 1


async def test_what_works_for_a_session_in_the_background_is_cancelled_when_it_is_deleted(scene: Scene) -> None:
    """A6, T3: nobody is left who could read the result."""
    parent = await scene.running()
    running = await child(scene, parent)
    grandchild = await child(scene, await scene.claim_and_start(running.turn_id), "child:2")
    queued = await child(scene, parent, "child:3")
    await scene.finish(parent)
    assert await scene.store.sessions.delete(parent.session_id, scene.now)
    for receipt in (queued, running, grandchild):
        assert await scene.state(receipt) is TurnState.CANCELLED


async def test_nobody_works_for_a_turn_that_was_cancelled_or_never_was(scene: Scene) -> None:
    """T3: a child that comes too late is refused, and its parent told why."""
    parent = await scene.running()
    await scene.store.settlement.cancel(parent.id, Cause.USER, scene.now)
    before = await scene.snapshot()
    with pytest.raises(IllegalMove, match="cancelled"):
        await child(scene, parent, dedupe_key="k")
    with pytest.raises(NotFound):
        await scene.accept("do this", parent_turn_id=TurnId("nobody"), dedupe_key="k")
    assert await scene.snapshot() == before


async def test_a_child_that_is_asked_for_again_is_the_first(scene: Scene) -> None:
    """A3: a parent that goes on after a crash finds the child it had, even one that is over."""
    parent = await scene.running()
    first = await child(scene, parent, dedupe_key="k")
    await scene.store.settlement.cancel(parent.id, Cause.USER, scene.now)
    again = await child(scene, parent, dedupe_key="k")
    assert (again.turn_id, again.state, again.duplicate) == (first.turn_id, TurnState.CANCELLED, True)


async def family(scene: Scene) -> tuple[Turn, list[TurnId], Turn]:
    """Return a turn, those that work for it in every state and depth, and one that had finished before."""
    parent = await scene.running()
    done = await child(scene, parent, "done")
    done_turn = await scene.finish(await scene.claim_and_start(done.turn_id), memory_owner=None)
    running = await scene.claim_and_start((await child(scene, parent, "running")).turn_id)
    grandchild = await scene.claim_and_start((await child(scene, running, "grandchild")).turn_id)
    parked = await scene.park(await scene.claim_and_start((await child(scene, parent, "parked")).turn_id))
    queued = await child(scene, grandchild, "queued")
    return parent, [running.id, grandchild.id, parked.id, queued.turn_id], done_turn


async def cancel(scene: Scene, parent: Turn) -> None:
    await scene.store.settlement.cancel(parent.id, Cause.USER, scene.now)


async def end(scene: Scene, parent: Turn) -> None:
    await scene.store.settlement.end_session(parent.session_id, "user", scene.now)


async def suspend(scene: Scene, parent: Turn) -> None:
    await scene.store.settlement.suspend_session(parent.session_id, scene.now)


async def supersede(scene: Scene, parent: Turn) -> None:
    receipt = await scene.accept("instead", busy=Busy.INTERRUPT)
    assert parent.id in receipt.superseded


async def delete(scene: Scene, parent: Turn) -> None:
    await scene.store.sessions.delete(parent.session_id, scene.now)


@pytest.mark.parametrize("way", [cancel, end, suspend, supersede, delete])
async def test_what_works_for_a_turn_is_cancelled_with_it(
    scene: Scene, way: Callable[[Scene, Turn], Awaitable[None]]
) -> None:
    """T3, J9: however the turn comes to be cancelled, and however deep its helpers are; their workers are told at once."""
    parent, helpers, done = await family(scene)
    scene.now += MINUTE
    heard = await heard_of(scene, lambda: way(scene, parent))
    for turn_id in helpers:
        turn = await scene.store.turns.get(turn_id)
        assert (turn.state, turn.node_id) == (TurnState.CANCELLED, None)
        assert f"cancelled:{turn_id}" in heard
        assert (await scene.store.sessions.get(turn.session_id)).end_reason == "delegate_complete"
    assert await scene.state(done) is TurnState.COMPLETED
    assert await scene.store.questions.open("local") == []


async def test_a_helper_that_was_cancelled_writes_no_more(scene: Scene) -> None:
    """T4"""
    parent = await scene.running()
    helper = await scene.claim_and_start((await child(scene, parent)).turn_id)
    await cancel(scene, parent)
    with pytest.raises(Stale):
        await scene.say(helper, "too late")


async def test_a_parent_outlives_the_cancel_of_a_helper(scene: Scene) -> None:
    parent, (running, *_), _ = await family(scene)
    await scene.store.settlement.cancel(running, Cause.USER, scene.now)
    assert await scene.state(parent) is TurnState.RUNNING


async def test_a_helper_does_not_go_on_after_its_parent_was_cancelled(scene: Scene) -> None:
    """T3: it was interrupted when that happened, and so was not in flight."""
    parent = await scene.running()
    helper = await scene.claim_and_start((await child(scene, parent, mode=Mode.CONVERSATION, one_shot=False)).turn_id)
    await scene.interrupt(helper)
    await cancel(scene, parent)
    assert await scene.state(helper) is TurnState.INTERRUPTED
    with pytest.raises(IllegalMove):
        await scene.store.turns.resume(helper.id, scene.now)


@on_postgres
async def test_a_child_that_comes_while_its_parent_is_cancelled_is_refused(scene: Scene) -> None:
    """T3: on any node."""
    parent = await scene.running()
    _, error = await race(
        scene, lambda: cancellation.cancel(POSTGRES, parent.id, Cause.USER, scene.now), lambda: child(scene, parent)
    )
    assert isinstance(error, IllegalMove)


@on_postgres
async def test_a_cancel_that_comes_while_a_child_is_accepted_reaches_it(scene: Scene) -> None:
    """T3: on any node."""
    parent = await scene.running()
    message = scene.message("do this", conversation="child:1", parent_turn_id=parent.id, one_shot=True, channel="delegate")
    ids = (TurnId("child"), SessionId("child"))
    await race(
        scene,
        lambda: intake.accept(POSTGRES, message, *ids, scene.now),
        lambda: scene.store.settlement.cancel(parent.id, Cause.USER, scene.now),
    )
    assert await scene.state(TurnId("child")) is TurnState.CANCELLED


@on_postgres
async def test_families_that_are_cancelled_at_once_are_all_cancelled(scene: Scene) -> None:
    """A1: parents and children, from any side."""
    parent, helpers, _ = await family(scene)
    other = await scene.another_store()
    cancels = [other.settlement.cancel(turn_id, Cause.USER, scene.now) for turn_id in reversed(helpers)]
    await asyncio.gather(scene.store.settlement.cancel(parent.id, Cause.USER, scene.now), *cancels, return_exceptions=True)
    states = [await scene.state(turn_id) for turn_id in (parent.id, *helpers)]
    assert set(states) == {TurnState.CANCELLED}


async def test_a_message_cannot_work_for_what_it_takes_the_place_of(scene: Scene) -> None:
    """T3"""
    parent = await scene.running()
    before = await scene.snapshot()
    with pytest.raises(IllegalMove):
        await scene.accept("instead", busy=Busy.INTERRUPT, parent_turn_id=parent.id)
    assert await scene.snapshot() == before
