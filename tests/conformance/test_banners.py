"""The banner of a stop: each chat with a running turn is told once, and nobody after the gateway is back."""

from __future__ import annotations

import pytest

from holdfast.core import notes
from holdfast.core.delivery import BANNER_EXPIRES_AFTER_MS, DeliveryEvent, DeliveryState, banner_part
from holdfast.core.events import EntryKind
from holdfast.core.showing import go_on
from holdfast.core.turns import Cause, Mode, Policy, Resume
from holdfast.errors import IllegalMove
from tests.conformance.scenes import MINUTE, TARGET, Scene


async def announce(scene: Scene) -> int:
    told = await scene.store.settlement.announce(scene.node, "restart", notes.RESTART_BANNER, scene.now)
    return len(told)


async def test_each_active_chat_is_told_once(scene: Scene) -> None:
    """R1: as a note in the session, and as a message where the chat is elsewhere; again and again gives no second one."""
    chat = await scene.running(conversation="a", reply_to=TARGET)
    api = await scene.running(conversation="b", mode=Mode.SYNCHRONOUS, delivers_later=False)
    queued = await scene.accept(conversation="c", reply_to=TARGET)
    finished = await scene.finished(conversation="d")
    assert await announce(scene) == 2
    assert await announce(scene) == 0
    for turn, times in ((chat, 1), (api, 1), (queued, 0), (finished, 0)):
        found = [each for each in await scene.entries(turn.session_id) if each.kind is EntryKind.NOTE]
        assert [each.data["text"] for each in found] == [notes.RESTART_BANNER] * times
    (banner,) = await scene.store.deliveries.of_turn(chat.id)
    assert (banner.part, banner.target, banner.text) == (-1, TARGET, notes.RESTART_BANNER)
    assert await scene.store.deliveries.of_turn(api.id) == []


CHATS = frozenset({"telegram"})


async def test_a_chat_is_told_of_an_unexpected_end_with_a_button_that_goes_on(scene: Scene) -> None:
    """R9: once for each turn that rests; a target that is no chat, and a turn that goes on by itself, say nothing."""
    rests = await scene.running(conversation="a", reply_to=TARGET)
    elsewhere = await scene.running(conversation="b", reply_to="url:https://example.org/")
    goes_on = await scene.running(conversation="c", reply_to=TARGET, mode=Mode.DETACHED)
    await scene.interrupt(rests, elsewhere, goes_on, chats=CHATS)
    (told,) = await scene.store.deliveries.of_turn(rests.id)
    assert (told.target, told.text, told.extra.buttons) == (TARGET, notes.CUT_OFF, go_on(rests.id))
    assert told.part < banner_part(rests.attempt), "it is no banner, which would expire"
    for turn in (elsewhere, goes_on):
        assert await scene.store.deliveries.of_turn(turn.id) == []


async def test_a_chat_that_was_told_of_the_stop_is_not_told_again(scene: Scene) -> None:
    """R1: its banner has the button, unless turns go on by themselves."""
    turn = await scene.running(reply_to=TARGET)
    announcing = scene.store.settlement.announce
    await announcing(scene.node, "restart", notes.RESTART_BANNER, scene.now, Policy(chats=CHATS))
    await scene.interrupt(turn, cause=Cause.RESTART_TIMEOUT, chats=CHATS)
    (banner,) = await scene.store.deliveries.of_turn(turn.id)
    assert banner.extra.buttons == go_on(turn.id)
    other = await scene.running(conversation="b", reply_to="telegram:2")
    by_itself = Policy(chats=CHATS, resume=Resume.AUTO)
    await announcing(scene.node, "restart", notes.RESTART_BANNER, scene.now, by_itself)
    assert [each.extra.buttons for each in await scene.store.deliveries.of_turn(other.id)] == [()]


async def test_a_running_turn_is_not_disturbed_by_its_banner(scene: Scene) -> None:
    """T4, R3: its worker goes on where it was."""
    turn = await scene.say(await scene.running(), "before ")
    await announce(scene)
    await scene.finish(await scene.say(turn, "after"))


async def test_no_answer_waits_for_a_banner_or_counts_it(scene: Scene) -> None:
    """D3"""
    turn = await scene.running(reply_to=TARGET)
    await announce(scene)
    await scene.finish(turn, deliveries=scene.parts(turn, "answer"))
    banner, answer = await scene.send()
    assert (banner.part, answer.part) == (-1, 1)
    await scene.settle(banner, DeliveryEvent.CONFIRM)
    assert await scene.store.turns.delivered_at(turn.id) is None
    await scene.settle(answer, DeliveryEvent.CONFIRM)
    assert await scene.store.turns.delivered_at(turn.id) == scene.now


