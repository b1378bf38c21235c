"""The work that engines are measured with: one-shot deliveries, answered by a script of twenty entries."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from holdfast.agent.scripted import Line, Pause, Say, ScriptedAgent, Think
from holdfast.core.ending import Ending
from holdfast.core.intake import Inbound
from holdfast.core.sessions import Source
from holdfast.core.turns import Mode, Turn
from holdfast.engine.engine import Engine, Parts
from holdfast.engine.tuning import Tuning
from holdfast.ids import TurnId
from holdfast.ports import Agent, Bindings
from holdfast.store.settlement import Settlement
from holdfast.store.store import Store

ENTRIES = 20
TEXT = "the build of main failed, please look at it"
SOURCE = Source(chat_id="webhook:bench", chat_type="webhook", user="webhook:bench")


def script(*, yields: bool) -> ScriptedAgent:
    """Return an agent whose entries alternate, so that none is merged; between them it yields to the loop, or not."""
    lines: list[Line] = []
    for number in range(ENTRIES):
        lines.append(Say("a few words ") if number % 2 else Think("a few words "))
        if yields:
            lines.append(Pause(0))
    return ScriptedAgent(lines)


def message(number: int) -> Inbound:
    """Return a delivery that gets a session of its own."""
    key = f"webhook:bench:{number:012}"
    return Inbound(
        conversation=key,
        text=TEXT,
        channel="webhook",
        source=SOURCE,
        dedupe_key=key,
        mode=Mode.DETACHED,
        one_shot=True,
    )


class Watched:
    """A settlement that tells whoever waits for the end of a turn, at no cost to the database."""

    def __init__(self, inner: Settlement) -> None:
        self._inner = inner
        self._ended: dict[TurnId, asyncio.Future[None]] = {}

    def __getattr__(self, name: str) -> Any:  # The rest of the port passes through.
        return getattr(self._inner, name)

    async def finish(self, turn: Turn, ending: Ending) -> object:
        result = await self._inner.finish(turn, ending)
        future = self._of(turn.id)
        if not future.done():
            future.set_result(None)
        return result

    async def ended(self, turn_id: TurnId) -> None:
        """Return when a turn has been finished durably."""
        try:
            await self._of(turn_id)
        finally:
            self._ended.pop(turn_id, None)

    def _of(self, turn_id: TurnId) -> asyncio.Future[None]:
        return self._ended.setdefault(turn_id, asyncio.get_running_loop().create_future())


@asynccontextmanager
async def running(
    store: Store, agent: Agent, tuning: Tuning | None = None, memory: Bindings | None = None
) -> AsyncGenerator[tuple[Engine, Watched]]:
    """Run an engine on a store for a while."""
    watched = Watched(store.settlement)
    store.settlement = watched  # type: ignore[assignment]
    engine = Engine(Parts(store=store, agent=agent, tuning=tuning or Tuning(), memory=memory))
    task = asyncio.create_task(engine.run())
    try:
        yield engine, watched
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
