"""The memory ledger: debt is recorded once, and paid by its owner, oldest first."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace

import pytest

from holdfast.core.segments import DIRTY, Segment, SegmentEvent, SegmentState, Unpaid
from holdfast.core.turns import Cause, Turn
from holdfast.errors import IllegalMove, NotFound, Stale
from holdfast.ids import SegmentId, SessionId, TurnId
from holdfast.store import segments as segments_sql
from tests.conformance.scenes import MINUTE, OWNER, START, Scene, closed_gate, on_postgres

OTHER = "memory:other"
HOUR = 60 * MINUTE


def spans(segments: list[Segment]) -> list[tuple[int, int, str, SegmentState]]:
    return [(each.first_generation, each.last_generation, each.owner, each.state) for each in segments]


async def complete(scene: Scene, owner: str = OWNER) -> SessionId:
    """Answer one more message of the conversation while `owner` is the live provider."""
    return (await scene.finish(await scene.running(), memory_owner=owner)).session_id


async def test_completed_turns_of_one_owner_share_a_segment(scene: Scene) -> None:
    """M2"""
    for _ in range(3):
        session_id = await complete(scene)
    assert spans(await scene.store.segments.of_session(session_id)) == [(1, 3, OWNER, SegmentState.OPEN)]
    assert (await scene.store.sessions.get(session_id)).generation == 3


async def test_completing_a_turn_never_commits(scene: Scene) -> None:
    """M1 (contract): without a boundary nothing can be claimed."""
    session_id = await complete(scene)
    assert await scene.store.segments.claim(scene.node, OWNER, scene.now, 10) == []
    assert await scene.store.segments.claim_one(scene.node, session_id, OWNER) is None


async def test_another_owner_seals_and_opens_its_own_segment(scene: Scene) -> None:
    """M3: consecutive turns of one owner share a segment, others never do."""
    for owner in (OWNER, OWNER, OTHER, OWNER):
        session_id = await complete(scene, owner)
    assert spans(await scene.store.segments.of_session(session_id)) == [
        (1, 2, OWNER, SegmentState.SEALED),
        (3, 3, OTHER, SegmentState.SEALED),
        (4, 4, OWNER, SegmentState.OPEN),
    ]


async def test_sealing_is_the_boundary(scene: Scene) -> None:
    """M4"""
    session_id = await complete(scene)
    assert await scene.store.segments.seal(session_id, scene.now) is True
    before = await scene.snapshot()
    assert await scene.store.segments.seal(session_id, scene.now + MINUTE) is False
    assert await scene.snapshot() == before
    await complete(scene)
    assert [state for *_, state in spans(await scene.store.segments.of_session(session_id))] == [
        SegmentState.SEALED,
        SegmentState.OPEN,
    ]


@pytest.mark.parametrize("key", ["", "nothing", "no\0thing"])
async def test_an_unknown_session_owes_nothing(scene: Scene, key: str) -> None:
    """M12"""
    await complete(scene)
    before = await scene.snapshot()
    assert await scene.store.segments.seal(SessionId(key), scene.now) is False
    assert await scene.store.segments.seal_all([SessionId(key)], scene.now) == 0
    assert await scene.store.segments.close_off(SessionId(key), scene.now, scene.now) is None
    assert await scene.store.segments.claim_one(scene.node, SessionId(key), OWNER) is None
    assert await scene.store.segments.of_session(SessionId(key)) == []
    assert await scene.store.segments.list("local", session_id=SessionId(key)) == []
    assert await scene.store.segments.of_turn(TurnId(key)) is None
    assert await scene.snapshot() == before


async def test_a_session_that_completed_nothing_owes_nothing(scene: Scene) -> None:
    """M4"""
    turn = await scene.interrupted()
    assert await scene.store.segments.seal(turn.session_id, scene.now) is False
    await scene.store.settlement.end_session(turn.session_id, "user", scene.now)
    assert await scene.store.segments.of_session(turn.session_id) == []


async def test_a_commit_pays_all_turns_of_a_segment_at_once(scene: Scene) -> None:
    """M4, M6"""
    segment = await scene.sealed(turns=3)
    taken = await scene.store.segments.claim_one(scene.node, segment.session_id, OWNER)
    assert taken is not None
    assert (taken.id, taken.state, taken.attempt) == (segment.id, SegmentState.COMMITTING, 1)
    assert (taken.first_generation, taken.last_generation) == (1, 3)
    assert await scene.store.segments.held(scene.node) == [taken]
    paid = await scene.store.segments.settle(taken, SegmentEvent.SUCCEED, scene.now)
    assert await scene.store.segments.of_session(segment.session_id) == [paid]
    assert paid.state is SegmentState.COMMITTED
    assert await scene.store.segments.claim_one(scene.node, segment.session_id, OWNER) is None
    assert await scene.store.segments.held(scene.node) == []


async def test_one_commit_per_session_at_a_time(scene: Scene) -> None:
    """M7: the second caller gets nothing at once."""
    segment = await scene.sealed()
    await complete(scene)
    await scene.store.segments.seal(segment.session_id, scene.now)
    assert await scene.store.segments.claim_one(scene.node, segment.session_id, OWNER) is not None
    before = await scene.snapshot()
    assert await scene.store.segments.claim_one(scene.node, segment.session_id, OWNER) is None
    assert await scene.store.segments.claim(scene.node, OWNER, scene.now, 10) == []
    assert await scene.snapshot() == before


async def test_the_oldest_goes_first_and_with_its_own_owner(scene: Scene) -> None:
    """M2, M3: a replacement can neither commit nor overtake an older owner's segment."""
    for owner in (OWNER, OTHER):
        session_id = await complete(scene, owner)
    await scene.store.segments.seal(session_id, scene.now)
    assert await scene.store.segments.claim(scene.node, OTHER, scene.now, 10) == []
    assert await scene.store.segments.claim_one(scene.node, session_id, OTHER) is None
    (first,) = await scene.store.segments.claim(scene.node, OWNER, scene.now, 10)
    assert await scene.store.segments.claim(scene.node, OTHER, scene.now, 10) == []
    await scene.store.segments.settle(first, SegmentEvent.SUCCEED, scene.now)
    (second,) = await scene.store.segments.claim(scene.node, OTHER, scene.now, 10)
    assert (first.first_generation, first.owner) == (1, OWNER)
    assert (second.first_generation, second.owner) == (2, OTHER)


