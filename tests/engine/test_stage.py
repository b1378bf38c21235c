"""The stage and the tasks behind it: what an agent shows keeps its order and its place, whatever the store does."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Literal

import pytest

from holdfast.agent.scripted import Ask, Pause, Say, ScriptedAgent, UseTool
from holdfast.core.effects import Effect
from holdfast.core.events import EntryKind
from holdfast.core.questions import Question
from holdfast.core.redaction import MASK, Redaction
from holdfast.core.transcript import Role, fold
from holdfast.core.turns import Cause, Mode, TurnState
from holdfast.engine.spool import Spool
from holdfast.errors import DiskFull, StoreDown
from holdfast.ids import CallId
from holdfast.ports import Stage
from tests.engine.players import Follower, FullJournal, HeldTool, Puppet, ReluctantJournal, in_state, journal_of, text_of
from tests.engine.world import Altered, LosingAnswer, ManualClock, Open, message, opened, running_engine, settled, until

SECRET = "sk-live-0123456789"


async def test_words_that_could_begin_a_secret_stay_before_the_tool_that_follows_them(open_it: Open) -> None:
    """J1 K1: what is kept back until it is known is shown in its place, not behind what came later."""
    agent, tool = Puppet(), HeldTool(Effect.PURE).let_go()
    async with opened(open_it) as store, running_engine(store, agent, redaction=Redaction([SECRET])) as engine:
        receipt = await engine.inbox.accept(message())
        await agent.say("Let me look at the files")
        await agent.do(lambda stage: stage.use(tool, CallId("1"), {}))
        await agent.think("so that is what it says")
        await agent.say("Here are the results")
        await agent.think(f"and the key is {SECRET[:9]}")
        await agent.think(SECRET[9:])
        await agent.finish()
        await settled(store, receipt)
        items = [(item.role, item.text) for item in fold(await journal_of(store, receipt.session_id))]
        assert items[1:] == [
            (Role.ASSISTANT, "Let me look at the files"),
            (Role.TOOL, ""),
            (Role.REASONING, "so that is what it says"),
            (Role.ASSISTANT, "Here are the results"),
            (Role.REASONING, f"and the key is {MASK}"),
        ]


async def test_a_turn_whose_last_words_found_no_room_does_not_claim_to_be_complete(open_it: Open) -> None:
    """J1 A1: an answer that is not in the transcript was not given, and its user is told so."""
    async with opened(open_it) as store:
        journal, agent = ReluctantJournal(store), Puppet()
        async with running_engine(Altered(store, journal=journal), agent) as engine:
            receipt = await engine.inbox.accept(message())
            journal.may_write.clear()
            await agent.say("the whole answer")
            await until(lambda: journal.asked)
            await agent.finish("the whole answer")
            # A question to the store takes longer than the worker needs to see that its agent has ended.
            await store.turns.tally()
            journal.failures_before.append(DiskFull("no room"))
            journal.may_write.set()
            turn = await settled(store, receipt)
            assert (turn.state, turn.cause) == (TurnState.INTERRUPTED, Cause.DISK_FULL)
            assert await text_of(store, receipt) == "the whole answer"


@pytest.mark.parametrize("room", ["essential", "none"])
async def test_nothing_is_written_behind_words_that_found_no_room(open_it: Open, room: Literal["essential", "none"]) -> None:
    """J1: also by an agent that says more without heeding the refusal; with room, all of it is there in order."""

    async def rave(stage: Stage) -> None:
        for number in range(5):
            with contextlib.suppress(DiskFull):
                await stage.note(f"note {number} ")
            await stage.say(f"word {number} ")

    async with opened(open_it) as store:
        journal, agent = FullJournal(store), Puppet()
        async with running_engine(Altered(store, journal=journal), agent) as engine:
            receipt = await engine.inbox.accept(message())
            follower = Follower(engine, receipt.session_id)
            await agent.say("before ")
            await until(lambda: text_of(store, receipt))
            journal.room = room
            await agent.do(rave)
            if room == "none":
                # It stands still, whatever it wants to say, and nothing of it is shown.
                await until(lambda: journal.refused > 2)
                assert (await store.turns.get(receipt.turn_id)).state is TurnState.RUNNING
                assert await text_of(store, receipt) == "before "
                journal.room = "essential"
            turn = await settled(store, receipt)
            assert (turn.state, turn.cause, len(agent.work)) == (TurnState.INTERRUPTED, Cause.DISK_FULL, 1)
            said = ["before ", *(part for number in range(5) for part in (f"note {number} ", f"word {number} "))]
            seen = await follower.until(EntryKind.TURN_INTERRUPTED)
            assert [entry.data["text"] for entry in seen if entry.kind in (EntryKind.TEXT, EntryKind.NOTE)] == said
            await follower.leave()
            # There is room again, and the conversation goes on.
            journal.room = "any"
            following = await engine.inbox.accept(message("and now?"))
            await agent.finish("now")
            assert (await settled(store, following)).state is TurnState.COMPLETED
            assert "(the disk was full)" in agent.work[-1].message


async def test_a_tool_whose_start_found_no_room_has_not_run_and_runs_later(open_it: Open) -> None:
    """R10 J1: it is not told as begun, so its outcome is not unknown; the same turn makes the call when it continues."""
    tool, lines = HeldTool(Effect.EFFECTFUL).let_go(), [Say("one "), Pause(1), Pause(1)]
    async with opened(open_it) as store:
        journal = FullJournal(store, "essential")
        agent = ScriptedAgent([*lines, UseTool(tool), Say("two")])
        async with running_engine(Altered(store, journal=journal), agent) as engine:
            receipt = await engine.inbox.accept(message(mode=Mode.DETACHED))
            await until(lambda: journal.refused > 2)
            assert (tool.keys, await store.journal.calls(receipt.turn_id)) == ([], [])
            journal.room = "any"
            turn = await settled(store, receipt)
            assert (turn.state, len(tool.keys), await text_of(store, receipt)) == (TurnState.COMPLETED, 1, "one two")
            (call,) = await store.journal.calls(receipt.turn_id)
            assert (call.state, call.starts) == ("ok", 1)


async def test_a_store_that_comes_back_with_no_room_gets_everything_in_order(open_it: Open, tmp_path: Path) -> None:
    """J1: what waited on our own disk while it was away is not skipped over either."""
    async with opened(open_it) as store:
        journal, agent = FullJournal(store), Puppet()
        async with running_engine(Altered(store, journal=journal), agent, spool=Spool(tmp_path)) as engine:
            receipt = await engine.inbox.accept(message(mode=Mode.DETACHED))
            await agent.say("one ")
            await until(lambda: text_of(store, receipt))
            journal.room, journal.refusal = "none", StoreDown
            await agent.say("two ")
            await until(lambda: journal.refused)
            await agent.say("three ")
            await until(lambda: any((tmp_path / "spool").glob("*/*.jsonl")))
            journal.refusal = DiskFull
            await until(lambda: len(agent.work) > 1 or journal.refused > 4)
            await until(lambda: engine.running)
            journal.room = "any"
            await until(lambda: len(agent.work) > 1)
            assert await text_of(store, receipt) == "one two three "
            await agent.finish("one two three ")
            assert (await settled(store, receipt)).state is TurnState.COMPLETED
            await until(lambda: not any((tmp_path / "spool").glob("*/*.jsonl")))


async def test_a_turn_that_was_claimed_again_before_its_old_worker_had_ended_is_not_forgotten(open_it: Open) -> None:
    """T1: the answer to the parking was lost, and the person was faster than the worker's second try."""
    clock, agent_clock = ManualClock(), ManualClock()
    agent = ScriptedAgent([Ask("may I?"), Pause(1_000), Say("done")], agent_clock)
    async with opened(open_it) as store:
        park = LosingAnswer(store.turns.park)
        lossy = Altered(store, turns=Altered(store.turns, park=park))
        async with running_engine(lossy, agent, clock=clock) as engine:
            receipt = await engine.inbox.accept(message())
            await in_state(store, receipt, TurnState.WAITING)
            await engine.answer(receipt.turn_id, "question_0", "yes ")
            await agent_clock.asleep(1)
            assert len(workers(receipt.turn_id)) == 2, "the first worker had ended already"
            await clock.advance(50)
            await until(lambda: len(workers(receipt.turn_id)) == 1)
            assert (park.calls, engine.running) == (2, 1)
            await agent_clock.advance(1_000)
            turn = await settled(store, receipt)
            assert (turn.state, turn.attempt) == (TurnState.COMPLETED, 2)
            await until(lambda: engine.running == 0)


