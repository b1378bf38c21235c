"""The drill itself: it ends lives in both ways, and notices when something is wrong."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from holdfast.core import notes
from holdfast.core.events import EntryKind
from holdfast.core.intake import Inbound
from holdfast.core.journal import Entry
from holdfast.core.segments import SegmentEvent
from holdfast.core.turns import Cause, Policy, Turn, TurnState
from holdfast.drill.commits import Commit, judge_commits
from holdfast.drill.strikes import judge_strikes
from holdfast.drill.verdict import Seen, drill, judge_drains
from holdfast.ids import SegmentId, SessionId, TurnId, new_node_id, new_session_id, new_turn_id
from holdfast.store.store import Store
from tests.claims import claim
from tests.conformance.scenes import OWNER, Scene

NOW = 1_800_000_000_000


def test_whichever_way_a_life_ends_every_promise_is_kept(store_url: str, tmp_path: Path) -> None:
    """A1 A2 A3 J1 D1 X1 R2 R4 M1 M2 M6: kills, and stops that give running turns too little time."""
    done: list[int] = []
    verdict = drill(tmp_path, store_url, 6, 11, done.append)
    assert verdict.violations == []
    assert (verdict.kills, verdict.sigkills, verdict.sigterms) == (6, 4, 2)
    assert done == [1, 2, 3, 4, 5, 6]
    assert verdict.completed > 0
    assert verdict.remembered == verdict.completed
    assert 0 < verdict.commits <= verdict.remembered


@pytest.mark.parametrize(
    ("by", "status", "odd"),
    [
        (signal.SIGKILL, -signal.SIGKILL, False),
        (signal.SIGKILL, 0, True),
        (signal.SIGKILL, 1, True),
        (signal.SIGTERM, 0, False),
        (signal.SIGTERM, -signal.SIGTERM, True),
        (signal.SIGTERM, -signal.SIGKILL, True),
    ],
)
def test_a_life_that_ends_in_another_way_than_it_was_told_is_noticed(by: signal.Signals, status: int, odd: bool) -> None:
    seen = Seen()
    seen.end(1, by, status)
    assert bool(seen.odd_ends) == odd


CHAT, OTHER = SessionId("ses_chat"), SessionId("ses_other")
CULPRIT, BESIDE = TurnId("trn_culprit"), TurnId("trn_beside")


def crashes(session_id: SessionId, turn_id: TurnId, lives: Sequence[int], *, given_up: bool) -> list[Entry]:
    """Return the journal of a turn that was cut off by the crash of each of these lives, which last a second each."""
    found: list[Entry] = []
    for attempt, life in enumerate(lives, 1):
        is_last = given_up and attempt == len(lives)
        data = {"cause": Cause.CRASH, **({"error": notes.GIVEN_UP} if is_last else {})}
        for kind, at, said in (
            (EntryKind.TURN_STARTED, 1_000 * life + 500, {}),
            (EntryKind.TURN_INTERRUPTED, 1_000 * life + 1_100, data),
        ):
            place = {"session_id": session_id, "turn_id": turn_id, "seq": len(found) + 1, "attempt": attempt, "nth": None}
            found.append(Entry.read(**place, kind=kind, at=at, data=said))  # type: ignore[arg-type] - The fields in two parts.
    return found


@pytest.mark.parametrize(
    ("culprit", "beside", "violation"),
    [
        ([0, 1, 2], [], None),
        ([0, 1, 2, 3], [0, 1, 2], None),
        ([0, 1, 2], [0, 1, 2], "S2 given up after a crash that cut off 1 more: trn_culprit"),
        ([0, 1], [], "S2 given up after 2 interruptions: trn_culprit"),
    ],
)
def test_a_turn_that_is_given_up_too_early_is_noticed(culprit: list[int], beside: list[int], violation: str | None) -> None:
    """S2: a crash that cuts off several turns gives none of them up."""
    journals = {
        CHAT: crashes(CHAT, CULPRIT, culprit, given_up=True),
        OTHER: crashes(OTHER, BESIDE, beside, given_up=False),
    }
    ends_ms = [1_000 * life + 1_000 for life in range(4)]
    assert [*judge_strikes([], journals, ends_ms)] == ([violation] if violation else [])


@pytest.mark.parametrize(
    ("state", "error", "violations"),
    [
        (TurnState.COMPLETED, None, 0),
        (TurnState.INTERRUPTED, notes.GIVEN_UP, 0),
        (TurnState.INTERRUPTED, None, 1),
        (TurnState.CANCELLED, None, 1),
    ],
)
def test_a_turn_without_an_answer_that_was_not_given_up_is_noticed(
    state: TurnState, error: str | None, violations: int
) -> None:
    """A1 S2: no one cancels anything in a drill, and messages behind a turn that is given up are answered."""
    turn = Turn(id=CULPRIT, session_id=CHAT, ordinal=1, accepted_at=NOW, state=state, error=error)
    assert len([*judge_strikes([turn], {}, [])]) == violations


@pytest.mark.parametrize(("cause", "recorded"), [(Cause.RESTART_TIMEOUT, 1), (Cause.CRASH, 0)])
async def test_a_cut_without_its_cause_in_the_journal_is_noticed(
    cause: Cause, recorded: int, open_it: Callable[[], Awaitable[Store]]
) -> None:
    """R4: what a drain says that it cut must be in the journal, with that cause."""
    store, node = await open_it(), new_node_id(NOW)
    await store.nodes.join(node, NOW)
    hello = Inbound(conversation="chat:1", text="hello", channel="terminal")
    await store.intake.accept(hello, new_turn_id(NOW), new_session_id(NOW), NOW)
    (claimed,) = await claim(store, node, 1)
    turn, _ = await store.turns.start(claimed, NOW)
    await store.settlement.interrupt(node, [turn.id], cause, Policy(), NOW)
    assert await judge_drains(store, recorded) == []
    assert len(await judge_drains(store, recorded + 1)) == 1
    assert len(await judge_drains(store, recorded - 1)) == 1
    await store.close()


async def test_a_commit_that_went_wrong_is_noticed(store_url: str, open_it: Callable[[], Awaitable[Store]]) -> None:
    """M1 M2 M6: left out, told to nobody, told as something else, told too early, or never recorded."""
    scene = Scene(open_it, store_url)

    async def judge() -> None:
        store, first = scene.store, await answered()
        second = await answered()
        assert len(await judge_commits(store, [], [first, second])) == 1, "what is still owed was not noticed"
        one = await paid()
        third = await answered()
        two = await paid()
        turns = [first, second, third]
        told, later = Commit(segment_id=one, turns=[first.id, second.id]), Commit(segment_id=two, turns=[third.id])
        for commits in ([told, later], [told, told, later], [told, later, told]):
            assert await judge_commits(store, commits, turns) == []
        for commits in (
            [told],
            [later, told],
            [told, later, Commit(segment_id=one, turns=[first.id])],
            [told, later, Commit(segment_id=SegmentId("seg_other"), turns=[third.id])],
        ):
            assert len(await judge_commits(store, commits, turns)) == 1, commits
        forgotten = await answered(None)
        assert len(await judge_commits(store, [told, later], [*turns, forgotten])) == 1

    async def answered(owner: str | None = OWNER) -> Turn:
        return await scene.finish(await scene.running(), memory_owner=owner)

    async def paid() -> SegmentId:
        (session_id,) = await scene.store.segments.owing("local")
        await scene.store.segments.seal(session_id, scene.now)
        (claimed,) = await scene.store.segments.claim(scene.node, OWNER, scene.now, 1)
        await scene.store.segments.settle(claimed, SegmentEvent.SUCCEED, scene.now)
        return claimed.id

    await scene.play(judge)
