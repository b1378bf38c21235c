"""The life of a gateway: its wishes, its drains, and beginning anew where others would give up."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Iterator
from pathlib import Path

import pytest

from holdfast.agent.demonstration import demonstration
from holdfast.app.gateway import PAUSE_FIRST_S, serve
from holdfast.app.services import ServiceParts
from holdfast.client import contact
from holdfast.clock import SystemClock
from holdfast.config import Config, ServerConfig, StoreConfig
from holdfast.core.turns import Cause, TurnState
from holdfast.daemon.handover import Handover
from holdfast.daemon.process import run_until_stopped
from holdfast.daemon.service_manager import ServiceManager
from holdfast.engine.engine import Engine, Parts
from holdfast.errors import StoreDown
from holdfast.ids import NodeId, TurnId
from holdfast.operations.gateway import Stop
from holdfast.operations.lifecycle import Lifecycle
from holdfast.operations.sessions import Message, Opening
from holdfast.operations.turns import TurnView
from holdfast.store.home import Ownership
from holdfast.store.opening import open_store
from holdfast.store.store import Store
from tests import scratch
from tests.engine.world import until
from tests.postgres import Server
from tests.web.house import Log, open_house


class Stubborn(Engine):
    """An engine whose patient drain never ends."""

    async def drain(self, timeout_ms: int, cause: Cause = Cause.SHUTDOWN_TIMEOUT) -> int:
        if timeout_ms:
            await asyncio.Event().wait()
        return 3


async def test_a_forced_drain_does_not_wait_for_the_patient_one(home: Path) -> None:
    store = await open_store("sqlite", home)
    try:
        engine, clock, log = Stubborn(Parts(store=store, agent=demonstration())), SystemClock(), Log()
        life = Lifecycle(clock, home="", store="")
        services = ServiceParts(store=store, engine=engine, lifecycle=life, clock=clock).services()
        living = asyncio.create_task(run_until_stopped(services, 600, log, ServiceManager({})))
        life.ask(Stop(restart=True))
        await until(lambda: log.drains)
        life.ask(Stop())
        assert await asyncio.wait_for(living, 10) == Stop()
        assert log.interrupted == 3
    finally:
        await store.close()


async def test_the_last_wish_counts_and_every_later_one_hastens() -> None:
    life = Lifecycle(SystemClock(), home="", store="")
    life.ask(Stop(restart=True, timeout=5))
    assert (await life.asked(), life.forced.is_set()) == (Stop(restart=True, timeout=5), False)
    life.ask(Stop())
    assert (life.wish, life.forced.is_set()) == (Stop(), True)


async def test_a_node_that_the_others_gave_up_begins_anew(home: Path, postgres: Server) -> None:
    """T4: a machine that slept for longer than its lease has lost its turns, and is no less able to take new ones."""
    url = postgres.create_database("lost_node")
    other = await open_store(url, home / "other")
    try:
        async with open_house(home, store=url) as house:
            ((node_id, _),) = (await other.nodes.beats()).items()
            await until_buried(other, node_id)
            assert await asyncio.wait_for(asyncio.shield(house.gateway), 20)
            ended = house.gateway.result()
            assert ended.stop == Stop(restart=True)
            # The home is still ours, for the process that follows.
            assert ended.handover.lock is not None
            async with open_house(home, store=url, inherited=ended.handover) as again:
                assert again.url == house.url
                assert (await again.get("/ready"))["ready"]
    finally:
        await other.close()


async def until_buried(other: Store, node_id: NodeId) -> None:
    async def bury() -> bool:
        return await other.nodes.bury(node_id, (await other.nodes.beats()).get(node_id, 0))

    await until(bury)


async def test_a_command_that_is_cut_short_interrupts_its_turns_on_purpose(home: Path) -> None:
    """R4: Ctrl-C in a command with a gateway of its own is no crash; the cause says what it was."""
    running: asyncio.Future[TurnId] = asyncio.get_running_loop().create_future()

    async def command() -> None:
        async with contact.services(Config(), home) as services:
            session = await services.sessions.open(Opening(key="terminal"))
            turn_id = (await services.sessions.send(session.id, Message(text="wait 60 seconds"))).turn_id
            await until(lambda: _is(services.turns.get(turn_id), TurnState.RUNNING))
            running.set_result(turn_id)
            await asyncio.Event().wait()

    task = asyncio.create_task(command())
    turn_id = await asyncio.wait_for(running, 20)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with contact.reading_services(Config(), home) as services:
        turn = await services.turns.get(turn_id)
    assert (turn.state, turn.cause) == (TurnState.INTERRUPTED, Cause.SHUTDOWN_TIMEOUT)


async def _is(turn: Awaitable[TurnView], state: TurnState) -> bool:
    return (await turn).state is state


async def test_a_gateway_that_begins_anew_waits_for_its_store(
    home: Path, postgres_alone: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """What follows a restart or a stall has accepted messages to answer, so it does not give up; it says so once."""
    url = postgres_alone.create_database("away")
    await asyncio.to_thread(postgres_alone.stop, "immediate")
    config = Config(server=ServerConfig(port=0), store=StoreConfig(url=url))
    with pytest.raises(StoreDown):
        await serve(config, home, Log())
    ownership = Ownership(home / "gateway.lock")
    handover = Handover(lock=ownership.hand_over())
    ownership.release()

    async def bring_it_back() -> None:
        await until(lambda: sum("waiting for it" in each.message for each in caplog.records))
        await asyncio.sleep(PAUSE_FIRST_S * 2)
        await asyncio.to_thread(postgres_alone.start)

    with caplog.at_level(logging.WARNING):
        back = asyncio.create_task(bring_it_back())
        async with open_house(home, store=url, inherited=handover) as house:
            assert (await house.get("/ready"))["ready"]
        await back
    assert sum("waiting for it" in each.message for each in caplog.records) == 1


@pytest.fixture
def postgres_alone() -> Iterator[Server]:
    """A server that only this test uses, because it is stopped."""
    with Server(durable=True, parent=scratch.parent()) as server:
        yield server
