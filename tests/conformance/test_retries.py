"""Requests without a key that their clients repeat: each try finds the turn of the one before, and no other."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import asyncpg
import pytest

from holdfast.core.intake import Receipt
from holdfast.core.retries import FINISHED_MS, Try
from holdfast.core.turns import Mode, TurnState
from holdfast.ids import TurnId
from holdfast.store import intake, locks
from holdfast.store.store import Store
from tests.blackbox.gateway import until
from tests.conformance.scenes import Scene, on_postgres

WAITING = "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
_names = itertools.count(1)


def request(number: int = 0, digest: str = "d", **more: Any) -> dict[str, Any]:
    """Return a request in a session of its own, as the API takes it in."""
    return {
        "conversation": f"api:{next(_names)}",
        "channel": "api",
        "mode": Mode.SYNCHRONOUS,
        "delivers_later": False,
        "one_shot": True,
        "remembers": False,
        "tried": Try(digest=digest, number=number, **more),
    }


async def ask(scene: Scene, number: int = 0, by: Store | None = None, owner: str = "local", **more: Any) -> Receipt:
    return await scene.accept("hello", by=by, owner=owner, **request(number, **more))


async def test_a_retry_shares_no_commit(scene: Scene) -> None:
    """It may move a turn that it cannot name, and another transaction of the same commit could be about that turn."""
    for number, alone in ((0, False), (1, True)):
        assert locks.is_alone(intake._touched(scene.message(**request(number)))) is alone


@on_postgres
async def test_a_retry_locks_a_session_before_its_turn(scene: Scene) -> None:
    """Else it waits for whoever holds the session, and that one for the turn."""
    turn_id = await bring_about(scene, TurnState.INTERRUPTED)
    session_id = (await scene.store.turns.get(turn_id)).session_id
    other, looker = await asyncpg.connect(scene.url), await asyncpg.connect(scene.url)
    try:
        async with other.transaction():
            await other.execute("SELECT 1 FROM sessions WHERE id = $1 FOR UPDATE", session_id)
            retry = asyncio.create_task(ask(scene, 1))
            await until(lambda: looker.fetchval(WAITING), "the retry waits")
            await other.execute("SELECT 1 FROM turns WHERE id = $1 FOR UPDATE NOWAIT", turn_id)
    finally:
        await other.close()
        await looker.close()
    assert (await retry).turn_id == turn_id
    assert (await scene.store.turns.get(turn_id)).state is TurnState.QUEUED


async def count(scene: Scene) -> int:
    return sum((await scene.store.turns.tally()).values())


async def bring_about(scene: Scene, state: TurnState) -> TurnId:
    match state:
        case TurnState.QUEUED:
            return (await ask(scene)).turn_id
        case TurnState.RUNNING:
            return (await scene.running(**request())).id
        case TurnState.COMPLETED:
            return (await scene.finished(**request())).id
        case _:
            return (await scene.interrupted(**request())).id


@pytest.mark.parametrize("state", [TurnState.QUEUED, TurnState.RUNNING, TurnState.COMPLETED, TurnState.INTERRUPTED])
async def test_a_retry_gets_the_turn_that_is_there_and_lets_it_go_on(scene: Scene, state: TurnState) -> None:
    """A3, R10: one turn, however often it is sent, also behind a restart."""
    turn_id = await bring_about(scene, state)
    for number in (1, 2):
        again = await ask(scene, number)
        assert (again.turn_id, again.duplicate) == (turn_id, True)
        assert again.state is (TurnState.QUEUED if state is TurnState.INTERRUPTED else state)
        await scene.reopen()
    assert await count(scene) == 1


async def test_the_same_words_once_more_are_another_turn(scene: Scene) -> None:
    receipts = [await ask(scene) for _ in range(3)]
    assert len({each.turn_id for each in receipts}) == 3
    assert not any(each.duplicate for each in receipts)


@pytest.mark.parametrize("other", [{"owner": "ada"}, {"digest": "e"}, {"refused": True}])
async def test_what_is_not_the_same_request_joins_nothing(scene: Scene, other: dict[str, Any]) -> None:
    """Another tenant, another body, or a request of which nothing was accepted yet."""
    first = await ask(scene)
    again = await ask(scene, 1, **other)
    assert (again.turn_id != first.turn_id, again.duplicate) == (True, False)


async def test_a_retry_whose_first_try_never_came_is_new_and_is_joined_by_the_next(scene: Scene) -> None:
    first = await ask(scene, 1)
    assert not first.duplicate
    assert (await ask(scene, 2)).turn_id == first.turn_id
    # Of another request with the same words, whose first try was lost as well.
    assert not (await ask(scene, 1)).duplicate


async def test_equal_requests_that_are_all_retried_get_a_turn_each(scene: Scene) -> None:
    """However many ask the same at once, none of their turns is left alone and none is answered twice."""
    first = {(await ask(scene)).turn_id for _ in range(5)}
    fleet = [scene.store, await scene.another_store()] if scene.postgres else [scene.store]
    for number in (1, 2):
        again = await asyncio.gather(*(ask(scene, number, by=fleet[each % len(fleet)]) for each in range(5)))
        assert {each.turn_id for each in again} == first
    assert await count(scene) == 5


async def test_a_turn_whose_client_waits_is_the_last_to_be_joined(scene: Scene) -> None:
    older, newer = (await ask(scene)).turn_id, (await ask(scene)).turn_id
    assert (await ask(scene, 1, attended=frozenset({newer}))).turn_id == older
    assert (await ask(scene, 1, attended=frozenset({newer}))).turn_id == newer


async def test_tries_that_wait_for_the_store_together_are_one_turn(scene: Scene) -> None:
    """A commit may take longer than a client waits, so that its next try stands behind it."""
    tries = await asyncio.gather(*(ask(scene, number) for number in range(4)))
    assert len({each.turn_id for each in tries}) == 1
    assert await count(scene) == 1


async def test_an_answer_that_was_read_is_joined_by_nothing(scene: Scene) -> None:
    read, unread = await scene.finished(**request()), await scene.finished(**request(digest="e"))
    await scene.store.intake.heard([read.id])
    await scene.store.intake.heard([read.id, TurnId("turn_of_nobody")])
    assert not (await ask(scene, 1)).duplicate
    assert (await ask(scene, 1, digest="e")).turn_id == unread.id


async def test_an_old_answer_is_joined_by_nothing(scene: Scene) -> None:
    turn = await scene.finished(**request())
    scene.now += FINISHED_MS
    assert (await ask(scene, 1)).turn_id == turn.id
    scene.now += 1
    assert not (await ask(scene, 2)).duplicate


async def test_a_try_can_be_looked_for_without_anything_being_accepted(scene: Scene) -> None:
    turn = await scene.interrupted(**request())
    for this, owner in (
        (Try(digest="d"), "local"),
        (Try(digest="e", number=1), "local"),
        (Try(digest="d", number=1), "ada"),
    ):
        assert await scene.store.intake.rejoin(this, owner, scene.now) is None
    found = await scene.store.intake.rejoin(Try(digest="d", number=1), "local", scene.now)
    assert found
    assert (found.turn_id, found.state, found.duplicate) == (turn.id, TurnState.QUEUED, True)
    assert await count(scene) == 1
