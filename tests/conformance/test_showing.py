"""What a chat shows of a turn: its status line, the messages that ask its questions, and the files on their way."""

from __future__ import annotations

import pytest

from holdfast.core.delivery import Delivery, DeliveryEvent, Extra, delivery_id
from holdfast.core.events import ApprovalAnswered
from holdfast.core.showing import AtWork, LineKind, LineState
from holdfast.core.turns import Cause, Turn
from holdfast.errors import NotFound, Stale
from holdfast.store.retention import DAY_MS, FILE_DAYS
from tests.conformance.scenes import TARGET, Scene


def asking(scene: Scene, turn: Turn, target: str = TARGET) -> Delivery:
    return Delivery(
        id=delivery_id(f"{turn.id}:question:{target}", 1),
        turn_id=turn.id,
        session_id=turn.session_id,
        target=target,
        part=1,
        text="May I?",
        created_at=scene.now,
        due_at=scene.now,
        extra=Extra(question_id="question"),
    )


async def asked(scene: Scene, *targets: str) -> Turn:
    turn = await scene.running(reply_to=TARGET)
    parked, _ = await scene.store.turns.park(
        turn, [scene.asked()], scene.question(), asking=[asking(scene, turn, each) for each in targets or (TARGET,)]
    )
    return parked


async def at_work(scene: Scene) -> list[AtWork]:
    return await scene.store.status_lines.at_work("telegram")


async def test_a_turn_at_work_says_what_it_does(scene: Scene) -> None:
    running = await scene.running(reply_to=TARGET)
    behind = (await scene.accept("and this", reply_to=TARGET)).turn_id
    await scene.accept("elsewhere", conversation="x", reply_to="slack:1")
    waits = "Waiting behind another message…"
    assert {each.turn_id: each.text for each in await at_work(scene)} == {running.id: "Working…", behind: waits}
    await scene.use(running)
    assert {each.turn_id: each.text for each in await at_work(scene)} == {running.id: "Working: look…", behind: waits}


async def test_a_status_line_is_sent_once_and_known_by_its_id(scene: Scene) -> None:
    """After a crash in between it has no id, and is never sent again."""
    turn = await scene.running(reply_to=TARGET)
    lines = scene.store.status_lines
    assert await lines.begin(turn.id, TARGET, LineKind.STATUS)
    assert not await lines.begin(turn.id, TARGET, LineKind.STATUS)
    await lines.show(turn.id, "7")
    with pytest.raises(Stale):
        await lines.show(turn.id, "8")
    assert (found := await lines.find(turn.id)) is not None
    assert (found.message_id, found.state) == ("7", LineState.SHOWN)


async def test_a_line_is_found_until_it_is_closed_also_behind_the_end_of_its_turn(scene: Scene) -> None:
    turn = await scene.running(reply_to=TARGET)
    await scene.store.status_lines.begin(turn.id, TARGET, LineKind.STATUS)
    await scene.finish(turn, deliveries=scene.parts(turn, "answer"))
    (found,) = await at_work(scene)
    assert (found.turn_id, found.is_unsent, found.text) == (turn.id, True, "")
    (sent,) = await scene.send()
    await scene.settle(sent, DeliveryEvent.CONFIRM)
    (found,) = await at_work(scene)
    assert not found.is_unsent
    await scene.store.status_lines.close(turn.id)
    assert await at_work(scene) == []


async def test_a_question_leaves_with_the_turn_that_waits_for_its_answer(scene: Scene) -> None:
    turn = await asked(scene, TARGET, "telegram:home")
    cards = await scene.store.cards.of_turn(turn.id)
    assert {each.target for each in cards} == {TARGET, "telegram:home"}
    assert [each.turn_id for each in await scene.store.cards.open_at(TARGET)] == [turn.id]
    assert {(each.text, each.extra.question_id) for each in await scene.send()} == {("May I?", "question")}


async def test_a_repeated_park_asks_once(scene: Scene) -> None:
    """The answer to the first was lost."""
    turn = await scene.running(reply_to=TARGET)
    for _ in range(2):
        await scene.store.turns.park(turn, [scene.asked()], scene.question(), asking=[asking(scene, turn)])
    assert len(await scene.store.deliveries.of_turn(turn.id)) == 1


async def test_a_settled_question_is_shown_once_as_settled(scene: Scene) -> None:
    turn = await asked(scene)
    given = ApprovalAnswered(question_id="question", text="yes")
    await scene.store.turns.answer(turn.id, given, scene.now)
    assert await scene.store.cards.settled("telegram") == [], "it is not edited before it is there"
    (sent,) = await scene.send()
    await scene.settle(sent, DeliveryEvent.CONFIRM, receipt="41")
    (found,) = await scene.store.cards.settled("telegram")
    assert (found.delivery.receipt, found.answer) == ("41", "yes")
    assert await scene.store.cards.settled("tele") == []
    await scene.store.cards.close(found.card.delivery_id, scene.now)
    assert await scene.store.cards.settled("telegram") == []


async def test_a_cancelled_turn_settles_its_question(scene: Scene) -> None:
    turn = await asked(scene)
    (sent,) = await scene.send()
    await scene.settle(sent, DeliveryEvent.CONFIRM, receipt="41")
    await scene.store.settlement.cancel(turn.id, Cause.USER, scene.now)
    assert [each.answer for each in await scene.store.cards.settled("telegram")] == ["cancelled"]
    assert await scene.store.cards.open_at(TARGET) == []


async def test_a_question_can_be_answered_where_its_chat_is_now(scene: Scene) -> None:
    """The message that asks it stays in the chat that it was sent to."""
    turn = await asked(scene)
    (sent,) = await scene.send()
    await scene.settle(sent, DeliveryEvent.CONFIRM, receipt="41")
    await scene.store.deliveries.redirect(TARGET, "telegram:-100")
    assert await scene.store.cards.open_at(TARGET) == []
    assert [each.turn_id for each in await scene.store.cards.open_at("telegram:-100")] == [turn.id]
    given = ApprovalAnswered(question_id="question", text="yes")
    await scene.store.turns.answer(turn.id, given, scene.now)
    assert [each.delivery.target for each in await scene.store.cards.settled("telegram")] == [TARGET]


async def test_a_file_is_kept_for_some_days(scene: Scene) -> None:
    content = b"\x00sk-abc" * 1000
    kept = await scene.store.kept_files.keep(content, scene.now)
    assert await scene.store.kept_files.keep(content, scene.now) == kept
    assert await scene.store.kept_files.read(kept) == content
    await scene.store.enforce_retention({}, scene.now + FILE_DAYS * DAY_MS)
    with pytest.raises(NotFound):
        await scene.store.kept_files.read(kept)


async def test_what_is_shown_of_a_session_goes_with_it(scene: Scene) -> None:
    turn = await asked(scene)
    await scene.store.status_lines.begin(turn.id, TARGET, LineKind.STREAM)
    await scene.store.sessions.delete(turn.session_id, scene.now)
    while await scene.store.sessions.sweep():
        pass
    assert await scene.store.status_lines.find(turn.id) is None
    assert await scene.store.cards.of_turn(turn.id) == []