async def test_a_failed_commit_keeps_the_segment_and_its_owner(scene: Scene) -> None:
    """M6"""
    segment = await scene.sealed()
    (taken,) = await scene.store.segments.claim(scene.node, OWNER, scene.now, 10)
    failed = await scene.store.segments.settle(
        taken, SegmentEvent.FAIL, scene.now, due_at=scene.now + MINUTE, error="the provider\0 is down"
    )
    assert (failed.state, failed.owner) == (SegmentState.SEALED, OWNER)
    (stored,) = await scene.store.segments.of_session(segment.session_id)
    assert stored == replace(failed, error="the provider\ufffd is down")
    assert await scene.store.segments.claim(scene.node, OWNER, scene.now, 10) == []
    scene.now += MINUTE
    (again,) = await scene.store.segments.claim(scene.node, OWNER, scene.now, 10)
    assert (again.id, again.attempt) == (segment.id, 2)


async def test_a_failed_commit_is_retried_at_the_next_boundary_whenever_that_is(scene: Scene) -> None:
    """M6: a boundary does not wait for the backoff; the debt is there after a restart too."""
    segment = await scene.sealed()
    (taken,) = await scene.store.segments.claim(scene.node, OWNER, scene.now, 10)
    await scene.store.segments.settle(taken, SegmentEvent.FAIL, scene.now, due_at=scene.now + MINUTE)
    await scene.reopen()
    again = await scene.store.segments.claim_one(scene.node, segment.session_id, OWNER)
    assert again is not None
    assert again.id == segment.id