def workers(turn_id: str) -> list[asyncio.Task[None]]:
    return [task for task in asyncio.all_tasks() if task.get_name() == turn_id]


async def test_a_call_that_is_left_in_the_middle_by_a_question_is_decided_before_the_turn_waits(open_it: Open) -> None:
    """X1: an effectful one is unknown from then on, and the resumed turn neither starts it again nor fails over it."""
    agent, tool = Puppet(), HeldTool(Effect.EFFECTFUL)
    async with opened(open_it) as store, running_engine(store, agent) as engine:
        receipt = await engine.inbox.accept(message())

        async def use_and_ask(stage: object) -> None:
            using = asyncio.create_task(stage.use(tool, CallId("1"), {}))
            await until(lambda: tool.keys)
            using.cancel()
            await stage.ask(Question(id="question", text="may I?"))

        agent.order(use_and_ask)
        await in_state(store, receipt, TurnState.WAITING)
        assert [call.state for call in await store.journal.calls(receipt.turn_id)] == ["unknown"]
        await engine.answer(receipt.turn_id, "question", "yes")
        call = await agent.do(lambda stage: stage.use(tool, CallId("1"), {}))
        assert (call.state, len(tool.keys)) == ("unknown", 1)
        await agent.finish()
        assert (await settled(store, receipt)).state is TurnState.COMPLETED
