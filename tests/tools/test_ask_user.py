"""A question puts the turn away until it is answered, and is not asked where nobody could answer."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.agent.scripted import CallTool, Say, ScriptedAgent
from holdfast.agent.toolbox import Toolbox
from holdfast.agent.tools.ask_user import ask_user_tool, is_answerable
from holdfast.core.questions import About
from holdfast.core.turns import Mode, TurnState
from holdfast.errors import Rejected
from tests.engine.players import in_state, text_of
from tests.engine.world import Open, answered, message, opened, running_engine, settled
from tests.tools.contexts import call_context

ARGS = {"question": "Which colour?", "choices": ["red", "blue"]}


def agent() -> ScriptedAgent:
    script = [Say("Hm. "), CallTool("ask_user", ARGS, report=lambda call: f"{call.state}: {call.result}")]
    return ScriptedAgent(script, toolbox=Toolbox([ask_user_tool()]))


async def test_a_question_waits_across_a_restart_and_its_answer_is_the_result(open_it: Open) -> None:
    """R10: parked, it costs nothing; the answer is not lost, and nothing is asked twice."""
    async with opened(open_it) as store:
        async with running_engine(store, agent()) as engine:
            receipt = await engine.inbox.accept(message())
            await in_state(store, receipt, TurnState.WAITING)
        (asked,) = await store.questions.open("local")
        assert (asked.question.text, asked.question.about) == ("Which colour?", About.ANSWER)
        assert asked.question.choices == ("red", "blue")
        async with running_engine(store, agent()) as engine:
            await engine.answer(receipt.turn_id, asked.question.id, "green, please")
            assert (await settled(store, receipt)).state is TurnState.COMPLETED
        assert await text_of(store, receipt) == "Hm. ok: green, please"
        assert len(await store.questions.of_turn(receipt.turn_id)) == 1


@pytest.mark.parametrize(
    "facts", [{"mode": Mode.SYNCHRONOUS}, {"mode": Mode.DETACHED, "delivers_later": False}, {"one_shot": True}]
)
async def test_where_nobody_can_answer_the_turn_goes_on_and_says_so(open_it: Open, facts: dict[str, Any]) -> None:
    """A2: it is decided by the turn, and fails closed."""
    async with opened(open_it) as store:
        async with running_engine(store, agent()) as engine:
            turn = await answered(engine, store, **facts)
        assert turn.state is TurnState.COMPLETED
        assert "nobody can answer here" in str((await store.journal.read_turn(turn.id))[-1].data["text"])
        assert await store.questions.open("local") == []


@pytest.mark.parametrize(
    ("facts", "answerable"),
    [
        ({}, True),
        ({"mode": Mode.CONVERSATION, "delivers_later": False}, True),
        ({"mode": Mode.DETACHED, "delivers_later": True}, True),
        ({"mode": Mode.DETACHED, "delivers_later": False}, False),
        ({"mode": Mode.SYNCHRONOUS, "delivers_later": True}, False),
    ],
)
def test_who_can_answer_depends_on_the_turn(facts: dict[str, Any], answerable: bool) -> None:
    """A2"""
    assert is_answerable(call_context(**facts)) is answerable
    assert is_answerable(call_context({"one_shot": True}, **facts)) is False


async def test_without_an_answer_there_is_no_result() -> None:
    with pytest.raises(Rejected, match="nobody answered"):
        await ask_user_tool().run(ARGS, call_context())
    for args in ({}, {"question": ""}, {"question": "a", "choices": [""]}, {"question": "a", "choices": ["b"] * 11}):
        with pytest.raises(Rejected):
            await ask_user_tool().question(args, call_context())
