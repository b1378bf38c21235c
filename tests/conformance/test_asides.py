"""Asides: messages that a turn sends while it is at work, beside the parts of its answer and the banners of a stop."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from holdfast.core import notes
from holdfast.core.delivery import ASIDE_FIRST, EXPIRES_AFTER_MS, Delivery, DeliveryEvent, DeliveryState, is_banner
from holdfast.core.turns import Cause, Turn
from holdfast.errors import Stale
from holdfast.ids import NodeId
from tests.conformance.scenes import MINUTE, TARGET, Scene


async def say_aside(scene: Scene, turn: Turn, text: str = "by the way", target: str = TARGET) -> Delivery:
    (made,) = scene.parts(turn, text, target=target)
    return await scene.store.deliveries.enqueue(made)


async def deliver(scene: Scene) -> list[str]:
    """Send all that may leave now, and return the texts."""
    taken = await scene.send()
    for each in taken:
        await scene.settle(each, DeliveryEvent.CONFIRM, receipt="r")
    return [each.text for each in taken]


async def test_an_aside_leaves_while_its_turn_runs(scene: Scene) -> None:
    turn = await scene.running()
    aside = await say_aside(scene, turn)
    assert (aside.part, aside.state, is_banner(aside.part)) == (ASIDE_FIRST, DeliveryState.PENDING, False)
    assert await deliver(scene) == ["by the way"]
    await scene.finish(turn)


async def test_a_repeated_aside_is_the_first(scene: Scene) -> None:
    """D1: the tool that sent it was repeated after a crash, when the first may have left already."""
    turn = await scene.running()
    (made,) = scene.parts(turn, "by the way")
    first = await scene.store.deliveries.enqueue(made)
    await deliver(scene)
    again = await scene.store.deliveries.enqueue(replace(made, text="another"))
    assert (again.id, again.text, again.part, again.state) == (first.id, "by the way", first.part, DeliveryState.DELIVERED)
    await scene.finish(turn)
    assert (await scene.store.deliveries.enqueue(made)).state is DeliveryState.DELIVERED
    assert len(await scene.store.deliveries.of_turn(turn.id)) == 1


async def test_only_a_running_turn_speaks_aside(scene: Scene) -> None:
    """T4: what a cancelled turn had to say is not said."""
    queued = await scene.claimed(conversation="a")
    parked = await scene.parked(conversation="b")
    finished = await scene.finished(conversation="c")
    cancelled = await scene.running(conversation="d")
    await scene.store.settlement.cancel(cancelled.id, Cause.USER, scene.now)
    before = await scene.snapshot()
    for turn in (queued, parked, finished, cancelled):
        with pytest.raises(Stale):
            await say_aside(scene, turn)
    assert await scene.snapshot() == before


async def test_asides_answers_and_banners_never_take_each_others_place(scene: Scene) -> None:
    """D3: to one target, in any order."""
    turn = await scene.running(reply_to=TARGET)
    await say_aside(scene, turn, "one")
    await scene.store.settlement.announce(scene.node, "restart", notes.RESTART_BANNER, scene.now)
    await say_aside(scene, turn, "two")
    await say_aside(scene, turn, "elsewhere", target="telegram:2")
    await scene.finish(turn, deliveries=scene.parts(turn, "answer", "more"))
    found = [each for each in await scene.store.deliveries.of_turn(turn.id) if each.target == TARGET]
    assert [each.text for each in found] == ["one", "two", notes.RESTART_BANNER, "answer", "more"]
    assert [each.part for each in found] == [ASIDE_FIRST, ASIDE_FIRST + 1, -1, 1, 2]


async def test_asides_that_come_at_once_each_get_a_number(scene: Scene) -> None:
    """D3: tools run side by side."""
    turn = await scene.running()
    made = await asyncio.gather(*(say_aside(scene, turn, f"{number}") for number in range(5)))
    assert sorted(each.part for each in made) == [ASIDE_FIRST + number for number in range(5)]


async def test_asides_leave_in_order_and_the_answer_waits_for_none(scene: Scene) -> None:
    """D3"""
    turn = await scene.running()
    first = await say_aside(scene, turn, "one")
    await say_aside(scene, turn, "two")
    (taken,) = await scene.send()
    assert taken.id == first.id
    await scene.settle(taken, DeliveryEvent.REFUSE, due_at=scene.now + MINUTE)
    await scene.finish(turn, deliveries=scene.parts(turn, "answer"))
    assert await deliver(scene) == ["answer"]
    scene.now += MINUTE
    assert await deliver(scene) == ["one"]
    assert await deliver(scene) == ["two"]


async def test_an_aside_says_nothing_about_the_answer(scene: Scene) -> None:
    """D3: neither whether it was delivered, nor whether it may still be."""
    turn = await scene.running()
    await say_aside(scene, turn, "one")
    await say_aside(scene, turn, "two")
    (taken,) = await scene.send()
    await scene.settle(taken, DeliveryEvent.FAIL, error="no such chat")
    await scene.finish(turn, deliveries=scene.parts(turn, "answer"))
    assert sorted(await deliver(scene)) == ["answer", "two"]
    assert await scene.store.turns.delivered_at(turn.id) == scene.now
    await scene.store.deliveries.retry(taken.id, scene.now)
    assert await deliver(scene) == ["one"]


async def test_an_answer_that_fails_takes_no_aside_with_it(scene: Scene) -> None:
    """D3, and reviving one revives no other."""
    turn = await scene.running()
    aside = await say_aside(scene, turn, "one")
    await scene.settle((await scene.send())[0], DeliveryEvent.FAIL)
    await scene.finish(turn, deliveries=scene.parts(turn, "answer"))
    (answer,) = await scene.send()
    await scene.settle(answer, DeliveryEvent.FAIL)
    await scene.store.deliveries.retry(aside.id, scene.now)
    assert (await scene.store.deliveries.get(answer.id)).state is DeliveryState.FAILED
    assert await deliver(scene) == ["one"]


async def test_an_aside_outlives_a_restart_and_a_day_is_its_limit(scene: Scene) -> None:
    """D1, D2: it is no banner, which would be given up when the gateway is back."""
    turn = await scene.running()
    await say_aside(scene, turn, "lost")
    await scene.send(node=NodeId("nobody"))
    await say_aside(scene, turn, "later")
    scene.now += MINUTE + 1
    await scene.reopen()
    scene.node = await scene.joined()
    await scene.sweep()
    lost, later = await scene.store.deliveries.of_turn(turn.id)
    assert (lost.state, lost.repeats, later.state) == (DeliveryState.UNKNOWN, 0, DeliveryState.PENDING)
    (again,) = await scene.send()
    assert again.outgoing == "[possible repeat] lost"
    await scene.settle(again, DeliveryEvent.CONFIRM)
    scene.now += EXPIRES_AFTER_MS
    assert await deliver(scene) == []
    assert (await scene.store.deliveries.get(later.id)).state is DeliveryState.EXPIRED
