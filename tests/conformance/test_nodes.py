"""The processes that work on a store, and the takeover from those that are gone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.core import delivery, effects, segments, sessions
from holdfast.core.effects import Effect
from holdfast.core.events import EntryKind
from holdfast.core.timekeeping import BootClock
from holdfast.core.turns import Cause, Mode, Policy, Resume, TurnState
from holdfast.errors import NodeLost, Stale
from holdfast.ids import NodeId
from holdfast.store.retention import DAY_MS
from tests.conformance.scenes import MINUTE, OWNER, Scene, on_postgres, on_sqlite

HOUR = 60 * MINUTE


async def die(scene: Scene, node: NodeId) -> None:
    """Declare a node dead, as the others do when its beat stands still."""
    assert await scene.store.nodes.bury(node, (await scene.store.nodes.beats())[node])


async def crowd(scene: Scene) -> dict[str, object]:
    """Let the scene's node hold one of everything, and be dead; a fresh node takes its place."""
    held: dict[str, object] = {}
    held["claimed"] = await scene.claimed(conversation="a")
    held["running"] = await scene.say(await scene.running(conversation="b"), "so far")
    held["detached"], held["call"] = await scene.use(
        await scene.running(conversation="c", mode=Mode.DETACHED), Effect.EFFECTFUL
    )
    held["waiting"] = await scene.parked(conversation="d")
    await scene.sent_for("one", "two", conversation="e")
    (held["sending"],) = await scene.send()
    await scene.sealed(conversation="f")
    (held["committing"],) = await scene.store.segments.claim(scene.node, OWNER, scene.now, 10)
    dead, scene.node = scene.node, NodeId("")
    if scene.postgres:
        await die(scene, dead)
    scene.node = await scene.joined()
    return held


async def test_a_node_that_joined_is_alive(scene: Scene) -> None:
    assert await scene.store.nodes.beats() == {scene.node: 0}


@on_sqlite
async def test_where_one_process_owns_the_store_joining_buries_all_others(scene: Scene) -> None:
    """R9: whoever was there before is gone, or this process would not have the store."""
    second = await scene.joined()
    assert set(await scene.store.nodes.beats()) == {second}


@on_postgres
async def test_where_nodes_share_the_store_joining_buries_nobody(scene: Scene) -> None:
    second = await scene.joined()
    assert set(await scene.store.nodes.beats()) == {scene.node, second}


@on_postgres
async def test_a_beat_grows(scene: Scene) -> None:
    await scene.store.nodes.beat(scene.node)
    await scene.store.nodes.beat(scene.node)
    assert await scene.store.nodes.beats() == {scene.node: 2}


@on_postgres
async def test_a_beat_in_between_saves_the_node(scene: Scene) -> None:
    """C1: a node is buried only if its beat is still the one it was seen at."""
    seen = (await scene.store.nodes.beats())[scene.node]
    await scene.store.nodes.beat(scene.node)
    assert await scene.store.nodes.bury(scene.node, seen) is False
    await scene.store.nodes.beat(scene.node)
    assert await scene.store.nodes.bury(scene.node, seen + 2) is True


@on_postgres
async def test_a_node_that_was_buried_learns_it_with_its_next_beat(scene: Scene) -> None:
    await die(scene, scene.node)
    with pytest.raises(NodeLost):
        await scene.store.nodes.beat(scene.node)
    with pytest.raises(NodeLost):
        await scene.store.nodes.beat(NodeId("never joined"))


async def test_a_node_is_buried_once(scene: Scene) -> None:
    """P1"""
    await die(scene, scene.node)
    assert await scene.store.nodes.bury(scene.node, 0) is False
    assert await scene.store.nodes.bury(NodeId("never joined"), 0) is False
    assert await scene.store.nodes.beats() == {}


async def test_a_node_that_leaves_gives_everything_up(scene: Scene) -> None:
    turn = await scene.claimed()
    await scene.store.nodes.leave(scene.node)
    assert await scene.store.nodes.beats() == {}
    assert (await scene.sweep()).released == 1
    scene.node = await scene.joined()
    assert [each.id for each in await scene.claim()] == [turn.id]


async def test_a_sweep_takes_nothing_from_the_living(scene: Scene) -> None:
    """C1: however much time has passed on any clock."""
    await scene.claimed(conversation="a")
    await scene.running(conversation="b")
    await scene.sent_for("one", conversation="c")
    await scene.send()
    await scene.sealed(conversation="d")
    await scene.store.segments.claim(scene.node, OWNER, scene.now, 10)
    before = await scene.snapshot()
    scene.now += 1_000 * DAY_MS
    assert (await scene.sweep()).total == 0
    scene.now -= 2_000 * DAY_MS
    assert (await scene.sweep()).total == 0
    assert await scene.snapshot() == before


