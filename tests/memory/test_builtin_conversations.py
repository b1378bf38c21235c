"""Two conversations: what was said in the first is known in the second, through the whole machinery."""

from __future__ import annotations

from typing import Any

from holdfast.agent.models.port import Request, UserMessage
from holdfast.agent.models.scripted import ScriptedModel, Step
from holdfast.clock import SystemClock
from holdfast.core.facts import Memory
from holdfast.core.keys import LOCAL
from holdfast.core.segments import SegmentState
from holdfast.ids import MemoryId
from holdfast.memory.builtin.extraction import ModelExtractor
from holdfast.memory.builtin.paper import RULES
from holdfast.memory.builtin.plain import PlainExtractor
from holdfast.memory.builtin.provider import Builtin
from holdfast.store.store import Store
from tests.agent.world import agent_of
from tests.engine.debts import segments_in
from tests.engine.world import Hang, Open, answered, opened, running_engine
from tests.memory.talks import answer, noted, told

BOAT = "My boat is called Aurora and lies in Trieste"
FACT = "Has a boat called Aurora, in Trieste"


def play(request: Request) -> Step:
    """Answer like a model that extracts where it is to extract, and else says little."""
    if request.system != RULES:
        return ["aye"]
    said = [(each["turn"], each["text"]) for each in told(request)["talk"] if each["who"] == "person"]
    return [answer(add=[noted(FACT, "My boat is called Aurora", turn) for turn, text in said if "Aurora" in text])]


def read(model: ScriptedModel) -> str:
    """Return all that a model was given last, to answer with."""
    last = [each for each in model.requests if each.system != RULES][-1]
    return "\n".join([last.system, *(each.text for each in last.messages if isinstance(each, UserMessage))])


def builtin(store: Store, model: ScriptedModel) -> Builtin:
    return Builtin(store, ModelExtractor(model), clock=SystemClock())


async def test_what_was_said_in_one_conversation_is_known_in_the_next(open_it: Open) -> None:
    """M1 M4: at its end and not before, with one call, and with the turn that it came from."""
    async with opened(open_it) as store:
        agent, model = agent_of(play, store)
        async with running_engine(store, agent, memory=builtin(store, model)) as engine:
            turn = await answered(engine, store, BOAT)
            await answered(engine, store, "Good night")
            assert [each for each in model.requests if each.system == RULES] == [], "completing a turn extracted something"
            assert await engine.commit(turn.session_id)
            assert not await engine.commit(turn.session_id), "nothing new is owed"
            (segment,) = await segments_in(store, turn.session_id, SegmentState.COMMITTED)
            assert (segment.owner, segment.receipt) == ("builtin", "1 fact added")
            (memory,) = await store.memories.list(LOCAL)
            assert (memory.text, memory.turn_id, memory.segment_id) == (FACT, turn.id, segment.id)
            await answered(engine, store, "What is she called?", conversation="chat:2")
            assert f"- {FACT}" in read(model)
            await answered(engine, store, "And you are?", conversation="chat:3", owner="key:other")
            assert FACT not in read(model), "another person was told"
            await answered(engine, store, "Aurora?", conversation="hook:1", channel="webhook")
            assert FACT not in read(model), "a stranger was told"


async def test_an_old_fact_comes_to_mind_when_it_is_spoken_of(open_it: Open) -> None:
    async with opened(open_it) as store:
        agent, model = agent_of(play, store)
        async with running_engine(store, agent, memory=builtin(store, model)) as engine:
            turn = await answered(engine, store, BOAT)
            assert await engine.commit(turn.session_id)
            later = SystemClock().now_ms() + 1_000
            for number in range(40):
                text = f"Read page {number} of a very long story {'x' * 300}"
                id_ = MemoryId(f"mem_{number}")
                await store.memories.add(Memory(id=id_, owner=LOCAL, text=text, created_at=later, updated_at=later))
            await answered(engine, store, "How are you?", conversation="chat:2")
            assert FACT not in read(model), "there was room for it after all, so nothing is proved"
            await answered(engine, store, "Where is my boat?", conversation="chat:3")
            assert FACT in read(model)


async def test_a_model_that_hangs_at_extraction_delays_no_answer(open_it: Open) -> None:
    """M5 M10: the next conversation goes on meanwhile, and is owed in a segment of its own."""
    hang = Hang()

    def script(request: Request) -> Step:
        return [hang.wait, *play(request)] if request.system == RULES else ["aye"]

    async with opened(open_it) as store:
        agent, model = agent_of(script, store)
        async with running_engine(store, agent, memory=builtin(store, model)) as engine:
            turn = await answered(engine, store, BOAT)
            await store.segments.seal(turn.session_id, SystemClock().now_ms())
            await segments_in(store, turn.session_id, SegmentState.COMMITTING)
            again = await answered(engine, store, "Are you there?")
            assert again.session_id == turn.session_id
            await segments_in(store, turn.session_id, SegmentState.COMMITTING, SegmentState.OPEN)
            hang.release()
            await segments_in(store, turn.session_id, SegmentState.COMMITTED, SegmentState.OPEN)
            assert [each.text for each in await store.memories.list(LOCAL)] == [FACT]


async def test_without_a_model_the_demonstration_remembers_too(open_it: Open) -> None:
    async with opened(open_it) as store:
        agent, model = agent_of(lambda _: ["aye"], store)
        memory: Any = Builtin(store, PlainExtractor(), clock=SystemClock())
        async with running_engine(store, agent, memory=memory) as engine:
            turn = await answered(engine, store, "My name is Ada. How are you?")
            assert await engine.commit(turn.session_id)
            await answered(engine, store, "Who am I?", conversation="chat:2")
            assert "- Name: Ada" in read(model)
