"""What memory brings up for a message is read with that message alone, and written nowhere."""

from __future__ import annotations

from typing import Any

from holdfast.agent.models.port import Facts
from holdfast.agent.models.scripted import ScriptedModel, call
from holdfast.config import AgentConfig
from holdfast.core.facts import Memory
from holdfast.core.transcript import fold
from holdfast.core.turns import Mode, TurnState
from holdfast.errors import ModelUnavailable
from holdfast.ids import MemoryId
from tests.agent.world import Lever, agent_of, shape
from tests.engine.oracle import Oracle, known
from tests.engine.players import journal_of
from tests.engine.world import Open, answered, message, opened, running_engine, settled, until

TREASURE = "The treasure is under the oak."


def asked(model: ScriptedModel) -> list[str]:
    """Return what the person said last in each request."""
    return [[text for role, text, *_ in shape(request) if role == "user"][-1] for request in model.requests]


def times(request: Any) -> int:
    """Return how often a request holds what was recalled."""
    return str(request).count(TREASURE)


async def test_it_stands_before_the_message_and_reads_the_same_at_every_step(open_it: Open) -> None:
    async with opened(open_it) as store:
        lever = Lever(harmless=True)
        steps = [[call("lever")], [call("lever")], ["done"]]
        agent, model = agent_of(steps, store, lever)
        # Asked a second time it would say something else.
        oracle = Oracle(known(TREASURE), known("nothing"))
        async with running_engine(store, agent, memory=oracle) as engine:
            assert (await answered(engine, store, "where is it?")).state is TurnState.COMPLETED
        first, *others = asked(model)
        assert len(others) == 2
        assert set(others) == {first}
        assert first.endswith("<recalled>\n- The treasure is under the oak.\n</recalled>\n\nwhere is it?")
        assert len(oracle.asked) == 1
        assert all(TREASURE not in request.system for request in model.requests)


async def test_an_answer_that_broke_off_goes_on_below_the_same_words(open_it: Open) -> None:
    async with opened(open_it) as store:
        agent, model = agent_of([["It is ", ModelUnavailable("gone", 0)], ["there."]], store)
        async with running_engine(store, agent, memory=Oracle(known(TREASURE))) as engine:
            assert (await answered(engine, store, "where is it?")).state is TurnState.COMPLETED
        assert [times(request) for request in model.requests] == [1, 1]


async def test_the_turns_before_read_as_they_did_so_that_the_prefix_stays(open_it: Open) -> None:
    async with opened(open_it) as store:
        agent, model = agent_of([["one"], ["two"]], store)
        async with running_engine(store, agent, memory=Oracle(known(TREASURE))) as engine:
            await answered(engine, store, "first")
            await answered(engine, store, "second")
        (_, before), *_, (_, now) = shape(model.requests[1])
        assert before == "first"
        assert now.endswith("</recalled>\n\nsecond")
        assert model.requests[0].system == model.requests[1].system


async def test_what_the_block_has_already_is_not_said_twice(open_it: Open) -> None:
    async with opened(open_it) as store:
        at = {"created_at": 1, "updated_at": 1}
        await store.memories.add(Memory(id=MemoryId("mem_1"), owner="local", text=TREASURE, **at))
        agent, model = agent_of([["one"]], store)
        async with running_engine(store, agent, memory=Oracle(known(TREASURE.lower()))) as engine:
            await answered(engine, store, "hello")
        assert asked(model) == ["hello"]
        assert model.requests[0].system.count(TREASURE) == 1


async def test_it_is_in_no_journal_transcript_title_or_search(open_it: Open) -> None:
    async with opened(open_it) as store:
        agent, model = agent_of([["one"]], store)
        async with running_engine(store, agent, memory=Oracle(known(TREASURE))) as engine:
            turn = await answered(engine, store, "where is it?")
        assert times(model.requests[0]) == 1
        entries = await journal_of(store, turn.session_id)
        assert "oak" not in str(entries) + str(fold(entries)) + str(await store.sessions.get(turn.session_id))
        assert "recalled" not in str(entries)
        assert (await store.passages.find("local", "oak")).hits == ()


async def test_a_summary_is_not_made_of_it(open_it: Open) -> None:
    """What is compacted is what was said, and memory has said nothing in it."""
    async with opened(open_it) as store:

        def script(request: Any) -> list[str]:
            return ["a summary" if "summarise" in request.system else "word " * 300]

        model = ScriptedModel(script, facts=Facts(context_tokens=2_500))
        agent, _ = agent_of(model, store, agent=AgentConfig(compact_at=0.5))
        async with running_engine(store, agent, memory=Oracle(known(TREASURE))) as engine:
            turns = [await answered(engine, store, f"question {number} " + "x" * 500) for number in range(8)]
        assert {turn.state for turn in turns} == {TurnState.COMPLETED}
        summaries = [request for request in model.requests if "summarise" in request.system]
        assert summaries
        assert [times(request) for request in summaries] == [0] * len(summaries)
        assert {times(request) for request in model.requests if request not in summaries} == {1}
        assert "oak" not in str(await journal_of(store, turns[0].session_id))


async def test_a_turn_that_was_cut_off_asks_anew_when_it_goes_on(open_it: Open) -> None:
    """R10: what is recalled belongs to an attempt; the next one has what is known by then."""
    async with opened(open_it) as store:
        lever = Lever(harmless=True)
        lever.hold()
        agent, _ = agent_of([[call("lever")]], store, lever)
        async with running_engine(store, agent, memory=Oracle(known("Is 39."))) as engine:
            receipt = await engine.inbox.accept(message("how old?", mode=Mode.DETACHED))
            await until(lambda: lever.pulls)
        agent, model = agent_of([["40"]], store, Lever(harmless=True))
        async with running_engine(store, agent, memory=Oracle(known("Is 40."))) as engine:
            assert (await settled(store, receipt)).state is TurnState.COMPLETED
        assert "Is 40." in str(model.requests[0])
        assert "Is 39." not in str(model.requests)
