"""Searches for the output of lost attempts: who opens them, who counts, and how they end."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.clock import SystemClock
from holdfast.core.events import EntryKind
from holdfast.core.journal import Entry
from holdfast.core.recovery import PendingRecovery, Sight
from holdfast.core.sessions import Session
from holdfast.core.transcript import fold
from holdfast.core.turns import Cause, Mode, Policy, Resume, Turn, TurnState
from holdfast.engine.late_entries import LateEntries
from holdfast.engine.node_context import NodeContext
from holdfast.engine.spool import Spool
from holdfast.errors import Stale
from holdfast.ids import NodeId, SessionId, new_node_id, new_session_id
from holdfast.store import cancellation, recoveries
from holdfast.store.database import POSTGRES
from tests.conformance.scenes import Scene, on_postgres
from tests.conformance.test_concurrency import race

HERE, THERE = "home-here", "home-there"


async def joined(scene: Scene, home: str) -> NodeId:
    node = new_node_id(scene.now)
    await scene.store.nodes.join(node, scene.now, home)
    return node


async def lost(
    scene: Scene, home: str = THERE, ours: str = HERE, resume: Resume = Resume.ON_MESSAGE, **changes: object
) -> Turn:
    """Let a node of a home die in the middle of a turn, and a node of ours take over; returns the turn as it was."""
    node = await joined(scene, home)
    receipt = await scene.accept(**changes)
    turn = await scene.say(await scene.claim_and_start(receipt.turn_id, node), "early ")
    await scene.store.nodes.leave(node)
    await scene.store.nodes.sweep(Cause.CRASH, Policy(resume=resume), scene.now, home=ours)
    return turn


async def searches(scene: Scene, turn: Turn) -> list[PendingRecovery]:
    return await scene.store.recoveries.of_session(turn.session_id)


async def late(scene: Scene, turn: Turn, *texts: str) -> int:
    drafts = [scene.text(text) for text in texts]
    return await scene.store.journal.append_late(
        [
            Entry(
                session_id=turn.session_id, seq=0, turn_id=turn.id, attempt=turn.attempt, nth=nth,
                at=draft.at, event=draft.event,
            )
            for nth, draft in enumerate(drafts, turn.nth + 1)
        ]
    )  # fmt: skip


async def marker(scene: Scene, turn: Turn) -> str:
    return next(item.text for item in fold(await scene.entries(turn.session_id)) if item.kind == "interrupted")


async def test_a_turn_lost_with_another_home_is_searched_for(scene: Scene) -> None:
    """J3: what that home still has may arrive, and the marker says so from the first moment."""
    turn = await lost(scene)
    (pending,) = await searches(scene, turn)
    assert pending == PendingRecovery(
        turn_id=turn.id,
        attempt=1,
        session_id=turn.session_id,
        node_id=pending.node_id,
        home=THERE,
        tries=0,
        since=scene.now,
    )
    assert turn.node_id == pending.node_id
    assert "pending" in await marker(scene, turn)


@pytest.mark.parametrize(("home", "ours"), [(HERE, HERE), ("", HERE), ("", "")])
async def test_what_is_in_our_own_home_or_in_none_is_not_searched_for(scene: Scene, home: str, ours: str) -> None:
    """J3: it is handed in at once, or there is nothing to hand in."""
    turn = await lost(scene, home, ours)
    assert await searches(scene, turn) == []
    assert "pending" not in await marker(scene, turn)


async def test_every_lost_attempt_of_a_turn_has_its_own_search(scene: Scene) -> None:
    """J2: a turn that goes on may be lost again, with another home."""
    turn = await lost(scene, resume=Resume.AUTO)
    node = await joined(scene, "home-elsewhere")
    again = await scene.claim_and_start(turn.id, node)
    await scene.store.nodes.leave(node)
    await scene.store.nodes.sweep(Cause.CRASH, Policy(), scene.now, home=HERE)
    assert [(each.attempt, each.home) for each in await searches(scene, turn)] == [(1, THERE), (2, "home-elsewhere")]
    assert again.attempt == 2


@on_postgres
async def test_many_turns_of_many_nodes_are_searched_for_after_one_sweep(scene: Scene) -> None:
    nodes = [await joined(scene, home) for home in (THERE, HERE, "home-elsewhere")]
    turns: list[Turn] = []
    for number, node in enumerate(nodes * 2):
        receipt = await scene.accept(conversation=f"chat:{number}")
        turns.append(await scene.claim_and_start(receipt.turn_id, node))
    for node in nodes:
        await scene.store.nodes.leave(node)
    await scene.store.nodes.sweep(Cause.CRASH, Policy(), scene.now, home=HERE)
    homes = [[each.home for each in await searches(scene, turn)] for turn in turns]
    assert homes == [[THERE], [], ["home-elsewhere"]] * 2


async def test_what_can_be_seen_is_what_arrived_or_who_could_bring_it(scene: Scene) -> None:
    """J4 J6."""
    turn = await lost(scene)
    (pending,) = await searches(scene, turn)
    assert await scene.store.recoveries.sight(pending) is Sight.SEALED
    node = await joined(scene, THERE)
    assert await scene.store.recoveries.sight(pending) is Sight.ARRIVING
    assert await late(scene, turn, "late ") == 1
    assert await scene.store.recoveries.sight(pending) is Sight.FOUND
    await scene.store.nodes.leave(node)
    assert await scene.store.recoveries.sight(pending) is Sight.FOUND


async def test_a_look_is_counted_once_by_whoever_is_first(scene: Scene) -> None:
    """J5 J6: two nodes that looked at the same moment have looked once."""
    turn = await lost(scene)
    (pending,) = await searches(scene, turn)
    counted = await asyncio.gather(*(scene.store.recoveries.charge(pending) for _ in range(5)))
    assert sorted(counted) == [False] * 4 + [True]
    (counted_once,) = await searches(scene, turn)
    assert counted_once == replace(pending, tries=1)


async def test_a_search_ends_once_with_an_entry_that_counts_what_is_there(scene: Scene) -> None:
    """J4 P1: bookkeeping and pending marker go in one transaction, whoever else tries the same."""
    turn = await lost(scene)
    await late(scene, turn, "late ", "later")
    (pending,) = await searches(scene, turn)
    ended = await asyncio.gather(*(scene.store.recoveries.resolve(pending, scene.now + 5) for _ in range(5)))
    assert sorted(ended) == [False] * 4 + [True]
    assert await searches(scene, turn) == []
    last = (await scene.entries(turn.session_id))[-1]
    assert (last.kind, last.attempt, last.nth, last.at) == (EntryKind.TURN_RECOVERED, 1, None, scene.now + 5)
    assert last.data == {"attempt": 1, "found": 3}
    assert "recovered from the run journal" in await marker(scene, turn)
    assert [item.text for item in fold(await scene.entries(turn.session_id))][1:-1] == ["early late later"]


async def test_what_arrives_after_the_search_still_stands_above_the_marker(scene: Scene) -> None:
    """J4 J6: giving up means that nobody looks, not that nobody listens."""
    node = await joined(scene, THERE)
    turn = await scene.claim_and_start((await scene.accept()).turn_id, node)
    await scene.store.nodes.leave(node)
    await scene.store.nodes.sweep(Cause.CRASH, Policy(), scene.now, home=HERE)
    (pending,) = await searches(scene, turn)
    await scene.store.recoveries.resolve(pending, scene.now)
    assert await marker(scene, turn) == "Interrupted: the gateway stopped without warning."
    await late(scene, turn, "late")
    assert "recovered from the run journal" in await marker(scene, turn)


async def test_a_home_knows_what_is_awaited_from_its_dead_nodes(scene: Scene) -> None:
    """J4: all of it, and nothing of others."""
    first, second = await lost(scene), await lost(scene, conversation="chat:2")
    await lost(scene, "home-elsewhere", conversation="chat:3")
    awaited = await scene.store.recoveries.of_home(THERE)
    assert {each.turn_id for each in awaited} == {first.id, second.id}
    assert len(await scene.store.recoveries.of_home(THERE, limit=1)) == 1
    assert await scene.store.recoveries.of_home("home-of-nobody") == []


async def test_a_node_ends_no_search_for_itself(scene: Scene, tmp_path: Path) -> None:
    """J3: it was given up and does not know it yet, so it may still leave something; its next start ends the search."""
    spool = Spool(tmp_path)
    turn = await lost(scene, spool.home_id)
    (pending,) = await searches(scene, turn)
    for node_id, left in ((pending.node_id, [pending]), (new_node_id(scene.now), [])):
        await LateEntries(NodeContext(id=node_id, store=scene.store, clock=SystemClock()), spool, asyncio.Event()).hand_in()
        assert await searches(scene, turn) == left


async def test_a_search_goes_with_its_session(scene: Scene) -> None:
    """W6: nothing is left of what was pruned, and nobody who still holds a search fails over it."""
    turn = await lost(scene, mode=Mode.SYNCHRONOUS, one_shot=True, channel="api")
    (pending,) = await searches(scene, turn)
    assert await scene.state(turn) is TurnState.INTERRUPTED
    assert await scene.store.sessions.prune("api", scene.now) == 1
    assert await scene.sql("SELECT COUNT(*) FROM recoveries") == [(0,)]
    assert await scene.store.recoveries.resolve(pending, scene.now) is False
    assert await scene.store.recoveries.charge(pending) is False
    assert await scene.store.recoveries.sight(pending) is Sight.SEALED


@pytest.mark.parametrize("began", [False, True], ids=["before it goes on", "when it has gone on"])
async def test_a_cancel_ends_the_search_for_what_comes_too_late_now(scene: Scene, began: bool) -> None:
    """J3 J6 J9: the marker does not say that more is coming, for none of it would be shown."""
    turn = await lost(scene, resume=Resume.AUTO)
    if began:
        await scene.claim_and_start(turn.id, await joined(scene, HERE))
    (pending,) = await searches(scene, turn)
    await scene.store.settlement.cancel(turn.id, Cause.USER, scene.now)
    assert await searches(scene, turn) == []
    assert await scene.store.recoveries.of_home(THERE) == []
    assert "recovered from the run journal" in await marker(scene, turn)
    (ended,) = [each for each in await scene.entries(turn.session_id) if each.kind is EntryKind.TURN_RECOVERED]
    assert (ended.attempt, ended.data) == (1, {"attempt": 1, "found": 1})
    before = await scene.snapshot()
    assert await scene.store.recoveries.resolve(pending, scene.now) is False
    assert await late(scene, turn, "late") == 0
    assert await scene.snapshot() == before


async def test_a_cancel_ends_the_searches_for_all_attempts_of_its_turn_and_for_no_other(scene: Scene) -> None:
    """J2 J3"""
    other, turn = await lost(scene, conversation="chat:2"), await lost(scene, resume=Resume.AUTO)
    node = await joined(scene, "home-elsewhere")
    await scene.claim_and_start(turn.id, node)
    await scene.store.nodes.leave(node)
    await scene.store.nodes.sweep(Cause.CRASH, Policy(resume=Resume.AUTO), scene.now, home=HERE)
    await scene.store.settlement.cancel(turn.id, Cause.USER, scene.now)
    ended = [each for each in await scene.entries(turn.session_id) if each.kind is EntryKind.TURN_RECOVERED]
    assert [(each.attempt, each.data["found"]) for each in ended] == [(1, 1), (2, 0)]
    assert len(await searches(scene, other)) == 1


@on_postgres
@pytest.mark.parametrize("first", ["the cancel", "the home"])
async def test_a_search_that_its_home_ends_while_the_turn_is_cancelled_ends_once(scene: Scene, first: str) -> None:
    """J4 P1"""
    turn = await lost(scene, resume=Resume.AUTO)
    (pending,) = await searches(scene, turn)
    if first == "the cancel":
        await race(
            scene,
            lambda: cancellation.cancel(POSTGRES, turn.id, Cause.USER, scene.now),
            lambda: scene.store.recoveries.resolve(pending, scene.now),
        )
    else:
        await race(
            scene,
            lambda: recoveries._resolve(pending, scene.now),
            lambda: scene.store.settlement.cancel(turn.id, Cause.USER, scene.now),
        )
    assert await searches(scene, turn) == []
    assert (await scene.kinds(turn.session_id)).count(EntryKind.TURN_RECOVERED) == 1
    assert await scene.state(turn) is TurnState.CANCELLED


async def test_an_unknown_session_has_nothing_to_search_for(scene: Scene) -> None:
    """R12."""
    assert await scene.store.recoveries.of_session(SessionId("nobody")) == []


FORGERIES = [
    ("UPDATE recoveries SET turn_id = 'x'", "foreign key"),
    ("UPDATE recoveries SET session_id = 'x'", "foreign key"),
    ("UPDATE recoveries SET attempt = 0", "check"),
    ("UPDATE recoveries SET home = ''", "check"),
    ("UPDATE recoveries SET tries = -1", "check"),
    ("INSERT INTO recoveries SELECT turn_id, attempt, session_id, node_id, home, 9, 9 FROM recoveries", "unique"),
]


@pytest.mark.parametrize(("forgery", "word"), FORGERIES)
async def test_the_schema_refuses_a_search_that_cannot_be(scene: Scene, forgery: str, word: str) -> None:
    """J4: one per attempt, of a turn that is there, and for a home that has a name."""
    await lost(scene)
    with pytest.raises(Stale, match=f"(?i){word}"):
        await scene.sql(forgery)


async def test_a_fork_does_not_wait_for_what_only_the_original_will_get(scene: Scene) -> None:
    """J3: what arrives is put into the original; a copy that waits for it would wait for ever."""
    turn = await lost(scene)
    ids = {"id": new_session_id(scene.now), "key": "fork", "channel": "web", "owner": "local", "one_shot": False}
    fork = await scene.store.sessions.fork(turn.session_id, Session(**ids, created_at=scene.now, updated_at=scene.now))
    assert "pending" in await marker(scene, turn)
    assert "recovered from the run journal" in fold(await scene.entries(fork.id))[-1].text
    assert await scene.store.recoveries.of_session(fork.id) == []


async def test_sweeping_again_opens_no_second_search(scene: Scene) -> None:
    """P1."""
    turn = await lost(scene)
    before = await scene.snapshot()
    await scene.store.nodes.sweep(Cause.CRASH, Policy(), scene.now + 1, home=HERE)
    assert await scene.snapshot() == before
    assert len(await searches(scene, turn)) == 1
