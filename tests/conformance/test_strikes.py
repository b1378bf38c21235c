"""Whose fault a crash is: turns that ran together are suspects, and only one that ran alone is given up for it."""

from __future__ import annotations

from holdfast.core import notes, sessions
from holdfast.core.events import EntryKind
from holdfast.core.turns import Cause, Mode, Policy, Resume, Turn, TurnState
from holdfast.ids import TurnId
from tests.conformance.scenes import Scene


async def crash(scene: Scene, limit: int = 500) -> None:
    """Let the node die, and another take over."""
    dead, scene.node = scene.node, await scene.joined()
    await scene.store.nodes.leave(dead)
    policy = Policy(resume=Resume.AUTO)
    while (await scene.store.nodes.sweep(Cause.CRASH, policy, scene.now, limit=limit)).total:
        pass


async def started(scene: Scene, *turns: Turn) -> list[Turn]:
    """Start what is claimable, which must be these."""
    claimed = await scene.claim()
    assert {turn.id for turn in claimed} == {turn.id for turn in turns}
    return [await scene.start(turn) for turn in claimed]


async def strikes(scene: Scene, turn: Turn) -> int:
    return (await scene.store.sessions.get(turn.session_id)).strikes


async def suspects(scene: Scene, count: int = 3, **changes: object) -> list[Turn]:
    """Return turns that were cut off together twice, and are queued again."""
    turns = [await scene.running(conversation=f"chat:{number}", **changes) for number in range(count)]
    await crash(scene)
    await started(scene, *turns)
    await crash(scene)
    return turns


async def test_no_number_of_crashes_gives_up_turns_that_ran_together(scene: Scene) -> None:
    """S2, R8, A1: one of them may be the cause, the others are bystanders; all of them go on."""
    turns = await suspects(scene)
    for _ in range(4):
        await started(scene, *turns)
        await crash(scene)
    assert [await strikes(scene, turn) for turn in turns] == [sessions.STRIKES_SUSPECT] * 3
    assert [await scene.state(turn) for turn in turns] == [TurnState.QUEUED] * 3


async def test_a_sweep_in_small_steps_leaves_no_turn_alone(scene: Scene) -> None:
    """S2, P1: whoever is taken over last still had company when the node crashed."""
    turns = await suspects(scene)
    await started(scene, *turns)
    await crash(scene, limit=1)
    assert [await scene.state(turn) for turn in turns] == [TurnState.QUEUED] * 3


async def test_a_suspect_that_ran_alone_is_given_up_and_says_why(scene: Scene) -> None:
    """S2, R7, R8: with its reason in the journal, on the turn, and where its answer would have gone."""
    await suspects(scene, reply_to="file:out")
    (bystander,) = await scene.claim(limit=1)
    await scene.finish(await scene.start(bystander))
    (killer,) = await scene.claim(limit=1)
    await scene.start(killer)
    await crash(scene)
    given_up = await scene.store.turns.get(killer.id)
    assert (given_up.state, given_up.cause, given_up.error) == (TurnState.INTERRUPTED, "crash", notes.GIVEN_UP)
    last = (await scene.entries(killer.session_id))[-1]
    assert (last.kind, last.data["error"], last.data["continues"]) == (EntryKind.TURN_INTERRUPTED, notes.GIVEN_UP, False)
    (told,) = await scene.store.deliveries.of_turn(killer.id)
    assert (told.target, told.text) == ("file:out", notes.failed(notes.GIVEN_UP))
    assert (await scene.store.sessions.get(killer.session_id)).state is sessions.SessionState.SUSPENDED


async def test_what_waits_behind_a_given_up_turn_is_answered(scene: Scene) -> None:
    """A1, R7: in the session that is suspended; the next message of the conversation begins a new one."""
    killer = await scene.running("kill")
    behind = [await scene.accept("two"), await scene.accept("three")]
    for _ in range(2):
        await crash(scene)
        await scene.claim_and_start(killer.id)
    await crash(scene)
    assert await scene.state(killer) is TurnState.INTERRUPTED
    for receipt in behind:
        await scene.finish(await scene.claim_and_start(receipt.turn_id))
    assert (await scene.store.sessions.get(killer.session_id)).state is sessions.SessionState.SUSPENDED
    following = await scene.accept("four")
    assert following.session_id != killer.session_id