async def test_a_turn_that_completes_during_a_commit_is_dirty_afterwards(scene: Scene) -> None:
    """M5: neither blocked nor erased."""
    segment = await scene.sealed()
    (taken,) = await scene.store.segments.claim(scene.node, OWNER, scene.now, 10)
    await complete(scene)
    await complete(scene)
    await scene.store.segments.settle(taken, SegmentEvent.SUCCEED, scene.now)
    assert spans(await scene.store.segments.of_session(segment.session_id)) == [
        (1, 1, OWNER, SegmentState.COMMITTED),
        (2, 3, OWNER, SegmentState.OPEN),
    ]
    await scene.store.segments.seal(segment.session_id, scene.now)
    (newer,) = await scene.store.segments.claim(scene.node, OWNER, scene.now, 10)
    assert (newer.first_generation, newer.last_generation) == (2, 3)


async def test_an_older_failure_holds_newer_segments_back(scene: Scene) -> None:
    """M2 (invariant): oldest first, also when the newer one is due before it."""
    segment = await scene.sealed()
    (taken,) = await scene.store.segments.claim(scene.node, OWNER, scene.now, 10)
    await complete(scene)
    await scene.store.segments.seal(segment.session_id, scene.now)
    await scene.store.segments.settle(taken, SegmentEvent.FAIL, scene.now, due_at=scene.now + MINUTE)
    assert await scene.store.segments.claim(scene.node, OWNER, scene.now, 10) == []
    scene.now += MINUTE
    assert [each.id for each in await scene.store.segments.claim(scene.node, OWNER, scene.now, 10)] == [segment.id]


async def test_claims_take_one_segment_of_each_session_up_to_the_limit(scene: Scene) -> None:
    made = []
    for number in range(4):
        scene.now += 1
        made.append(await scene.sealed(conversation=f"chat:{number}"))
    first = await scene.store.segments.claim(scene.node, OWNER, scene.now, 3)
    assert [each.id for each in first] == [each.id for each in made[:3]]
    rest = await scene.store.segments.claim(scene.node, OWNER, scene.now, 3)
    assert [each.id for each in rest] == [made[3].id]


@pytest.mark.parametrize("event", [SegmentEvent.SUCCEED, SegmentEvent.FAIL])
async def test_a_commit_is_settled_once(scene: Scene, event: SegmentEvent) -> None:
    """T4: a slow committer whose segment was given back, and taken again, changes nothing."""
    segment = await scene.sealed()
    (taken,) = await scene.store.segments.claim(scene.node, OWNER, scene.now, 10)
    await scene.store.segments.settle(taken, SegmentEvent.FAIL, scene.now)
    await scene.store.segments.claim(scene.node, OWNER, scene.now, 10)
    before = await scene.snapshot()
    with pytest.raises(Stale):
        await scene.store.segments.settle(taken, event, scene.now)
    with pytest.raises(IllegalMove):
        await scene.store.segments.settle(segment, event, scene.now)
    assert await scene.snapshot() == before


async def test_the_end_of_a_session_is_a_boundary(scene: Scene) -> None:
    """M11, M4"""
    session_id = await complete(scene)
    await scene.store.settlement.end_session(session_id, "user", scene.now)
    (segment,) = await scene.store.segments.claim(scene.node, OWNER, scene.now, 10)
    assert segment.session_id == session_id


async def test_debt_is_not_pruned_before_it_is_paid(scene: Scene) -> None:
    """M6, W6"""
    segment = await scene.sealed(channel="webhook", one_shot=True)
    assert await scene.store.sessions.prune("webhook", scene.now) == 0
    await scene.commit(segment)
    assert await scene.store.sessions.prune("webhook", scene.now) == 1


async def test_turns_that_are_not_remembered_leave_no_hole_between_those_that_are(scene: Scene) -> None:
    """M1: generations count remembered turns."""
    await complete(scene)
    await scene.finished(remembers=False)
    session_id = await complete(scene)
    assert spans(await scene.store.segments.of_session(session_id)) == [(1, 2, OWNER, SegmentState.OPEN)]


async def test_what_a_commit_came_to_is_kept_with_it(scene: Scene) -> None:
    """M6: the receipt takes the place of the last error."""
    segment = await scene.sealed()
    (taken,) = await scene.store.segments.claim(scene.node, OWNER, scene.now, 10)
    await scene.store.segments.settle(taken, SegmentEvent.FAIL, scene.now, error="down")
    scene.now += MINUTE
    (again,) = await scene.store.segments.claim(scene.node, OWNER, scene.now, 10)
    assert again.error == "down"
    paid = await scene.store.segments.settle(again, SegmentEvent.SUCCEED, scene.now, receipt="2 facts added")
    assert (paid.error, paid.receipt, paid.settled_at) == (None, "2 facts added", scene.now)
    assert await scene.store.segments.get(segment.id) == paid


