"""A message that arrives while a turn runs, through the whole engine."""

from __future__ import annotations

import asyncio
from datetime import datetime, time

import pytest

from holdfast.config import Config, GatewayConfig, SessionsConfig
from holdfast.core.intake import Busy
from holdfast.core.transcript import Role, fold
from holdfast.core.turns import TurnState
from holdfast.engine.inbox import day_began_at
from holdfast.errors import SessionBusy
from holdfast.ports import Assignment, Stage
from holdfast.store.database import Run, Transaction
from tests.engine.test_drain import HeldAgent, running
from tests.engine.world import Hang, Open, answered, message, opened, running_engine, settled, until


class SteeredAgent:
    """Says a word, waits to be let on, heeds what joined, and says another."""

    def __init__(self) -> None:
        self.held = Hang()
        self.heeded: list[str] = []

    async def run(self, work: Assignment, stage: Stage) -> str:
        await stage.say("before ")
        await self.held.wait()
        while not self.heeded:
            self.heeded += await stage.heed()
            await asyncio.sleep(0.005)
        await stage.say("after")
        return "before after"


async def test_a_message_steers_the_turn_that_runs(open_it: Open) -> None:
    async with opened(open_it) as store:
        agent = SteeredAgent()
        async with running_engine(store, agent) as engine:
            first = await engine.inbox.accept(message("one"))
            await running(store, first)
            second = await engine.inbox.accept(message("two", busy=Busy.STEER))
            agent.held.release()
            assert (await settled(store, first)).state is TurnState.COMPLETED
            assert agent.heeded == ["two"]
            assert (await store.turns.get(second.turn_id)).joined_to == first.turn_id
            items = fold(await store.journal.read(first.session_id))
            assert [(item.role, item.text) for item in items] == [
                (Role.USER, "one"),
                (Role.ASSISTANT, "before "),
                (Role.USER, "two"),
                (Role.ASSISTANT, "after"),
            ]


async def test_an_interrupting_message_stops_the_turn_within_a_second(open_it: Open) -> None:
    """J9: the one that runs hears of it at once, and what it had shown stays."""
    async with opened(open_it) as store:
        agent = HeldAgent(store, "one")
        async with running_engine(store, agent, config=Config(gateway=GatewayConfig(busy="interrupt"))) as engine:
            first = await engine.inbox.accept(message("one"))
            await running(store, first)
            second = await engine.inbox.accept(message("two"))
            assert second.superseded == (first.turn_id,)
            async with asyncio.timeout(1):
                await until(lambda: "one" in agent.seen)
            assert (await settled(store, second)).state is TurnState.COMPLETED
            assert (await store.turns.get(first.turn_id)).cause == "superseded"


async def test_a_busy_session_refuses_where_the_operator_said_so(open_it: Open) -> None:
    async with opened(open_it) as store:
        agent = HeldAgent(store, "one")
        async with running_engine(store, agent, config=Config(gateway=GatewayConfig(busy="reject"))) as engine:
            first = await engine.inbox.accept(message("one"))
            await running(store, first)
            with pytest.raises(SessionBusy):
                await engine.inbox.accept(message("two"))
            agent.release("one")
            await settled(store, first)
            await answered(engine, store, "three")


async def test_a_rested_conversation_gives_way_by_channel(open_it: Open) -> None:
    async with opened(open_it) as store:
        rules = Config(sessions=SessionsConfig(reset_by_channel={"telegram": "idle"}, idle_minutes=1))
        agent = HeldAgent(store)
        async with running_engine(store, agent, config=rules) as engine:
            first = await answered(engine, store, "one")
            web = await answered(engine, store, "one", conversation="web:1", channel="web")
        await store.database.write(lambda: _age(120_000))
        async with running_engine(store, agent, config=rules) as engine:
            assert (await answered(engine, store, "two")).session_id != first.session_id
            assert (await answered(engine, store, "two", conversation="web:1", channel="web")).session_id == web.session_id


def _age(by_ms: int) -> Transaction[None]:
    yield Run("UPDATE sessions SET updated_at = updated_at - :by", {"by": by_ms})


def test_the_day_began_at_the_last_such_time_that_has_passed() -> None:
    now = int(datetime(2026, 3, 5, 3, 59).astimezone().timestamp() * 1000)
    assert day_began_at(time(4), now) == now - 23 * 3_600_000 - 59 * 60_000
    assert day_began_at(time(3, 59), now) == now
