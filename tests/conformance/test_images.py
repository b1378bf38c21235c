"""Pictures: durable with the message that they came with, and there wherever it is asked again."""

from __future__ import annotations

import pytest

from holdfast.core.intake import Busy, Image
from holdfast.errors import KeyReused
from holdfast.ids import TurnId, new_session_id, new_turn_id
from tests.conformance.scenes import PICTURE, Scene
from tests.conformance.test_forks import copy_of

OTHER = Image(media_type="image/jpeg", data=bytes(range(256)) * 10)


async def test_pictures_are_there_once_the_message_is(scene: Scene) -> None:
    """A2: byte for byte, in their order."""
    receipt = await scene.accept("look", images=(PICTURE, OTHER))
    await scene.reopen()
    assert await scene.store.turns.images(receipt.turn_id) == [PICTURE, OTHER]
    (accepted,) = await scene.entries(receipt.session_id)
    assert accepted.data == {
        "text": "look",
        "images": [{"media_type": "image/png", "bytes": 6}, {"media_type": "image/jpeg", "bytes": 2560}],
    }


async def test_a_message_without_pictures_has_none(scene: Scene) -> None:
    receipt = await scene.accept("look")
    assert await scene.store.turns.images(receipt.turn_id) == []
    assert [entry.data for entry in await scene.entries(receipt.session_id)] == [{"text": "look"}]
    assert await scene.store.turns.images(TurnId("nothing")) == []


async def test_a_repeat_keeps_the_first_pictures_and_others_are_another_body(scene: Scene) -> None:
    """A3"""
    first = await scene.accept("look", dedupe_key="k", images=(PICTURE,))
    assert (await scene.accept("look", dedupe_key="k", images=(PICTURE,))).turn_id == first.turn_id
    before = await scene.snapshot()
    for others in ((), (OTHER,), (PICTURE, PICTURE), (Image(media_type="image/gif", data=PICTURE.data),)):
        with pytest.raises(KeyReused):
            await scene.accept("look", dedupe_key="k", images=others)
    assert await scene.snapshot() == before


async def test_what_joins_a_turn_brings_its_pictures(scene: Scene) -> None:
    host = await scene.running("one", images=(PICTURE,))
    joining = await scene.accept("two", busy=Busy.STEER, images=(OTHER,))
    assert await scene.store.turns.images(host.id) == [PICTURE]
    await scene.store.steering.heed(host, scene.now)
    assert await scene.store.turns.images(host.id) == [PICTURE, OTHER]
    assert await scene.store.turns.images(joining.turn_id) == [OTHER]


async def test_what_is_asked_once_more_is_asked_with_its_pictures(scene: Scene) -> None:
    turn = await scene.finished("look", images=(PICTURE,))
    ids = (new_turn_id(scene.now), new_session_id(scene.now))
    again = await scene.store.intake.redo(scene.message("/retry"), turn.session_id, *ids, scene.now)
    assert again
    assert await scene.store.turns.images(again.turn_id) == [PICTURE]


async def test_a_fork_has_its_own_pictures(scene: Scene) -> None:
    turn = await scene.finished("look", images=(PICTURE,))
    fork = await scene.store.sessions.fork(turn.session_id, copy_of(scene))
    await scene.store.sessions.delete(turn.session_id, scene.now)
    (copied,) = await scene.store.turns.list(fork.id)
    assert await scene.store.turns.images(copied.id) == [PICTURE]
    assert await scene.store.turns.images(turn.id) == []