async def test_a_waived_debt_holds_nothing_back(scene: Scene) -> None:
    """M2, M3: whom it was owed to gets nothing, and what is behind it goes on to its own owner."""
    for owner in (OTHER, OWNER):
        session_id = await complete(scene, owner)
    await scene.store.segments.seal(session_id, scene.now)
    gone, behind = await scene.store.segments.of_session(session_id)
    assert await scene.store.segments.claim(scene.node, OWNER, scene.now, 10) == []
    scene.now += MINUTE
    waived = await scene.store.segments.waive(gone.id, scene.now)
    assert waived == replace(gone, state=SegmentState.WAIVED, settled_at=scene.now, fence=gone.fence + 1)
    assert await scene.store.segments.get(gone.id) == waived
    assert await scene.store.segments.unpaid() == [Unpaid(owner=OWNER, state=SegmentState.SEALED, tried=False, count=1)]
    assert await scene.store.segments.claim(scene.node, OTHER, scene.now, 10) == []
    assert await scene.store.segments.claim_one(scene.node, session_id, OTHER) is None
    (taken,) = await scene.store.segments.claim(scene.node, OWNER, scene.now, 10)
    assert taken.id == behind.id
    await scene.store.segments.settle(taken, SegmentEvent.SUCCEED, scene.now)
    assert await scene.store.segments.unpaid() == []
    assert await scene.store.segments.settled() == {SegmentState.COMMITTED: 1, SegmentState.WAIVED: 1}


async def test_only_a_sealed_debt_can_be_waived(scene: Scene) -> None:
    """T3: neither one that still grows, nor one that is being paid, nor one that is settled."""
    session_id = await complete(scene)
    (segment,) = await scene.store.segments.of_session(session_id)
    waive = scene.store.segments.waive
    with pytest.raises(IllegalMove):
        await waive(segment.id, scene.now)
    await scene.store.segments.seal(session_id, scene.now)
    taken = await scene.store.segments.claim_one(scene.node, session_id, OWNER)
    with pytest.raises(IllegalMove):
        await waive(segment.id, scene.now)
    assert taken
    await scene.store.segments.settle(taken, SegmentEvent.FAIL, scene.now)
    await waive(segment.id, scene.now)
    with pytest.raises(IllegalMove):
        await waive(segment.id, scene.now)
    with pytest.raises(NotFound):
        await waive(SegmentId("none"), scene.now)


async def test_waived_debt_is_pruned_with_its_session(scene: Scene) -> None:
    """W6"""
    segment = await scene.sealed(channel="webhook", one_shot=True)
    assert await scene.store.sessions.prune("webhook", scene.now) == 0
    await scene.store.segments.waive(segment.id, scene.now)
    assert await scene.store.sessions.prune("webhook", scene.now) == 1


async def test_many_sessions_are_sealed_at_once(scene: Scene) -> None:
    """M8, M12: with ids of none, and of one that owes nothing, among them."""
    open_ones = [(await scene.finished(conversation=f"chat:{number}")).session_id for number in range(3)]
    other = (await scene.finished(conversation="other")).session_id
    sealed = await scene.sealed(conversation="sealed")
    ids = [*open_ones, sealed.session_id, SessionId(""), SessionId("nothing")]
    assert await scene.store.segments.seal_all(ids, scene.now) == 3
    assert await scene.store.segments.seal_all(ids, scene.now) == 0
    assert await scene.store.segments.seal_all([], scene.now) == 0
    assert len(await scene.store.segments.claim(scene.node, OWNER, scene.now, 10)) == 4
    assert [each.state for each in await scene.store.segments.of_session(other)] == [SegmentState.OPEN]


