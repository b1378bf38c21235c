"""The loop of model and tools, on the real engine and both stores."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import pytest

from holdfast.agent import loop, steps
from holdfast.agent.context import CONTINUE, UNKNOWN
from holdfast.agent.models.port import Called, Done, Event, Facts, ReasoningDelta, Request, StopReason, TextDelta, ToolCall
from holdfast.agent.models.scripted import ScriptedModel, Step, call
from holdfast.agent.tools.port import CallContext
from holdfast.config import AgentConfig, Config, GatewayConfig, ModelConfig
from holdfast.core import notes
from holdfast.core.effects import Effect
from holdfast.core.ending import Ending
from holdfast.core.events import EntryKind
from holdfast.core.intake import Busy, Image, Receipt
from holdfast.core.transcript import Role
from holdfast.core.turns import Turn, TurnState
from holdfast.core.usage import Usage
from holdfast.errors import ConfigInvalid, ModelRejected, ModelUnavailable
from holdfast.store.store import Store
from tests.agent.world import Lever, agent_of, assert_every_call_has_its_result, items_of, shape
from tests.engine.players import HeldTool, Puppet, in_state, text_of
from tests.engine.world import (
    Altered,
    ManualClock,
    Open,
    RecordingCarrier,
    answered,
    message,
    opened,
    running_engine,
    settled,
    until,
)

AUTO = Config(gateway=GatewayConfig(resume="auto"))
UNWAITING = Config(model=ModelConfig(wait=0))


async def test_an_answer_is_streamed_and_finished_whole(open_it: Open) -> None:
    """J1: text and reasoning are in the journal, and the answer that leaves is all that was said."""
    carrier = RecordingCarrier()
    async with opened(open_it) as store:
        agent, model = agent_of([[ReasoningDelta("hm "), "Good ", "day."]], store)
        async with running_engine(store, agent, carriers={"chat": carrier}) as engine:
            turn = await answered(engine, store, "hello", reply_to="chat:1")
            await until(lambda: carrier.sent)
            items = [item for item in await items_of(store, receipt_of(turn)) if item.role is not Role.USER]
            assert [(item.role, item.text) for item in items] == [(Role.REASONING, "hm "), (Role.ASSISTANT, "Good day.")]
            assert carrier.texts(turn) == ["Good day."]
            assert shape(model.requests[0]) == [("user", "hello")]


def receipt_of(turn: Turn) -> Receipt:
    """Return the receipt that a turn was accepted with."""
    return Receipt(turn_id=turn.id, session_id=turn.session_id, state=turn.state, accepted_at=turn.accepted_at)


async def test_calls_of_one_step_run_side_by_side_and_the_model_reads_every_result(open_it: Open) -> None:
    """One that fails does not end the others, and the results come in the order of the calls."""
    lever = Lever()
    lever.hold()
    script = [
        ["Both. ", call("lever", **{"with": "a"}), call("lever", jammed=True)],
        ["Done."],
    ]
    async with opened(open_it) as store:
        agent, model = agent_of(script, store, lever)
        async with running_engine(store, agent) as engine:
            receipt = await engine.inbox.accept(message("go"))
            await until(lambda: len(lever.pulls) == 2)
            lever.may_end.set()
            assert (await settled(store, receipt)).state is TurnState.COMPLETED
            assert shape(model.requests[1])[1:] == [
                ("assistant", "Both. ", "lever", "lever"),
                ("tool", "pulled a"),
                ("tool", "Error: it is jammed"),
            ]
            assert_every_call_has_its_result(model.requests[1])
            assert [call.id for call in await store.journal.calls(receipt.turn_id)] == ["s1_c1", "s1_c2"]
            entries = await store.journal.read_turn(receipt.turn_id)
            completed = next(entry for entry in entries if entry.kind is EntryKind.TURN_COMPLETED)
            assert completed.data["text"] == "Both. \n\nDone."


async def test_the_next_turn_reads_the_same_as_this_one_did(open_it: Open) -> None:
    """A conversation only grows at its end, so that whoever caches its beginning can go on doing so."""
    script = [
        ["A ", call("lever", b=1, a=[{"d": 2, "c": "ä"}]), call("lever", jammed=True)],
        [call("lever")],
        ["C."],
        ["D."],
    ]
    async with opened(open_it) as store:
        agent, model = agent_of(script, store, Lever())
        async with running_engine(store, agent) as engine:
            await answered(engine, store, "one")
            await answered(engine, store, "two")
        before, after = model.requests[2].messages, model.requests[3].messages
        assert list(after[: len(before)]) == list(before)
        assert shape(after[len(before) :]) == [("assistant", "C."), ("user", "two")]


async def test_what_was_spent_is_recorded_with_every_step(open_it: Open) -> None:
    async with opened(open_it) as store:
        agent, _ = agent_of([[call("lever")], ["ok"]], store, Lever())
        async with running_engine(store, agent) as engine:
            turn = await answered(engine, store)
            spent = await store.spending.spent(turn, "local", 0)
            assert spent.turn.tokens == spent.day.tokens == 220


async def test_an_effectful_call_cut_by_a_crash_is_shown_as_unknown_and_never_run_again(open_it: Open) -> None:
    """X1 R10: the model is told that nobody knows, and the tool is left alone; a finished call is not repeated either."""
    done, cut = Lever("done"), Lever("cut")
    cut.hold()
    async with opened(open_it) as store:
        agent, _ = agent_of([["I try. ", call("done"), call("cut")]], store, done, cut)
        async with running_engine(store, agent) as engine:
            receipt = await engine.inbox.accept(message("go"))
            await until(lambda: _outcomes(store, receipt, 1))
            await until(lambda: cut.pulls)
        agent, model = agent_of([["So be it."]], store, done, cut)
        async with running_engine(store, agent, config=AUTO):
            turn = await settled(store, receipt)
            assert (turn.state, turn.attempt) == (TurnState.COMPLETED, 2)
            assert (len(done.pulls), len(cut.pulls)) == (1, 1)
            assert shape(model.requests[0])[-3:] == [
                ("assistant", "I try. ", "done", "cut"),
                ("tool", "pulled once"),
                ("tool", UNKNOWN),
            ]
            assert_every_call_has_its_result(model.requests[0])


async def _outcomes(store: Store, receipt: Receipt, count: int) -> bool:
    return len([c for c in await store.journal.calls(receipt.turn_id) if c.state == "ok"]) == count


async def test_a_pure_call_cut_by_a_crash_is_run_again_under_its_own_id_before_the_model_is_asked(open_it: Open) -> None:
    """R10: running it twice harms nobody, and the step is then whole."""
    lever = Lever(effect=Effect.PURE)
    lever.hold()
    async with opened(open_it) as store:
        agent, _ = agent_of([[call("lever")]], store, lever)
        async with running_engine(store, agent) as engine:
            receipt = await engine.inbox.accept(message("go"))
            await until(lambda: lever.pulls)
        lever.may_end.set()
        agent, model = agent_of([["Done."]], store, lever)
        async with running_engine(store, agent, config=AUTO):
            assert (await settled(store, receipt)).state is TurnState.COMPLETED
            assert lever.keys[0] == lever.keys[1] == f"{receipt.turn_id}:s1_c1"
            assert shape(model.requests[0])[-2:] == [("assistant", "", "lever"), ("tool", "pulled once")]


async def test_steps_count_on_across_attempts(open_it: Open) -> None:
    """A call of the second attempt never takes the place of one of the first."""
    lever, held = Lever(), Lever("held", effect=Effect.PURE)
    held.hold()
    async with opened(open_it) as store:
        agent, _ = agent_of([[call("lever")], [call("held")]], store, lever, held)
        async with running_engine(store, agent) as engine:
            receipt = await engine.inbox.accept(message("go"))
            await until(lambda: held.pulls)
        held.may_end.set()
        agent, _ = agent_of([[call("lever")], ["ok"]], store, lever, held)
        async with running_engine(store, agent, config=AUTO):
            await settled(store, receipt)
            ids = [(each.id, each.name) for each in await store.journal.calls(receipt.turn_id)]
            assert ids == [("s1_c1", "lever"), ("s2_c1", "held"), ("s3_c1", "lever")]


async def test_an_answer_cut_by_a_crash_goes_on_where_it_stopped(open_it: Open) -> None:
    """J1 R10: what was shown stays, the model reads it, and the whole answer is both parts."""
    stuck = asyncio.Event()
    async with opened(open_it) as store:
        agent, _ = agent_of([["One, two, ", stuck.wait]], store)
        async with running_engine(store, agent) as engine:
            receipt = await engine.inbox.accept(message("count"))
            await until(lambda: text_of(store, receipt))
        agent, model = agent_of([["three."]], store)
        async with running_engine(store, agent, config=AUTO):
            assert (await settled(store, receipt)).state is TurnState.COMPLETED
            assert shape(model.requests[0])[-2:] == [("assistant", "One, two, "), ("user", CONTINUE)]
            entries = await store.journal.read_turn(receipt.turn_id)
            assert entries[-1].data["text"] == "One, two, three."
            assert await text_of(store, receipt) == "One, two, three."


async def test_a_cancel_in_the_middle_of_a_call_keeps_the_text_and_stops_the_tool(open_it: Open) -> None:
    """J9: cancel works at any await."""
    lever = Lever()
    lever.hold()
    async with opened(open_it) as store:
        agent, _ = agent_of([["I begin. ", call("lever")]], store, lever)
        async with running_engine(store, agent) as engine:
            receipt = await engine.inbox.accept(message("go"))
            await until(lambda: lever.pulls)
            await engine.cancel(receipt.turn_id)
            await until(lambda: engine.running == 0)
            assert (await settled(store, receipt)).state is TurnState.CANCELLED
            assert await text_of(store, receipt) == "I begin. "


async def test_a_cancel_while_the_model_speaks_keeps_what_it_said(open_it: Open) -> None:
    """J9: the partial text stays, and the model's stream is closed."""
    stuck, closed = asyncio.Event(), asyncio.Event()

    class Watched(ScriptedModel):
        async def stream(self, request: Request) -> AsyncGenerator[Event]:
            try:
                async for event in super().stream(request):
                    yield event
            finally:
                closed.set()

    async with opened(open_it) as store:
        agent, _ = agent_of(Watched([["Well, ", stuck.wait]]), store)
        async with running_engine(store, agent) as engine:
            receipt = await engine.inbox.accept(message("go"))
            await until(lambda: text_of(store, receipt))
            await engine.cancel(receipt.turn_id)
            async with asyncio.timeout(5):
                await closed.wait()
            assert (await settled(store, receipt)).state is TurnState.CANCELLED
            assert await text_of(store, receipt) == "Well, "


