"""The list is what was last written to it, and lives in the journal alone."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.agent.scripted import CallTool, Line, Say, ScriptedAgent
from holdfast.agent.toolbox import Toolbox
from holdfast.agent.tools.todo import ITEMS_MAX, PAGE, todo_tool
from holdfast.errors import Rejected
from holdfast.ports import Assignment
from holdfast.store.store import Store
from tests.engine.world import Open, answered, opened, running_engine
from tests.tools.contexts import call_context

ITEMS = [{"text": "dig", "status": "done"}, {"text": "plant", "status": "in_progress"}, {"text": "wait"}]
SHOWN = "1 of 3 done:\n1. [x] dig\n2. [>] plant\n3. [ ] wait"


def agent(store: Store) -> ScriptedAgent:
    def script(work: Assignment) -> list[Line]:
        if "write" in work.message:
            return [CallTool("todo", {"items": ITEMS}), CallTool("todo", {}, report=lambda call: str(call.result))]
        if "talk" in work.message:
            return [Say("x"), *[CallTool("todo", {"items": 1}) for _ in range(PAGE // 8)]]
        return [CallTool("todo", {}, report=lambda call: str(call.result))]

    return ScriptedAgent(script, toolbox=Toolbox([todo_tool(store.journal)]))


async def answer(store: Store, engine: Any, text: str, **changes: Any) -> str:
    turn = await answered(engine, store, text, **changes)
    return str((await store.journal.read_turn(turn.id))[-1].data["text"])


async def test_the_list_is_shown_in_later_turns_and_after_a_restart(open_it: Open) -> None:
    async with opened(open_it) as store:
        async with running_engine(store, agent(store)) as engine:
            assert await answer(store, engine, "show") == "The list is empty."
            assert await answer(store, engine, "write") == SHOWN
            # Calls that failed have written nothing, and a long talk lies between.
            for _ in range(5):
                await answered(engine, store, "talk")
        async with running_engine(store, agent(store)) as engine:
            assert await answer(store, engine, "show") == SHOWN
            assert await answer(store, engine, "show", conversation="another") == "The list is empty."


@pytest.mark.parametrize(
    "items",
    [
        [{"text": ""}],
        [{"text": "a", "status": "maybe"}],
        [{"text": "a", "more": 1}],
        ["a"],
        [{"text": "a"}] * (ITEMS_MAX + 1),
        [{"text": "a" * 501}],
    ],
)
async def test_what_is_no_list_is_refused(open_it: Open, items: list[Any]) -> None:
    async with opened(open_it) as store:
        with pytest.raises(Rejected):
            await todo_tool(store.journal).run({"items": items}, call_context())


async def test_an_empty_list_is_empty(open_it: Open) -> None:
    async with opened(open_it) as store:
        assert await todo_tool(store.journal).run({"items": []}, call_context()) == "The list is empty."
