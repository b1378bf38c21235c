"""Spending: every usage entry counts once, for its turn, its session and its owner's day."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from holdfast.core.events import EntryKind
from holdfast.core.journal import Entry
from holdfast.core.turns import Resume, Turn
from holdfast.core.usage import Spent, Usage
from holdfast.ids import SessionId
from holdfast.operations.caller import OPERATOR
from holdfast.operations.sessions import Sessions
from holdfast.store.retention import DAY_MS, SPENDING_DAYS
from tests.conformance.scenes import MINUTE, START, Scene
from tests.conformance.test_forks import copy_of
from tests.engine.world import Altered


def used(times: int = 1, tokens: int = 10) -> Usage:
    return Usage(input_tokens=tokens * times, output_tokens=5 * times, cached_tokens=times, cost_micros=7 * times)


async def spend(scene: Scene, turn: Turn, *tokens: int) -> Turn:
    return (await scene.store.journal.append(turn, [scene.usage(each) for each in tokens]))[0]


async def spent(scene: Scene, turn: Turn, since: int = 0) -> Spent:
    return await scene.store.spending.spent(turn, "local", since)


async def test_a_turn_that_asked_no_model_has_spent_nothing(scene: Scene) -> None:
    assert await spent(scene, await scene.running()) == Spent()


async def test_what_is_used_counts_for_turn_session_and_day(scene: Scene) -> None:
    first = await scene.finish(await spend(scene, await scene.running(), 10, 10))
    second = await spend(scene, await scene.running(), 10)
    other = await spend(scene, await scene.running(conversation="chat:2"), 10)
    await spend(scene, await scene.running(owner="somebody"), 10)
    assert await spent(scene, first) == Spent(turn=used(2), session=used(3), day=used(4))
    assert await spent(scene, second) == Spent(turn=used(1), session=used(3), day=used(4))
    assert await spent(scene, other) == Spent(turn=used(1), session=used(1), day=used(4))


async def test_a_day_begins_when_it_begins(scene: Scene) -> None:
    turn = await spend(scene, await scene.running(), 10)
    scene.now += MINUTE
    turn = await spend(scene, turn, 10)
    assert (await spent(scene, turn, START)).day == used(2)
    assert (await spent(scene, turn, START + 1)).day == used(1)
    assert (await spent(scene, turn, scene.now)).day == used(1)
    assert (await spent(scene, turn, scene.now + 1)).day == Usage()


async def test_a_page_of_the_journal_counts_what_was_used_up_to_its_last_entry(scene: Scene) -> None:
    """Whoever adds to it what comes after that entry counts nothing twice, whatever happens while the page is read."""
    turn = await spend(scene, await scene.running(), 10)

    async def meanwhile(session_id: SessionId) -> object:
        nonlocal turn
        turn = await spend(scene, turn, 20)
        found = await scene.store.spending.of_session(session_id)
        turn = await spend(scene, turn, 30)
        return found

    store: Any = Altered(scene.store, spending=Altered(scene.store.spending, of_session=meanwhile))
    nothing: Any = None
    sessions = Sessions(store=store, caller=OPERATOR, clock=nothing, engine=nothing)
    page = await sessions.journal(turn.session_id)
    later = await scene.store.journal.read(turn.session_id, after=page.seq)
    assert page.entries[-1].seq == page.seq
    assert page.used.input_tokens + sum(int(str(entry.data["input_tokens"])) for entry in later) == 60


async def test_a_repeated_append_is_paid_once(scene: Scene) -> None:
    """P1: an append whose answer was lost."""
    turn = await scene.running()
    for _ in range(2):
        await spend(scene, turn, 10)
    assert (await spent(scene, turn)).turn == used(1)


async def test_what_a_turn_uses_last_counts_too(scene: Scene) -> None:
    """With its finish, and with its park."""
    finished = await scene.finish(await scene.running(), drafts=(scene.usage(),))
    assert (await spent(scene, finished)).turn == used(1)
    parked = await scene.park(await scene.running(), scene.usage())
    assert (await spent(scene, parked)).turn == used(1)


async def test_each_attempt_pays_for_itself(scene: Scene) -> None:
    first = await spend(scene, await scene.running(), 10)
    await scene.interrupt(first, resume=Resume.AUTO)
    second = await spend(scene, await scene.claim_and_start(first.id), 10)
    assert (await spent(scene, second)).turn == used(2)


def late(turn: Turn, nth: int) -> Entry:
    data = {"model": "small", "input_tokens": 10, "output_tokens": 5, "cached_tokens": 1, "cost_micros": 7}
    return Entry.read(
        session_id=turn.session_id,
        seq=0,
        turn_id=turn.id,
        attempt=turn.attempt,
        nth=nth,
        kind=EntryKind.USAGE,
        at=START,
        data=data,
    )


@pytest.mark.parametrize("began", [False, True], ids=["interrupted", "the next attempt has begun"])
async def test_what_arrives_late_is_paid_once(scene: Scene, began: bool) -> None:
    """J4: what was spent is news, whatever happened since."""
    turn = await spend(scene, await scene.running(), 10)
    await scene.interrupt(turn, resume=Resume.AUTO if began else Resume.ON_MESSAGE)
    if began:
        await scene.claim_and_start(turn.id)
    for new in (1, 0):
        assert await scene.store.journal.append_late([late(turn, 2), late(turn, 3)]) == new
    assert (await spent(scene, turn)).turn == used(2)


async def test_what_is_no_amount_costs_nothing(scene: Scene) -> None:
    """R11: a provider may report anything."""
    turn = await scene.running()
    odd = scene.draft(EntryKind.USAGE, input_tokens="many", output_tokens=-5, cached_tokens=None)
    turn, _ = await scene.store.journal.append(turn, [odd])
    assert await spent(scene, turn) == Spent()
    assert await scene.sql("SELECT model, input_tokens FROM spending") == [("", 0)]


async def test_a_deleted_conversation_still_counts_for_its_day(scene: Scene) -> None:
    turn = await scene.finish(await spend(scene, await scene.running(), 10))
    await scene.store.sessions.delete(turn.session_id, scene.now)
    assert (await spent(scene, turn)).day == used(1)


async def test_a_fork_has_spent_nothing(scene: Scene) -> None:
    turn = await scene.finish(await spend(scene, await scene.running(), 10))
    copy = await scene.store.sessions.fork(turn.session_id, copy_of(scene))
    (copied,) = await scene.store.turns.list(copy.id)
    assert await spent(scene, copied) == Spent(day=used(1))
    assert EntryKind.USAGE in await scene.kinds(copy.id)


async def test_old_spending_is_forgotten(scene: Scene) -> None:
    """W7"""
    turn = await spend(scene, await scene.running(), 10)
    scene.now += SPENDING_DAYS * DAY_MS - 1
    turn = await spend(scene, turn, 10)
    await scene.store.enforce_retention({}, scene.now)
    assert (await spent(scene, turn)).turn == used(2)
    await scene.store.enforce_retention({}, scene.now + 1)
    assert (await spent(scene, turn)).turn == used(1)
    assert replace((await spent(scene, turn)).turn, model="small").tokens == 15


async def test_what_is_used_after_a_turn_counts_for_it_too(scene: Scene) -> None:
    """P1: what an extraction used, once for each call, also where the conversation is gone by then."""
    turn = await scene.finish(await spend(scene, await scene.running(), 10))
    session = await scene.store.sessions.get(turn.session_id)
    usage = replace(used(), model="small")
    for nth in (1, 1, 2):
        await scene.store.spending.extra(session, turn.id, nth, usage, scene.now)
    assert await spent(scene, turn) == Spent(turn=used(3), session=used(3), day=used(3))
    await scene.store.sessions.delete(session.id, scene.now)
    await scene.store.spending.extra(session, turn.id, 3, usage, scene.now)
    assert (await spent(scene, turn)).day == used(4)
