"""A message that arrives while an earlier one is in flight: it waits, takes its place, joins it, or is refused."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.core.events import EntryKind
from holdfast.core.intake import Busy
from holdfast.core.transcript import Role, fold
from holdfast.core.turns import Mode, TurnState
from holdfast.errors import SessionBusy, Stale
from tests.conformance.scenes import MINUTE, Scene


async def test_with_queue_messages_wait_for_their_turn(scene: Scene) -> None:
    """T2"""
    first = await scene.running("one")
    second = await scene.accept("two", busy=Busy.QUEUE)
    assert await scene.claim() == []
    await scene.finish(first)
    assert [turn.id for turn in await scene.claim()] == [second.turn_id]


async def test_with_reject_a_message_is_refused_and_leaves_nothing(scene: Scene) -> None:
    await scene.running("one")
    before = await scene.snapshot()
    with pytest.raises(SessionBusy):
        await scene.accept("two", busy=Busy.REJECT, dedupe_key="k")
    assert await scene.snapshot() == before


async def test_with_reject_an_idle_session_takes_the_message(scene: Scene) -> None:
    await scene.finished("one")
    receipt = await scene.accept("two", busy=Busy.REJECT)
    assert receipt.state is TurnState.QUEUED


async def test_with_interrupt_a_message_takes_the_place_of_what_is_in_flight(scene: Scene) -> None:
    """J9, A1: what was shown stays, with a marker that says why nothing follows."""
    running = await scene.say(await scene.running("one"), "partial")
    waiting = await scene.accept("two")
    receipt = await scene.accept("three", busy=Busy.INTERRUPT)
    assert receipt.superseded == (running.id, waiting.turn_id)
    assert receipt.session_id == running.session_id
    for turn_id in receipt.superseded:
        turn = await scene.store.turns.get(turn_id)
        assert (turn.state, turn.cause) == (TurnState.CANCELLED, "superseded")
    with pytest.raises(Stale):
        await scene.say(running, "too late")
    assert [turn.id for turn in await scene.claim()] == [receipt.turn_id]
    items = fold(await scene.entries(running.session_id))
    assert [item.text for item in items if item.turn_id == running.id and item.role is Role.ASSISTANT] == ["partial"]


async def test_a_repeated_interruption_interrupts_nothing_more(scene: Scene) -> None:
    """A3"""
    await scene.running("one")
    first = await scene.accept("two", busy=Busy.INTERRUPT, dedupe_key="k")
    started = await scene.claim_and_start(first.turn_id)
    again = await scene.accept("two", busy=Busy.INTERRUPT, dedupe_key="k")
    assert (again.turn_id, again.duplicate, again.superseded) == (first.turn_id, True, ())
    assert await scene.state(started) is TurnState.RUNNING


async def test_a_message_that_steers_joins_the_running_turn(scene: Scene) -> None:
    """T1, A1: it stands in the turn that it joined, and only there."""
    host = await scene.say(await scene.running("one"), "so far")
    steering = await scene.accept("two", busy=Busy.STEER)
    assert await scene.store.steering.is_wanted(host)
    host, entries = await scene.store.steering.heed(host, scene.now)
    assert [(entry.kind, entry.data["text"], entry.data["turn_id"]) for entry in entries] == [
        (EntryKind.MESSAGE_JOINED, "two", steering.turn_id)
    ]
    joined = await scene.store.turns.get(steering.turn_id)
    assert (joined.state, joined.joined_to, joined.generation) == (TurnState.COMPLETED, host.id, None)
    assert not await scene.store.steering.is_wanted(host)
    await scene.finish(await scene.say(host, " and on"))
    assert [(item.role, item.text, item.turn_id) for item in fold(await scene.entries(host.session_id))] == [
        (Role.USER, "one", host.id),
        (Role.ASSISTANT, "so far", host.id),
        (Role.USER, "two", host.id),
        (Role.ASSISTANT, " and on", host.id),
    ]
    assert await scene.claim() == []


async def test_a_message_that_nobody_heeded_is_a_turn_of_its_own(scene: Scene) -> None:
    """A1: the turn that it wanted to join was over first."""
    await scene.finish(await scene.running("one"))
    receipt = await scene.accept("two", busy=Busy.STEER)
    await scene.finish(await scene.claim_and_start(receipt.turn_id))
    assert await scene.state(receipt) is TurnState.COMPLETED
    assert (await scene.store.turns.get(receipt.turn_id)).joined_to is None


async def test_nothing_steers_past_a_message_that_wants_a_turn_of_its_own(scene: Scene) -> None:
    """T2"""
    host = await scene.running("one")
    first = await scene.accept("two", busy=Busy.STEER)
    queued = await scene.accept("three")
    behind = await scene.accept("four", busy=Busy.STEER)
    host, entries = await scene.store.steering.heed(host, scene.now)
    assert [entry.data["turn_id"] for entry in entries] == [first.turn_id]
    assert [await scene.state(each) for each in (queued, behind)] == [TurnState.QUEUED, TurnState.QUEUED]


@pytest.mark.parametrize(
    "other",
    [{"reply_to": "chat:1"}, {"mode": Mode.DETACHED}, {"delivers_later": False}],
    ids=lambda other: next(iter(other)),
)
async def test_a_message_whose_answer_goes_elsewhere_does_not_join(scene: Scene, other: dict[str, Any]) -> None:
    """A2, T2: who waits for an answer, and where, belongs to the turn; nothing steers past it either."""
    host = await scene.running("one")
    elsewhere = await scene.accept("two", busy=Busy.STEER, **other)
    behind = await scene.accept("three", busy=Busy.STEER)
    assert await scene.store.steering.heed(host, scene.now) == (host, [])
    assert [await scene.state(each) for each in (elsewhere, behind)] == [TurnState.QUEUED] * 2


async def test_what_a_turn_was_asked_has_what_joined_it(scene: Scene) -> None:
    host = await scene.running("one")
    await scene.accept("two", busy=Busy.STEER)
    await scene.store.steering.heed(host, scene.now)
    assert await scene.store.turns.asked(host.id) == "one\n\ntwo"


async def test_heeding_again_after_a_lost_answer_gives_the_same(scene: Scene) -> None:
    """T4: what joined is not taken for somebody else's writing."""
    before = await scene.running("one")
    await scene.accept("two", busy=Busy.STEER)
    once = await scene.store.steering.heed(before, scene.now)
    snapshot = await scene.snapshot()
    assert await scene.store.steering.heed(before, scene.now) == once
    assert await scene.snapshot() == snapshot
    await scene.say(once[0], "on")


