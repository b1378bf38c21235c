"""Many at once: on one node, and on several nodes that share a database."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress

import asyncpg
import pytest

from holdfast.core import delivery, sessions
from holdfast.core.events import EntryKind
from holdfast.core.intake import Busy
from holdfast.core.journal import Entry
from holdfast.core.schedule import slot_key
from holdfast.core.segments import SegmentEvent, SegmentState
from holdfast.core.turns import Cause, Mode, Policy, Resume, Turn, TurnState
from holdfast.errors import IllegalMove, KeyReused, NodeLost, Rejected, SessionBusy, Stale, StoreDown
from holdfast.ids import NodeId, TurnId, new_session_id, new_turn_id
from holdfast.store import cancellation, claims, deliveries, intake, journal, nodes, segments, settlement, turns
from holdfast.store.database import POSTGRES, Run, Transaction, Work
from holdfast.store.store import Store
from tests.claims import claim
from tests.conformance.scenes import OWNER, START, Scene, closed_gate, on_postgres
from tests.conformance.test_jobs import HOUR, job


async def stores(scene: Scene) -> list[Store]:
    """Return the store once, or, where nodes share the database, two of them."""
    return [scene.store, await scene.another_store()] if scene.postgres else [scene.store]


async def test_fifty_accepts_with_one_key_are_one_turn(scene: Scene) -> None:
    """A3: whoever asks, the same receipt."""
    nodes = await stores(scene)
    accepts = [scene.accept("hello", dedupe_key="k", by=nodes[number % len(nodes)]) for number in range(50)]
    receipts = await asyncio.gather(*accepts)
    assert len({(each.turn_id, each.session_id, each.accepted_at) for each in receipts}) == 1
    assert [each.duplicate for each in receipts].count(False) == 1
    assert await scene.store.turns.tally() == {TurnState.QUEUED: 1}


async def test_fifty_accepts_of_one_conversation_open_one_session(scene: Scene) -> None:
    """T2: with gapless ordinals."""
    nodes = await stores(scene)
    receipts = await asyncio.gather(*(scene.accept(str(number), by=nodes[number % len(nodes)]) for number in range(50)))
    assert len({each.session_id for each in receipts}) == 1
    found = await scene.store.turns.list(receipts[0].session_id)
    assert [turn.ordinal for turn in found] == list(range(1, 51))
    assert {turn.id for turn in found} == {each.turn_id for each in receipts}
    said = [(entry.seq, entry.turn_id) for entry in await scene.entries(receipts[0].session_id)]
    assert said == [(turn.ordinal, turn.id) for turn in found]


async def test_messages_of_one_conversation_are_accepted_in_the_order_in_which_they_came(scene: Scene) -> None:
    """T2: whatever their keys are, and however many connections write."""
    wanted = [scene.accept(str(number), dedupe_key=f"{99 - number}") for number in range(20)]
    others = [scene.accept("other", conversation=f"other:{number}") for number in range(20)]
    receipts = await asyncio.gather(*(each for pair in zip(wanted, others, strict=True) for each in pair))
    found = await scene.store.turns.list(receipts[0].session_id)
    assert [turn.id for turn in found] == [receipt.turn_id for receipt in receipts[::2]]


async def test_a_message_that_must_not_wait_is_the_only_one_refused(scene: Scene) -> None:
    """A2: of all that share its commit."""
    await scene.accept("first", conversation="c")
    done = await asyncio.gather(
        *(scene.accept("next", conversation=key, busy=Busy.REJECT) for key in "abcde"), return_exceptions=True
    )
    assert [isinstance(each, SessionBusy) for each in done] == [key == "c" for key in "abcde"]
    assert await scene.store.turns.tally() == {TurnState.QUEUED: 5}


async def test_a_message_that_is_refused_does_not_spoil_its_neighbours(scene: Scene) -> None:
    """A2: they share a commit, not a fate."""
    await scene.accept("first", dedupe_key="taken")
    wanted = [scene.accept(str(number), conversation=str(number)) for number in range(20)]
    refused = scene.accept("other", dedupe_key="taken")
    *receipts, error = await asyncio.gather(*wanted, refused, return_exceptions=True)
    assert isinstance(error, KeyReused)
    assert [await scene.state(receipt) for receipt in receipts] == [TurnState.QUEUED] * 20


async def test_a_caller_that_goes_away_hurts_nobody(scene: Scene) -> None:
    tasks = [asyncio.create_task(scene.accept(str(number))) for number in range(10)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    done = await asyncio.gather(*tasks, return_exceptions=True)
    assert [isinstance(each, asyncio.CancelledError) for each in done] == [True, False] * 5
    await scene.finished(conversation="afterwards")


@on_postgres
async def test_nodes_that_claim_at_once_never_get_the_same_turn(scene: Scene) -> None:
    """T1"""
    made = [(await scene.accept(conversation=str(number))).turn_id for number in range(60)]
    fleet = [scene.store, *[await scene.another_store() for _ in range(2)]]
    names = [scene.node, *[await scene.joined() for _ in range(2)]]

    async def work(store: Store, node: NodeId) -> list[Turn]:
        claimed: list[Turn] = []
        while len(claimed) < len(made):
            found = await claim(store, node, 3)
            if not found:
                break
            claimed += found
        return claimed

    taken = await asyncio.gather(*map(work, fleet, names))
    assert sorted(turn.id for found in taken for turn in found) == sorted(made)
    assert all(turn.node_id == name for name, found in zip(names, taken, strict=True) for turn in found)


@on_postgres
async def test_nodes_that_send_at_once_never_send_the_same_part_nor_out_of_order(scene: Scene) -> None:
    """D1, D3"""
    for number in range(10):
        await scene.sent_for("one", "two", "three", conversation=str(number))
    second = await scene.another_store()
    other = await scene.joined()
    sent: list[delivery.Delivery] = []

    async def work(store: Store, node: NodeId) -> None:
        while len(sent) < 30:
            for each in await store.deliveries.claim(node, scene.now, 3):
                sent.append(each)
                await store.deliveries.settle(each, delivery.DeliveryEvent.CONFIRM, scene.now)

    async with asyncio.timeout(20):
        await asyncio.gather(work(scene.store, scene.node), work(second, other))
    assert len({each.id for each in sent}) == len(sent) == 30
    for turn_id in {each.turn_id for each in sent}:
        assert [each.text for each in sent if each.turn_id == turn_id] == ["one", "two", "three"]


async def race(scene: Scene, first: Work[object], second: Callable[[], Awaitable[object]]) -> list[object]:
    """Let another node do everything but commit, then begin ours, which must wait, then let the other commit."""
    other = await scene.another_store()
    async with closed_gate(scene.url) as gate:
        ahead = asyncio.ensure_future(other.database.write(gate.pause(first)))
        await gate.waiting(1)
        behind = asyncio.ensure_future(second())
        await gate.waiting(2)
        await gate.open()
        return await asyncio.gather(ahead, behind, return_exceptions=True)


async def pass_by(scene: Scene, first: Work[object], second: Callable[[], Awaitable[object]]) -> list[object]:
    """Let another node do everything but commit, then do ours, which must not wait, then let the other commit."""
    other = await scene.another_store()
    async with closed_gate(scene.url) as gate:
        ahead = asyncio.ensure_future(other.database.write(gate.pause(first)))
        await gate.waiting(1)
        async with asyncio.timeout(20):
            passed = await second()
        await gate.open()
        return [await ahead, passed]


@on_postgres
async def test_a_cancel_that_comes_while_the_turn_finishes_is_too_late(scene: Scene) -> None:
    """T3"""
    turn = await scene.running()
    _, error = await race(
        scene,
        lambda: settlement._finish(POSTGRES, turn, scene.ending(turn)),
        lambda: scene.store.settlement.cancel(turn.id, Cause.USER, scene.now),
    )
    assert isinstance(error, IllegalMove)
    assert await scene.state(turn) is TurnState.COMPLETED


@on_postgres
async def test_a_finish_that_comes_while_the_turn_is_cancelled_is_too_late(scene: Scene) -> None:
    """T3, T4"""
    turn = await scene.running()
    _, error = await race(
        scene, lambda: cancellation.cancel(POSTGRES, turn.id, Cause.USER, scene.now), lambda: scene.finish(turn)
    )
    assert isinstance(error, Stale)
    assert await scene.state(turn) is TurnState.CANCELLED


def late_words(turn: Turn) -> list[Entry]:
    """Return words that the worker of a turn left on its disk."""
    place = {"session_id": turn.session_id, "turn_id": turn.id, "attempt": turn.attempt, "nth": turn.nth + 1}
    return [Entry.read(**place, seq=0, kind=EntryKind.TEXT, at=START, data={"text": "late"})]


@on_postgres
async def test_words_that_arrive_while_their_turn_is_cancelled_are_too_late(scene: Scene) -> None:
    """J1 J2 J9: the cancel is final from its commit on, whoever had begun to write before it."""
    turn = await scene.running()
    await scene.interrupt(turn, resume=Resume.AUTO)
    _, new = await race(
        scene,
        lambda: cancellation.cancel(POSTGRES, turn.id, Cause.USER, scene.now),
        lambda: scene.store.journal.append_late(late_words(turn)),
    )
    assert new == 0
    assert (await scene.kinds(turn.session_id))[-1] is EntryKind.TURN_CANCELLED


@on_postgres
async def test_a_cancel_that_comes_while_late_words_arrive_stands_below_them(scene: Scene) -> None:
    """J1 J2 J4"""
    turn = await scene.running()
    await scene.interrupt(turn, resume=Resume.AUTO)
    new, _ = await race(
        scene,
        lambda: journal._append_late(late_words(turn)),
        lambda: scene.store.settlement.cancel(turn.id, Cause.USER, scene.now),
    )
    assert new == 1
    assert (await scene.kinds(turn.session_id))[-2:] == [EntryKind.TEXT, EntryKind.TURN_CANCELLED]


@on_postgres
async def test_a_turn_that_is_cancelled_while_its_node_stops_is_not_told_of_it(scene: Scene) -> None:
    """J1 R1 J9: nothing is said in a turn behind its cancel."""
    turn = await scene.running()
    _, told = await race(
        scene,
        lambda: cancellation.cancel(POSTGRES, turn.id, Cause.USER, scene.now),
        lambda: scene.store.settlement.announce(scene.node, "restart", "restarting", scene.now),
    )
    assert told == []
    assert (await scene.kinds(turn.session_id))[-1] is EntryKind.TURN_CANCELLED


@on_postgres
async def test_a_cancel_reaches_a_turn_that_moves_at_the_same_moment(scene: Scene) -> None:
    """A1: it was claimed between our look and our write, which is no reason to leave it."""
    receipt = await scene.accept()
    claim = claims.claiming("").format(skip_locked=POSTGRES.skip_locked)
    claimed, cancelled = await race(
        scene,
        lambda: claims.claim(claim, scene.node, 1),
        lambda: scene.store.settlement.cancel(receipt.turn_id, Cause.USER, scene.now),
    )
    assert isinstance(cancelled, Turn)
    assert await scene.state(receipt) is TurnState.CANCELLED
    with pytest.raises(Stale):
        await scene.start(claimed[0])


@on_postgres
async def test_ending_a_session_reaches_a_turn_that_is_claimed_at_the_same_moment(scene: Scene) -> None:
    """A1"""
    receipt = await scene.accept()
    claim = claims.claiming("").format(skip_locked=POSTGRES.skip_locked)
    _, ended = await race(
        scene,
        lambda: claims.claim(claim, scene.node, 1),
        lambda: scene.store.settlement.end_session(receipt.session_id, "user", scene.now),
    )
    assert ended is None
    assert await scene.state(receipt) is TurnState.CANCELLED


@on_postgres
async def test_a_turn_is_put_away_behind_its_session(scene: Scene) -> None:
    """A1: whoever holds the session needs its turns next, and must not meet a worker there that waits for the session."""
    turn = await scene.running()
    connection = await asyncpg.connect(scene.url)
    async with asyncio.timeout(20), connection.transaction():
        await connection.execute("SELECT 1 FROM sessions WHERE id = $1 FOR NO KEY UPDATE", turn.session_id)
        away = asyncio.ensure_future(scene.store.turns.defer(turn, [scene.text("later")], scene.now, scene.now))
        while not await connection.fetchval("SELECT COUNT(*) FROM pg_locks WHERE NOT granted"):
            pass
        await connection.execute("SELECT 1 FROM turns WHERE id = $1 FOR UPDATE NOWAIT", turn.id)
    await connection.close()
    await away
    assert await scene.state(turn) is TurnState.QUEUED


@on_postgres
async def test_a_deferred_turn_that_somebody_holds_keeps_no_node_from_claiming(scene: Scene) -> None:
    """A1: a node ripens what was deferred before it claims, and another may stand still with one of them."""
    held, free = await scene.running(conversation="a"), await scene.running(conversation="b")
    for turn in (held, free):
        await scene.store.turns.defer(turn, [scene.text("later")], scene.now, scene.now)
    _, ripe = await pass_by(
        scene,
        lambda: cancellation.cancel(POSTGRES, held.id, Cause.USER, scene.now),
        lambda: scene.store.turns.ripen(scene.now),
    )
    assert ripe == 1
    assert [turn.id for turn in await scene.claim()] == [free.id]


@on_postgres
async def test_a_session_that_is_suspended_while_it_is_ended_has_ended(scene: Scene) -> None:
    turn = await scene.finished()
    _, ended = await race(
        scene,
        lambda: cancellation.leave(POSTGRES, turn.session_id, sessions.SessionEvent.SUSPEND, None, scene.now),
        lambda: scene.store.settlement.end_session(turn.session_id, "user", scene.now),
    )
    assert ended is None
    session = await scene.store.sessions.get(turn.session_id)
    assert (session.state, session.end_reason) == (sessions.SessionState.ENDED, "user")


@on_postgres
async def test_of_two_ends_at_once_the_first_reason_wins(scene: Scene) -> None:
    """W4"""
    turn = await scene.finished()
    await race(
        scene,
        lambda: cancellation.leave(POSTGRES, turn.session_id, sessions.SessionEvent.END, "first", scene.now),
        lambda: scene.store.settlement.end_session(turn.session_id, "second", scene.now),
    )
    assert (await scene.store.sessions.get(turn.session_id)).end_reason == "first"


@on_postgres
async def test_a_message_that_comes_while_its_session_ends_opens_a_new_one(scene: Scene) -> None:
    """A1"""
    turn = await scene.finished()
    _, receipt = await race(
        scene,
        lambda: cancellation.leave(POSTGRES, turn.session_id, sessions.SessionEvent.END, "user", scene.now),
        lambda: scene.accept("still there?"),
    )
    assert receipt.session_id != turn.session_id
    assert [each.id for each in await scene.claim()] == [receipt.turn_id]


@on_postgres
async def test_a_message_that_a_session_took_before_it_ended_has_its_outcome(scene: Scene) -> None:
    """A1"""
    turn = await scene.finished()
    ids = (new_turn_id(scene.now), new_session_id(scene.now))
    receipt, _ = await race(
        scene,
        lambda: intake.accept(POSTGRES, scene.message("last"), *ids, scene.now),
        lambda: scene.store.settlement.end_session(turn.session_id, "user", scene.now),
    )
    assert receipt.session_id == turn.session_id
    assert await scene.state(receipt) is TurnState.CANCELLED


@on_postgres
async def test_a_session_opened_by_two_messages_at_once_is_one(scene: Scene) -> None:
    """T2"""
    ids = (new_turn_id(scene.now), new_session_id(scene.now))
    first, second = await race(
        scene, lambda: intake.accept(POSTGRES, scene.message("one"), *ids, scene.now), lambda: scene.accept("two")
    )
    assert first.session_id == second.session_id
    assert [turn.id for turn in await scene.store.turns.list(first.session_id)] == [first.turn_id, second.turn_id]


@on_postgres
async def test_a_message_that_comes_while_a_request_is_resumed_runs_after_it(scene: Scene) -> None:
    """T2: another node must not run it before the resumed turn is seen by all."""
    request = {"text": "hello", "dedupe_key": "k", "mode": Mode.SYNCHRONOUS}
    turn = await scene.interrupted(**request)
    ids = (new_turn_id(scene.now), new_session_id(scene.now))
    again, later = await race(
        scene, lambda: intake.accept(POSTGRES, scene.message(**request), *ids, scene.now), lambda: scene.accept("meanwhile")
    )
    assert (again.turn_id, again.state) == (turn.id, TurnState.QUEUED)
    resumed = await scene.claim_and_start(turn.id)
    await scene.finish(resumed)
    await scene.claim_and_start(later.turn_id)


@on_postgres
async def test_a_request_that_comes_back_twice_at_once_is_told_that_it_goes_on(scene: Scene) -> None:
    """A3, R10: both get the receipt of the same queued turn."""
    request = {"text": "hello", "dedupe_key": "k", "mode": Mode.SYNCHRONOUS}
    turn = await scene.interrupted(**request)
    ids = (new_turn_id(scene.now), new_session_id(scene.now))
    receipts = await race(
        scene, lambda: intake.accept(POSTGRES, scene.message(**request), *ids, scene.now), lambda: scene.accept(**request)
    )
    assert [(each.turn_id, each.state) for each in receipts] == [(turn.id, TurnState.QUEUED)] * 2


@on_postgres
async def test_a_request_that_is_resumed_while_a_message_comes_stays_where_it_was(scene: Scene) -> None:
    """T2"""
    request = {"text": "hello", "dedupe_key": "k", "mode": Mode.SYNCHRONOUS}
    turn = await scene.interrupted(**request)
    ids = (new_turn_id(scene.now), new_session_id(scene.now))
    later, again = await race(
        scene, lambda: intake.accept(POSTGRES, scene.message("meanwhile"), *ids, scene.now), lambda: scene.accept(**request)
    )
    assert (again.turn_id, again.state) == (turn.id, TurnState.INTERRUPTED)
    await scene.claim_and_start(later.turn_id)


@on_postgres
async def test_of_two_sweeps_at_once_one_takes_over_and_neither_fails(scene: Scene) -> None:
    """P1"""
    await scene.running(conversation="a")
    await scene.claimed(conversation="b")
    await scene.sent_for("one", conversation="c")
    await scene.send()
    await scene.sealed(conversation="d")
    await scene.store.segments.claim(scene.node, OWNER, scene.now, 10)
    await scene.store.nodes.leave(scene.node)
    first, second = await pass_by(
        scene, lambda: nodes._sweep(POSTGRES, Cause.CRASH, Policy(), scene.now, 500, "", ()), scene.sweep
    )
    assert (first.total, second.total) == (4, 0)


@on_postgres
async def test_a_sweep_leaves_a_send_that_its_sender_settles_at_the_same_moment(scene: Scene) -> None:
    """D1, T4: what was confirmed is confirmed, and the sweep goes on with the rest."""
    await scene.sent_for("one")
    (sent,) = await scene.send()
    other = await scene.running(conversation="other")
    await scene.store.nodes.leave(scene.node)
    _, swept = await pass_by(
        scene, lambda: deliveries._settle(sent, delivery.DeliveryEvent.CONFIRM, scene.now, None, "7", None), scene.sweep
    )
    assert (swept.deliveries, swept.turns.rested) == (0, (other.id,))
    assert (await scene.store.deliveries.get(sent.id)).state is delivery.DeliveryState.DELIVERED


@on_postgres
async def test_a_sender_that_comes_back_while_it_is_swept_changes_nothing(scene: Scene) -> None:
    """T4"""
    await scene.sent_for("one")
    (sent,) = await scene.send()
    await scene.store.nodes.leave(scene.node)
    _, error = await race(
        scene,
        lambda: nodes._sweep(POSTGRES, Cause.CRASH, Policy(), scene.now, 500, "", ()),
        lambda: scene.settle(sent, delivery.DeliveryEvent.CONFIRM),
    )
    assert isinstance(error, Stale)
    assert (await scene.store.deliveries.get(sent.id)).state is delivery.DeliveryState.UNKNOWN


@on_postgres
async def test_a_turn_that_finishes_while_it_is_swept_is_interrupted(scene: Scene) -> None:
    """T4"""
    turn = await scene.running()
    await scene.store.nodes.leave(scene.node)
    swept, error = await race(
        scene,
        lambda: nodes._sweep(POSTGRES, Cause.CRASH, Policy(), scene.now, 500, "", ()),
        lambda: scene.finish(turn),
    )
    assert (swept.turns.rested, isinstance(error, Stale)) == ((turn.id,), True)


@on_postgres
async def test_a_turn_that_is_swept_while_it_finishes_is_finished(scene: Scene) -> None:
    """T3"""
    turn = await scene.running()
    await scene.store.nodes.leave(scene.node)
    _, swept = await pass_by(scene, lambda: settlement._finish(POSTGRES, turn, scene.ending(turn)), scene.sweep)
    assert swept.total == 0
    assert await scene.state(turn) is TurnState.COMPLETED


@on_postgres
async def test_a_beat_that_comes_while_its_node_is_buried_is_too_late(scene: Scene) -> None:
    _, error = await race(
        scene,
        lambda: nodes._found(nodes._BURY, {"id": scene.node, "beat": 0}),
        lambda: scene.store.nodes.beat(scene.node),
    )
    assert isinstance(error, NodeLost)


@on_postgres
async def test_a_burial_that_comes_while_its_node_beats_is_called_off(scene: Scene) -> None:
    """C1"""
    _, buried = await race(
        scene, lambda: nodes._found(nodes._BEAT, {"id": scene.node}), lambda: scene.store.nodes.bury(scene.node, 0)
    )
    assert buried is False


@on_postgres
async def test_a_turn_that_completes_while_its_segment_is_sealed_opens_a_new_one(scene: Scene) -> None:
    """M1, M5: it must not fall between the two."""
    first = await scene.finished()
    turn = await scene.running()
    sealed, _ = await race(scene, lambda: segments.seal(turn.session_id, scene.now), lambda: scene.finish(turn))
    assert sealed is True
    found = await scene.store.segments.of_session(first.session_id)
    assert [(each.first_generation, each.last_generation, each.state) for each in found] == [
        (1, 1, SegmentState.SEALED),
        (2, 2, SegmentState.OPEN),
    ]


@on_postgres
async def test_a_segment_that_is_sealed_while_a_turn_completes_has_that_turn(scene: Scene) -> None:
    """M1"""
    await scene.finished()
    turn = await scene.running()
    _, sealed = await race(
        scene,
        lambda: settlement._finish(POSTGRES, turn, scene.ending(turn)),
        lambda: scene.store.segments.seal(turn.session_id, scene.now),
    )
    assert sealed is True
    (segment,) = await scene.store.segments.of_session(turn.session_id)
    assert (segment.last_generation, segment.state) == (2, SegmentState.SEALED)


@on_postgres
async def test_of_two_commits_at_once_the_second_gets_nothing(scene: Scene) -> None:
    """M7: False, not an error."""
    segment = await scene.sealed()
    taken, refused = await race(
        scene,
        lambda: segments._claim(scene.node, segment.session_id, OWNER),
        lambda: scene.store.segments.claim_one(scene.node, segment.session_id, OWNER),
    )
    assert (taken.id, refused) == (segment.id, None)


@on_postgres
async def test_of_two_nodes_that_fire_an_instant_one_does(scene: Scene) -> None:
    """C1"""
    await scene.store.jobs.save(job())
    second = await scene.another_store()
    message = scene.message("Report.", channel="cron", one_shot=True, dedupe_key=slot_key("report", START + HOUR))

    def fire(store: Store) -> Awaitable[object]:
        ids = (new_turn_id(scene.now), new_session_id(scene.now))
        return store.jobs.fire("report", START + HOUR, message, *ids, scene.now)

    done = await asyncio.gather(*(fire(store) for store in (scene.store, second) * 5), return_exceptions=True)
    assert [isinstance(each, Stale) for each in done].count(False) == 1
    assert await scene.store.turns.tally() == {TurnState.QUEUED: 1}


@on_postgres
async def test_of_two_answers_at_once_one_is_taken(scene: Scene) -> None:
    turn = await scene.parked()
    _, error = await race(
        scene,
        lambda: turns._answer(turn.id, *scene.reply("yes")),
        lambda: scene.store.turns.answer(turn.id, *scene.reply("no")),
    )
    assert isinstance(error, Rejected | Stale)
    answers = [entry for entry in await scene.entries(turn.session_id) if entry.kind is EntryKind.APPROVAL_ANSWERED]
    assert [entry.data["text"] for entry in answers] == ["yes"]


async def hasten(scene: Scene) -> None:
    """Let PostgreSQL look for deadlocks after a moment, not after a second."""
    connection = await asyncpg.connect(scene.url)
    name = await connection.fetchval("SELECT current_database()")
    await connection.execute(f"ALTER DATABASE {name} SET deadlock_timeout = '20ms'")
    await connection.close()


@on_postgres
async def test_nodes_that_block_each_other_both_end(scene: Scene) -> None:
    """A1: each holds a session that the other wants; the database ends one, and it is done again."""
    await hasten(scene)
    fleet = [await scene.another_store(), await scene.another_store()]
    for key in "ab":
        await scene.accept("first", conversation=key)
    runs = 0

    def both(order: str, wait: Work[object]) -> Transaction[None]:
        nonlocal runs
        runs += 1
        first, second = order
        ids = [(new_turn_id(scene.now), new_session_id(scene.now)) for _ in order]
        yield from intake.accept(POSTGRES, scene.message(order, conversation=first), *ids[0], scene.now)
        yield from wait()
        yield from intake.accept(POSTGRES, scene.message(order, conversation=second), *ids[1], scene.now)

    def nothing() -> Transaction[None]:
        yield Run("SELECT 1")

    async with closed_gate(scene.url) as gate:
        wait = gate.pause(nothing)
        writes = [
            asyncio.ensure_future(store.database.write(lambda order=order: both(order, wait)))
            for store, order in zip(fleet, ("ab", "ba"), strict=True)
        ]
        await gate.waiting(2)
        await gate.open()
        async with asyncio.timeout(10):
            await asyncio.gather(*writes)
    assert runs > 2
    assert await scene.store.turns.tally() == {TurnState.QUEUED: 6}


@on_postgres
async def test_batches_in_opposite_orders_all_end(scene: Scene) -> None:
    """A1, A3: what shares a commit takes its locks in whatever order it came."""
    await hasten(scene)
    fleet = [await scene.another_store() for _ in range(3)]
    keys = [str(number) for number in range(12)]
    shuffled = random.Random(7)

    def burst(store: Store) -> list[Awaitable[object]]:
        order = shuffled.sample(keys, len(keys))
        return [scene.accept(key, conversation=key, dedupe_key=f"{key}:{store is fleet[0]}", by=store) for key in order]

    async with asyncio.timeout(30):
        done = await asyncio.gather(*(each for _ in range(4) for store in fleet for each in burst(store)))
    assert len({(each.turn_id, each.session_id) for each in done}) == 2 * len(keys)
    assert await scene.store.turns.tally() == {TurnState.QUEUED: 2 * len(keys)}


class Crew:
    """Workers on several nodes that answer whatever is there, while others cancel, end and sweep at random."""

    def __init__(self, scene: Scene, fleet: list[Store], seed: int) -> None:
        self.scene = scene
        self.fleet = fleet
        self.dice = random.Random(seed)
        self.busy = True

    async def work(self, store: Store) -> None:
        node = await self.scene.joined(store)
        while self.busy:
            for turn in await claim(store, node, 4):
                with suppress(Stale):
                    await self.run(store, turn)
            for sent in await store.deliveries.claim(node, self.scene.now, 4):
                with suppress(Stale):
                    event = self.dice.choice(
                        [delivery.DeliveryEvent.CONFIRM, delivery.DeliveryEvent.LOSE, delivery.DeliveryEvent.FAIL]
                    )
                    await store.deliveries.settle(sent, event, self.scene.now)
            for segment in await store.segments.claim(node, OWNER, self.scene.now, 4):
                with suppress(Stale):
                    await store.segments.settle(segment, SegmentEvent.SUCCEED, self.scene.now)

    async def run(self, store: Store, claimed: Turn) -> None:
        turn, _ = await store.turns.start(claimed, self.scene.now)
        for number in range(self.dice.randrange(4)):
            turn, _ = await store.journal.append(turn, [self.scene.text(str(number))])
        if self.dice.random() < 0.2:
            cut = (turn.node_id or NodeId(""), [turn.id], Cause.CRASH, Policy(resume=Resume.AUTO), self.scene.now)
            await store.settlement.interrupt(*cut)
        else:
            ending = self.scene.ending(turn, deliveries=self.scene.parts(turn, "one", "two"))
            await store.settlement.finish(turn, ending)

    async def meddle(self, receipts: list[tuple[str, str]]) -> None:
        for turn_id, session_id in receipts:
            store = self.dice.choice(self.fleet)
            match self.dice.randrange(6):
                case 0 | 1:
                    with suppress(IllegalMove):
                        await store.settlement.cancel(turn_id, Cause.USER, self.scene.now)
                case 2:
                    await store.settlement.end_session(session_id, "user", self.scene.now)
                case 3:
                    await store.segments.seal(session_id, self.scene.now)
                case _:
                    await store.nodes.sweep(Cause.CRASH, Policy(resume=Resume.AUTO), self.scene.now)


@pytest.mark.parametrize("seed", [1, 2])
async def test_in_any_turmoil_everything_accepted_has_one_visible_outcome(scene: Scene, seed: int) -> None:
    """A1, T1, T2, T3, J2, M1, D3, CONSERVATION: the audit after it is the proof."""
    if scene.postgres:
        await hasten(scene)
    fleet = [await scene.another_store() for _ in range(3)] if scene.postgres else [scene.store]
    crew = Crew(scene, fleet, seed)
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        workers = [group.create_task(crew.work(store)) for store in fleet]
        accepts = [
            scene.accept(str(number), conversation=str(number % 8), by=fleet[number % len(fleet)], one_shot=number % 8 > 5)
            for number in range(60)
        ]
        receipts = [(each.turn_id, each.session_id) for each in await asyncio.gather(*accepts)]
        await asyncio.gather(*(crew.meddle(receipts[part::3]) for part in range(3)))
        while set(await scene.store.turns.tally()) & {TurnState.QUEUED, TurnState.RUNNING}:
            pass
        crew.busy = False
        await asyncio.gather(*workers)
    tally = await scene.store.turns.tally()
    assert sum(tally.values()) == 60
    closing = {TurnState.COMPLETED: EntryKind.TURN_COMPLETED, TurnState.CANCELLED: EntryKind.TURN_CANCELLED}
    for turn_id, _ in receipts:
        turn = await scene.store.turns.get(turn_id)
        if turn.state in closing:
            kinds = [entry.kind for entry in await scene.store.journal.read_turn(turn.id)]
            assert kinds.count(closing[turn.state]) == 1


async def test_a_closed_store_refuses_instead_of_keeping_its_callers_waiting(scene: Scene) -> None:
    other = scene.store
    await scene.reopen()
    async with asyncio.timeout(5):
        with pytest.raises(StoreDown):
            await other.sessions.change("nothing", title="title")


def breaks_off(turn_id: TurnId) -> Transaction[None]:
    yield Run("UPDATE turns SET error = 'half' WHERE id = :id", {"id": turn_id})
    yield Run("UPDATE turns SET cause = :cause WHERE id = :id", {"id": turn_id})


async def test_what_a_transaction_did_before_a_bug_in_it_is_not_committed_by_the_next(scene: Scene) -> None:
    """A parameter is missing, so that its second statement never reaches the database."""
    turn = await scene.running()
    with pytest.raises(Exception, match="cause"):
        await scene.store.database.write(lambda: breaks_off(turn.id))
    await scene.store.journal.append(turn, [scene.text("next")])
    assert (await scene.store.turns.get(turn.id)).error is None
