"""Compaction is a view: what the model reads becomes shorter, what happened stays as it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from holdfast.agent import context
from holdfast.agent.models.port import Done, Facts, Request, StopReason
from holdfast.agent.models.scripted import ScriptedModel, Step, call
from holdfast.agent.tools.port import CallContext
from holdfast.config import AgentConfig
from holdfast.core.effects import Effect
from holdfast.core.events import EntryKind
from holdfast.core.transcript import Role, fold
from holdfast.core.turns import Turn, TurnState
from holdfast.core.usage import Usage
from holdfast.engine.engine import Engine
from holdfast.errors import ContextTooLong, ModelUnavailable
from holdfast.store.store import Store
from tests.agent.test_loop import AUTO, receipt_of
from tests.agent.world import Lever, agent_of, assert_every_call_has_its_result, shape
from tests.engine.players import Puppet, in_state, journal_of, text_of
from tests.engine.world import Open, answered, message, opened, running_engine, settled, until

LONG = "x" * 1_500
SUMMARY = "They count, and are at a number."


def is_summary(request: Request) -> bool:
    return "You summarise a conversation" in request.system


def summarising(answer: Callable[[Request], Step]) -> Callable[[Request], Step]:
    return lambda request: [SUMMARY] if is_summary(request) else answer(request)


def small(script: Callable[[Request], Step]) -> ScriptedModel:
    """Return a model of a few thousand tokens that counts none of them."""

    def uncounted(request: Request) -> Step:
        step = script(request)
        return step if isinstance(step[-1], Done) else [*step, Done(reason=StopReason.END, usage=Usage())]

    return ScriptedModel(uncounted, facts=Facts(context_tokens=4_000))


async def talk(engine: Engine, store: Store, *texts: str) -> list[Turn]:
    return [await answered(engine, store, text) for text in texts]


def reads_summary(request: Request) -> bool:
    return shape(request)[0][1].startswith(context.SUMMARY)


async def test_older_turns_give_way_to_a_summary_when_the_conversation_grows_too_long(open_it: Open) -> None:
    """Nothing is rewritten: the transcript is whole, the last turns are read word by word, the rest as a summary."""
    async with opened(open_it) as store:
        agent, model = agent_of(small(summarising(lambda _: [LONG])), store, agent=AgentConfig(compact_at=0.6))
        async with running_engine(store, agent) as engine:
            turns = await talk(engine, store, *(f"message {number}" for number in range(8)))
        assert {turn.state for turn in turns} == {TurnState.COMPLETED}
        asked = [request for request in model.requests if not is_summary(request)]
        assert len(asked) == 8
        assert [reads_summary(request) for request in asked][:3] == [False] * 3
        assert reads_summary(asked[-1])
        assert all(len(request.messages) <= 11 for request in asked)
        heard = [text for kind, text, *_ in shape(asked[-1]) if kind == "user"]
        assert SUMMARY in heard[0]
        assert heard[-1] == "message 7"
        items = fold(await journal_of(store, turns[0].session_id))
        assert [item.text for item in items if item.role is Role.USER] == [f"message {number}" for number in range(8)]
        for request in asked:
            assert_every_call_has_its_result(request)


async def test_a_later_summary_takes_in_the_earlier_one(open_it: Open) -> None:
    """What the first stood for is not forgotten by the second."""
    numbers = iter(range(100))

    def answer(request: Request) -> Step:
        return [f"summary {next(numbers)}"] if is_summary(request) else [LONG]

    async with opened(open_it) as store:
        agent, model = agent_of(small(answer), store, agent=AgentConfig(compact_at=0.6))
        async with running_engine(store, agent) as engine:
            await talk(engine, store, *(f"message {number}" for number in range(10)))
        summaries = [request for request in model.requests if is_summary(request)]
        assert len(summaries) >= 2
        for before, request in enumerate(summaries[1:]):
            assert f"Earlier summary: summary {before}" in shape(request)[0][1]
        mentioned = " ".join(shape(request)[0][1] for request in summaries)
        assert {f"message {number}" for number in range(5)} <= set(re.findall(r"message \d+", mentioned))


async def test_compress_does_it_on_demand_and_says_how_much_it_saved(open_it: Open) -> None:
    async with opened(open_it) as store:
        agent, model = agent_of(summarising(lambda _: [LONG]), store)
        async with running_engine(store, agent) as engine:
            turns = await talk(engine, store, "one", "two", "three", "/compress", "four")
            said = await text_of(store, receipt_of(turns[3]))
            assert re.fullmatch(
                r"Compressed: a summary stands for 2 earlier turns now\. .* from about [\d,]+ to [\d,]+ .*", said
            )
            before, after = (int(number.replace(",", "")) for number in re.findall(r"[\d,]*\d", said)[1:3])
            assert after < before
            heard = [text for kind, text, *_ in shape(model.requests[-1]) if kind == "user"]
            assert heard == [heard[0], "/compress", "four"]
            assert heard[0].startswith(context.SUMMARY)
            assert heard[0].endswith("three"), "the last exchange stays word by word"


async def test_compress_with_nothing_to_compress_says_so(open_it: Open) -> None:
    async with opened(open_it) as store:
        agent, model = agent_of(summarising(lambda _: ["ok"]), store)
        async with running_engine(store, agent) as engine:
            turns = await talk(engine, store, "/compress")
            assert "nothing to compress" in await text_of(store, receipt_of(turns[0]))
            assert model.requests == []


async def test_a_conversation_that_does_not_fit_is_compacted_once_and_asked_again(open_it: Open) -> None:
    """A model that knows its own size better than we do."""
    async with opened(open_it) as store:

        def answer(request: Request) -> Step:
            if len(request.messages) > 4:
                return [ContextTooLong("too long")]
            return [LONG]

        agent, model = agent_of(summarising(answer), store)
        async with running_engine(store, agent) as engine:
            turns = await talk(engine, store, "one", "two", "three")
            assert [turn.state for turn in turns] == [TurnState.COMPLETED] * 3
            assert [is_summary(request) for request in model.requests] == [False, False, False, True, False]


async def test_a_message_that_never_fits_fails_visibly(open_it: Open) -> None:
    """A1: bounded, and with the reason."""
    async with opened(open_it) as store:
        agent, model = agent_of(lambda _: [ContextTooLong("too long")], store)
        async with running_engine(store, agent) as engine:
            turn = await answered(engine, store)
            assert (turn.state, turn.error, len(model.requests)) == (TurnState.FAILED, "too long", 2)


async def test_without_a_summary_the_conversation_goes_on_as_long_as_it_fits(open_it: Open) -> None:
    """The model that was to summarise did not answer: no reason not to try."""
    async with opened(open_it) as store:
        script = small(lambda request: [ModelUnavailable("away")] if is_summary(request) else [LONG])
        agent, _ = agent_of(script, store, agent=AgentConfig(compact_at=0.3))
        async with running_engine(store, agent) as engine:
            turns = await talk(engine, store, *(f"message {number}" for number in range(5)))
            assert {turn.state for turn in turns} == {TurnState.COMPLETED}
            assert all(
                entry.kind is not EntryKind.CONTEXT_COMPACTED for entry in await journal_of(store, turns[0].session_id)
            )


async def test_old_results_of_a_long_turn_are_cut_short_before_anything_is_summarised(open_it: Open) -> None:
    """A single turn can be too long by itself."""

    class Chatty(Lever):
        async def run(self, args: Mapping[str, object], call_context: CallContext) -> str:
            return "y" * 4_000

    def answer(request: Request) -> Step:
        steps = sum(kind == "tool" for kind, *_ in shape(request))
        return ["Done."] if steps == 5 else [call("chatty")]

    async with opened(open_it) as store:
        model = ScriptedModel(answer, facts=Facts(context_tokens=5_000))
        agent, _ = agent_of(model, store, Chatty("chatty", effect=Effect.PURE), agent=AgentConfig(compact_at=0.5))
        async with running_engine(store, agent) as engine:
            assert (await answered(engine, store)).state is TurnState.COMPLETED
        lengths = [len(text) for kind, text, *_ in shape(model.requests[-1]) if kind == "tool"]
        assert [length < 1_200 for length in lengths] == [True, True, False, False, False]


async def test_a_turn_that_was_cut_off_after_its_compaction_goes_on_from_it(open_it: Open) -> None:
    """R10: the view is durable too, and entries of summarised turns that stand behind it are left out."""
    async with opened(open_it) as store:
        puppet = Puppet()
        async with running_engine(store, puppet) as engine:
            first = await engine.inbox.accept(message("one"))
            await in_state(store, first, TurnState.RUNNING)
            # The second message is there before the first is answered, so the first's words stand behind it.
            second = await engine.inbox.accept(message("two"))
            await puppet.say("answer to one")
            await puppet.finish("answer to one")
            await settled(store, first)
            await in_state(store, second, TurnState.RUNNING)
            await puppet.do(lambda stage: stage.compact(SUMMARY, first.turn_id))
            await puppet.say("I begin")
            await until(lambda: text_of(store, second))
        agent, model = agent_of([[" and end."], ["Yes."]], store)
        async with running_engine(store, agent, config=AUTO) as engine:
            assert (await settled(store, second)).state is TurnState.COMPLETED
            assert (await answered(engine, store, "three")).state is TurnState.COMPLETED
        read = shape(model.requests[0])
        assert SUMMARY in read[0][1]
        assert read[0][1].endswith("two")
        assert [kind for kind, *_ in read] == ["user", "assistant", "user"]
        assert "answer to one" not in str(model.requests)
        assert shape(model.requests[1])[1:] == [("assistant", "I begin and end."), ("user", "three")]
