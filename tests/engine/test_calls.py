"""Tool calls side by side: durable before they start, decided before they repeat, and never in each other's way."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.core import effects
from holdfast.core.effects import Effect
from holdfast.core.events import EntryKind
from holdfast.core.questions import About, Question
from holdfast.core.turns import TurnState
from holdfast.engine.calls import SIDE_BY_SIDE_MAX
from holdfast.errors import OutcomeUnknown, Rejected, StoreDown
from holdfast.ids import CallId, TurnId
from holdfast.ports import Stage, Use
from tests.engine.players import HeldTool, Puppet, ReluctantJournal, in_state, kinds_of
from tests.engine.world import Altered, Open, message, opened, running_engine, settled, until


def uses(tool: object, count: int) -> list[Use]:
    return [Use(tool=tool, call_id=CallId(f"s1_c{number}"), args={"n": number}) for number in range(1, count + 1)]


@dataclass
class Ill:
    """A tool that goes wrong as its arguments say."""

    name: str = "ill"
    effect: Effect = Effect.PURE
    ran: list[Mapping[str, object]] = field(default_factory=list)

    async def run(self, args: Mapping[str, object], key: str) -> str:
        self.ran.append(args)
        match args["n"]:
            case 1:
                raise Rejected("not with me")
            case 2:
                raise RuntimeError("a bug")
            case 3:
                # What a library does whose own task was cancelled under it.
                raise asyncio.CancelledError
            case 4:
                raise OutcomeUnknown("sent, and not a word since")
            case _:
                return "well"


async def test_calls_that_start_together_share_one_write_and_end_each_for_itself(open_it: Open) -> None:
    """X1: every intent is durable before any of them runs."""
    agent, tool = Puppet(), HeldTool(Effect.EFFECTFUL)
    async with opened(open_it) as store:
        journal = ReluctantJournal(store)
        async with running_engine(Altered(store, journal=journal), agent) as engine:
            receipt = await engine.inbox.accept(message())
            await in_state(store, receipt, TurnState.RUNNING)
            journal.may_write.clear()
            using = asyncio.create_task(agent.do(lambda stage: stage.use_all(uses(tool, 3))))
            await until(lambda: journal.asked)
            assert tool.keys == []
            journal.may_write.set()
            await until(lambda: len(tool.keys) == 3)
            assert journal.asked == 1
            assert {call.state for call in await store.journal.calls(receipt.turn_id)} == {effects.CallState.STARTED}
            tool.let_go()
            assert [call.id for call in await using] == ["s1_c1", "s1_c2", "s1_c3"]
            await agent.finish()
            await settled(store, receipt)


async def test_no_more_than_so_many_run_at_once(open_it: Open) -> None:
    """What has to wait has not started, in the store either: a crash leaves it planned, not unknown."""
    agent, tool = Puppet(), HeldTool(Effect.EFFECTFUL)
    async with opened(open_it) as store, running_engine(store, agent) as engine:
        receipt = await engine.inbox.accept(message())
        using = asyncio.create_task(agent.do(lambda stage: stage.use_all(uses(tool, SIDE_BY_SIDE_MAX + 2))))
        await until(lambda: len(tool.keys) == SIDE_BY_SIDE_MAX)
        assert len(await store.journal.calls(receipt.turn_id)) == SIDE_BY_SIDE_MAX
        tool.let_go()
        assert [call.state for call in await using] == [effects.CallState.OK] * (SIDE_BY_SIDE_MAX + 2)
        await agent.finish()
        await settled(store, receipt)


async def test_one_that_goes_wrong_harms_neither_the_others_nor_the_turn(open_it: Open) -> None:
    """X1: a refusal, a bug and a stray cancellation are failed calls; what nobody knows the end of is called just that."""
    agent, tool = Puppet(), Ill()
    async with opened(open_it) as store, running_engine(store, agent) as engine:
        receipt = await engine.inbox.accept(message())
        calls = await agent.do(lambda stage: stage.use_all(uses(tool, 5)))
        broken = "ill failed; see the gateway's log"
        assert [call.result for call in calls] == ["not with me", broken, broken, "sent, and not a word since", "well"]
        failed, unknown, fine = effects.CallState.ERROR, effects.CallState.UNKNOWN, effects.CallState.OK
        assert [call.state for call in calls] == [failed, failed, failed, unknown, fine]
        again = await agent.do(lambda stage: stage.use_all(uses(tool, 5)))
        assert (again, len(tool.ran)) == (calls, 5), "a call that has ended is returned as it is"
        await agent.finish()
        assert (await settled(store, receipt)).state is TurnState.COMPLETED


async def test_a_cancel_stops_all_of_them(open_it: Open) -> None:
    """J9: none goes on behind the turn's back."""
    agent, tool = Puppet(), HeldTool(Effect.EFFECTFUL)
    async with opened(open_it) as store, running_engine(store, agent) as engine:
        receipt = await engine.inbox.accept(message())
        agent.order(lambda stage: stage.use_all(uses(tool, 3)))
        await until(lambda: len(tool.keys) == 3)
        await engine.cancel(receipt.turn_id)
        await until(lambda: engine.running == 0)
        running = [task for task in asyncio.all_tasks() if task.get_name().startswith(f"{receipt.turn_id}:")]
        assert running == []
        assert (await settled(store, receipt)).state is TurnState.CANCELLED


