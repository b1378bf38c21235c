"""Hints that something may be waiting: for whoever listens, on this node and on the others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from holdfast.core.turns import Cause
from holdfast.errors import KeyReused
from holdfast.ids import SessionId
from holdfast.store.store import Store
from tests.conformance.scenes import Scene, on_postgres


def listen(store: Store) -> tuple[list[str], Callable[[], None]]:
    """Collect what is heard, but not that hints may have been lost, which the listener says whenever it has connected."""
    heard: list[str] = []
    return heard, store.wakes.listen(lambda topic: None if topic == "missed" else heard.append(topic))


async def heard_of(scene: Scene, write: Callable[[], Awaitable[object]]) -> set[str]:
    """Return what a write wakes on its own node."""
    heard, stop = listen(scene.store)
    await write()
    # The wakes of a write come with its answer, or in the same turn of the loop.
    await asyncio.sleep(0)
    stop()
    return set(heard)


async def test_every_write_wakes_those_it_concerns(scene: Scene) -> None:
    receipt = await scene.accept()
    session = f"session:{receipt.session_id}"
    assert await heard_of(scene, scene.accept) == {"turns", session}
    (claimed,) = await scene.claim()
    assert await heard_of(scene, lambda: scene.start(claimed)) == {f"appended:{receipt.session_id}"}
    turn = await scene.store.turns.get(receipt.turn_id)
    assert await heard_of(scene, lambda: scene.say(turn, "hi")) == {f"appended:{receipt.session_id}"}
    turn = await scene.store.turns.get(receipt.turn_id)
    done = await heard_of(scene, lambda: scene.finish(turn, deliveries=scene.parts(turn, "hi")))
    assert done >= {"turns", "deliveries", "segments", f"appended:{receipt.session_id}"}
    (sent,) = await scene.send()
    assert await heard_of(scene, lambda: scene.settle(sent, "confirm")) >= {"deliveries", session}


async def test_a_cancel_tells_the_holder(scene: Scene) -> None:
    """J9: so that it stops at once, and not at its next write."""
    turn = await scene.running()
    heard = await heard_of(scene, lambda: scene.store.settlement.cancel(turn.id, Cause.USER, scene.now))
    assert heard >= {"turns", f"session:{turn.session_id}", f"cancelled:{turn.id}"}


async def test_a_write_that_was_refused_wakes_at_most_the_dispatcher(scene: Scene) -> None:
    """Where a message and its claim share a commit, it is woken before anybody knows; it finds nothing, and waits on."""
    await scene.accept("one", dedupe_key="k")

    async def refused() -> None:
        with pytest.raises(KeyReused):
            await scene.accept("two", dedupe_key="k")

    heralded = {"turns"} if scene.store.database.dialect.name == "sqlite" else set()
    assert await heard_of(scene, refused) == heralded


async def test_whoever_has_stopped_listening_hears_nothing(scene: Scene) -> None:
    heard, stop = listen(scene.store)
    stop()
    await scene.accept()
    await asyncio.sleep(0)
    assert heard == []


@on_postgres
async def test_other_nodes_hear_of_it_too(scene: Scene) -> None:
    """A hint may be lost while the listener connects, so the writes go on until one is heard."""
    other = await scene.another_store()
    topics: asyncio.Queue[str] = asyncio.Queue()
    other.wakes.listen(lambda topic: None if topic == "missed" else topics.put_nowait(topic))
    async with asyncio.timeout(10):
        while topics.empty():
            receipt = await scene.accept()
        assert {await topics.get(), await topics.get()} == {"turns", f"session:{receipt.session_id}"}


@on_postgres
async def test_whoever_could_not_listen_for_a_while_is_told(scene: Scene) -> None:
    missed = asyncio.Event()
    scene.store.wakes.listen(lambda topic: missed.set() if topic == "missed" else None)
    deaf = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'"
    )
    async with asyncio.timeout(10):
        while not await scene.sql(deaf):
            pass
        missed.clear()
        await missed.wait()


async def test_whatever_shows_in_a_list_of_sessions_is_told(scene: Scene) -> None:
    session = f"session:{(receipt := await scene.accept()).session_id}"
    assert await heard_of(scene, lambda: scene.store.sessions.change(receipt.session_id, pinned=True)) == {session}
    copy = replace(await scene.store.sessions.get(receipt.session_id), id=SessionId("ses_copy"), key="copy")
    assert await heard_of(scene, lambda: scene.store.sessions.fork(receipt.session_id, copy)) == {"session:ses_copy"}
    opened = scene.store.sessions.open("ann", "new", "web", SessionId("ses_new"), scene.now)
    assert await heard_of(scene, lambda: opened) == {"session:ses_new"}
    deleted = await heard_of(scene, lambda: scene.store.sessions.delete(SessionId("ses_new"), scene.now))
    assert deleted >= {"gone:ses_new:ann"}
    await scene.store.settlement.end_session(copy.id, "done", scene.now)
    assert await heard_of(scene, lambda: scene.store.sessions.prune(copy.channel, scene.now)) == {"gone:ses_copy:local"}


@on_postgres
async def test_a_node_hears_its_own_writes_once(scene: Scene) -> None:
    """What comes back to it from the database is not passed on a second time."""
    own, _ = listen(scene.store)
    other = await scene.another_store()
    foreign: asyncio.Queue[str] = asyncio.Queue()
    scene.store.wakes.listen(lambda topic: foreign.put_nowait(topic) if topic == "segments" else None)
    for number in range(20):
        await scene.accept(conversation=str(number))
    async with asyncio.timeout(10):
        # Notifications arrive in the order of their commits: after this one nothing of ours is on its way.
        while foreign.empty():
            await other.segments.seal(SessionId("nothing"), scene.now)
    assert own.count("turns") == 20
