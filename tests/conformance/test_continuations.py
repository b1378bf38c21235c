"""Continuations: one chat goes on with the conversation of another, and leaves it again."""

from __future__ import annotations

import pytest

from holdfast.core.intake import Once
from holdfast.core.sessions import Session, SessionState
from holdfast.core.turns import TurnState
from holdfast.errors import NotFound, Repeated
from holdfast.ids import SessionId, new_session_id
from tests.conformance.scenes import Scene
from tests.conformance.test_forks import shown

HERE = "discord:9"


def once(key: str) -> Once:
    return Once(key=key, body_hash=key)


def here(scene: Scene) -> Session:
    id_, at = new_session_id(scene.now), scene.now
    return Session(id=id_, key=HERE, channel="discord", owner="local", one_shot=False, created_at=at, updated_at=at)


async def test_a_chat_goes_on_with_a_session_until_it_is_over(scene: Scene) -> None:
    turn = await scene.finished("one")
    await scene.store.continuations.begin("local", HERE, turn.session_id, scene.now, once("a"))
    assert await scene.store.continuations.find("local", HERE) == "chat:1"
    assert await scene.store.continuations.find("telegram:5", HERE) is None
    await scene.reopen()
    assert await scene.store.continuations.find("local", HERE) == "chat:1"
    await scene.store.settlement.end_session(turn.session_id, "new", scene.now)
    assert await scene.store.continuations.find("local", HERE) is None
    await scene.store.sessions.delete(turn.session_id, scene.now)
    assert await scene.sql("SELECT * FROM continuations") == []


async def test_a_chat_that_begins_anew_leaves_the_other_session_open_and_ends_its_own(scene: Scene) -> None:
    other, own = await scene.finished("one"), await scene.accept("mine", conversation=HERE)
    await scene.store.continuations.begin("local", HERE, other.session_id, scene.now, once("a"))
    await scene.store.continuations.leave("local", HERE, "new", scene.now, once("b"))
    assert await scene.store.continuations.find("local", HERE) is None
    assert (await scene.store.sessions.get(other.session_id)).state is SessionState.OPEN
    ended = await scene.store.sessions.get(own.session_id)
    assert (ended.state, ended.end_reason) == (SessionState.ENDED, "new")
    assert (await scene.store.turns.get(own.turn_id)).state is TurnState.CANCELLED
    with pytest.raises(Repeated):
        await scene.store.continuations.leave("local", HERE, "new", scene.now, once("b"))


async def test_each_is_done_once(scene: Scene) -> None:
    first, second = await scene.finished("one"), await scene.finished("two", conversation="chat:2")
    await scene.store.continuations.begin("local", HERE, first.session_id, scene.now, once("a"))
    await scene.store.continuations.begin("local", HERE, second.session_id, scene.now, once("b"))
    with pytest.raises(Repeated):
        await scene.store.continuations.begin("local", HERE, first.session_id, scene.now, once("a"))
    assert await scene.store.continuations.find("local", HERE) == "chat:2"


async def test_a_session_that_is_over_goes_on_in_a_copy_that_is_the_chats_own(scene: Scene) -> None:
    turn = await scene.finish(await scene.say(await scene.running("one"), "hi"))
    await scene.store.sessions.change(turn.session_id, model="openai:small")
    await scene.store.settlement.end_session(turn.session_id, "new", scene.now)
    own = await scene.finished("mine", conversation=HERE)
    copy = await scene.store.continuations.copy(turn.session_id, here(scene), "new", scene.now, once("a"))
    assert (copy.parent_id, copy.model) == (turn.session_id, "openai:small")
    assert await shown(scene, copy.id) == await shown(scene, turn.session_id)
    assert (await scene.store.sessions.get(own.session_id)).state is SessionState.ENDED
    assert (await scene.accept("two", conversation=HERE)).session_id == copy.id
    with pytest.raises(Repeated):
        await scene.store.continuations.copy(turn.session_id, here(scene), "new", scene.now, once("a"))


async def test_what_is_not_there_cannot_be_copied_and_nothing_ends(scene: Scene) -> None:
    own = await scene.finished("mine", conversation=HERE)
    with pytest.raises(NotFound):
        await scene.store.continuations.copy(SessionId("ses_none"), here(scene), "new", scene.now, once("a"))
    assert (await scene.store.sessions.get(own.session_id)).state is SessionState.OPEN


async def test_the_model_of_a_session_is_kept_until_it_is_taken_away(scene: Scene) -> None:
    turn = await scene.finished("one")
    change = scene.store.sessions.change
    assert (await change(turn.session_id, model="openai:small", once=once("a"), now_ms=scene.now)).model == "openai:small"
    assert (await change(turn.session_id, title="a walk")).model == "openai:small"
    with pytest.raises(Repeated):
        await change(turn.session_id, model="openai:large", once=once("a"), now_ms=scene.now)
    await scene.reopen()
    assert (await scene.store.sessions.get(turn.session_id)).model == "openai:small"
    assert (await scene.store.sessions.change(turn.session_id, model="")).model is None
