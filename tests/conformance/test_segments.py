"""The memory ledger: debt is recorded once, and paid by its owner, oldest first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.core.memory import Event, Segment, State
from holdfast.errors import IllegalMove, Stale
from holdfast.ids import SessionId
from tests.conformance.scenes import MINUTE, OWNER, Scene

OTHER = "memory:other"


def spans(segments: list[Segment]) -> list[tuple[int, int, str, State]]:
    return [(each.first_generation, each.last_generation, each.owner, each.state) for each in segments]


async def complete(scene: Scene, owner: str = OWNER) -> SessionId:
    """Answer one more message of the conversation while `owner` is the live provider."""
    return (await scene.finish(await scene.running(), memory_owner=owner)).session_id


async def test_completed_turns_of_one_owner_share_a_segment(scene: Scene) -> None:
    """M2"""
    for _ in range(3):
        session_id = await complete(scene)
    assert spans(await scene.store.segments.of_session(session_id)) == [(1, 3, OWNER, State.OPEN)]
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
        (1, 2, OWNER, State.SEALED),
        (3, 3, OTHER, State.SEALED),
        (4, 4, OWNER, State.OPEN),
    ]


async def test_sealing_is_the_boundary(scene: Scene) -> None:
    """M4"""
    session_id = await complete(scene)
    assert await scene.store.segments.seal(session_id, scene.now) is True
    before = await scene.snapshot()
    assert await scene.store.segments.seal(session_id, scene.now + MINUTE) is False
    assert await scene.snapshot() == before
    await complete(scene)
    assert [state for *_, state in spans(await scene.store.segments.of_session(session_id))] == [State.SEALED, State.OPEN]


@pytest.mark.parametrize("key", ["", "nothing", "no\0thing"])
async def test_an_unknown_session_owes_nothing(scene: Scene, key: str) -> None:
    """M12"""
    assert await scene.store.segments.seal(SessionId(key), scene.now) is False
    assert await scene.store.segments.claim_one(scene.node, SessionId(key), OWNER) is None
    assert await scene.store.segments.of_session(SessionId(key)) == []


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
    assert (taken.id, taken.state, taken.attempt) == (segment.id, State.COMMITTING, 1)
    assert (taken.first_generation, taken.last_generation) == (1, 3)
    assert await scene.store.segments.held(scene.node) == [taken]
    paid = await scene.store.segments.settle(taken, Event.SUCCEED, scene.now)
    assert await scene.store.segments.of_session(segment.session_id) == [paid]
    assert paid.state is State.COMMITTED
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
    await scene.store.segments.settle(first, Event.SUCCEED, scene.now)
    (second,) = await scene.store.segments.claim(scene.node, OTHER, scene.now, 10)
    assert (first.first_generation, first.owner) == (1, OWNER)
    assert (second.first_generation, second.owner) == (2, OTHER)


async def test_a_failed_commit_keeps_the_segment_and_its_owner(scene: Scene) -> None:
    """M6"""
    segment = await scene.sealed()
    (taken,) = await scene.store.segments.claim(scene.node, OWNER, scene.now, 10)
    failed = await scene.store.segments.settle(
        taken, Event.FAIL, scene.now, due_at=scene.now + MINUTE, error="the provider\0 is down"
    )
    assert (failed.state, failed.owner) == (State.SEALED, OWNER)
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
    await scene.store.segments.settle(taken, Event.FAIL, scene.now, due_at=scene.now + MINUTE)
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
    await scene.store.segments.settle(taken, Event.SUCCEED, scene.now)
    assert spans(await scene.store.segments.of_session(segment.session_id)) == [
        (1, 1, OWNER, State.COMMITTED),
        (2, 3, OWNER, State.OPEN),
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
    await scene.store.segments.settle(taken, Event.FAIL, scene.now, due_at=scene.now + MINUTE)
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


@pytest.mark.parametrize("event", [Event.SUCCEED, Event.FAIL])
async def test_a_commit_is_settled_once(scene: Scene, event: Event) -> None:
    """T4: a slow committer whose segment was given back, and taken again, changes nothing."""
    segment = await scene.sealed()
    (taken,) = await scene.store.segments.claim(scene.node, OWNER, scene.now, 10)
    await scene.store.segments.settle(taken, Event.FAIL, scene.now)
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
    assert spans(await scene.store.segments.of_session(session_id)) == [(1, 2, OWNER, State.OPEN)]