async def test_what_nobody_uses_any_more_is_sealed(scene: Scene) -> None:
    """M6: also what a node left open when it crashed is paid some day."""
    idle = await scene.finished(conversation="idle")
    scene.now += MINUTE
    used = await scene.finished(conversation="used")
    assert await scene.store.segments.seal_idle(idle.accepted_at - 1, scene.now) == 0
    assert await scene.store.segments.seal_idle(idle.accepted_at, scene.now) == 1
    assert await scene.store.segments.seal_idle(idle.accepted_at, scene.now) == 0
    (claimed,) = await scene.store.segments.claim(scene.node, OWNER, scene.now, 10)
    assert claimed.session_id == idle.session_id
    assert await scene.store.segments.seal_idle(used.accepted_at, scene.now) == 1


async def test_a_session_that_goes_on_is_not_idle(scene: Scene) -> None:
    """Neither where its last turn was remembered, nor where that owes nothing."""
    began = scene.now
    await complete(scene)
    scene.now += MINUTE
    await complete(scene)
    assert await scene.store.segments.seal_idle(began, scene.now) == 0
    grew = scene.now
    scene.now += MINUTE
    await scene.finished(remembers=False)
    assert await scene.store.segments.seal_idle(grew, scene.now) == 0
    assert await scene.store.segments.seal_idle(scene.now, scene.now) == 1


@pytest.mark.parametrize("state", ["queued", "running", "waiting"])
async def test_a_session_with_a_turn_in_flight_is_not_idle(scene: Scene, state: str) -> None:
    """M5: that turn is no use of it yet, and will be one."""
    session_id = await complete(scene)
    make = {"queued": scene.accept, "running": scene.running, "waiting": scene.parked}[state]
    turn_id = receipt.id if isinstance(receipt := await make(), Turn) else receipt.turn_id
    scene.now += MINUTE
    assert await scene.store.segments.seal_idle(scene.now, scene.now) == 0
    await scene.store.settlement.cancel(turn_id, Cause.USER, scene.now)
    assert await scene.store.segments.seal_idle(scene.now, scene.now) == 1
    assert [each.state for each in await scene.store.segments.of_session(session_id)] == [SegmentState.SEALED]


async def test_idle_sessions_are_sealed_a_few_at_a_time(scene: Scene) -> None:
    for number in range(5):
        await scene.finished(conversation=f"chat:{number}")
    assert [await scene.store.segments.seal_idle(scene.now, scene.now, limit=2) for _ in range(4)] == [2, 2, 1, 0]


async def test_what_is_closed_off_is_left_to_the_caller_for_a_while(scene: Scene) -> None:
    """M4, M7: nobody else takes it before it is due, and whoever closed it off may at once."""
    session_id = await complete(scene)
    closed = await scene.store.segments.close_off(session_id, scene.now, scene.now + MINUTE)
    assert closed
    assert (closed.state, closed.due_at, closed.session_id) == (SegmentState.SEALED, scene.now + MINUTE, session_id)
    assert await scene.store.segments.owners_due(scene.now) == []
    assert await scene.store.segments.claim(scene.node, OWNER, scene.now, 10) == []
    assert await scene.store.segments.close_off(session_id, scene.now, scene.now + 2 * MINUTE) == closed
    assert await scene.store.segments.owners_due(scene.now + MINUTE) == [OWNER]
    taken = await scene.store.segments.claim_one(scene.node, session_id, OWNER)
    assert taken
    assert await scene.store.segments.close_off(session_id, scene.now, scene.now) == taken
    await scene.store.segments.settle(taken, SegmentEvent.SUCCEED, scene.now)
    assert await scene.store.segments.close_off(session_id, scene.now, scene.now) is None


async def test_closing_off_returns_the_oldest_that_is_owed(scene: Scene) -> None:
    """M3: whoever it is owed to."""
    for owner in (OTHER, OWNER):
        session_id = await complete(scene, owner)
    closed = await scene.store.segments.close_off(session_id, scene.now, scene.now)
    assert closed
    assert (closed.owner, closed.first_generation) == (OTHER, 1)
    assert [each.state for each in await scene.store.segments.closed_off(session_id)] == [SegmentState.SEALED] * 2


