"""Claims that start what they claim, and what a turn begins with."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.core.effects import Effect
from holdfast.core.events import EntryKind
from holdfast.core.intake import Receipt
from holdfast.core.turns import Cause, Mode, Policy, TurnState
from holdfast.errors import NotFound
from holdfast.ids import new_session_id, new_turn_id
from tests.conformance.scenes import Scene, on_postgres, on_sqlite


@on_sqlite
async def test_what_is_taken_has_started(scene: Scene) -> None:
    """T1 J2: state, attempt, number and entry are what a claim and a start would have made of it."""
    first = await scene.accept("one")
    scene.now += 1
    second = await scene.accept("two", conversation="chat:2")
    taken = await scene.store.turns.take(scene.node, 10, scene.now)
    assert [turn.id for turn, _ in taken] == [first.turn_id, second.turn_id]
    for turn, entries in taken:
        assert (turn.state, turn.attempt, turn.nth, turn.fence) == (TurnState.RUNNING, 1, 1, 1)
        assert (turn.node_id, turn.started_at) == (scene.node, scene.now)
        assert turn == await scene.store.turns.get(turn.id)
        assert [(entry.kind, entry.seq, entry.nth, entry.attempt) for entry in entries] == [
            (EntryKind.TURN_STARTED, 2, 1, 1)
        ]
        assert entries == (await scene.entries(turn.session_id))[1:]
    turn = await scene.say(taken[0][0], "hello")
    assert turn.nth == 2


@on_postgres
async def test_where_others_may_be_in_the_way_what_is_taken_is_only_claimed(scene: Scene) -> None:
    """T1: it is started, or given back, by itself."""
    receipt = await scene.accept()
    ((turn, entries),) = await scene.store.turns.take(scene.node, 10, scene.now)
    assert (turn.id, turn.state, turn.node_id, entries) == (receipt.turn_id, TurnState.QUEUED, scene.node, [])
    assert (await scene.start(turn)).state is TurnState.RUNNING


async def test_turns_are_taken_one_at_a_time_and_in_order(scene: Scene) -> None:
    """T1 T2: the next one of a session is taken when the one before it is at rest."""
    first, second = await scene.accept("one"), await scene.accept("two")
    ((turn, _),) = await scene.store.turns.take(scene.node, 10, scene.now)
    assert turn.id == first.turn_id
    assert await scene.store.turns.take(scene.node, 10, scene.now) == []
    running = turn if turn.state is TurnState.RUNNING else await scene.start(turn)
    await scene.finish(running)
    ((turn, _),) = await scene.store.turns.take(scene.node, 10, scene.now)
    assert turn.id == second.turn_id


async def test_whoever_waits_is_taken_before_what_nobody_waits_for(scene: Scene) -> None:
    hooks: list[Receipt] = []
    for nth in range(3):
        scene.now += 1
        hooks.append(await scene.accept(conversation=f"hook:{nth}", mode=Mode.DETACHED, one_shot=True))
    chat = await scene.accept(conversation="chat:9")
    scene.now += 1
    api = await scene.accept(conversation="api:9", mode=Mode.SYNCHRONOUS)
    take = scene.store.turns.take
    assert [turn.id for turn, _ in await take(scene.node, 1, scene.now)] == [chat.turn_id]
    assert [turn.id for turn, _ in await take(scene.node, 2, scene.now, detached=0)] == [api.turn_id]
    assert await take(scene.node, 9, scene.now, detached=0) == []
    assert [turn.id for turn, _ in await take(scene.node, 9, scene.now, detached=2)] == [each.turn_id for each in hooks[:2]]
    assert [turn.id for turn, _ in await take(scene.node, 9, scene.now)] == [hooks[2].turn_id]


async def test_a_node_that_was_given_up_takes_nothing(scene: Scene) -> None:
    """T4"""
    await scene.accept()
    beats = await scene.store.nodes.beats()
    assert await scene.store.nodes.bury(scene.node, beats[scene.node])
    assert await scene.store.turns.take(scene.node, 10, scene.now) == []


async def test_a_turn_begins_with_its_session_its_journal_and_its_calls(scene: Scene) -> None:
    turn = await scene.say(await scene.running(), "hi")
    turn, _ = await scene.use(turn, Effect.PURE)
    brief = await scene.store.journal.brief(turn)
    assert brief.session == await scene.store.sessions.get(turn.session_id)
    assert (brief.after, list(brief.entries), brief.calls) == (0, await scene.entries(turn.session_id), [])
    assert [entry.seq for entry in (await scene.store.journal.brief(turn, 3)).entries] == [
        entry.seq for entry in brief.entries if entry.seq > 3
    ]
    await scene.store.settlement.interrupt(scene.node, [turn.id], Cause.CRASH, Policy(), scene.now)
    await scene.store.turns.resume(turn.id, scene.now)
    again = await scene.start((await scene.claim())[0])
    assert (await scene.store.journal.brief(again)).calls == await scene.store.journal.calls(turn.id) != []


async def test_a_turn_begins_behind_the_summary_of_its_session(scene: Scene) -> None:
    turn = await scene.say(await scene.running(), "hi")
    summary = scene.draft(EntryKind.CONTEXT_COMPACTED, text="so far", through=turn.id, after=2)
    turn, _ = await scene.store.journal.append(turn, [summary])
    brief = await scene.store.journal.brief(turn)
    assert (brief.after, [entry.seq for entry in brief.entries]) == (2, [3, 4])
    await scene.finish(turn)
    await scene.store.sessions.delete(turn.session_id, scene.now)
    with pytest.raises(NotFound):
        await scene.store.journal.brief(turn)


@on_sqlite
async def test_a_message_and_its_claim_share_one_commit(scene: Scene) -> None:
    """A2: whoever is woken while a message still waits to be written comes right behind it, and is not woken again."""
    store, heard = scene.store, asyncio.Event()
    topics: list[str] = []

    def hear(topic: str) -> None:
        topics.append(topic)
        if topic == "turns":
            heard.set()

    async def claim() -> int:
        await heard.wait()
        return len(await store.turns.take(scene.node, 10, scene.now))

    deaf = store.wakes.listen(hear)
    claiming = asyncio.create_task(claim())
    await asyncio.sleep(0)
    ids = (new_turn_id(scene.now), new_session_id(scene.now))
    await store.intake.accept(scene.message(), *ids, scene.now)
    # Both answers came in one round of the loop, so what is left of the claim is one step.
    await asyncio.sleep(0)
    assert claiming.done()
    assert await claiming == 1
    assert topics.count("turns") == 1
    deaf()
