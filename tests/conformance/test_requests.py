"""What a client sends with its message: what was said before, what it wants to read again, and its own answer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.core.intake import Prior, Receipt, Speaker
from holdfast.core.turns import TurnState
from holdfast.errors import KeyReused
from holdfast.ids import new_session_id, new_turn_id
from tests.conformance.scenes import MINUTE, Scene
from tests.conformance.test_forks import copy_of

PRIOR = (
    Prior(speaker=Speaker.SYSTEM, text="Be brief."),
    Prior(speaker=Speaker.USER, text="Where is the harbour?"),
    Prior(speaker=Speaker.ASSISTANT, text="North."),
)
REQUEST = {"endpoint": "responses", "metadata": {"a": "b"}, "background": True, "temperature": 0.5}


async def test_what_came_with_a_message_is_in_its_entry(scene: Scene) -> None:
    """A2: as durable as the message."""
    receipt = await scene.accept("And the lighthouse?", prior=PRIOR, request=REQUEST)
    await scene.reopen()
    (accepted,) = await scene.entries(receipt.session_id)
    assert set(accepted.data) == {"text", "prior", "request"}
    assert accepted.data["prior"] == [{"speaker": each.speaker, "text": each.text} for each in PRIOR]
    assert (accepted.event.said_before, accepted.event.request) == (PRIOR, REQUEST)


async def test_a_message_alone_has_nothing_but_its_text(scene: Scene) -> None:
    receipt = await scene.accept("hello")
    (accepted,) = await scene.entries(receipt.session_id)
    assert accepted.data == {"text": "hello"}
    assert not (await scene.store.turns.get(receipt.turn_id)).verbatim


async def test_a_repeat_with_another_past_is_another_body(scene: Scene) -> None:
    """A3"""
    first = await scene.accept("hello", dedupe_key="k", prior=PRIOR, request=REQUEST)
    assert (await scene.accept("hello", dedupe_key="k", prior=PRIOR, request=REQUEST)).turn_id == first.turn_id
    before = await scene.snapshot()
    for others in ({"prior": PRIOR[:2], "request": REQUEST}, {"prior": PRIOR}, {}):
        with pytest.raises(KeyReused):
            await scene.accept("hello", dedupe_key="k", **others)
    assert await scene.snapshot() == before


async def test_what_is_asked_once_more_is_asked_with_all_that_came_with_it(scene: Scene) -> None:
    turn = await scene.finished("hello", "hello", prior=PRIOR, request=REQUEST, verbatim=True)
    ids = (new_turn_id(scene.now), new_session_id(scene.now))
    again = await scene.store.intake.redo(scene.message("/retry"), turn.session_id, *ids, scene.now)
    assert again
    accepted, *_ = await scene.store.journal.read_turn(again.turn_id)
    assert accepted.data == (await scene.entries(turn.session_id))[0].data
    assert (await scene.store.turns.get(again.turn_id)).verbatim


async def test_a_copy_has_what_came_with_its_messages(scene: Scene) -> None:
    turn = await scene.finished("hello", "hello", prior=PRIOR, request=REQUEST, verbatim=True)
    copy = await scene.store.sessions.fork(turn.session_id, copy_of(scene))
    (copied,) = await scene.store.turns.list(copy.id)
    assert copied.verbatim
    assert (await scene.entries(copy.id))[0].data == (await scene.entries(turn.session_id))[0].data


async def test_a_message_that_needs_no_agent_says_so_until_its_turn_is_over(scene: Scene) -> None:
    turn = await scene.running("Backup done.", verbatim=True)
    assert turn.verbatim
    assert (await scene.finish(turn, text="Backup done.")).verbatim


async def test_a_key_is_looked_up_without_being_used(scene: Scene) -> None:
    """A3: whoever only looks leaves no trace."""
    before = await scene.snapshot()
    assert await scene.store.intake.seen("webhook:alerts:1") is None
    assert await scene.snapshot() == before
    first = await scene.accept("hello", dedupe_key="webhook:alerts:1")
    scene.now += MINUTE
    before = await scene.snapshot()
    assert await scene.store.intake.seen("webhook:alerts:1") == replace(first, duplicate=True)
    assert await scene.store.intake.seen("webhook:alerts:2") is None
    assert await scene.snapshot() == before


async def test_a_key_is_known_for_longer_than_its_turn(scene: Scene) -> None:
    """A3, W6"""
    turn = await scene.finished(dedupe_key="k", channel="webhook", one_shot=True, remembers=False)
    assert (await scene.store.sessions.prune("webhook", scene.now)) == 1
    assert await scene.store.intake.seen("k") == Receipt(
        turn_id=turn.id, session_id=turn.session_id, state=TurnState.COMPLETED, accepted_at=turn.accepted_at, duplicate=True
    )