async def test_a_sweep_takes_over_everything_that_the_dead_held(scene: Scene) -> None:
    """A1, D2, M6, X1, R9"""
    held = await crowd(scene)
    swept = await scene.sweep()
    running, detached, sending, committing = (held[each] for each in ("running", "detached", "sending", "committing"))
    assert (swept.released, swept.deliveries, swept.segments, swept.total) == (1, 1, 1, 5)
    assert (swept.turns.rested, swept.turns.continued, swept.turns.given_up) == ((running.id,), (detached.id,), ())
    assert await scene.state(held["claimed"]) is TurnState.QUEUED
    assert await scene.state(held["waiting"]) is TurnState.WAITING
    cut = await scene.store.turns.get(running.id)
    assert (cut.state, cut.cause, cut.node_id) == (TurnState.INTERRUPTED, "crash", None)
    assert await scene.state(detached) is TurnState.QUEUED
    assert [call.state for call in await scene.store.journal.calls(detached.id)] == [effects.CallState.UNKNOWN]
    lost = await scene.store.deliveries.get(sending.id)
    assert (lost.state, lost.settled_at) == (delivery.DeliveryState.UNKNOWN, scene.now)
    (returned,) = await scene.store.segments.of_session(committing.session_id)
    assert (returned.state, returned.owner) == (segments.SegmentState.SEALED, OWNER)
    assert {turn.id for turn in await scene.claim()} == {held["claimed"].id, detached.id}
    (repeat,) = await scene.send()
    assert (repeat.id, repeat.repeats) == (sending.id, 1)
    assert await scene.store.segments.claim(scene.node, OWNER, scene.now, 10) != []


async def test_a_second_sweep_changes_nothing(scene: Scene) -> None:
    """P1: recovery converges."""
    await crowd(scene)
    await scene.sweep()
    before = await scene.snapshot()
    assert (await scene.sweep()).total == 0
    assert await scene.snapshot() == before


async def test_a_sweep_in_small_steps_ends_where_a_large_one_ends(scene: Scene) -> None:
    """P1"""
    for number in range(5):
        await scene.running(conversation=f"chat:{number}")
        await scene.sent_for("hi", conversation=f"out:{number}")
    await scene.send()
    await scene.store.nodes.leave(scene.node)
    steps = 0
    while swept := (await scene.store.nodes.sweep(Cause.CRASH, Policy(resume=Resume.ON_MESSAGE), scene.now, limit=2)).total:
        assert swept <= 4
        steps += 1
    assert steps == 3
    assert await scene.store.turns.tally() == {TurnState.INTERRUPTED: 5, TurnState.COMPLETED: 5}


async def test_a_zombie_changes_nothing_by_any_write(scene: Scene) -> None:
    """T4: everything it held was taken over, and some of it is held by another node again."""
    held = await crowd(scene)
    await scene.sweep()
    await scene.claim()
    await scene.send()
    await scene.store.segments.claim(scene.node, OWNER, scene.now, 10)
    claimed, running, detached = held["claimed"], held["running"], held["detached"]
    call, sending, committing = held["call"], held["sending"], held["committing"]
    zombie = running.node_id
    ended = replace(call.on(effects.CallEvent.SUCCEED), result="done")
    before = await scene.snapshot()
    await scene.store.turns.release(claimed)
    assert (
        len(
            await scene.store.settlement.interrupt(
                zombie, [running.id, detached.id], Cause.CRASH, Policy(resume=Resume.AUTO), 0
            )
        )
        == 0
    )
    for write in (
        scene.start(claimed),
        scene.say(running, "late"),
        scene.say(detached, "late"),
        scene.move(detached, (call, ended)),
        scene.store.turns.park(detached, [scene.asked()], scene.question()),
        scene.finish(running),
        scene.finish(detached, deliveries=scene.parts(detached, "late")),
        scene.settle(sending, delivery.DeliveryEvent.CONFIRM),
        scene.settle(sending, delivery.DeliveryEvent.LOSE),
        scene.store.segments.settle(committing, segments.SegmentEvent.SUCCEED, scene.now),
        scene.store.segments.settle(committing, segments.SegmentEvent.FAIL, scene.now),
    ):
        with pytest.raises(Stale):
            await write
    assert await scene.snapshot() == before


