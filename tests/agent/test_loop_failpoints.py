"""The loop cut off beside every write of a turn: it comes to the same end, and nothing is done or said twice.

The points are found by the sweep itself: it cuts beside the first write, the second, the third, until a turn ends of itself.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.agent import context
from holdfast.agent.models.port import AssistantMessage, Request, UserMessage
from holdfast.agent.models.scripted import Piece, ScriptedModel, Step, call
from holdfast.core import effects
from holdfast.core.effects import Effect
from holdfast.core.intake import Receipt
from holdfast.core.turns import SETTLED, TurnState
from holdfast.engine.engine import Engine
from holdfast.store.audit import audit
from holdfast.store.opening import open_store
from holdfast.store.store import Store
from tests.agent.test_loop import AUTO
from tests.agent.world import Lever, agent_of, assert_every_call_has_its_result
from tests.engine.players import text_of
from tests.engine.world import Altered, message, running_engine, until

# What the model says in each step, and what it asks for there.
STEPS: tuple[tuple[str, tuple[Piece, ...]], ...] = (
    ("First I look. ", (call("pure"), call("sharp", n=1), call("keyed"))),
    ("Then I act. ", (call("blunt"), call("sharp", n=2))),
    ("Done.", ()),
)
POINTS_MAX = 100


def answer(request: Request) -> Step:
    """Say what comes next in the conversation as it is read, and only what was not said before."""
    assert_every_call_has_its_result(request)
    steps = sum(isinstance(each, AssistantMessage) and bool(each.calls) for each in request.messages)
    text, calls = STEPS[steps]
    last = request.messages[-1]
    if isinstance(last, UserMessage) and last.text.endswith(context.CONTINUE):
        said = request.messages[-2]
        assert isinstance(said, AssistantMessage)
        assert text.startswith(said.text)
        text = text.removeprefix(said.text)
    return [*(f"{word} " for word in text.split()[:-1]), *text.split()[-1:], *(" " * text.endswith(" ")), *calls]


class Cut:
    """Stops the world beside the nth write: that write does not return, and whoever watches is told."""

    def __init__(self, nth: int, when: str) -> None:
        self.happened = asyncio.Event()
        # Nobody sets it who wants the world to end there.
        self.resumed = asyncio.Event()
        self._nth = nth
        self._when = when
        self._writes = itertools.count(1)

    def around(self, write: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def written(*args: Any, **named: Any) -> Any:
            here = next(self._writes) >= self._nth
            if here and self._when == "before":
                await self._stop()
            done = await write(*args, **named)
            if here:
                await self._stop()
            return done

        return written

    async def _stop(self) -> None:
        self.happened.set()
        await self.resumed.wait()

    def store(self, store: Store) -> Any:
        return Altered(
            store,
            journal=Altered(store.journal, append=self.around(store.journal.append)),
            turns=Altered(store.turns, start=self.around(store.turns.start), park=self.around(store.turns.park)),
            settlement=Altered(store.settlement, finish=self.around(store.settlement.finish)),
        )


def levers() -> list[Lever]:
    return [
        Lever("pure", effect=Effect.PURE),
        Lever("keyed", effect=Effect.KEYED),
        Lever("blunt"),
        Lever("sharp", asks=True),
    ]


async def at_rest(engine: Engine, store: Store, receipt: Receipt, until_cut: asyncio.Event | None = None) -> bool:
    """Say yes to whatever is asked, until the turn is at rest; False when the world stopped before."""

    async def look() -> str | None:
        if until_cut is not None and until_cut.is_set():
            return "cut"
        turn = await store.turns.get(receipt.turn_id)
        if turn.state is TurnState.WAITING:
            for asked in await store.questions.of_turn(receipt.turn_id):
                if asked.answer is None:
                    await engine.answer(receipt.turn_id, asked.question.id, "yes")
        return "at rest" if turn.state in SETTLED else None

    return await until(look) == "at rest"


async def cut_off_and_go_on(folder: Path, nth: int, when: str) -> bool:
    """Live a turn that is cut off beside a write, and then to its end; False when there was no such write."""
    store = await open_store("sqlite", folder)
    tools, cut = levers(), Cut(nth, when)
    try:
        agent, _ = agent_of(ScriptedModel(answer), store, *tools)
        async with running_engine(cut.store(store), agent, config=AUTO) as engine:
            receipt = await engine.inbox.accept(message("go"))
            finished = await at_rest(engine, store, receipt, cut.happened)
        async with running_engine(store, agent, config=AUTO) as engine:
            assert await at_rest(engine, store, receipt)
        await check(store, receipt, tools)
    finally:
        await store.close()
    return not finished


async def check(store: Store, receipt: Receipt, tools: list[Lever]) -> None:
    turn = await store.turns.get(receipt.turn_id)
    assert turn.state is TurnState.COMPLETED
    assert await text_of(store, receipt) == "".join(text for text, _ in STEPS)
    calls = {each.id: each for each in await store.journal.calls(receipt.turn_id)}
    assert set(calls) == {"s1_c1", "s1_c2", "s1_c3", "s2_c1", "s2_c2"}
    for lever in tools:
        made = [each for each in calls.values() if each.name == lever.name]
        if lever.effect is Effect.EFFECTFUL:
            assert len(lever.keys) == len(set(lever.keys)), "an effect happened twice"
            assert {each.state for each in made} <= {effects.CallState.OK, effects.CallState.UNKNOWN}
        else:
            assert {each.state for each in made} == {effects.CallState.OK}
            assert len(set(lever.keys)) == 1
    asked = await store.questions.of_turn(receipt.turn_id)
    assert len(asked) == 2, "the same was asked twice"
    assert await audit(store.database) == []


@pytest.mark.parametrize("when", ["before", "after"])
async def test_cut_off_beside_any_write_a_turn_of_model_and_tools_comes_to_the_same_end(when: str, tmp_path: Path) -> None:
    """A1 J1 R10 X1: every word once, every effect at most once, every question once, and requests that any vendor takes."""
    for nth in range(1, POINTS_MAX):
        if not await cut_off_and_go_on(tmp_path / str(nth), nth, when):
            assert nth > 8
            return
    pytest.fail("no turn ended of itself")


async def cancel_and_look(folder: Path, nth: int, when: str) -> bool:
    """Cancel a turn while a write of it is under way; False when there was no such write."""
    store = await open_store("sqlite", folder)
    tools, cut = levers(), Cut(nth, when)
    try:
        agent, _ = agent_of(ScriptedModel(answer), store, *tools)
        async with running_engine(cut.store(store), agent, config=AUTO) as engine:
            receipt = await engine.inbox.accept(message("go"))
            if await at_rest(engine, store, receipt, cut.happened):
                return False
            state = (await store.turns.get(receipt.turn_id)).state
            if state not in SETTLED:
                await engine.cancel(receipt.turn_id)
            cut.resumed.set()
            await until(lambda: engine.running == 0)
            # The end of a turn may have been durable already when somebody wanted it cancelled.
            turn = await store.turns.get(receipt.turn_id)
            assert turn.state is (state if state in SETTLED else TurnState.CANCELLED)
            assert "".join(text for text, _ in STEPS).startswith(await text_of(store, receipt))
            assert all(len(lever.keys) == len(set(lever.keys)) for lever in tools)
            assert all(not asked.answer for asked in await store.questions.open("local"))
        assert await audit(store.database) == []
    finally:
        await store.close()
    return True


@pytest.mark.parametrize("when", ["before", "after"])
async def test_cancelled_beside_any_write_a_turn_stops_and_keeps_what_it_said(when: str, tmp_path: Path) -> None:
    """J9 T3: whatever it is doing, the turn is cancelled at once, its words stay, and nothing goes on behind its back."""
    for nth in range(1, POINTS_MAX):
        if not await cancel_and_look(tmp_path / str(nth), nth, when):
            assert nth > 8
            return
    pytest.fail("no turn ended of itself")
