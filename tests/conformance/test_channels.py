"""Accounts of chat platforms: who receives, and what was received and is not handled yet."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast.core.chats import (
    AccountState,
    ChatMessage,
    ChatMoved,
    Consumed,
    Lease,
    Member,
    MessageEdited,
    MessagePart,
    Place,
    Pressed,
    RemoteFile,
    command_key,
)
from holdfast.errors import Stale
from holdfast.store.database import clean
from tests.conformance.scenes import Scene, on_postgres

BOT = "telegram"
CHAT = Place(chat_id="7")


def chat_message(message_id: str, text: str = "hello", **changes: Any) -> ChatMessage:
    return ChatMessage(
        **{"place": CHAT, "sender": Member(id="5"), "message_id": message_id, "text": text, "sent_at": 1, **changes}
    )


async def leased(scene: Scene) -> Lease:
    lease = await scene.store.channels.claim(BOT, "telegram", scene.node)
    assert lease
    return lease


def consumed(*numbers: int, ids: tuple[str, ...] = ()) -> Consumed:
    parts = tuple(MessagePart(chat_id="7", message_id=each, position=0, length=5) for each in ids)
    return Consumed(account=BOT, numbers=numbers, parts=parts)


async def numbers(scene: Scene) -> list[int]:
    return [each.number for each in await scene.store.channels.staged(BOT)]


async def test_every_kind_of_event_comes_back_as_it_was(scene: Scene) -> None:
    file = RemoteFile(id="f", name="a.pdf", media_type="application/pdf", bytes=9)
    events = [
        chat_message("1", "half a \ud800 pair", files=(file,), album="a", addresses_bot=True, chat_name="tea"),
        MessageEdited(place=CHAT, sender=Member(id="5"), message_id="1", text="", edited_at=7),
        Pressed(place=CHAT, sender=Member(id="5"), message_id="2", press_id="p", value="q:1"),
        ChatMoved(from_chat_id="7", to_chat_id="-1007"),
    ]
    await scene.store.channels.stage(await leased(scene), events, "12", scene.now)
    staged = await scene.store.channels.staged(BOT)
    assert [each.event for each in staged[1:]] == events[1:]
    assert isinstance(events[0], ChatMessage)
    assert staged[0].event == msgspec.structs.replace(events[0], text=clean("half a \ud800 pair"))
    assert await scene.store.channels.position(BOT) == "12"


async def test_an_event_is_staged_once(scene: Scene) -> None:
    lease = await leased(scene)
    await scene.store.channels.stage(lease, [chat_message("1"), chat_message("1"), chat_message("2")], None, scene.now)
    await scene.store.channels.stage(lease, [chat_message("2"), chat_message("3")], None, scene.now)
    assert [each.event.message_id for each in await scene.store.channels.staged(BOT)] == ["1", "2", "3"]  # type: ignore[union-attr]


async def test_what_became_a_turn_is_not_staged_again(scene: Scene) -> None:
    lease = await leased(scene)
    await scene.store.channels.stage(lease, [chat_message("1"), chat_message("2")], None, scene.now)
    receipt = await scene.accept(conversation="telegram:7", consumed=consumed(1, 2, ids=("1", "2")))
    await scene.store.channels.stage(lease, [chat_message("1"), chat_message("2"), chat_message("3")], None, scene.now)
    assert len(await numbers(scene)) == 1
    found = await scene.store.channels.turn_of(BOT, CHAT, "2")
    assert found
    assert (found.turn_id, found.session_id) == (receipt.turn_id, receipt.session_id)
    assert [part.message_id for part in await scene.store.channels.messages_of(receipt.turn_id)] == ["1", "2"]


async def test_a_command_that_was_done_is_not_staged_again(scene: Scene) -> None:
    lease = await leased(scene)
    await scene.accept(dedupe_key=command_key(BOT, CHAT, "1"))
    await scene.store.channels.stage(lease, [chat_message("1")], None, scene.now)
    assert await numbers(scene) == []


async def test_events_become_one_turn_only(scene: Scene) -> None:
    lease = await leased(scene)
    await scene.store.channels.stage(lease, [chat_message("1"), chat_message("2")], None, scene.now)
    await scene.accept(consumed=consumed(1, ids=("1",)))
    before = await scene.snapshot()
    for again in (consumed(1, 2, ids=("1", "2")), consumed(2, ids=("1",))):
        with pytest.raises(Stale):
            await scene.accept(consumed=again)
    assert await scene.snapshot() == before
    assert await numbers(scene) == [2]


async def test_events_wait_for_what_holds_them(scene: Scene) -> None:
    lease = await leased(scene)
    await scene.store.channels.stage(lease, [chat_message(each) for each in "123"], None, scene.now)
    await scene.store.channels.hold(BOT, [1, 2], "pairing")
    await scene.store.channels.hold(BOT, [3], "backlog")
    assert await numbers(scene) == []
    assert [each.number for each in await scene.store.channels.held("pairing")] == [1, 2]
    assert await scene.store.channels.drop_held("backlog") == 1
    assert await scene.store.channels.release_held("pairing") == 2
    assert await numbers(scene) == [1, 2]
    await scene.store.channels.remove(BOT, [1])
    with pytest.raises(Stale):
        await scene.store.channels.hold(BOT, [1, 2], "backlog")
    with pytest.raises(Stale):
        await scene.store.channels.remove(BOT, [1, 2])
    assert await numbers(scene) == [2]


async def test_a_receive_says_that_the_account_is_connected(scene: Scene) -> None:
    lease = await leased(scene)
    await scene.store.channels.report(lease, AccountState.REFUSED, "the token is not valid", 1)
    await scene.store.channels.stage(lease, [], None, scene.now)
    (account,) = await scene.store.channels.list()
    assert (account.state, account.problem, account.last_receive_at) == (AccountState.CONNECTED, "", scene.now)


async def test_a_lease_that_was_claimed_again_moves_nothing(scene: Scene) -> None:
    """T4"""
    old = await leased(scene)
    new = await leased(scene)
    before = await scene.snapshot()
    with pytest.raises(Stale):
        await scene.store.channels.stage(old, [chat_message("1")], "1", scene.now)
    with pytest.raises(Stale):
        await scene.store.channels.report(old, AccountState.TAKEN, "taken", 1)
    await scene.store.channels.release(old)
    assert await scene.snapshot() == before
    await scene.store.channels.release(new)
    found = await scene.store.channels.find(BOT)
    assert found
    assert (found.node_id, found.state) == (None, AccountState.STOPPED)


@on_postgres
async def test_one_node_receives_until_it_is_dead(scene: Scene) -> None:
    lease = await leased(scene)
    other = await scene.joined()
    assert await scene.store.channels.claim(BOT, "telegram", other) is None
    await scene.store.nodes.leave(scene.node)
    taken = await scene.store.channels.claim(BOT, "telegram", other)
    assert taken
    assert taken.fence > lease.fence
    assert await scene.store.channels.claim(BOT, "telegram", scene.node) is None
    with pytest.raises(Stale):
        await scene.store.channels.stage(lease, [], "1", scene.now)


async def test_requests_of_the_platform_need_no_lease(scene: Scene) -> None:
    await leased(scene)
    await scene.store.channels.stage_request(BOT, [chat_message("1"), chat_message("2")], scene.now)
    await scene.store.channels.stage_request(BOT, [chat_message("2")], scene.now)
    assert await numbers(scene) == [1, 2]


async def test_records_of_messages_are_kept_for_a_time(scene: Scene) -> None:
    await scene.store.channels.stage(await leased(scene), [chat_message("1")], None, scene.now)
    await scene.accept(consumed=consumed(1, ids=("1",)))
    assert await scene.store.channels.forget_messages(scene.now - 1) == 0
    assert await scene.store.channels.forget_messages(scene.now) == 1
    assert await scene.store.channels.turn_of(BOT, CHAT, "1") is None