async def test_a_zombie_heeds_nothing(scene: Scene) -> None:
    """T4"""
    host = await scene.running("one", mode=Mode.DETACHED)
    await scene.accept("two", busy=Busy.STEER)
    await scene.interrupt(host)
    for _ in ("while it waits", "while another worker runs it"):
        snapshot = await scene.snapshot()
        with pytest.raises(Stale):
            await scene.store.steering.heed(host, scene.now)
        assert await scene.snapshot() == snapshot
        for turn in await scene.claim():
            await scene.start(turn)


async def test_heeding_costs_nothing_where_nobody_steers(scene: Scene) -> None:
    host = await scene.running("one")
    await scene.accept("two")
    snapshot = await scene.snapshot()
    assert not await scene.store.steering.is_wanted(host)
    assert await scene.store.steering.heed(host, scene.now) == (host, [])
    assert await scene.snapshot() == snapshot


async def test_a_message_that_steers_a_parked_turn_waits_for_it(scene: Scene) -> None:
    host = await scene.parked("one")
    steering = await scene.accept("two", busy=Busy.STEER)
    assert await scene.claim() == []
    scene.now += MINUTE
    await scene.store.turns.answer(host.id, *scene.reply())
    again = await scene.claim_and_start(host.id)
    _, entries = await scene.store.steering.heed(again, scene.now)
    assert [entry.data["turn_id"] for entry in entries] == [steering.turn_id]
