"""Notices: what Holdfast itself has to say in a chat, and the order in which messages leave for one."""

from __future__ import annotations

from dataclasses import replace

from holdfast.core.delivery import Button, Delivery, DeliveryEvent, DeliveryState, Extra, KeptFile, notice
from holdfast.core.turns import Cause
from holdfast.store.retention import DAY_MS, NOTICE_DAYS
from tests.conformance.scenes import MINUTE, TARGET, Scene

CHATS = ("telegram",)
EXTRA = Extra(
    buttons=((Button(label="Yes", value="p:1:me"), Button(label="No", value="p:1:deny")),),
    file=KeptFile(id="f", name="a.png", media_type="image/png", bytes=3),
    reply_to="17",
    is_quiet=True,
    question_id="q",
)


def made(scene: Scene, *parts: str, key: str = "k", target: str = TARGET, extra: Extra = EXTRA) -> tuple[Delivery, ...]:
    return notice(key, "ann", target, parts, scene.now, extra)


async def deliver(scene: Scene) -> list[str]:
    taken = await scene.send(in_line=CHATS)
    for each in taken:
        await scene.settle(each, DeliveryEvent.CONFIRM, receipt="r")
    return [each.text for each in taken]


async def test_a_notice_is_a_delivery_without_a_turn(scene: Scene) -> None:
    (first,) = await scene.store.deliveries.notify(made(scene, "your code"))
    assert (first.turn_id, first.session_id, first.owner, first.extra) == (None, None, "ann", EXTRA)
    assert await scene.store.catalog.deliveries("ann") == [first]
    assert await scene.store.catalog.deliveries("bob") == []
    assert await deliver(scene) == ["your code"]
    assert (await scene.store.deliveries.get(first.id)).state is DeliveryState.DELIVERED


async def test_a_repeated_notice_is_the_first(scene: Scene) -> None:
    """D1: the request that wrote it came again after a crash, when the first may have left already."""
    first = await scene.store.deliveries.notify(made(scene, "one", "two"))
    assert await deliver(scene) == ["one"]
    again = await scene.store.deliveries.notify(made(scene, "other", "two"))
    assert [(each.id, each.text) for each in again] == [(each.id, each.text) for each in first]
    assert again[0].state is DeliveryState.DELIVERED
    other = [*made(scene, "one", key="other"), *made(scene, "one", target="telegram:2")]
    assert not {each.id for each in other} & {each.id for each in first}


async def test_buttons_stand_below_the_last_part_and_a_reply_above_the_first(scene: Scene) -> None:
    first, middle, last = made(scene, "one", "two", "three")
    assert (first.extra.reply_to, first.extra.buttons, first.extra.file) == ("17", (), None)
    assert middle.extra == Extra(is_quiet=True)
    assert last.extra == Extra(buttons=EXTRA.buttons, file=EXTRA.file, is_quiet=True, question_id="q")


async def test_a_notice_is_sent_again_by_its_id(scene: Scene) -> None:
    first, second = await scene.store.deliveries.notify([*made(scene, "one"), *made(scene, "two", key="other")])
    for each in await scene.send():
        await scene.settle(each, DeliveryEvent.FAIL, error="blocked")
    assert (await scene.store.deliveries.retry(first.id, scene.now)).state is DeliveryState.RETRY
    assert (await scene.store.deliveries.get(second.id)).state is DeliveryState.FAILED
    assert [each.text for each in await scene.send()] == ["one"]


async def test_a_settled_notice_is_forgotten_after_its_days_and_nothing_else_is(scene: Scene) -> None:
    await scene.store.deliveries.notify(made(scene, "old"))
    await scene.sent_for("an answer")
    for each in await scene.send():
        await scene.settle(each, DeliveryEvent.CONFIRM)
    scene.now += NOTICE_DAYS * DAY_MS
    waiting = await scene.store.deliveries.notify(made(scene, "waits", key="other"))
    await scene.store.enforce_retention({}, scene.now - 1)
    assert len(await scene.store.catalog.deliveries("ann")) == 2
    await scene.store.enforce_retention({}, scene.now)
    assert await scene.store.catalog.deliveries("ann") == waiting
    assert len(await scene.store.catalog.deliveries("local")) == 1