async def test_a_banner_that_is_refused_takes_no_answer_with_it(scene: Scene) -> None:
    """D3"""
    turn = await scene.running(reply_to=TARGET)
    await announce(scene)
    await scene.finish(turn, deliveries=scene.parts(turn, "answer"))
    (banner,) = await scene.send(limit=1)
    await scene.settle(banner, DeliveryEvent.FAIL)
    (answer,) = await scene.send()
    await scene.settle(answer, DeliveryEvent.CONFIRM)
    assert await scene.store.turns.delivered_at(turn.id) == scene.now


async def test_an_old_banner_is_not_sent(scene: Scene) -> None:
    """R1: after the gateway is back it would only confuse."""
    turn = await scene.running(reply_to=TARGET)
    await announce(scene)
    scene.now += BANNER_EXPIRES_AFTER_MS + 1
    await scene.send()
    (banner,) = await scene.store.deliveries.of_turn(turn.id)
    assert banner.state is DeliveryState.EXPIRED


async def test_a_chat_that_several_sessions_speak_to_is_told_once(scene: Scene) -> None:
    """R1"""
    turns = [await scene.running(conversation=name, reply_to=TARGET) for name in ("a", "b")]
    assert await announce(scene) == 2
    assert sum([len(await scene.store.deliveries.of_turn(turn.id)) for turn in turns]) == 1


async def test_a_second_stop_is_told_again(scene: Scene) -> None:
    """R1: to a turn that went on after the first."""
    turn = await scene.running(reply_to=TARGET, mode=Mode.DETACHED)
    await announce(scene)
    (first,) = await scene.send()
    await scene.settle(first, DeliveryEvent.CONFIRM)
    await scene.interrupt(turn, cause=Cause.RESTART_TIMEOUT)
    await scene.claim_and_start(turn.id)
    assert await announce(scene) == 1
    (second,) = await scene.send()
    assert (second.id != first.id, second.text) == (True, first.text)


async def test_nobody_is_told_of_a_stop_that_is_over(scene: Scene) -> None:
    """R1, D2: neither what was not sent before it, nor what was on its way."""
    waiting = await scene.running(conversation="a", reply_to=TARGET)
    sending = await scene.running(conversation="b", reply_to="chat:2")
    await announce(scene)
    await scene.send(limit=1)
    if scene.postgres:
        # Elsewhere another node would have sent it.
        await scene.store.nodes.leave(scene.node)
        await scene.joined()
        await scene.sweep()
        scene.now += BANNER_EXPIRES_AFTER_MS + 1
    else:
        await scene.joined()
        await scene.sweep()
    assert [each.text for each in await scene.send(node=await scene.joined())] == []
    states = {each.state for turn in (waiting, sending) for each in await scene.store.deliveries.of_turn(turn.id)}
    assert states == {DeliveryState.EXPIRED, DeliveryState.UNKNOWN}, "what was on its way may have arrived"


async def test_a_banner_is_not_revived(scene: Scene) -> None:
    turn = await scene.running(reply_to=TARGET)
    await announce(scene)
    scene.now += BANNER_EXPIRES_AFTER_MS + 1
    await scene.send()
    (banner,) = await scene.store.deliveries.of_turn(turn.id)
    with pytest.raises(IllegalMove):
        await scene.store.deliveries.retry(banner.id, scene.now)


async def test_what_certainly_never_arrived_is_no_repeat(scene: Scene) -> None:
    """D1"""
    (made,) = await scene.sent_for("one")
    scene.now += 25 * 60 * MINUTE
    assert await scene.send() == []
    revived = await scene.store.deliveries.retry(made.id, scene.now)
    assert (revived.state, revived.repeats) == (DeliveryState.RETRY, 0)
    (again,) = await scene.send()
    assert again.outgoing == "one"


async def test_a_dead_letter_goes_out_again_with_the_parts_behind_it(scene: Scene) -> None:
    """D1, D3"""
    made = await scene.sent_for("one", "two")
    (first,) = await scene.send()
    await scene.settle(first, DeliveryEvent.FAIL, error="blocked")
    assert [each.state for each in await scene.store.deliveries.of_turn(first.turn_id)] == [DeliveryState.FAILED] * 2
    scene.now += MINUTE
    revived = await scene.store.deliveries.retry(first.id, scene.now)
    assert (revived.state, revived.repeats) == (DeliveryState.RETRY, 0)
    for expected in made:
        (sent,) = await scene.send()
        assert (sent.id, sent.outgoing) == (expected.id, expected.text)
        await scene.settle(sent, DeliveryEvent.CONFIRM)


async def test_what_may_have_arrived_goes_out_again_as_a_possible_repeat(scene: Scene) -> None:
    """D1"""
    await scene.sent_for("one")
    (first,) = await scene.send()
    await scene.settle(first, DeliveryEvent.LOSE)
    scene.now += 25 * 60 * MINUTE
    assert await scene.send() == []
    assert (await scene.store.deliveries.get(first.id)).state is DeliveryState.EXPIRED
    assert (await scene.store.deliveries.retry(first.id, scene.now)).repeats == 1
    (again,) = await scene.send()
    assert again.outgoing == "[possible repeat] one"
