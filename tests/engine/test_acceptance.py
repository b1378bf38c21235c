"""The inbox: what has its receipt is durable, is run once, and is answered by whichever engine comes next."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.agent.scripted import Say, ScriptedAgent
from holdfast.core.events import EntryKind
from holdfast.core.turns import TurnState
from holdfast.errors import KeyReused, QueueFull, StoreDown
from holdfast.store.opening import open_readonly
from tests.engine.players import Puppet, Witness, in_state, kinds_of, text_of
from tests.engine.world import Altered, Open, answered, message, opened, running_engine, settled, until


def echo() -> Witness:
    return Witness(ScriptedAgent(lambda work: [Say(f"re: {work.message}")]))


async def test_whoever_has_a_receipt_can_show_it_to_another_process(open_it: Open, store_url: str, tmp_path: Path) -> None:
    """A2: at the moment the receipt is out, a reader with no part in the engine finds the turn."""
    async with opened(open_it) as store, running_engine(store, Puppet()) as engine:
        beside = await open_readonly(store_url, tmp_path)
        try:
            for number in range(20):
                receipt = await engine.inbox.accept(message(f"message {number}", conversation=f"chat:{number}"))
                assert receipt.state is TurnState.QUEUED
                assert (await beside.turns.get(receipt.turn_id)).session_id == receipt.session_id
                (accepted, *_) = await beside.journal.read_turn(receipt.turn_id)
                assert (accepted.kind, accepted.data["text"]) == (EntryKind.TURN_ACCEPTED, f"message {number}")
        finally:
            await beside.close()


async def test_a_message_that_no_engine_was_there_to_run_is_answered_by_the_next(open_it: Open) -> None:
    """A1 A2: accepting needs a store, not a worker."""
    agent = echo()
    async with opened(open_it) as store:
        async with running_engine(store, agent) as engine:
            pass
        receipts = [await engine.inbox.accept(message(f"{number}")) for number in range(5)]
        assert agent.work == []
        async with running_engine(store, agent):
            assert [(await settled(store, each)).state for each in receipts] == [TurnState.COMPLETED] * 5
        assert agent.messages == ["0", "1", "2", "3", "4"]
        assert [await text_of(store, each) for each in receipts] == ["re: 0", "re: 1", "re: 2", "re: 3", "re: 4"]


async def test_a_repeated_message_has_the_same_receipt_and_runs_once(open_it: Open) -> None:
    """A3: before it ran, while it runs, after it ran, and on the next engine."""
    agent = Puppet()
    delivery = message(dedupe_key="hook:1:77")
    async with opened(open_it) as store:
        async with running_engine(store, agent) as engine:
            first = await engine.inbox.accept(delivery)
            await until(lambda: agent.work)
            assert await engine.inbox.accept(delivery) == replace(first, state=TurnState.RUNNING, duplicate=True)
            await agent.finish()
            await settled(store, first)
        async with running_engine(store, agent) as engine:
            assert await engine.inbox.accept(delivery) == replace(first, state=TurnState.COMPLETED, duplicate=True)
            other = await engine.inbox.accept(message("something else"))
            await agent.finish()
            await settled(store, other)
        assert [work.turn.id for work in agent.work] == [first.turn_id, other.turn_id]


async def test_a_key_with_another_body_is_refused_and_runs_nothing(open_it: Open) -> None:
    """A3"""
    agent = echo()
    async with opened(open_it) as store, running_engine(store, agent) as engine:
        await answered(engine, store, "pay 5", dedupe_key="k")
        with pytest.raises(KeyReused):
            await engine.inbox.accept(message("pay 500", dedupe_key="k"))
        await answered(engine, store, "later")
        assert agent.messages == ["pay 5", "later"]


async def test_without_a_store_there_is_no_receipt(open_it: Open) -> None:
    """A2: the sender hears that it must try again, and when it does the message is there once."""
    agent = echo()
    async with opened(open_it) as store:

        async def refuse(*_: object) -> None:
            raise StoreDown("away")

        away = Altered(store, intake=Altered(store.intake, accept=refuse))
        async with running_engine(away, agent) as engine:
            with pytest.raises(StoreDown):
                await engine.inbox.accept(message("hello", dedupe_key="k"))
        async with running_engine(store, agent) as engine:
            await answered(engine, store, "hello", dedupe_key="k")
        assert agent.messages == ["hello"]


async def test_a_flooded_session_says_so_and_its_neighbour_does_not_suffer(open_it: Open) -> None:
    """A1: what was refused left nothing behind; what was accepted has its outcome."""
    agent = Puppet()
    async with opened(open_it) as store, running_engine(store, agent) as engine:
        receipts = [await engine.inbox.accept(message(f"{number}")) for number in range(100)]
        with pytest.raises(QueueFull):
            await engine.inbox.accept(message("one too many"))
        neighbour = await engine.inbox.accept(message(conversation="chat:2"))
        await in_state(store, neighbour, TurnState.RUNNING)
        await store.settlement.end_session(receipts[0].session_id, "user", 0)
        assert sum((await store.turns.tally()).values()) == 101
        for receipt in receipts[::10]:
            assert EntryKind.TURN_CANCELLED in await kinds_of(store, receipt)