async def test_what_waits_in_a_suspended_session_goes_on_after_a_crash_that_is_not_its_own(scene: Scene) -> None:
    """A1, R10: no message will follow it there, so it does not rest for one; and if it crashes alone, it is given up."""
    killer = await scene.running("kill")
    behind = await scene.accept("two")
    for _ in range(2):
        await crash(scene)
        await scene.claim_and_start(killer.id)
    await crash(scene)
    other = await scene.accept(conversation="chat:9")
    for turn in await scene.claim():
        await scene.start(turn)
    dead, scene.node = scene.node, await scene.joined()
    await scene.store.nodes.leave(dead)
    await scene.sweep(Resume.ON_MESSAGE)
    assert (await scene.state(behind), await scene.state(other)) == (TurnState.QUEUED, TurnState.INTERRUPTED)
    await scene.claim_and_start(behind.turn_id)
    await crash(scene)
    assert await scene.state(behind) is TurnState.INTERRUPTED


async def test_suspects_are_taken_one_by_one_and_nothing_else_with_them(scene: Scene) -> None:
    """S2: the usual claim leaves them to one that takes a single one."""
    turns = await suspects(scene, mode=Mode.DETACHED)
    fresh = await scene.accept(conversation="chat:9")
    taken = await scene.store.turns.take(scene.node, 10, scene.now)
    assert [turn.id for turn, _ in taken] == [fresh.turn_id]
    waiting = await scene.store.turns.suspect()
    assert waiting
    seen: list[TurnId] = []
    while alone := await scene.store.turns.take_suspect(scene.node, scene.now):
        seen += [turn.id for turn, _ in alone]
        assert len(alone) == 1
    assert (seen[0], set(seen)) == (waiting.id, {turn.id for turn in turns})
    assert await scene.store.turns.suspect() is None


async def test_the_suspect_that_began_last_is_taken_first(scene: Scene) -> None:
    """S2: the others had run for longer without a crash."""
    early, late, _ = await suspects(scene)
    claimed = {turn.id: turn for turn in await scene.claim()}
    for turn in (early, late):
        scene.now += 1
        await scene.start(claimed[turn.id])
    await crash(scene)
    waiting = await scene.store.turns.suspect()
    assert waiting
    assert waiting.id == late.id


async def test_only_the_first_turn_of_a_suspect_session_is_a_suspect(scene: Scene) -> None:
    """T2: what waits behind it is not taken before it, and keeps nothing else from running."""
    (turn,) = await suspects(scene, 1)
    await scene.accept("behind", conversation="chat:0")
    ((alone, _),) = await scene.store.turns.take_suspect(scene.node, scene.now)
    assert alone.id == turn.id
    assert await scene.store.turns.suspect() is None
    assert await scene.store.turns.take_suspect(scene.node, scene.now) == []


async def test_an_answer_clears_a_suspect(scene: Scene) -> None:
    """R8: a completed turn takes all strikes away."""
    (turn,) = await suspects(scene, 1)
    await scene.finish(await scene.claim_and_start(turn.id))
    assert await strikes(scene, turn) == 0
    receipt = await scene.accept(conversation="chat:0")
    assert [turn.id for turn, _ in await scene.store.turns.take(scene.node, 10, scene.now)] == [receipt.turn_id]


async def test_drains_that_time_out_count_whoever_else_ran(scene: Scene) -> None:
    """R8: a stop that had to interrupt a turn three times in a row suspends its session, as a crash of its own does."""
    turns = [await scene.running(conversation=f"chat:{number}") for number in range(2)]
    for _ in range(2):
        await scene.interrupt(*turns, resume=Resume.AUTO, cause=Cause.RESTART_TIMEOUT)
        turns = await started(scene, *turns)
    await scene.interrupt(*turns, resume=Resume.AUTO, cause=Cause.RESTART_TIMEOUT)
    assert [await scene.state(turn) for turn in turns] == [TurnState.INTERRUPTED] * 2
