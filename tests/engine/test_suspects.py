"""Turns that may have crashed their gateway run alone, and keep the others waiting only for a while."""

from __future__ import annotations

import asyncio

from holdfast.clock import SystemClock
from holdfast.config import Config, GatewayConfig
from holdfast.core.redaction import Redaction
from holdfast.core.turns import Cause, Mode, Policy, Resume, Turn
from holdfast.engine.inbox import Inbox
from holdfast.ids import new_node_id
from holdfast.ports import Assignment, Stage
from holdfast.store.store import Store
from tests.claims import claim
from tests.engine.world import START, Altered, Open, message, opened, running_engine, until

AUTO = Config(gateway=GatewayConfig(resume="auto"))
CLOCK = SystemClock()


class Holding:
    """An agent that holds every turn until it is let go.  `begun` is the order; `beside` is who ran when each began."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.beside: dict[str, set[str]] = {}
        self._running: dict[str, asyncio.Event] = {}

    async def run(self, work: Assignment, stage: Stage) -> str:
        name = work.message.rpartition("\n")[2]
        self.beside[name] = set(self._running)
        self.begun.append(name)
        self._running[name] = asyncio.Event()
        try:
            await self._running[name].wait()
        finally:
            del self._running[name]
        return "done"

    async def release(self, session_id: str) -> None: ...

    def let_go(self, name: str) -> None:
        self._running[name].set()

    @property
    def running(self) -> set[str]:
        return set(self._running)


async def accept(store: Store, name: str) -> None:
    inbox = Inbox(store, AUTO.gateway, AUTO.sessions, Redaction(), CLOCK)
    await inbox.accept(message(name, conversation=f"chat:{name}", mode=Mode.DETACHED))


async def crash_together(store: Store, *names: str, times: int = 2) -> None:
    """Accept messages, and let nodes that run them all crash so often."""
    for name in names:
        await accept(store, name)
    for _ in range(times):
        node = new_node_id(START)
        await store.nodes.join(node, START)
        for turn in await claim(store, node, 10):
            await store.turns.start(turn, START)
        await store.nodes.leave(node)
        await store.nodes.sweep(Cause.CRASH, Policy(resume=Resume.AUTO), START)


async def test_suspects_run_one_at_a_time_and_before_all_others(open_it: Open) -> None:
    """S2: so that the next crash shows which one is the cause."""
    agent = Holding()
    async with opened(open_it) as store:
        await crash_together(store, "one", "two", "three")
        await accept(store, "fresh")
        async with running_engine(store, agent, config=AUTO):
            for count in (1, 2, 3):
                await until(lambda count=count: len(agent.begun) == count)
                agent.let_go(agent.begun[-1])
            await until(lambda: agent.begun[3:])
            agent.let_go("fresh")
            await until(lambda: not agent.running)
        assert set(agent.begun[:3]) == {"one", "two", "three"}
        assert agent.beside == {name: set() for name in agent.begun}


async def test_nothing_begins_beside_a_suspect_until_it_has_run_for_a_while(open_it: Open) -> None:
    """S2: a long turn that was only there when it happened does not keep everybody waiting."""
    agent = Holding()
    async with opened(open_it) as store:
        await crash_together(store, "one")
        await accept(store, "fresh")
        began = CLOCK.monotonic_ms()
        async with running_engine(store, agent, config=AUTO):
            await until(lambda: agent.begun)
            await until(lambda: len(agent.begun) >= 2)
            assert CLOCK.monotonic_ms() - began >= 2_000
            assert agent.begun == ["one", "fresh"]
            for name in ("one", "fresh"):
                agent.let_go(name)
            await until(lambda: not agent.running)


async def test_a_suspect_waits_for_a_node_that_is_busy(open_it: Open) -> None:
    """S2: it begins when the others have ended, and nothing new begins before it."""
    agent, sightings = Holding(), 0
    is_hidden = True

    async with opened(open_it) as store:

        async def suspect() -> Turn | None:
            nonlocal sightings
            found = None if is_hidden else await store.turns.suspect()
            sightings += found is not None
            return found

        await crash_together(store, "killer")
        await accept(store, "busy")
        watched = Altered(store, turns=Altered(store.turns, suspect=suspect))
        async with running_engine(watched, agent, config=AUTO):
            await until(lambda: agent.running == {"busy"})
            await accept(store, "fresh")
            await until(lambda: agent.running == {"busy", "fresh"})
            is_hidden = False
            await until(lambda: sightings >= 2 or "killer" in agent.begun)
            await accept(store, "fresher")
            for name in ("busy", "fresh", "killer", "fresher"):
                await until(lambda name=name: name in agent.running)
                agent.let_go(name)
            await until(lambda: not agent.running)
        assert agent.begun == ["busy", "fresh", "killer", "fresher"]
        assert agent.beside["killer"] == set()