async def test_a_message_that_joins_is_read_at_the_next_step(open_it: Open) -> None:
    """Steering: it stands below the results that were there before it."""
    lever = Lever()
    lever.hold()
    async with opened(open_it) as store:
        agent, model = agent_of([[call("lever")], ["Both done."]], store, lever)
        async with running_engine(store, agent) as engine:
            receipt = await engine.inbox.accept(message("go"))
            await until(lambda: lever.pulls)
            joining = await engine.inbox.accept(message("and hurry", busy=Busy.STEER))
            lever.may_end.set()
            await settled(store, receipt)
            await settled(store, joining)
            assert shape(model.requests[1])[-2:] == [("tool", "pulled once"), ("user", "and hurry")]


async def test_pictures_of_a_message_that_joins_are_named_now_and_seen_with_the_next_one(open_it: Open) -> None:
    """Nothing that a person showed is lost without a word."""
    lever, picture = Lever(), Image(media_type="image/png", data=b"\x89PNG")
    lever.hold()
    async with opened(open_it) as store:
        agent, model = agent_of([[call("lever")], ["Both done."], ["I see."]], store, lever)
        async with running_engine(store, agent) as engine:
            receipt = await engine.inbox.accept(message("go"))
            await until(lambda: lever.pulls)
            joining = await engine.inbox.accept(message("like this", busy=Busy.STEER, images=(picture,)))
            lever.may_end.set()
            await settled(store, receipt)
            await settled(store, joining)
            await answered(engine, store, "and now?")
        assert shape(model.requests[1])[-1] == ("user", f"like this\n\n{notes.pictures_later(1)}")
        assert picture in [image for each in model.requests[2].messages for image in getattr(each, "images", ())]