async def test_the_bindings_that_something_is_due_to(scene: Scene) -> None:
    """M3: what waits behind another's debt is not due to anyone."""
    due = scene.store.segments.owners_due
    assert await due(scene.now) == []
    for owner in (OWNER, OTHER):
        session_id = await complete(scene, owner)
    await scene.store.segments.seal(session_id, scene.now)
    assert await due(scene.now - 1) == []
    assert await due(scene.now) == [OWNER]
    for number, owner in enumerate(("a", "b", "b", OTHER)):
        turn = await scene.finish(await scene.running(conversation=f"chat:{owner}{number}"), memory_owner=owner)
        await scene.store.segments.seal(turn.session_id, scene.now)
    assert sorted(await due(scene.now)) == sorted(["a", "b", OTHER, OWNER])
    for owner in ("a", "b", OWNER, OTHER):
        await scene.store.segments.claim(scene.node, owner, scene.now, 10)
    assert await due(scene.now) == []


async def test_a_clock_that_jumped_back_holds_up_nobody(scene: Scene) -> None:
    """C1: whoever is owed."""
    for number, owner in enumerate((OWNER, OTHER)):
        turn = await scene.finish(await scene.running(conversation=f"chat:{number}"), memory_owner=owner)
        await scene.store.segments.seal(turn.session_id, scene.now)
    scene.now -= 100 * HOUR
    assert await scene.store.segments.owners_due(scene.now) == []
    assert await scene.store.segments.hasten(scene.now) == 2
    assert await scene.store.segments.hasten(scene.now) == 0
    assert sorted(await scene.store.segments.owners_due(scene.now)) == sorted([OWNER, OTHER])


async def test_turns_and_segments_know_each_other(scene: Scene) -> None:
    """M2: what is not remembered is of none."""
    first, second = [await scene.finished() for _ in range(2)]
    forgotten = await scene.finished(remembers=False)
    await scene.store.segments.seal(first.session_id, scene.now)
    third = await scene.finished()
    old, new = await scene.store.segments.of_session(first.session_id)
    assert await scene.store.segments.of_turn(first.id) == await scene.store.segments.of_turn(second.id) == old
    assert await scene.store.segments.of_turn(third.id) == new
    assert await scene.store.segments.of_turn(forgotten.id) is None
    unknown = SegmentId("none")
    assert await scene.store.segments.turns_of([new.id, old.id, unknown]) == {
        old.id: [first.id, second.id],
        new.id: [third.id],
        unknown: [],
    }
    assert await scene.store.segments.get(old.id) == old
    with pytest.raises(NotFound):
        await scene.store.segments.get(unknown)


async def ledger(scene: Scene, person: str = "local") -> list[Segment]:
    """Make segments in every state, some of the same millisecond."""
    for number in range(7):
        scene.now = START + number // 3
        turn = await scene.finished(conversation=f"chat:{number}", owner=person)
        await scene.finish(await scene.running(conversation=f"chat:{number}", owner=person), memory_owner=OTHER)
        if number:
            await scene.store.segments.seal(turn.session_id, scene.now)
        oldest, _ = await scene.store.segments.of_session(turn.session_id)
        if number == 3:
            await scene.store.segments.waive(oldest.id, scene.now)
        elif number > 3:
            await scene.commit(oldest)
        if number == 6:
            await scene.store.segments.claim_one(scene.node, turn.session_id, OTHER)
    sessions = await scene.store.sessions.list(person)
    return [segment for each in sessions for segment in await scene.store.segments.of_session(each.id)]


@pytest.mark.parametrize("limit", [1, 2, 3, 14, 100])
async def test_pages_of_a_ledger_neither_repeat_nor_skip(scene: Scene, limit: int) -> None:
    """J8: newest first, of one person, in every state or in some."""
    made = sorted(await ledger(scene), key=lambda each: (each.created_at, each.id), reverse=True)
    await ledger(scene, "somebody")
    for states in ((), (SegmentState.SEALED,), (SegmentState.COMMITTED, SegmentState.WAIVED), tuple(SegmentState)):
        seen: list[Segment] = []
        while page := await scene.store.segments.list(
            "local", states=states, limit=limit, before=(seen[-1].created_at, seen[-1].id) if seen else None
        ):
            assert len(page) <= limit
            seen += page
        assert seen == [each for each in made if not states or each.state in states]


