"""Several nodes on one store: what one leaves, with a word or without, the others take over."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from holdfast.config import Config, GatewayConfig
from holdfast.core.events import EntryKind
from holdfast.core.turns import Cause, Mode, TurnState
from holdfast.engine.engine import Engine, Parts
from holdfast.errors import NodeLost
from tests.engine.players import Puppet, in_state, journal_of, kinds_of, text_of
from tests.engine.world import DEADLINE_S, FAST, Altered, Hang, Open, message, opened, running_engine, settled, until

pytestmark = pytest.mark.parametrize("store_url", ["postgres"], indirect=True)

# Such a short lease is for a node that nobody else watches: on a busy machine a node that lives can be silent for longer.
ALERT = replace(FAST, beat_ms=50, lease_ms=300)
# It never takes another node for dead because of its silence.
HEEDLESS = replace(FAST, beat_ms=50, lease_ms=600_000)


async def nothing(*_: object) -> None:
    """Say no goodbye."""


async def test_the_turns_of_a_node_that_leaves_go_on_elsewhere(open_it: Open) -> None:
    """R10 A1: the other node is there already, and needs no restart to notice."""
    leaving, staying = Puppet(), Puppet()
    async with opened(open_it) as store, opened(open_it) as other:
        async with running_engine(
            other, staying, tuning=HEEDLESS, config=Config(gateway=GatewayConfig(max_running=1))
        ) as stays:
            # The one that stays is busy, so that the turn begins on the one that leaves.
            busy = await stays.inbox.accept(message(conversation="chat:busy"))
            await in_state(store, busy, TurnState.RUNNING)
            async with running_engine(store, leaving, tuning=HEEDLESS) as leaves:
                receipt = await leaves.inbox.accept(message(conversation="hook", mode=Mode.DETACHED))
                await leaving.say("begun here, ")
                await until(lambda: text_of(store, receipt))
            await staying.finish()
            await settled(store, busy)
            await until(lambda: len(staying.work) == 2)
            assert staying.work[-1].turn.attempt == 2
            await staying.say("ended there")
            await staying.finish("ended there")
            assert (await settled(store, receipt)).state is TurnState.COMPLETED
        assert await text_of(store, receipt) == "begun here, ended there"
        assert (await kinds_of(store, receipt)).count(EntryKind.TURN_INTERRUPTED) == 1


async def test_a_silent_node_loses_its_turns_and_learns_of_it_too_late_to_do_harm(open_it: Open) -> None:
    """T4 P1: its worker goes on with an old fence; nothing of that is ever shown."""
    zombie_agent, heir_agent, heart = Puppet(), Puppet(), Hang()
    async with opened(open_it) as store, opened(open_it) as other:

        async def beat(node_id: object) -> None:
            await heart.wait()
            await store.nodes.beat(node_id)

        silent = Altered(store, nodes=Altered(store.nodes, beat=beat, leave=nothing))
        zombie = Engine(Parts(store=silent, agent=zombie_agent, tuning=HEEDLESS))
        task = asyncio.create_task(zombie.run())
        receipt = await zombie.inbox.accept(message(mode=Mode.DETACHED))
        await zombie_agent.say("mine. ")
        await until(lambda: text_of(store, receipt))
        async with running_engine(other, heir_agent, tuning=ALERT):
            await until(lambda: heir_agent.work)
            before = await journal_of(other, receipt.session_id)
            await zombie_agent.say("not mine any more. ")
            await until(lambda: zombie.running == 0)
            assert await journal_of(other, receipt.session_id) == before
            await heir_agent.say("mine now.")
            await heir_agent.finish("mine now.")
            assert (await settled(other, receipt)).state is TurnState.COMPLETED
        heart.release()
        with pytest.raises(NodeLost):
            await asyncio.wait_for(task, DEADLINE_S)
        assert await text_of(store, receipt) == "mine. mine now."
        interrupted = [e for e in await journal_of(store, receipt.session_id) if e.kind is EntryKind.TURN_INTERRUPTED]
        assert [entry.data["cause"] for entry in interrupted] == [Cause.CRASH]


async def test_a_turn_that_was_claimed_by_a_node_that_died_runs_elsewhere_as_if_nothing_had_been(open_it: Open) -> None:
    """R4: it had not started, so it has no interruption, no strike and no note."""
    heir_agent, claimed = Puppet(), Hang()
    async with opened(open_it) as store, opened(open_it) as other:

        async def start(*_: object) -> None:
            await claimed.wait()

        dying = Altered(
            store, turns=Altered(store.turns, start=start), nodes=Altered(store.nodes, beat=nothing, leave=nothing)
        )
        async with running_engine(dying, Puppet(), tuning=HEEDLESS) as engine:
            receipt = await engine.inbox.accept(message("hello"))
            await until(lambda: engine.running)
        async with running_engine(other, heir_agent, tuning=ALERT):
            await until(lambda: heir_agent.work)
            await heir_agent.finish()
            assert (await settled(store, receipt)).state is TurnState.COMPLETED
        assert heir_agent.work[0].message == "hello"
        assert (await store.turns.get(receipt.turn_id)).attempt == 1
        assert (await store.sessions.get(receipt.session_id)).strikes == 0
        assert EntryKind.TURN_INTERRUPTED not in await kinds_of(store, receipt)