@pytest.mark.parametrize(
    ("step", "note"),
    [
        ([TextDelta("No."), Done(reason=StopReason.REFUSAL)], f"No.\n\n{loop.REFUSED_TO_ANSWER}"),
        ([Done(reason=StopReason.REFUSAL)], loop.REFUSED_TO_ANSWER),
        ([Done(reason=StopReason.LENGTH)], loop.NOTHING_AT_LIMIT),
        ([Done(reason=StopReason.END)], loop.NOTHING_SAID),
    ],
)
async def test_an_answer_that_is_none_says_so(open_it: Open, step: Step, note: str) -> None:
    """A1: the outcome is visible, never silence."""
    async with opened(open_it) as store:
        agent, _ = agent_of([step], store)
        async with running_engine(store, agent) as engine:
            turn = await answered(engine, store)
            assert (turn.state, await text_of(store, receipt_of(turn))) == (TurnState.COMPLETED, note)


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ([Done(reason=StopReason.END)], loop.NOTHING_SAID),
        ([Done(reason=StopReason.LENGTH)], loop.NOTHING_AT_LIMIT),
        ([TextDelta("No."), Done(reason=StopReason.REFUSAL)], f"No.\n\n{loop.REFUSED_TO_ANSWER}"),
    ],
)
async def test_what_the_gateway_said_at_the_end_is_no_beginning_of_an_answer(open_it: Open, step: Step, said: str) -> None:
    """J1, R10: cut off between its last word and its end, a turn ends with that word; no model is asked to go on with it."""
    crashed = False

    async def finish(turn: Turn, ending: Ending) -> Any:
        nonlocal crashed
        if crashed:
            return await store.settlement.finish(turn, ending)
        crashed = True
        await store.journal.append(turn, list(ending.drafts))
        raise RuntimeError("the process ends here")

    async with opened(open_it) as store:
        agent, model = agent_of([step, ["something else"]], store)
        cut = Altered(store, settlement=Altered(store.settlement, finish=finish))
        async with running_engine(cut, agent, config=AUTO) as engine:
            turn = await answered(engine, store)
        assert (turn.state, turn.attempt, await text_of(store, receipt_of(turn))) == (TurnState.COMPLETED, 2, said)
        assert len(model.requests) == 1