async def test_a_ledger_is_listed_by_session_for_its_owner_only(scene: Scene) -> None:
    """S4"""
    made = await ledger(scene)
    session_id = made[0].session_id
    mine = {each.id for each in made if each.session_id == session_id}
    assert {each.id for each in await scene.store.segments.list("local", session_id=session_id)} == mine
    assert await scene.store.segments.list("somebody", session_id=session_id) == []


async def test_what_a_person_owes_is_counted_and_named(scene: Scene) -> None:
    """M2: every state; sessions by their ids, a page at a time."""
    made = await ledger(scene)
    await ledger(scene, "somebody")
    ledgers = scene.store.segments
    unpaid = Counter((each.owner, each.state, each.attempt > 0) for each in made if each.state in DIRTY)
    assert Counter(each.state for each in made) == {
        SegmentState.OPEN: 1,
        SegmentState.SEALED: 8,
        SegmentState.COMMITTING: 1,
        SegmentState.COMMITTED: 3,
        SegmentState.WAIVED: 1,
    }
    for person, times in (("local", 1), (None, 2), ("nobody", 0)):
        found = {(each.owner, each.state, each.tried): each.count for each in await ledgers.unpaid(person)}
        assert found == {kind: times * count for kind, count in unpaid.items() if times}
        assert await ledgers.settled(person) == {SegmentState.COMMITTED: 3 * times, SegmentState.WAIVED: times}
    owing = sorted({each.session_id for each in made})
    assert await scene.store.segments.owing("local") == owing
    assert await scene.store.segments.owing("local", limit=3) == owing[:3]
    assert await scene.store.segments.owing("local", owing[2], limit=3) == owing[3:6]
    assert await scene.store.segments.owing("nobody") == []


async def test_a_new_provider_is_given_what_others_were_paid_once(scene: Scene) -> None:
    """M3: oldest first, never what was its own, never what is still owed, and nothing twice."""
    made = sorted(await ledger(scene), key=lambda each: (each.created_at, each.id))
    await ledger(scene, "somebody")
    paid = [each for each in made if each.state in (SegmentState.COMMITTED, SegmentState.WAIVED)]
    segments = scene.store.segments
    assert len(paid) == await segments.left_to_replay("local", "new") == 4
    assert await segments.to_replay("local", "new", 10) == paid
    assert await segments.to_replay("local", OWNER, 10) == []
    assert await segments.left_to_replay("local", OWNER) == 0
    for _ in range(2):
        await segments.replayed(paid[1].id, "new", "1 fact added", scene.now)
    assert await segments.to_replay("local", "new", 2) == [paid[0], paid[2]]
    assert await segments.left_to_replay("local", "new") == 3
    assert await segments.left_to_replay("local", "newer") == 4
    await segments.replayed(SegmentId("none"), "new", "", scene.now)
    await scene.store.sessions.delete(paid[0].session_id, scene.now)
    assert await segments.to_replay("local", "new", 10) == [paid[2], paid[3]]


@on_postgres
async def test_a_turn_that_completes_while_its_idle_session_is_sealed_opens_a_new_segment(scene: Scene) -> None:
    """M1, M5: the other node's turn was accepted after we had looked, and is not lost."""
    session_id = await complete(scene)
    scene.now += MINUTE
    async with closed_gate(scene.url) as gate:
        params = {"used_before": scene.now, "now": scene.now, "limit": 10}
        sql = scene.store.segments._seal_idle
        sealing = asyncio.create_task(scene.store.database.write(gate.pause(lambda: segments_sql._count(sql, params))))
        await gate.waiting(1)
        other = await scene.another_store()
        await scene.accept(by=other)
        (claimed,) = await scene.claim(by=other)
        turn, _ = await other.turns.start(claimed, scene.now)
        finishing = asyncio.create_task(other.settlement.finish(turn, scene.ending(turn)))
        await gate.waiting(2)
        await gate.open()
        assert await sealing == 1
        await finishing
    assert spans(await scene.store.segments.of_session(session_id)) == [
        (1, 1, OWNER, SegmentState.SEALED),
        (2, 2, OWNER, SegmentState.OPEN),
    ]