async def test_messages_to_a_chat_leave_in_the_order_in_which_they_were_written(scene: Scene) -> None:
    """D3: over turns and notices."""
    await scene.sent_for("answer", "answer, part 2")
    await scene.store.deliveries.notify(made(scene, "notice"))
    await scene.sent_for("another answer")
    elsewhere = made(scene, "elsewhere", target=f"{TARGET}:9")
    await scene.store.deliveries.notify(elsewhere)
    assert set(await deliver(scene)) == {"answer", "elsewhere"}
    assert [await deliver(scene) for _ in range(4)] == [["answer, part 2"], ["notice"], ["another answer"], []]


async def test_a_message_waits_while_an_earlier_one_may_still_be_sent(scene: Scene) -> None:
    await scene.store.deliveries.notify(made(scene, "first"))
    (first,) = await scene.send(in_line=CHATS)
    await scene.store.deliveries.notify(made(scene, "second", key="other"))
    assert await scene.send(in_line=CHATS) == []
    refused = await scene.settle(first, DeliveryEvent.REFUSE, due_at=scene.now + MINUTE, error="slow down")
    assert await scene.send(in_line=CHATS) == []
    assert await scene.store.deliveries.next_due_at(scene.node, CHATS) == refused.due_at
    scene.now += MINUTE
    (again,) = await scene.send(in_line=CHATS)
    await scene.settle(again, DeliveryEvent.LOSE, error="no answer")
    (repeated,) = await scene.send(in_line=CHATS)
    assert (repeated.text, repeated.repeats) == ("first", 1)
    await scene.settle(repeated, DeliveryEvent.LOSE, error="no answer")
    assert await deliver(scene) == ["second"]


async def test_what_waits_for_a_chat_leaves_from_the_node_that_receives_for_it(scene: Scene) -> None:
    other = await scene.joined()
    await scene.store.deliveries.notify(made(scene, "hello"))
    await scene.store.channels.claim("telegram", "telegram", other)
    assert await scene.store.deliveries.claim(scene.node, scene.now, 10, CHATS) == []
    # So that it does not look again at once.
    assert await scene.store.deliveries.next_due_at(scene.node, CHATS) is None
    assert await scene.store.deliveries.next_due_at(other, CHATS) == scene.now
    assert [each.text for each in await scene.send(node=other, in_line=CHATS)] == ["hello"]


async def test_only_chats_keep_the_order_of_several_answers(scene: Scene) -> None:
    await scene.store.deliveries.notify([*made(scene, "one"), *made(scene, "two", key="other")])
    assert {each.text for each in await scene.send(in_line=("telegra", "slack"))} == {"one", "two"}


async def test_a_banner_that_was_never_sent_holds_up_nothing_once_its_stop_is_over(scene: Scene) -> None:
    turn = await scene.running(reply_to=TARGET)
    await scene.store.settlement.announce(scene.node, "restart", "restarting", scene.now)
    await scene.store.deliveries.notify(made(scene, "notice"))
    await scene.store.settlement.cancel(turn.id, Cause.USER, scene.now)
    scene.now += 2 * MINUTE
    assert await scene.send(in_line=CHATS) == []
    assert [each.text for each in await scene.send(in_line=CHATS)] == ["notice"]


async def test_what_waits_for_a_chat_follows_it_to_its_new_id(scene: Scene) -> None:
    sent, waiting = await scene.sent_for("sent", "waiting")
    await scene.settle((await scene.send())[0], DeliveryEvent.CONFIRM)
    assert await scene.store.deliveries.redirect(TARGET, "telegram:-100") == 1
    assert (await scene.store.deliveries.get(waiting.id)).target == "telegram:-100"
    assert (await scene.store.deliveries.get(sent.id)).target == TARGET


async def test_a_notice_inside_a_turn_that_is_removed_stays(scene: Scene) -> None:
    await scene.store.deliveries.notify([replace(each, owner="local") for each in made(scene, "stays")])
    await scene.sent_for("goes")
    assert len(await scene.store.catalog.deliveries("local")) == 2
    session_id = next(each.session_id for each in await scene.store.catalog.deliveries("local") if each.session_id)
    await scene.store.sessions.delete(session_id, scene.now)
    while await scene.store.sessions.sweep():
        pass
    assert [each.text for each in await scene.store.catalog.deliveries("local")] == ["stays"]
