"""What an operator looks up across sessions, and sessions opened before their first message."""

from __future__ import annotations

from holdfast.core import delivery, sessions
from holdfast.core.delivery import DeliveryEvent
from holdfast.core.obligations import Obligations
from holdfast.ids import new_session_id
from tests.conformance.scenes import Scene


async def opened(scene: Scene, key: str = "chat:1") -> sessions.Session:
    return await scene.store.sessions.open("local", key, "web", new_session_id(scene.now), scene.now)


async def test_nothing_is_owed_in_an_empty_store(scene: Scene) -> None:
    assert await scene.store.catalog.obligations() == Obligations()
    assert await scene.store.catalog.deliveries("local") == []


async def test_what_is_owed_is_counted_until_it_is_settled(scene: Scene) -> None:
    """CONSERVATION: a message owes an answer, an answer a delivery, and a delivery nothing once it has arrived."""
    await scene.accept("waits", conversation="chat:2")
    (made,) = await scene.sent_for("hi")
    owed = await scene.store.catalog.obligations()
    assert (owed.turns, owed.deliveries) == (1, 1)
    (claimed,) = await scene.send()
    assert (await scene.store.catalog.obligations()).deliveries == 1
    await scene.settle(claimed, DeliveryEvent.CONFIRM, receipt="r")
    assert (await scene.store.catalog.obligations()).deliveries == 0
    assert [each.id for each in await scene.store.catalog.deliveries("local")] == [made.id]


async def test_deliveries_are_paged_newest_first_and_narrowed_by_state_and_owner(scene: Scene) -> None:
    made = await scene.sent_for("one", "two", "three")
    first = await scene.store.catalog.deliveries("local", limit=2)
    last = first[-1]
    rest = await scene.store.catalog.deliveries("local", before=(last.created_at, last.id), limit=2)
    assert sorted(each.id for each in (*first, *rest)) == sorted(each.id for each in made)
    assert await scene.store.catalog.deliveries("local", state=delivery.DeliveryState.DELIVERED) == []
    assert len(await scene.store.catalog.deliveries("local", state=delivery.DeliveryState.PENDING)) == 3
    assert await scene.store.catalog.deliveries("somebody else") == []


async def test_a_session_is_open_before_its_first_message_and_takes_it(scene: Scene) -> None:
    session = await opened(scene)
    assert (session.key, session.channel, session.turns, session.seq) == ("chat:1", "web", 0, 0)
    assert (await scene.accept("hello")).session_id == session.id


async def test_opening_a_key_again_is_the_same_session(scene: Scene) -> None:
    session = await opened(scene)
    assert await opened(scene) == session
    receipt = await scene.accept("hello", conversation="chat:2")
    assert (await opened(scene, "chat:2")).id == receipt.session_id


async def test_after_a_suspension_opening_gives_another_session_that_says_why(scene: Scene) -> None:
    """R7"""
    first = await opened(scene)
    await scene.store.settlement.suspend_session(first.id, scene.now)
    scene.now += 1
    second = await opened(scene)
    assert (second.parent_id, second.auto_reset_reason) == (first.id, "suspended")
    assert [each.id for each in await scene.store.sessions.of_key("local", "chat:1")] == [second.id, first.id]


async def test_the_sessions_of_a_key_are_paged_and_narrowed_by_their_state(scene: Scene) -> None:
    made: list[sessions.Session] = []
    for number in range(5):
        made.append(await opened(scene))
        if number < 4:
            leave = scene.store.settlement.suspend_session if number % 2 else scene.store.settlement.end_session
            await leave(made[-1].id, *(() if number % 2 else ("done",)), scene.now)
        scene.now += 1
    newest_first = [each.id for each in reversed(made)]
    of_key = scene.store.sessions.of_key
    first = await of_key("local", "chat:1", 2)
    assert [each.id for each in first] == newest_first[:2]
    assert [each.id for each in await of_key("local", "chat:1", 9, first[-1].id)] == newest_first[2:]
    # The limit counts what is asked for, not what is passed over.
    ended = await of_key("local", "chat:1", 2, None, sessions.SessionState.ENDED)
    assert [each.id for each in ended] == [made[2].id, made[0].id]
    assert [each.id for each in await of_key("local", "chat:1", 1, ended[0].id, sessions.SessionState.ENDED)] == [made[0].id]


async def test_the_deliveries_of_a_session_are_paged_and_narrowed_by_their_state(scene: Scene) -> None:
    made = await scene.sent_for("one", "two", "three")
    session_id = made[0].session_id
    look = scene.store.catalog.deliveries
    first = await look("local", None, 2, delivery.DeliveryState.PENDING, session_id)
    rest = await look("local", (first[-1].created_at, first[-1].id), 2, delivery.DeliveryState.PENDING, session_id)
    assert sorted(each.id for each in (*first, *rest)) == sorted(each.id for each in made)
    assert await look("local", None, 2, delivery.DeliveryState.DELIVERED, session_id) == []
    assert await look("local", None, 2, None, new_session_id(scene.now)) == []
    assert await look("somebody else", None, 2, None, session_id) == []


async def test_sessions_are_narrowed_by_their_state(scene: Scene) -> None:
    first, second = await opened(scene), await opened(scene, "chat:2")
    await scene.store.settlement.end_session(first.id, "done", scene.now)
    ended = await scene.store.sessions.list("local", state=sessions.SessionState.ENDED)
    assert [each.id for each in ended] == [first.id]
    assert await scene.store.sessions.list("local", state=sessions.SessionState.OPEN) == [second]
    assert len(await scene.store.sessions.list("local")) == 2