async def test_a_node_that_was_given_up_takes_nothing_more(scene: Scene) -> None:
    """T4: even while it does not know it yet."""
    await scene.sent_for("one", conversation="a")
    await scene.sealed(conversation="b")
    await scene.accept(conversation="c")
    await die(scene, scene.node)
    before = await scene.snapshot()
    assert await scene.claim() == []
    assert await scene.send() == []
    assert await scene.store.segments.claim(scene.node, OWNER, scene.now, 10) == []
    assert await scene.snapshot() == before
    scene.node = await scene.joined()
    assert len(await scene.claim()) == 1


async def test_three_crashes_in_a_row_suspend_the_session(scene: Scene) -> None:
    """S2, R8, R9"""
    turn = await scene.running()
    for crash in range(3):
        dead, scene.node = scene.node, await scene.joined()
        await scene.store.nodes.leave(dead)
        swept = await scene.sweep(Resume.AUTO)
        assert swept.turns.given_up == ((turn.id,) if crash == 2 else ())
        if crash < 2:
            await scene.claim_and_start(turn.id)
    assert (await scene.store.sessions.get(turn.session_id)).state is sessions.SessionState.SUSPENDED


async def test_what_an_unknown_node_holds_is_taken_over_too(scene: Scene) -> None:
    """A1, D2: a zombie older than its own row claimed once more, and is gone for good."""
    zombie = scene.node
    await scene.store.nodes.leave(zombie)
    await scene.store.nodes.forget(scene.now)
    claimed = await scene.claimed(conversation="a")
    await scene.running(conversation="b")
    await scene.sent_for("one", conversation="c")
    await scene.send()
    await scene.sealed(conversation="d")
    await scene.store.segments.claim(zombie, OWNER, scene.now, 10)
    scene.node = await scene.joined()
    swept = await scene.sweep()
    assert (swept.released, len(swept.turns), swept.deliveries, swept.segments) == (1, 1, 1, 1)
    assert [turn.id for turn in await scene.claim()] == [claimed.id]


async def test_a_dead_node_is_kept_while_it_holds_anything(scene: Scene) -> None:
    """D2: forgetting it would leave what it holds to nobody."""
    turn = await scene.running()
    await scene.store.nodes.leave(scene.node)
    await scene.store.nodes.forget(scene.now)
    assert (await scene.sweep()).turns.rested == (turn.id,)
    await scene.store.nodes.forget(scene.now - 1)
    assert await scene.sql("SELECT id FROM nodes") != []
    await scene.store.nodes.forget(scene.now)
    assert await scene.sql("SELECT id FROM nodes") == []


async def test_a_living_node_is_never_forgotten(scene: Scene) -> None:
    await scene.store.nodes.forget(scene.now + 1_000 * DAY_MS)
    assert set(await scene.store.nodes.beats()) == {scene.node}


async def test_an_interruption_is_the_last_entry_of_its_attempt(scene: Scene) -> None:
    """J2 (contract): what was shown, the calls nobody knows of, then one marker."""
    turn, _ = await scene.use(await scene.say(await scene.running(), "so far"), Effect.EFFECTFUL)
    await scene.store.nodes.leave(scene.node)
    await scene.sweep()
    kinds = await scene.kinds(turn.session_id)
    assert kinds[-1] is EntryKind.TURN_INTERRUPTED
    assert kinds.count(EntryKind.TURN_INTERRUPTED) == 1


async def test_nodes_whose_clock_is_off_are_named_while_they_live(scene: Scene) -> None:
    """C1: whichever node is asked."""
    node = scene.node
    await scene.store.nodes.note_clock(node, BootClock(boot="a", offset_ms=5, off_ms=-HOUR))
    assert await scene.store.nodes.clocks_off() == {node: -HOUR}
    await scene.store.nodes.note_clock(node, BootClock(boot="a", offset_ms=5, off_ms=0))
    assert await scene.store.nodes.clocks_off() == {}
    await scene.store.nodes.note_clock(node, BootClock(boot="a", offset_ms=5, off_ms=HOUR))
    await scene.store.nodes.leave(node)
    assert await scene.store.nodes.clocks_off() == {}


async def test_the_time_at_the_start_of_a_machine_is_what_the_last_node_knew(scene: Scene) -> None:
    """C1: dead nodes count, because the next process is asked; other machines, and other starts, do not."""
    assert await scene.store.nodes.boot_clock("a") is None
    for boot, offset in (("a", 1), ("b", 2), ("a", 3)):
        node = await scene.joined()
        assert await scene.store.nodes.boot_clock("c") is None
        await scene.store.nodes.note_clock(node, BootClock(boot=boot, offset_ms=offset, off_ms=0))
        await scene.store.nodes.leave(node)
        scene.now += MINUTE
    await scene.joined()
    assert [await scene.store.nodes.boot_clock(boot) for boot in ("a", "b")] == [3, 2]
