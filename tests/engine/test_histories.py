"""What turns read of their session's journal, and how much of it they read again."""

from __future__ import annotations

from typing import Any

from holdfast.core.events import EntryKind
from holdfast.core.intake import Receipt
from holdfast.core.transcript import fold
from holdfast.core.turns import Turn
from holdfast.engine.histories import Histories
from holdfast.engine.live import LiveSessions
from holdfast.ports import Stage
from holdfast.store.journal import Brief
from holdfast.store.store import Store
from tests.engine.players import Puppet
from tests.engine.world import START, Altered, Open, message, opened, running_engine, settled


class Reads:
    """The cursors from which briefs were asked for."""

    def __init__(self, store: Store) -> None:
        self.after: list[int | None] = []
        self._store = store

    async def brief(self, turn: Turn, after: int | None = None) -> Brief:
        self.after.append(after)
        return await self._store.journal.brief(turn, after)

    def over(self, store: Store) -> Any:
        return Altered(store, journal=Altered(store.journal, brief=self.brief))


async def _turn(agent: Puppet, store: Store, engine: Any, text: str, **changes: Any) -> Receipt:
    receipt = await engine.inbox.accept(message(text, **changes))
    await agent.finish(f"re: {text}")
    await settled(store, receipt)
    return receipt


async def test_a_turn_reads_only_what_is_new_and_knows_everything(open_it: Open) -> None:
    agent = Puppet()
    async with opened(open_it) as store:
        reads = Reads(store)
        async with running_engine(reads.over(store), agent) as engine:
            for text in ("one", "two", "three"):
                last = await _turn(agent, store, engine, text)
        entries = await store.journal.read(last.session_id)
    assert [item.text for item in agent.work[-1].history] == ["one", "re: one", "two", "re: two", "three"]
    before = [entry for entry in entries if entry.turn_id != last.turn_id or entry.attempt == 0]
    assert list(agent.work[-1].history) == fold(before)
    accepted, started = (
        [entry.seq for entry in entries if entry.kind is kind][:-1]
        for kind in (EntryKind.TURN_ACCEPTED, EntryKind.TURN_STARTED)
    )
    # The first has nothing to go by; each other goes on behind the last entry that the one before it has seen.  A turn may
    # read while it starts, and then it has not seen its start.
    assert reads.after[0] is None
    assert all(after in seen for after, seen in zip(reads.after[1:], zip(accepted, started, strict=True), strict=True))


async def test_what_was_undone_meanwhile_is_gone(open_it: Open) -> None:
    agent = Puppet()
    async with opened(open_it) as store, running_engine(store, agent) as engine:
        first = await _turn(agent, store, engine, "one")
        await _turn(agent, store, engine, "two")
        await store.settlement.undo(first.session_id, START)
        await _turn(agent, store, engine, "three")
    assert [item.text for item in agent.work[-1].history] == ["one", "re: one", "three"]


async def test_a_new_summary_stands_for_what_was_known(open_it: Open) -> None:
    agent = Puppet()
    async with opened(open_it) as store, running_engine(store, agent) as engine:
        first = await _turn(agent, store, engine, "one")
        second = await engine.inbox.accept(message("two"))

        async def compact(stage: Stage) -> None:
            await stage.compact("sum", first.turn_id)

        await agent.do(compact)
        await agent.finish("re: two")
        await settled(store, second)
        await _turn(agent, store, engine, "three")
        await _turn(agent, store, engine, "four")
    assert [item.text for item in agent.work[-2].history] == ["sum", "two", "re: two", "three"]
    assert [item.text for item in agent.work[-1].history] == ["sum", "two", "re: two", "three", "re: three", "four"]


async def test_no_more_is_kept_than_there_is_room_for(open_it: Open) -> None:
    """A limit on everything: the least recently used go first, and one-shot sessions are not kept at all."""
    agent = Puppet()
    async with opened(open_it) as store:
        reads = Reads(store)
        async with running_engine(reads.over(store), agent) as engine:
            turns = {
                name: await store.turns.get((await _turn(agent, store, engine, name, **changes)).turn_id)
                for name, changes in (
                    ("a", {"conversation": "a"}),
                    ("b", {"conversation": "b"}),
                    ("once", {"conversation": "once", "one_shot": True}),
                )
            }
        journal = Altered(store.journal, brief=reads.brief)
        size = (await Histories(LiveSessions(9)).read(journal, turns["a"]))[1].chars
        few = Histories(LiveSessions(9), chars_max=size + size // 2)
        reads.after.clear()
        for name in ("a", "a", "b", "b", "a", "once", "once"):
            await few.read(journal, turns[name])
    last = reads.after[1]
    assert last is not None
    assert reads.after == [None, last, None, last, None, None, None]