async def test_a_store_that_is_away_grants_nothing_and_is_asked_again(open_it: Open) -> None:
    """Fail closed: whether something was granted is found out, not guessed."""
    agent, tool = Puppet(), HeldTool(Effect.EFFECTFUL).let_go()
    question = Question(id="q:s1_c1", text="may I?", about=About.APPROVAL, fingerprint="f")
    use = Use(tool=tool, call_id=CallId("s1_c1"), question=question)
    async with opened(open_it) as store:
        asked: list[tuple[object, ...]] = []

        async def is_granted(*about: object) -> bool:
            asked.append(about)
            if len(asked) == 1:
                raise StoreDown("away")
            return await store.questions.is_granted(*about)

        lossy = Altered(store, questions=Altered(store.questions, is_granted=is_granted))
        async with running_engine(lossy, agent) as engine:
            receipt = await engine.inbox.accept(message())
            agent.order(lambda stage: stage.use_all([use]))
            await in_state(store, receipt, TurnState.WAITING)
            assert (asked, tool.keys) == ([("local", receipt.session_id, "f")] * 2, [])


async def test_a_question_that_names_no_call_is_bound_to_the_one_it_was_asked_for(open_it: Open) -> None:
    """Once is once: the same question of another call is another one."""
    agent, tool = Puppet(), HeldTool(Effect.EFFECTFUL).let_go()
    question = Question(id="dangerous", text="may I?", about=About.APPROVAL, fingerprint="f")

    async def use_both(stage: Stage) -> list[effects.Call]:
        first = await stage.use_all([Use(tool=tool, call_id=CallId("s1_c1"), question=question)])
        return first + await stage.use_all([Use(tool=tool, call_id=CallId("s1_c10"), question=question)])

    async with opened(open_it) as store, running_engine(store, agent) as engine:
        receipt = await engine.inbox.accept(message())
        agent.order(use_both)
        await in_state(store, receipt, TurnState.WAITING)
        await engine.answer(receipt.turn_id, "dangerous:s1_c1", "once")
        agent.order(use_both)
        await until(lambda: tool.keys)
        await in_state(store, receipt, TurnState.WAITING)
        assert [asked.question.id for asked in await store.questions.of_turn(receipt.turn_id)] == [
            "dangerous:s1_c1",
            "dangerous:s1_c10",
        ]
        assert len(tool.keys) == 1


async def test_a_summary_can_only_stand_for_earlier_turns(open_it: Open) -> None:
    """What is being said now, or comes later, is not summarised away."""
    agent = Puppet()
    async with opened(open_it) as store, running_engine(store, agent) as engine:
        first = await engine.inbox.accept(message())
        await agent.finish("one")
        await settled(store, first)
        second = await engine.inbox.accept(message())
        later = await engine.inbox.accept(message("later"))

        async def refused(stage: Stage) -> list[str]:
            found: list[str] = []
            for through in (second.turn_id, later.turn_id, TurnId("trn_other")):
                try:
                    await stage.compact("sum", through)
                except Rejected as error:
                    found.append(str(error))
            return found

        assert len(await agent.do(refused)) == 3
        await agent.do(lambda stage: stage.compact("sum", first.turn_id))
        assert EntryKind.CONTEXT_COMPACTED in await kinds_of(store, second)
        assert (await store.journal.brief(await store.turns.get(first.turn_id))).after > 0
        await agent.finish("two")
        await settled(store, second)
        await agent.finish("three")
        await settled(store, later)
        assert [item.text for item in agent.work[-1].history][:2] == ["sum", "hello"]
