"""The stage and the tasks behind it: what an agent shows keeps its order and its place, whatever the store does."""

from __future__ import annotations

import asyncio

from holdfast.agent.scripted import Ask, Pause, Say, ScriptedAgent
from holdfast.core.effects import Effect
from holdfast.core.questions import Question
from holdfast.core.redaction import MASK, Redaction
from holdfast.core.transcript import Role, fold
from holdfast.core.turns import State
from holdfast.errors import DiskFull
from holdfast.ids import CallId
from tests.engine.players import HeldTool, Puppet, ReluctantJournal, in_state, journal_of, text_of
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
            assert (turn.state, turn.error, await text_of(store, receipt)) == (State.FAILED, "no room", "")


async def test_a_turn_that_was_claimed_again_before_its_old_worker_had_ended_is_not_forgotten(open_it: Open) -> None:
    """T1: the answer to the parking was lost, and the person was faster than the worker's second try."""
    clock, agent_clock = ManualClock(), ManualClock()
    agent = ScriptedAgent([Ask("may I?"), Pause(1_000), Say("done")], agent_clock)
    async with opened(open_it) as store:
        park = LosingAnswer(store.turns.park)
        lossy = Altered(store, turns=Altered(store.turns, park=park))
        async with running_engine(lossy, agent, clock=clock) as engine:
            receipt = await engine.inbox.accept(message())
            await in_state(store, receipt, State.WAITING)
            await engine.answer(receipt.turn_id, "question_0", "yes ")
            await agent_clock.asleep(1)
            assert len(workers(receipt.turn_id)) == 2, "the first worker had ended already"
            await clock.advance(50)
            await until(lambda: len(workers(receipt.turn_id)) == 1)
            assert (park.calls, engine.running) == (2, 1)
            await agent_clock.advance(1_000)
            turn = await settled(store, receipt)
            assert (turn.state, turn.attempt) == (State.COMPLETED, 2)
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
        await in_state(store, receipt, State.WAITING)
        assert [call.state for call in await store.journal.calls(receipt.turn_id)] == ["unknown"]
        await engine.answer(receipt.turn_id, "question", "yes")
        call = await agent.do(lambda stage: stage.use(tool, CallId("1"), {}))
        assert (call.state, len(tool.keys)) == ("unknown", 1)
        await agent.finish()
        assert (await settled(store, receipt)).state is State.COMPLETED
