"""Turns that are tried again later: they hold no place, and nothing of them is lost."""

from __future__ import annotations

import pytest

from holdfast.core.events import EntryKind
from holdfast.core.outages import RETRY_AFTER_MAX_MS
from holdfast.core.quotas import Quota
from holdfast.core.sessions import Activity
from holdfast.core.turns import Cause, Turn, TurnState
from holdfast.errors import OverQuota, Stale
from holdfast.ids import new_session_id, new_turn_id
from holdfast.store.intake import Intake
from tests.conformance.scenes import Scene


async def deferred(scene: Scene, after_ms: int = 1_000, **changes: object) -> Turn:
    """Start a turn and put it away."""
    turn = await scene.running(**changes)
    note = scene.draft(EntryKind.NOTE, text="waiting", waiting="model")
    return (await scene.store.turns.defer(turn, [scene.text("so far"), note], scene.now + after_ms, scene.now))[0]


async def test_a_deferred_turn_is_queued_and_taken_when_its_time_has_come(scene: Scene) -> None:
    """A1, T1, J2: with what it has said, and without a strike."""
    turn = await deferred(scene)
    assert turn == await scene.store.turns.get(turn.id)
    assert (turn.state, turn.node_id, turn.retry_at) == (TurnState.QUEUED, None, scene.now + 1_000)
    kinds = [EntryKind.TURN_ACCEPTED, EntryKind.TURN_STARTED, EntryKind.TEXT, EntryKind.NOTE]
    assert await scene.kinds(turn.session_id) == kinds
    assert await scene.claim() == await scene.store.turns.take(scene.node, 10, scene.now) == []
    assert await scene.store.turns.ripen(scene.now + 999) == 0
    scene.now += 1_000
    assert await scene.store.turns.ripen(scene.now) == 1
    again = await scene.claim_and_start(turn.id)
    assert (again.attempt, again.retry_at) == (2, None)
    assert (await scene.store.sessions.get(turn.session_id)).strikes == 0
    await scene.finish(again)


async def test_a_session_whose_turn_waits_for_its_model_says_so(scene: Scene) -> None:
    """A1: also with messages in line behind it, and only while it waits."""
    turn = await deferred(scene)
    await scene.accept("second")

    async def activity() -> Activity | None:
        return (await scene.store.sessions.glances([turn.session_id]))[turn.session_id].activity

    assert await activity() is Activity.RETRYING
    assert (await scene.store.catalog.obligations()).retrying == 1
    scene.now += 1_000
    await scene.store.turns.ripen(scene.now)
    assert await activity() is Activity.QUEUED
    again = await scene.claim_and_start(turn.id)
    assert await activity() is Activity.RUNNING
    assert (await scene.store.catalog.obligations()).retrying == 0
    await scene.finish(again)


async def test_a_crash_changes_nothing_for_what_is_deferred(scene: Scene) -> None:
    """A1, R10: it belongs to no node."""
    turn = await deferred(scene)
    dead, scene.node = scene.node, await scene.joined()
    await scene.store.nodes.leave(dead)
    assert (await scene.sweep()).total == 0
    assert await scene.store.turns.get(turn.id) == turn


async def test_a_worker_that_lost_its_turn_defers_nothing(scene: Scene) -> None:
    """T4"""
    turn = await scene.running()
    await scene.store.settlement.cancel(turn.id, Cause.USER, scene.now)
    with pytest.raises(Stale):
        await scene.store.turns.defer(turn, [], scene.now, scene.now)


async def test_a_deferred_turn_is_cancelled_like_any_other(scene: Scene) -> None:
    """J9: and what waits behind it is next."""
    turn = await deferred(scene)
    behind = await scene.accept("next")
    assert await scene.claim() == []
    cancelled = await scene.store.settlement.cancel(turn.id, Cause.USER, scene.now)
    assert (cancelled.state, cancelled.retry_at) == (TurnState.CANCELLED, None)
    assert cancelled == await scene.store.turns.get(turn.id)
    assert await scene.store.turns.ripen(scene.now + 1_000) == 0
    await scene.claim_and_start(behind.turn_id)


async def test_a_clock_that_was_set_back_keeps_no_turn_waiting(scene: Scene) -> None:
    """C1: none could have meant to wait for so long."""
    turn = await deferred(scene)
    scene.now -= 2 * RETRY_AFTER_MAX_MS
    assert await scene.store.turns.ripen(scene.now) == 1
    await scene.claim_and_start(turn.id)


async def test_what_is_deferred_counts_as_waiting_for_a_quota(scene: Scene) -> None:
    """An outage of the model is no way around the limit."""
    await deferred(scene, owner="tenant")
    ids = (new_turn_id(scene.now), new_session_id(scene.now))
    with pytest.raises(OverQuota):
        await Intake(scene.store.database, Quota(queued=1)).accept(scene.message(owner="tenant"), *ids, scene.now)