async def test_an_answer_at_the_models_limit_goes_on_once_and_then_says_that_it_was_cut(open_it: Open) -> None:
    length = Done(reason=StopReason.LENGTH)
    async with opened(open_it) as store:
        agent, model = agent_of([["one ", length], ["two", length]], store)
        async with running_engine(store, agent) as engine:
            turn = await answered(engine, store)
            assert await text_of(store, receipt_of(turn)) == f"one two\n\n{loop.CUT_AT_LIMIT}"
            assert shape(model.requests[1])[-2:] == [("assistant", "one "), ("user", CONTINUE)]


async def test_a_stream_that_breaks_off_is_gone_on_with_and_nobody_notices(open_it: Open) -> None:
    """J1: no word twice, none lost; calls of the broken piece are not made."""
    lever, clock = Lever(), ManualClock()
    script = [["one ", call("lever"), ModelUnavailable("cut")], ["two ", ModelUnavailable("cut", 2)], ["three"]]
    async with opened(open_it) as store:
        agent, model = agent_of(script, store, lever, clock=clock)
        async with running_engine(store, agent) as engine:
            receipt = await engine.inbox.accept(message())
            await clock.asleep(1)
            await clock.advance(500)
            await clock.asleep(2)
            await clock.advance(2_000)
            assert (await settled(store, receipt)).state is TurnState.COMPLETED
            assert (await text_of(store, receipt), lever.pulls) == ("one two three", [])
            assert clock.naps == [500, 2_000]
            assert shape(model.requests[2])[-2:] == [("assistant", "one two "), ("user", CONTINUE)]


