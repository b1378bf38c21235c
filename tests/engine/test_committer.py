"""The committer: memory debt is paid once, by its owner, at a boundary, and no reply ever waits for it."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from holdfast.config import Config, MemoryConfig
from holdfast.core.delivery import backoff_ms
from holdfast.core.segments import SegmentState
from holdfast.core.sessions import SessionState
from holdfast.core.turns import TurnState
from holdfast.engine.engine import Engine
from holdfast.ids import SessionId
from holdfast.store.store import Store
from tests.engine.debts import AGENT, segments_in
from tests.engine.world import (
    FAST,
    START,
    Altered,
    Hang,
    LosingAnswer,
    ManualClock,
    Open,
    RecordingCarrier,
    RecordingMemory,
    answered,
    message,
    opened,
    running_engine,
    settled,
    until,
)


async def another_session_is_committed(engine: Engine, store: Store, memory: RecordingMemory) -> None:
    """Return once a later debt, of another session, has been paid: whatever was due before had its chance."""
    turn = await answered(engine, store, conversation="other", one_shot=True)
    await until(lambda: memory.taken_of(turn.session_id))


async def end(store: Store, session_id: SessionId) -> None:
    await store.settlement.end_session(session_id, "done", START)


async def test_only_completed_turns_that_remember_are_owed_and_only_the_end_of_the_session_seals_them(
    open_it: Open,
) -> None:
    """M1 M2 M4: one call for all of them, at the boundary and not before."""
    memory = RecordingMemory()
    async with opened(open_it) as store, running_engine(store, AGENT, memory=memory) as engine:
        first = await answered(engine, store, "one")
        await answered(engine, store, "off the record", remembers=False)
        failed = await answered(engine, store, "please fail")
        waiting = await engine.inbox.accept(message("please wait"))
        await until(lambda: engine.running)
        await until(lambda: _shows(store, waiting.session_id, "I wait"))
        await engine.cancel(waiting.turn_id)
        last = await answered(engine, store, "two")
        assert [failed.state, (await settled(store, waiting)).state] == [TurnState.FAILED, TurnState.CANCELLED]
        (owed,) = await store.segments.of_session(first.session_id)
        assert (owed.state, owed.owner, owed.first_generation, owed.last_generation) == (
            SegmentState.OPEN,
            "memory:main",
            1,
            2,
        )
        await another_session_is_committed(engine, store, memory)
        assert memory.given_of(first.session_id) == [], "completing a turn committed it"
        await end(store, first.session_id)
        await segments_in(store, first.session_id, SegmentState.COMMITTED)
        assert [segment.id for segment in memory.given_of(first.session_id)] == [owed.id]
        assert memory.taken_of(first.session_id) == ["one", "re: one", "two", "re: two"]
        assert {message.turn_id for _, messages in memory.taken[-1:] for message in messages} == {first.id, last.id}


async def _shows(store: Store, session_id: SessionId, text: str) -> bool:
    return any(entry.data.get("text") == text for entry in await store.journal.read(session_id))


async def test_a_one_shot_session_is_sealed_by_the_turn_that_ends_it_and_committed_once(open_it: Open) -> None:
    """M1 M4 W4: the boundary is part of the transaction that finishes the turn."""
    memory = RecordingMemory()
    async with opened(open_it) as store, running_engine(store, AGENT, memory=memory) as engine:
        turn = await answered(engine, store, "deploy", conversation="hook:1", one_shot=True)
        (paid,) = await segments_in(store, turn.session_id, SegmentState.COMMITTED)
        assert (await store.sessions.get(turn.session_id)).state is SessionState.ENDED
        await another_session_is_committed(engine, store, memory)
        assert [segment.id for segment in memory.given_of(turn.session_id)] == [paid.id]
        assert memory.taken_of(turn.session_id) == ["deploy", "re: deploy"]


async def test_a_session_without_a_completed_turn_owes_nothing(open_it: Open) -> None:
    """M4: there is nothing to remember, so nobody is called."""
    memory = RecordingMemory()
    async with opened(open_it) as store, running_engine(store, AGENT, memory=memory) as engine:
        turn = await answered(engine, store, "please fail")
        await end(store, turn.session_id)
        await another_session_is_committed(engine, store, memory)
        assert await store.segments.of_session(turn.session_id) == []
        assert memory.given_of(turn.session_id) == []


async def test_a_failed_commit_is_tried_again_later_under_the_same_segment_id(open_it: Open) -> None:
    """M6: the debt and its owner stay, and the provider can tell that it is the same one."""
    clock = ManualClock()
    memory = RecordingMemory(ConnectionError("no route"), None, ValueError(), None)
    async with opened(open_it) as store, running_engine(store, AGENT, memory=memory, clock=clock) as engine:
        turn = await answered(engine, store, "one", one_shot=True)
        for attempt, error in enumerate(("no route", "ValueError"), 1):
            await until(lambda given=attempt: len(memory.given_of(turn.session_id)) == given)
            (owed,) = await segments_in(store, turn.session_id, SegmentState.SEALED)
            assert (owed.attempt, owed.error, owed.owner) == (attempt, error, memory.owner)
            assert owed.due_at - clock.now_ms() == backoff_ms(attempt, 0)
            await clock.advance(backoff_ms(attempt, 0) - 1)
            await another_session_is_committed(engine, store, memory)
            assert len(memory.given_of(turn.session_id)) == attempt, "tried again before it was due"
            await clock.advance(1)
        (paid,) = await segments_in(store, turn.session_id, SegmentState.COMMITTED)
        assert (paid.attempt, paid.error) == (3, None)
        assert {segment.id for segment in memory.given_of(turn.session_id)} == {paid.id}
        assert memory.taken_of(turn.session_id) == ["one", "re: one"]


async def test_fifty_replies_arrive_promptly_while_every_commit_hangs(open_it: Open) -> None:
    """M3 M10: a hung provider delays no reply, and takes no more of the engine than its share."""
    hangs = [Hang() for _ in range(50)]
    memory, carrier = RecordingMemory(*hangs), RecordingCarrier()
    tuning = replace(FAST, commits_max=3)
    async with (
        opened(open_it) as store,
        running_engine(store, AGENT, memory=memory, carriers={"chat": carrier}, tuning=tuning) as engine,
    ):
        first = await answered(engine, store, "first", conversation="first", one_shot=True)
        await until(lambda: memory.given_of(first.session_id))
        began = time.monotonic()
        for number in range(49):
            changes: dict[str, Any] = {"conversation": f"hook:{number}", "one_shot": True, "reply_to": "chat:1"}
            await engine.inbox.accept(message(f"{number}", **changes))
        await until(lambda: len(carrier.sent) == 49)
        assert time.monotonic() - began < MemoryConfig().commit_timeout / 10
        tally = await store.turns.tally()
        assert tally == {TurnState.COMPLETED: 50}
        await until(lambda: len(memory.given) == tuning.commits_max)
        assert memory.taken == []
        for hang in hangs:
            hang.release()
        await until(lambda: len(memory.taken) == 50)
        assert len({segment.id for segment, _ in memory.taken}) == 50


async def test_a_turn_that_completes_while_its_session_is_being_committed_is_owed_afterwards(open_it: Open) -> None:
    """M5 M2: neither blocked nor erased; it belongs to the next segment."""
    hang = Hang()
    memory = RecordingMemory(hang)
    async with opened(open_it) as store, running_engine(store, AGENT, memory=memory) as engine:
        turn = await answered(engine, store, "one")
        await store.segments.seal(turn.session_id, START)
        await until(lambda: memory.given)
        await answered(engine, store, "two")
        await segments_in(store, turn.session_id, SegmentState.COMMITTING, SegmentState.OPEN)
        hang.release()
        await segments_in(store, turn.session_id, SegmentState.COMMITTED, SegmentState.OPEN)
        assert memory.taken_of(turn.session_id) == ["one", "re: one"]
        await store.segments.seal(turn.session_id, START)
        await segments_in(store, turn.session_id, SegmentState.COMMITTED, SegmentState.COMMITTED)
        assert memory.taken_of(turn.session_id) == ["one", "re: one", "two", "re: two"]


async def test_a_provider_that_does_not_answer_in_time_has_failed_and_is_asked_again(open_it: Open) -> None:
    """M6: no debt hangs for ever."""
    clock = ManualClock()
    memory = RecordingMemory(Hang())
    config = Config(memory=MemoryConfig(commit_timeout=0.05))
    async with (
        opened(open_it) as store,
        running_engine(store, AGENT, memory=memory, config=config, clock=clock) as engine,
    ):
        turn = await answered(engine, store, "one", one_shot=True)
        await until(lambda: memory.given)
        (owed,) = await segments_in(store, turn.session_id, SegmentState.SEALED)
        assert owed.error == "the provider did not answer in time"
        await clock.advance(backoff_ms(1, 0))
        await segments_in(store, turn.session_id, SegmentState.COMMITTED)
        assert [segment.id for segment in memory.given_of(turn.session_id)] == [owed.id, owed.id]


async def test_a_commit_that_the_engine_did_not_live_to_see_is_made_again_by_the_next(open_it: Open) -> None:
    """M6 P1: after a restart too, under the same segment id."""
    first, second = RecordingMemory(Hang()), RecordingMemory()
    async with opened(open_it) as store:
        async with running_engine(store, AGENT, memory=first) as engine:
            turn = await answered(engine, store, "one", one_shot=True)
            await until(lambda: first.given)
        (cut,) = await store.segments.of_session(turn.session_id)
        assert cut.state is SegmentState.COMMITTING
        async with running_engine(store, AGENT, memory=second):
            await segments_in(store, turn.session_id, SegmentState.COMMITTED)
        assert [segment.id for segment in second.given_of(turn.session_id)] == [cut.id]
        assert second.taken_of(turn.session_id) == ["one", "re: one"]


async def test_a_commit_whose_end_was_recorded_without_an_answer_is_not_made_again(open_it: Open) -> None:
    """M4: the ledger knows, even if the committer was not told; what else is on its way is not disturbed."""
    slow = Hang()
    memory = RecordingMemory(slow)
    async with opened(open_it) as store:
        settle = LosingAnswer(store.segments.settle)
        lossy = Altered(store, segments=Altered(store.segments, settle=settle))
        async with running_engine(lossy, AGENT, memory=memory) as engine:
            beside = await answered(engine, store, "beside it", conversation="beside", one_shot=True)
            await until(lambda: memory.given)
            turn = await answered(engine, store, "one", one_shot=True)
            await until(lambda: settle.calls == 2)
            await another_session_is_committed(engine, store, memory)
            slow.release()
            await segments_in(store, beside.session_id, SegmentState.COMMITTED)
        assert len(memory.given_of(beside.session_id)) == 1
        assert len(memory.given_of(turn.session_id)) == 1
        assert [segment.state for segment in await store.segments.of_session(turn.session_id)] == [SegmentState.COMMITTED]


async def test_the_debt_of_an_earlier_owner_is_never_given_to_another(open_it: Open) -> None:
    """M2 M3: oldest first, each with its owner, however the binding changes between two runs."""
    old, new = RecordingMemory(owner="memory:old"), RecordingMemory(owner="memory:new")
    async with opened(open_it) as store:
        async with running_engine(store, AGENT, memory=old) as engine:
            session_id = (await answered(engine, store, "one")).session_id
        async with running_engine(store, AGENT, memory=new) as engine:
            await answered(engine, store, "two")
            await end(store, session_id)
            await segments_in(store, session_id, SegmentState.SEALED, SegmentState.SEALED)
            await another_session_is_committed(engine, store, new)
        assert new.given_of(session_id) == [], "an older debt goes first, and it is not this owner's to pay"
        async with running_engine(store, AGENT, memory=old) as engine:
            await segments_in(store, session_id, SegmentState.COMMITTED, SegmentState.SEALED)
            await another_session_is_committed(engine, store, old)
        assert old.taken_of(session_id) == ["one", "re: one"]
        async with running_engine(store, AGENT, memory=new):
            await segments_in(store, session_id, SegmentState.COMMITTED, SegmentState.COMMITTED)
        assert new.taken_of(session_id) == ["two", "re: two"]
        assert old.taken_of(session_id) == ["one", "re: one"]


async def test_without_a_provider_nothing_is_owed(open_it: Open) -> None:
    """M1: there is no owner who could be owed."""
    async with opened(open_it) as store, running_engine(store, AGENT) as engine:
        turn = await answered(engine, store, "one", one_shot=True)
        assert turn.state is TurnState.COMPLETED
        assert await store.segments.of_session(turn.session_id) == []
