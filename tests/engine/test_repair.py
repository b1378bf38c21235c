"""Whoever reads looks for what is missing: one at a time, for a while, and a home that comes back brings it all."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.config import Config, GatewayConfig
from holdfast.core.events import EntryKind
from holdfast.core.intake import Receipt
from holdfast.core.recovery import GIVE_UP_AGE_MS, PendingRecovery
from holdfast.core.transcript import Item, Role, fold
from holdfast.core.turns import Cause, Policy, TurnState
from holdfast.engine.repair import Repair
from holdfast.engine.spool import Spool
from holdfast.errors import StoreDown
from holdfast.ids import NodeId, SessionId, new_node_id, new_session_id, new_turn_id
from holdfast.store.store import Store
from tests.claims import claim
from tests.engine.players import Puppet, in_state, journal_of
from tests.engine.world import FAST, START, Altered, Hang, ManualClock, Open, message, opened, running_engine, until

# Slow enough that a busy machine hears of its own claims between two beats.
SETTINGS = replace(FAST, beat_ms=100)
THERE = "the home of the dead node"


class Watched:
    """The searches of a store; `looks` counts how often somebody looked for what was missing, and a look may hang."""

    def __init__(self, store: Store, hang: Hang | None = None) -> None:
        self.looks = 0
        self._whole = store.recoveries
        self._hang = hang

    async def sight(self, pending: PendingRecovery) -> Any:
        self.looks += 1
        if self._hang:
            await self._hang.wait()
        return await self._whole.sight(pending)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._whole, name)


async def joined(store: Store, home: str) -> NodeId:
    node = new_node_id(START)
    await store.nodes.join(node, START, home)
    return node


async def lost(store: Store, home: str = THERE, conversation: str = "chat:1") -> Receipt:
    """Let a node of a home die right after the start of a turn, and another one take over."""
    node = await joined(store, home)
    ids = (new_turn_id(START), new_session_id(START))
    receipt = await store.intake.accept(message(conversation=conversation), *ids, START)
    (claimed,) = await claim(store, node, 1)
    await store.turns.start(claimed, START)
    await store.nodes.leave(node)
    await store.nodes.sweep(Cause.CRASH, Policy(), START, home="our own home")
    return receipt


async def marker(store: Store, receipt: Receipt) -> Item:
    return fold(await journal_of(store, receipt.session_id))[-1]


async def tries(store: Store, receipt: Receipt) -> list[int]:
    return [each.tries for each in await store.recoveries.of_session(receipt.session_id)]


async def test_a_sealed_journal_is_looked_for_twelve_times(open_it: Open) -> None:
    """J6: then the wording is neutral, and nobody looks any more."""
    async with opened(open_it) as store:
        receipt = await lost(store)
        watched = Watched(store)
        repair = Repair(watched, ManualClock())
        for count in range(11):
            assert await tries(store, receipt) == [count]
            assert await repair.retry(receipt.session_id) is False
            assert "pending" in (await marker(store, receipt)).text
        assert await repair.retry(receipt.session_id) is True
        assert (await marker(store, receipt)).text == "Interrupted: the gateway stopped without warning."
        assert await tries(store, receipt) == []
        assert await repair.retry(receipt.session_id) is False
        assert watched.looks == 12


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
async def test_a_journal_that_is_arriving_costs_nothing_however_often_it_is_read(open_it: Open) -> None:
    """J6: while a node of that home lives, it is going to say what there is."""
    async with opened(open_it) as store:
        receipt = await lost(store)
        repair = Repair(store.recoveries, ManualClock())
        node = await joined(store, THERE)
        for _ in range(30):
            assert await repair.retry(receipt.session_id) is False
        assert await tries(store, receipt) == [0]
        assert "pending" in (await marker(store, receipt)).text
        await store.nodes.leave(node)
        await repair.retry(receipt.session_id)
        assert await tries(store, receipt) == [1]


async def test_after_a_day_the_wording_is_neutral_and_the_journal_is_not_read(open_it: Open) -> None:
    """J7."""
    async with opened(open_it) as store:
        receipt = await lost(store)
        clock, watched = ManualClock(), Watched(store)
        repair = Repair(watched, clock)
        await clock.advance(GIVE_UP_AGE_MS)
        assert await repair.retry(receipt.session_id) is False
        assert watched.looks == 1
        await clock.advance(1)
        assert await repair.retry(receipt.session_id) is True
        assert watched.looks == 1
        assert (await marker(store, receipt)).text == "Interrupted: the gateway stopped without warning."
        assert await tries(store, receipt) == []


async def test_of_concurrent_readers_one_looks_and_the_others_do_not_wait(open_it: Open) -> None:
    """J5."""
    async with opened(open_it) as store:
        receipt, other = await lost(store), await lost(store, conversation="chat:2")
        hang = Hang()
        watched = Watched(store, hang)
        repair = Repair(watched, ManualClock())
        first = asyncio.create_task(repair.retry(receipt.session_id))
        await until(lambda: watched.looks)
        async with asyncio.timeout(1):
            assert [await repair.retry(receipt.session_id) for _ in range(5)] == [False] * 5
        assert not first.done()
        beside = asyncio.create_task(repair.retry(other.session_id))
        await until(lambda: watched.looks == 2)
        hang.release()
        assert (await first, await beside) == (False, False)
        assert (await tries(store, receipt), await tries(store, other)) == ([1], [1])


async def test_readers_on_many_nodes_have_looked_once(open_it: Open) -> None:
    """J5: who saw the same number of tries as another counts nothing."""
    async with opened(open_it) as store:
        receipt = await lost(store)
        hang = Hang()
        watched = Watched(store, hang)
        nodes = [Repair(watched, ManualClock()) for _ in range(4)]
        looking = [asyncio.create_task(repair.retry(receipt.session_id)) for repair in nodes]
        await until(lambda: watched.looks == 4)
        hang.release()
        await asyncio.gather(*looking)
        assert await tries(store, receipt) == [1]


async def test_an_unknown_session_and_a_store_that_is_away_are_no_errors(open_it: Open) -> None:
    """R12: a look is a courtesy to the reader, and never what keeps them from reading."""

    async def away(_: SessionId) -> list[PendingRecovery]:
        raise StoreDown("nobody answers")

    async with opened(open_it) as store:
        receipt = await lost(store)
        assert await Repair(store.recoveries, ManualClock()).retry(SessionId("nobody")) is False
        assert await Repair(store.recoveries, ManualClock()).retry(SessionId("")) is False
        repair = Repair(Altered(store.recoveries, of_session=away), ManualClock())
        assert [await repair.retry(receipt.session_id) for _ in range(2)] == [False, False]


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
async def test_a_home_that_comes_back_brings_what_it_has_and_ends_every_search_for_it(open_it: Open, tmp_path: Path) -> None:
    """J3 J4: pending for as long as nobody can know; then recovered where there was something, and neutral where not."""
    here, there = tmp_path / "here", tmp_path / "there"
    async with opened(open_it) as store, opened(open_it) as shared:
        async with running_engine(shared, agent := Puppet(), tuning=SETTINGS, spool=Spool(there)) as engine:
            speaks = await engine.inbox.accept(message())
            silent = await engine.inbox.accept(message(conversation="chat:2"))
            await until(lambda: len(agent.work) == 2)
            leave_words(there / "spool" / engine.node_id, speaks)
        async with running_engine(store, Puppet(), tuning=SETTINGS, spool=Spool(here)) as reader:
            for receipt in (speaks, silent):
                await in_state(store, receipt, TurnState.INTERRUPTED)
                assert await reader.repair.retry(receipt.session_id) is False
                assert "pending" in (await marker(store, receipt)).text
            async with running_engine(shared, Puppet(), tuning=SETTINGS, spool=Spool(there)):
                for receipt in (speaks, silent):
                    await until(lambda receipt=receipt: is_over(store, receipt))
            items = fold(await journal_of(store, speaks.session_id))
            assert [(item.role, item.text, item.recovered) for item in items[1:-1]] == [(Role.ASSISTANT, "one two ", True)]
            assert "recovered from the run journal" in items[-1].text
            assert (await marker(store, silent)).text == "Interrupted: the gateway stopped without warning."
            found = [e.data for e in await journal_of(store, speaks.session_id) if e.kind is EntryKind.TURN_RECOVERED]
            assert found == [{"attempt": 1, "found": 2}]


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
async def test_a_home_that_comes_back_brings_nothing_of_a_turn_that_was_cancelled(open_it: Open, tmp_path: Path) -> None:
    """J3 J9: with the cancel nobody waits for it any more, and what was left there goes."""
    here, there = tmp_path / "here", tmp_path / "there"
    waiting = Config(gateway=GatewayConfig(max_running=0, resume="auto"))
    async with opened(open_it) as store, opened(open_it) as shared:
        async with running_engine(shared, agent := Puppet(), tuning=SETTINGS, spool=Spool(there)) as engine:
            receipt = await engine.inbox.accept(message())
            await until(lambda: agent.work)
            leave_words(there / "spool" / engine.node_id, receipt)
        async with running_engine(store, Puppet(), tuning=SETTINGS, config=waiting, spool=Spool(here)) as reader:
            await in_state(store, receipt, TurnState.QUEUED)
            assert "pending" in (await marker(store, receipt)).text
            await reader.cancel(receipt.turn_id)
            assert await is_over(store, receipt)
            shown = fold(await journal_of(store, receipt.session_id))
            assert [item.text for item in shown[1:]] == ["Interrupted: the gateway stopped without warning.", "Cancelled."]
            async with running_engine(shared, Puppet(), tuning=SETTINGS, config=waiting, spool=Spool(there)):
                await until(lambda: not list((there / "spool").iterdir()))
            assert fold(await journal_of(store, receipt.session_id)) == shown


def leave_words(folder: Path, receipt: Receipt) -> None:
    """Leave what a node said last in its home, as if it had died right after."""
    folder.mkdir(parents=True)
    line = '{"nth": %d, "kind": "text", "at": 1, "data": {"text": "%s "}}\n'
    (folder / f"{receipt.turn_id}.1.jsonl").write_text(line % (2, "one") + line % (3, "two"))


async def is_over(store: Store, receipt: Receipt) -> bool:
    return not await store.recoveries.of_session(receipt.session_id)