@pytest.mark.parametrize("first", [ReasoningDelta("let me see"), call("lever")])
async def test_an_answer_that_breaks_off_before_its_first_word_is_asked_for_again(open_it: Open, first: Event) -> None:
    """A1: a model that has begun is not asked again by whoever talks to it, so the loop does, and says how often."""
    lever, cut = Lever(), ModelUnavailable("cut", 0.01)
    async with opened(open_it) as store:
        agent, model = agent_of([[first, cut], [first, cut], ["here I am"]], store, lever)
        async with running_engine(store, agent, config=UNWAITING) as engine:
            turn = await answered(engine, store)
        assert (turn.state, turn.error, lever.pulls) == (TurnState.COMPLETED, None, [])
        assert await text_of(store, receipt_of(turn)) == "here I am"
        assert [each.breaks for each in model.requests] == [0, 1, 2]


async def test_a_stream_that_keeps_breaking_off_fails_the_turn_and_says_why(open_it: Open) -> None:
    """A1: three times it goes on; then the turn has failed where it may not wait, with what was said kept."""
    clock = ManualClock()
    script = [["word ", ModelUnavailable("the line is dead")]] * 4
    async with opened(open_it) as store:
        agent, model = agent_of(script, store, clock=clock)
        async with running_engine(store, agent, config=UNWAITING) as engine:
            receipt = await engine.inbox.accept(message())
            for nap in range(1, 4):
                await clock.asleep(nap)
                await clock.advance(30_000)
            turn = await settled(store, receipt)
            assert (turn.state, turn.error, len(model.requests)) == (TurnState.FAILED, "the line is dead", 4)
            assert await text_of(store, receipt) == "word " * 4


@pytest.mark.parametrize("error", [ModelRejected("no such model"), ModelUnavailable("nobody answers")])
async def test_a_model_that_does_not_answer_fails_the_turn_visibly(open_it: Open, error: Exception) -> None:
    """A1: before the first word there is nothing to go on from."""
    async with opened(open_it) as store:
        agent, _ = agent_of([[error]], store)
        async with running_engine(store, agent, config=UNWAITING) as engine:
            turn = await answered(engine, store)
            assert (turn.state, turn.error) == (TurnState.FAILED, str(error))


async def test_a_turn_whose_model_is_away_waits_says_so_once_and_is_answered_later(open_it: Open) -> None:
    """A1: it costs no place while it waits, and its answer is an ordinary one."""
    away = ModelUnavailable("nobody answers")
    async with opened(open_it) as store:
        agent, model = agent_of([[away], [away], ["here I am"]], store)
        async with running_engine(store, agent) as engine:
            turn = await answered(engine, store)
        assert (turn.state, turn.attempt, turn.error, turn.retry_at) == (TurnState.COMPLETED, 3, None, None)
        assert await text_of(store, receipt_of(turn)) == "here I am"
        told = [item.text for item in await items_of(store, receipt_of(turn)) if item.role is Role.NOTE]
        assert told == [notes.waits_for_model("nobody answers", 86_400_000)]
        assert len(model.requests) == 3


async def test_a_turn_whose_model_is_away_gives_up_when_its_time_is_over(open_it: Open) -> None:
    """A1: with a reason that says how long it has waited."""
    async with opened(open_it) as store:
        agent, _ = agent_of(lambda _: [ModelUnavailable("nobody answers")], store)
        async with running_engine(store, agent, config=Config(model=ModelConfig(wait=1.5))) as engine:
            turn = await answered(engine, store)
        assert (turn.state, turn.cause) == (TurnState.FAILED, "model_unavailable")
        assert turn.error == notes.waited_in_vain("nobody answers")


async def test_a_turn_whose_model_always_breaks_off_gives_up_when_its_time_is_over_and_says_once_that_it_waits(
    open_it: Open,
) -> None:
    """A1: words that never come to an end are no reason to ask for ever."""
    cut = ModelUnavailable("cut", 0.01)
    async with opened(open_it) as store:
        agent, _ = agent_of(lambda _: ["word ", cut], store)
        async with running_engine(store, agent, config=Config(model=ModelConfig(wait=1.5))) as engine:
            turn = await answered(engine, store)
        assert (turn.state, turn.cause) == (TurnState.FAILED, "model_unavailable")
        told = [item.text for item in await items_of(store, receipt_of(turn)) if item.role is Role.NOTE]
        assert told == [notes.waits_for_model("cut", 1_500)]


