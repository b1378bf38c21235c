"""How many turns begin at once, and whose."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.core import admission
from holdfast.core.turns import Mode
from holdfast.ports import Assignment, Stage
from tests.engine.world import Open, message, opened, running_engine, settled, until


class Patient:
    """An agent whose turns last until they are let go."""

    def __init__(self) -> None:
        self.running: list[str] = []
        self.begun: dict[str, float] = {}
        self.go = asyncio.Event()

    async def run(self, work: Assignment, stage: Stage) -> str:
        self.running.append(work.message)
        self.begun[work.message] = asyncio.get_running_loop().time()
        await self.go.wait()
        self.running.remove(work.message)
        return "done"


async def test_turns_that_nobody_waits_for_begin_a_few_at_a_time_and_all_of_them_do(open_it: Open) -> None:
    """A1: a flood is answered too."""
    agent, count = Patient(), 3 * admission.DETACHED_AT_ONCE
    async with opened(open_it) as store:
        hooks = [message(f"{nth}", conversation=f"hook:{nth}", mode=Mode.DETACHED, one_shot=True) for nth in range(count)]
        async with running_engine(store, agent) as engine:
            receipts = [await engine.inbox.accept(hook) for hook in hooks]
            await until(lambda: len(agent.running) == count)
            agent.go.set()
            for receipt in receipts:
                await settled(store, receipt)


async def test_in_a_crowd_they_begin_one_by_one_and_whoever_waits_does_not_wait_for_them(
    open_it: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A1 W7: every round of the loop counts as long here, so it is always crowded."""
    monkeypatch.setattr(admission, "ROUND_MAX_S", -1.0)
    agent, count = Patient(), 5
    async with opened(open_it) as store, running_engine(store, agent) as engine:
        # Only now has it looked around.
        first = await engine.inbox.accept(message("first", conversation="hook", mode=Mode.DETACHED, one_shot=True))
        await until(lambda: agent.running == ["first"])
        hooks = [
            await engine.inbox.accept(message(f"{nth}", conversation=f"hook:{nth}", mode=Mode.DETACHED, one_shot=True))
            for nth in range(count)
        ]
        chat = await engine.inbox.accept(message("from a person"))
        await until(lambda: "from a person" in agent.running)
        assert len(agent.running) < count
        await until(lambda: len(agent.running) == count + 2)
        agent.go.set()
        for receipt in (first, chat, *hooks):
            await settled(store, receipt)
    begun = [at for text, at in agent.begun.items() if text != "from a person"]
    # Turns are claimed with a pause between them; how long each takes to begin then is another matter.
    assert max(begun) - min(begun) > (count - 1) * admission.BUSY_PAUSE_S
