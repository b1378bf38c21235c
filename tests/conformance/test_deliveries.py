"""The outbox: parts in order, one unlabelled send, and an honest word where nobody knows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.core.delivery import ATTEMPTS_MAX, EXPIRES_AFTER_MS, REPEAT_LABEL, Delivery, DeliveryEvent, DeliveryState
from holdfast.errors import IllegalMove, NotFound, Stale
from holdfast.ids import DeliveryId, TurnId
from tests.conformance.scenes import MINUTE, TARGET, Scene


async def states(scene: Scene, turn_id: TurnId) -> list[DeliveryState]:
    return [each.state for each in await scene.store.deliveries.of_turn(turn_id)]


async def sending(scene: Scene, *parts: str) -> Delivery:
    """Finish a turn with these parts, and take the first of them for sending."""
    await scene.sent_for(*parts)
    (first,) = await scene.send()
    return first


async def unknown(scene: Scene, *parts: str) -> Delivery:
    return await scene.settle(await sending(scene, *parts), DeliveryEvent.LOSE, error="no answer")


async def test_a_claimed_delivery_is_sending_before_anyone_sends_it(scene: Scene) -> None:
    """D1"""
    (made,) = await scene.sent_for("hi")
    assert (made.state, made.attempt, made.target, made.text) == (DeliveryState.PENDING, 0, TARGET, "hi")
    (claimed,) = await scene.send()
    assert (claimed.id, claimed.state, claimed.attempt, claimed.repeats) == (made.id, DeliveryState.SENDING, 1, 0)
    assert await scene.store.deliveries.get(made.id) == claimed
    assert await scene.store.deliveries.held(scene.node) == [claimed]
    assert await scene.send() == []


async def test_a_confirmed_delivery_is_settled_for_good(scene: Scene) -> None:
    """D1, T3"""
    claimed = await sending(scene, "hi")
    scene.now += MINUTE
    delivered = await scene.settle(claimed, DeliveryEvent.CONFIRM, receipt="message 7")
    assert (delivered.state, delivered.receipt, delivered.settled_at) == (DeliveryState.DELIVERED, "message 7", scene.now)
    assert await scene.store.deliveries.get(claimed.id) == delivered
    assert await scene.store.turns.delivered_at(claimed.turn_id) == scene.now
    assert await scene.store.deliveries.held(scene.node) == []
    scene.now += 2 * EXPIRES_AFTER_MS
    assert await scene.send() == []
    assert await scene.store.deliveries.next_due_at() is None


async def test_parts_leave_one_after_the_other_in_order(scene: Scene) -> None:
    """D3"""
    made = await scene.sent_for("one", "two", "three")
    sent = []
    for _ in made:
        (claimed,) = await scene.send()
        assert await scene.send() == []
        assert await scene.store.turns.delivered_at(claimed.turn_id) is None
        await scene.settle(claimed, DeliveryEvent.CONFIRM)
        sent.append(claimed.text)
    assert sent == ["one", "two", "three"]
    assert await scene.store.turns.delivered_at(made[0].turn_id) == scene.now


async def test_parts_wait_while_an_earlier_one_is_to_be_tried_again(scene: Scene) -> None:
    """D3"""
    claimed = await sending(scene, "one", "two")
    await scene.settle(claimed, DeliveryEvent.REFUSE, due_at=scene.now + MINUTE, error="busy")
    assert await scene.send() == []
    scene.now += MINUTE
    (again,) = await scene.send()
    assert (again.id, again.attempt, again.repeats) == (claimed.id, 2, 0)


async def test_targets_do_not_wait_for_one_another(scene: Scene) -> None:
    """D3: order is per target."""
    turn = await scene.running()
    parts = (*scene.parts(turn, "a1", "a2"), *scene.parts(turn, "b1", "b2", target="slack:1"))
    await scene.finish(turn, deliveries=parts)
    assert {each.text for each in await scene.send()} == {"a1", "b1"}


async def test_answers_of_several_turns_to_one_target_are_all_sent(scene: Scene) -> None:
    await scene.sent_for("one")
    await scene.sent_for("two")
    assert {each.text for each in await scene.send()} == {"one", "two"}


async def test_claims_take_what_is_due_longest_up_to_the_limit(scene: Scene) -> None:
    for number in (3, 1, 2):
        await scene.sent_for(str(number), due_at=scene.now - number)
    await scene.sent_for("later", due_at=scene.now + 1)
    assert [each.text for each in await scene.send(limit=2)] == ["3", "2"]
    assert [each.text for each in await scene.send(limit=2)] == ["1"]


async def test_a_refused_delivery_is_tried_again_when_it_is_due(scene: Scene) -> None:
    """D1: the far side certainly has nothing, so the second send is not labelled."""
    claimed = await sending(scene, "hi")
    refused = await scene.settle(claimed, DeliveryEvent.REFUSE, due_at=scene.now + MINUTE, error="busy")
    assert (refused.state, refused.error, refused.settled_at) == (DeliveryState.RETRY, "busy", None)
    assert await scene.store.deliveries.get(claimed.id) == refused
    assert await scene.send() == []
    assert await scene.store.deliveries.next_due_at() == scene.now + MINUTE
    scene.now += MINUTE
    (again,) = await scene.send()
    assert (again.state, again.attempt, again.outgoing) == (DeliveryState.SENDING, 2, "hi")


async def test_an_unknown_outcome_is_repeated_once_and_labelled(scene: Scene) -> None:
    """D1: at most one unlabelled send, and one labelled one."""
    lost = await unknown(scene, "hi")
    assert (lost.state, lost.settled_at) == (DeliveryState.UNKNOWN, scene.now)
    assert await scene.store.deliveries.get(lost.id) == lost
    (again,) = await scene.send()
    assert (again.id, again.repeats, again.outgoing) == (lost.id, 1, f"{REPEAT_LABEL} hi")
    final = await scene.settle(again, DeliveryEvent.LOSE)
    assert final.state is DeliveryState.UNKNOWN
    scene.now += MINUTE
    assert await scene.send() == []
    assert await scene.store.deliveries.next_due_at() is None


async def test_a_labelled_repeat_that_was_refused_is_tried_again_with_its_label(scene: Scene) -> None:
    """A1, D1, D3: the far side certainly has nothing of it, so it neither rests for ever nor keeps the next part waiting."""
    await unknown(scene, "one", "two")
    (repeat,) = await scene.send()
    await scene.settle(repeat, DeliveryEvent.REFUSE, due_at=scene.now + MINUTE)
    assert await scene.store.deliveries.next_due_at() == scene.now + MINUTE
    assert await scene.send() == []
    scene.now += MINUTE
    (again,) = await scene.send()
    assert (again.id, again.repeats, again.outgoing) == (repeat.id, 1, f"{REPEAT_LABEL} one")
    await scene.settle(again, DeliveryEvent.CONFIRM)
    assert [each.text for each in await scene.send()] == ["two"]


async def test_an_unknown_outcome_that_the_far_side_can_tell_is_confirmed(scene: Scene) -> None:
    lost = await unknown(scene, "one", "two")
    found = await scene.settle(lost, DeliveryEvent.CONFIRM, receipt="message 7")
    assert (found.state, found.receipt) == (DeliveryState.DELIVERED, "message 7")
    assert [each.text for each in await scene.send()] == ["two"]


async def test_parts_wait_for_an_unknown_one_until_its_repeat(scene: Scene) -> None:
    """D3"""
    lost = await unknown(scene, "one", "two")
    (again,) = await scene.send()
    assert again.id == lost.id
    assert await scene.send() == []
    await scene.settle(again, DeliveryEvent.LOSE)
    assert [each.text for each in await scene.send()] == ["two"]


async def test_parts_wait_for_one_that_is_sent_again_and_again(scene: Scene) -> None:
    """D1, D3: where the far side drops what it has, a lost send is retried with its label, and holds the next part back."""
    sent = await sending(scene, "one", "two")
    for _ in range(3):
        lost = await scene.settle(sent, DeliveryEvent.RESEND, due_at=scene.now + MINUTE, error="no answer")
        assert (lost.state, lost.repeats, lost.settled_at) == (DeliveryState.RETRY, 1, None)
        assert await scene.store.deliveries.get(sent.id) == lost
        assert await scene.send() == []
        scene.now += MINUTE
        (sent,) = await scene.send()
        assert (sent.id, sent.repeats, sent.outgoing) == (lost.id, 1, f"{REPEAT_LABEL} one")
    await scene.settle(sent, DeliveryEvent.CONFIRM)
    assert [each.text for each in await scene.send()] == ["two"]


async def test_killed_while_sending_again_and_again_it_is_sent_again_where_that_is_harmless(scene: Scene) -> None:
    """D1, D2: the sweep decides by the kind of the target; anywhere else one labelled repeat is all there is."""
    turn = await scene.running()
    parts = (*scene.parts(turn, "safe", target="url:https://a"), *scene.parts(turn, "once", target="urls:b"))
    await scene.finish(turn, deliveries=parts)
    for death in range(1, 4):
        node = await scene.joined()
        claimed = {each.text: each for each in await scene.send(node=node)}
        assert claimed["safe"].repeats == int(death > 1)
        assert ("once" in claimed) is (death < 3)
        await scene.store.nodes.leave(node)
        assert (await scene.sweep(dedupes=("url",))).deliveries == len(claimed)
        found = {each.text: each for each in await scene.store.deliveries.of_turn(turn.id)}
        assert (found["safe"].state, found["safe"].repeats, found["safe"].due_at) == (DeliveryState.RETRY, 1, scene.now)
        assert found["safe"].error == "the sender stopped while sending"
        assert found["once"].state is DeliveryState.UNKNOWN
        assert await scene.store.deliveries.held(node) == []
    (last,) = await scene.send(node=await scene.joined())
    await scene.settle(last, DeliveryEvent.CONFIRM)
    assert await states(scene, turn.id) == [DeliveryState.DELIVERED, DeliveryState.UNKNOWN]


async def test_tries_that_were_cut_by_kills_end_like_refused_ones(scene: Scene) -> None:
    """A1, D1: a process that dies of what it sends does not send it for ever."""
    (made,) = await scene.sent_for("hi", conversation="chat:2")
    await scene.sql(
        "UPDATE deliveries SET target = :to, attempt = :tried WHERE id = :id", to="url:x", tried=ATTEMPTS_MAX - 2, id=made.id
    )
    for expected in (DeliveryState.RETRY, DeliveryState.UNKNOWN):
        node = await scene.joined()
        (sent,) = await scene.send(node=node)
        await scene.store.nodes.leave(node)
        await scene.sweep(dedupes=("url",))
        assert (await scene.store.deliveries.get(sent.id)).state is expected
    assert await scene.send() == []


async def test_a_possible_repeat_that_is_too_old_says_that_the_first_may_have_arrived(scene: Scene) -> None:
    """D1: `too old to send` alone would claim that nothing has left."""
    sent = await sending(scene, "hi")
    await scene.settle(sent, DeliveryEvent.RESEND, due_at=scene.now, error="no answer")
    scene.now += EXPIRES_AFTER_MS + 1
    assert await scene.send() == []
    expired = await scene.store.deliveries.get(sent.id)
    assert expired.error == "too old to send again; the first may have arrived; the last try: no answer"


async def test_a_failed_part_fails_the_rest(scene: Scene) -> None:
    """D3, A1: the second half of an answer alone would mislead, and nothing waits for ever."""
    claimed = await sending(scene, "one", "two", "three")
    failed = await scene.settle(claimed, DeliveryEvent.FAIL, error="no such chat")
    assert (failed.state, failed.error, failed.settled_at) == (DeliveryState.FAILED, "no such chat", scene.now)
    rest = (await scene.store.deliveries.of_turn(claimed.turn_id))[1:]
    assert [(each.state, each.settled_at) for each in rest] == [(DeliveryState.FAILED, scene.now)] * 2
    assert await scene.send() == []
    assert await scene.store.turns.delivered_at(claimed.turn_id) is None


async def test_a_failed_part_leaves_other_targets_and_earlier_parts_alone(scene: Scene) -> None:
    """D3"""
    turn = await scene.running()
    await scene.finish(
        turn, deliveries=(*scene.parts(turn, "a1", "a2", "a3"), *scene.parts(turn, "b1", "b2", target="slack:1"))
    )
    claimed = {each.text: each for each in await scene.send()}
    await scene.settle(claimed["a1"], DeliveryEvent.CONFIRM)
    (second,) = await scene.send()
    await scene.settle(second, DeliveryEvent.FAIL)
    found = {each.text: each.state for each in await scene.store.deliveries.of_turn(turn.id)}
    assert found == {
        "a1": DeliveryState.DELIVERED,
        "a2": DeliveryState.FAILED,
        "a3": DeliveryState.FAILED,
        "b1": DeliveryState.SENDING,
        "b2": DeliveryState.PENDING,
    }


async def test_what_is_too_old_expires_unsent(scene: Scene) -> None:
    """A1: an answer of yesterday is worse than none, and is settled."""
    made = await scene.sent_for("one", "two")
    scene.now += EXPIRES_AFTER_MS
    (claimed,) = await scene.send()
    await scene.settle(claimed, DeliveryEvent.REFUSE)
    scene.now += 1
    assert await scene.send() == []
    assert await scene.send() == []
    assert await states(scene, made[0].turn_id) == [DeliveryState.EXPIRED, DeliveryState.EXPIRED]
    assert await scene.store.deliveries.next_due_at() is None


async def test_what_expires_does_not_keep_the_young_from_being_sent(scene: Scene) -> None:
    await scene.sent_for("old")
    scene.now += EXPIRES_AFTER_MS + 1
    await scene.sent_for("young")
    assert [each.text for each in await scene.send()] == ["young"]


@pytest.mark.parametrize(
    "event", [DeliveryEvent.CONFIRM, DeliveryEvent.REFUSE, DeliveryEvent.FAIL, DeliveryEvent.LOSE, DeliveryEvent.RESEND]
)
async def test_a_send_is_settled_once(scene: Scene, event: DeliveryEvent) -> None:
    """T4, D1: a repeat after a lost answer, or a slow sender, changes nothing."""
    claimed = await sending(scene, "one", "two")
    await scene.settle(claimed, event)
    before = await scene.snapshot()
    for late in (DeliveryEvent.CONFIRM, DeliveryEvent.REFUSE, DeliveryEvent.FAIL, DeliveryEvent.LOSE, DeliveryEvent.RESEND):
        with pytest.raises(Stale):
            await scene.settle(claimed, late)
    assert await scene.snapshot() == before


async def test_a_sender_with_an_old_fence_changes_nothing(scene: Scene) -> None:
    """T4: its delivery was refused and taken again meanwhile."""
    claimed = await sending(scene, "hi")
    await scene.settle(claimed, DeliveryEvent.REFUSE)
    (again,) = await scene.send()
    before = await scene.snapshot()
    with pytest.raises(Stale):
        await scene.settle(claimed, DeliveryEvent.CONFIRM)
    assert await scene.snapshot() == before
    await scene.settle(again, DeliveryEvent.CONFIRM)


async def test_a_delivery_that_nobody_sends_cannot_be_settled(scene: Scene) -> None:
    (made,) = await scene.sent_for("hi")
    with pytest.raises(IllegalMove):
        await scene.settle(made, DeliveryEvent.CONFIRM)
    with pytest.raises(Stale):
        await scene.settle(replace(made, state=DeliveryState.SENDING), DeliveryEvent.CONFIRM)


async def test_the_next_due_delivery_is_one_that_could_be_claimed(scene: Scene) -> None:
    """D3: a part that waits for an earlier one is due only after it, so nobody is woken for it in vain."""
    assert await scene.store.deliveries.next_due_at() is None
    made = await scene.sent_for("one", "two")
    assert await scene.store.deliveries.next_due_at() == made[0].due_at
    (claimed,) = await scene.send()
    assert await scene.store.deliveries.next_due_at() is None
    await scene.settle(claimed, DeliveryEvent.REFUSE, due_at=scene.now + MINUTE)
    assert await scene.store.deliveries.next_due_at() == scene.now + MINUTE


async def test_text_that_is_no_text_leaves_all_the_same(scene: Scene) -> None:
    claimed = await sending(scene, "a\0b\ud800")
    assert claimed.text == "a\ufffdb?"
    settled = await scene.settle(claimed, DeliveryEvent.REFUSE, error="bad\0answer\ud800")
    assert (await scene.store.deliveries.get(claimed.id)).error == "bad\ufffdanswer?"
    (again,) = await scene.send()
    assert again.id == settled.id
    await scene.settle(again, DeliveryEvent.CONFIRM, receipt="7\0")


async def test_an_answer_to_nobody_is_not_delivered(scene: Scene) -> None:
    turn = await scene.finished()
    assert await scene.store.deliveries.of_turn(turn.id) == []
    assert await scene.store.turns.delivered_at(turn.id) is None


async def test_an_unknown_delivery_is_not_found(scene: Scene) -> None:
    with pytest.raises(NotFound):
        await scene.store.deliveries.get(DeliveryId("nothing"))


async def test_a_wait_that_a_clock_set_before_it_jumped_back_is_over(scene: Scene) -> None:
    """C1: however long the far side may want to be left alone, nobody waits for an hour that has been."""
    sent = await sending(scene, "hi")
    past, scene.now = scene.now, scene.now + 300 * MINUTE
    await scene.settle(sent, DeliveryEvent.REFUSE, due_at=scene.now + 120 * MINUTE)
    assert await scene.store.deliveries.hasten(scene.now) == 0
    assert await scene.store.deliveries.hasten(past) == 1
    assert (await scene.store.deliveries.get(sent.id)).due_at == past