async def test_a_call_that_cannot_be_made_is_read_by_the_model_and_three_such_steps_fail_the_turn(open_it: Open) -> None:
    """Invalid JSON, an unknown tool and a forbidden argument are failed calls; the third step in a row ends it."""
    script = [
        [Called(ToolCall(id="1", name="lever", args="{not json"))],
        [call("nothing")],
        [call("lever", forbidden=True)],
    ]
    lever = Lever()
    async with opened(open_it) as store:
        agent, model = agent_of(script, store, lever)
        async with running_engine(store, agent) as engine:
            turn = await answered(engine, store)
            assert turn.state is TurnState.FAILED
            assert "3 times in a row" in (turn.error or "")
            assert "never allowed" in (turn.error or "")
            assert "no JSON object" in shape(model.requests[1])[-1][1]
            assert "there is no tool 'nothing'; there are lever" in shape(model.requests[2])[-1][1]
            assert lever.pulls == []


@pytest.mark.parametrize("levels", [60, 400, 100_000])
async def test_arguments_that_are_nested_too_deep_are_a_failed_call(open_it: Open, levels: int) -> None:
    """SECURITY 12: what a model nests without end neither ends the attempt nor runs."""
    deep = '{"a":' + "[" * levels + "]" * levels + "}"
    lever = Lever()
    async with opened(open_it) as store:
        agent, model = agent_of([[Called(ToolCall(id="1", name="lever", args=deep))], ["done"]], store, lever)
        async with running_engine(store, agent) as engine:
            turn = await answered(engine, store)
            assert (turn.state, turn.attempt) == (TurnState.COMPLETED, 1)
            assert "nested deeper than 50 levels" in shape(model.requests[1])[-1][1]
            assert lever.pulls == []


async def test_the_limit_of_steps_is_named_when_it_is_reached(open_it: Open) -> None:
    """Bounded, and not silently."""
    async with opened(open_it) as store:
        agent, model = agent_of(lambda _: [call("lever")], store, Lever(effect=Effect.PURE), agent=AgentConfig(steps_max=3))
        async with running_engine(store, agent) as engine:
            turn = await answered(engine, store)
            assert (turn.state, len(model.requests)) == (TurnState.COMPLETED, 3)
            assert "limit of 3 steps" in await text_of(store, receipt_of(turn))


async def test_a_last_word_that_was_said_before_a_crash_is_not_said_again(open_it: Open) -> None:
    """J1: the turn had named its limit and ended before it could be finished."""
    async with opened(open_it) as store:
        config = AgentConfig(steps_max=1)
        puppet = Puppet()
        async with running_engine(store, puppet) as engine:
            receipt = await engine.inbox.accept(message("go"))
            await puppet.do(lambda stage: stage.use(HeldTool(Effect.PURE).let_go(), steps.call_id(1, 1), {}))
            await puppet.say(loop.limit_reached(1))
            await until(lambda: text_of(store, receipt))
        agent, model = agent_of([], store, agent=config)
        async with running_engine(store, agent, config=AUTO):
            assert (await settled(store, receipt)).state is TurnState.COMPLETED
            assert await text_of(store, receipt) == loop.limit_reached(1)
            assert model.requests == []


async def test_pictures_reach_a_model_that_sees_and_are_named_to_one_that_does_not(open_it: Open) -> None:
    picture = Image(media_type="image/png", data=b"\x89PNG")
    async with opened(open_it) as store:
        for sees in (True, False):
            model = ScriptedModel([["ok"]], facts=Facts(context_tokens=1000, images=sees))
            agent, _ = agent_of(model, store)
            async with running_engine(store, agent) as engine:
                await answered(engine, store, "look", conversation=f"sees {sees}", images=(picture,))
            (seen,) = model.requests[0].messages
            assert (list(seen.images) == [picture]) is sees
            assert ("cannot see" in seen.text) is not sees


async def test_pictures_are_still_seen_in_the_turns_that_follow_and_only_the_last_few(open_it: Open) -> None:
    pictures = [Image(media_type="image/png", data=b"\x89PNG" + bytes([number])) for number in range(5)]
    async with opened(open_it) as store:
        agent, model = agent_of(lambda _: ["ok"], store)
        async with running_engine(store, agent) as engine:
            for picture in pictures:
                await answered(engine, store, "look", images=(picture,))
            await answered(engine, store, "and now?")
        seen = [image for each in model.requests[-1].messages for image in getattr(each, "images", ())]
        assert seen == pictures[-3:]


async def test_a_stranger_is_offered_harmless_tools_only(open_it: Open) -> None:
    """Security 8: a webhook's turn cannot reach private data or the world."""
    async with opened(open_it) as store:
        agent, model = agent_of([["ok"], ["ok"]], store, Lever("safe"), Lever("sharp", harmless=False))
        async with running_engine(store, agent) as engine:
            await answered(engine, store, channel="webhook", conversation="w")
            await answered(engine, store, conversation="t")
        assert [[tool.name for tool in request.tools] for request in model.requests] == [["safe"], ["safe", "sharp"]]


async def test_a_turn_at_rest_frees_its_place_for_those_it_waits_for(open_it: Open) -> None:
    """With one place, a turn that waits for another would wait for ever."""
    async with opened(open_it) as store:
        waiting = asyncio.Event()

        class Waiter(Lever):
            async def run(self, args: Mapping[str, object], call_context: CallContext) -> str:
                async with call_context.rest():
                    await waiting.wait()
                return "it came"

        def script(request: Request) -> Step:
            if shape(request)[-1] == ("user", "wait"):
                return [call("waiter")]
            if shape(request)[-1] == ("user", "work"):
                waiting.set()
            return ["done"]

        agent, _ = agent_of(script, store, Waiter("waiter"))
        async with running_engine(store, agent, config=Config(gateway=GatewayConfig(max_running=1))) as engine:
            first = await engine.inbox.accept(message("wait", conversation="a"))
            await in_state(store, first, TurnState.RUNNING)
            second = await engine.inbox.accept(message("work", conversation="b"))
            assert (await settled(store, second)).state is TurnState.COMPLETED
            assert (await settled(store, first)).state is TurnState.COMPLETED


async def test_usage_of_a_long_conversation_calibrates_the_estimate(open_it: Open) -> None:
    """What the model counted is believed over any rule of thumb: no summary is made too early."""
    facts = Facts(context_tokens=1_000)
    long = "x" * 3_000
    script = [
        [f"first {long}", Done(reason=StopReason.END, usage=Usage(input_tokens=10, output_tokens=10))],
        [call("lever"), Done(reason=StopReason.CALLS, usage=Usage(input_tokens=500, output_tokens=10))],
        ["short"],
    ]
    async with opened(open_it) as store:
        agent, model = agent_of(ScriptedModel(script, facts=facts), store, Lever(), agent=AgentConfig(compact_at=1.0))
        async with running_engine(store, agent) as engine:
            await answered(engine, store, "one")
            assert (await answered(engine, store, "two")).state is TurnState.COMPLETED
        assert len(model.requests) == 3


async def test_the_model_of_the_conversation_answers_and_the_configured_one_where_it_cannot_be_opened(open_it: Open) -> None:
    other = ScriptedModel([["from the other"]])

    def opening(name: str) -> ScriptedModel:
        if name == "gone:model":
            raise ConfigInvalid("the chosen model: unknown provider 'gone'")
        return other

    async with opened(open_it) as store:
        agent, model = agent_of([["one"], ["three"]], store, chosen=opening)
        async with running_engine(store, agent) as engine:
            first = await answered(engine, store, "one")
            await store.sessions.change(first.session_id, model="other:model")
            await answered(engine, store, "two")
            await store.sessions.change(first.session_id, model="gone:model")
            last = await engine.inbox.accept(message("three"))
            await settled(store, last)
        items = await items_of(store, last)
        assert [item.text for item in items if item.role is Role.ASSISTANT] == ["three"]
        (note,) = [item.text for item in items if item.role is Role.NOTE]
        assert "gone:model was chosen here" in note
        assert (len(model.requests), len(other.requests)) == (2, 1)
