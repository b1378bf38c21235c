"""The feed: live is replay, and nobody sees what is not durable."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from holdfast.agent.scripted import Line, Pause, Say, ScriptedAgent, Think
from holdfast.core.events import EntryKind
from holdfast.core.intake import Receipt
from holdfast.core.journal import Entry, ends_attempt
from holdfast.core.turns import TurnState
from holdfast.engine.engine import Engine
from holdfast.engine.feed import BACKLOG_MAX, POLL_S, Feed
from holdfast.ids import SessionId, TurnId
from holdfast.ports import Assignment, Stage
from holdfast.store.store import Store
from tests.engine.world import DEADLINE_S, Hang, Open, message, opened, running_engine, settled, until

CHATTY = [line for n in range(12) for line in (Think(f"t{n} "), Say(f"s{n} "), Pause(1))]


async def follow(engine: Engine, receipt: Receipt, after: int = 0) -> list[Entry]:
    """Return what a follower sees until the turn comes to rest."""
    seen: list[Entry] = []
    async with asyncio.timeout(DEADLINE_S), aclosing(entries(engine, receipt, after)) as stream:
        async for entry in stream:
            seen.append(entry)
            if entry.turn_id == receipt.turn_id and ends_attempt(entry.event):
                break
    return seen


def entries(engine: Engine, receipt: Receipt, after: int = 0) -> AsyncIterator[Entry]:
    return engine.feed.follow(receipt.session_id, after)


async def test_nobody_sees_an_entry_that_is_not_in_the_store(open_it: Open) -> None:
    """J1: shown is durable."""
    async with opened(open_it) as store, running_engine(store, ScriptedAgent(CHATTY)) as engine:
        receipt = await engine.inbox.accept(message())
        async with aclosing(entries(engine, receipt)) as stream:
            async for entry in stream:
                assert await store.journal.read(receipt.session_id, entry.seq - 1, limit=1) == [entry]
                if entry.kind is EntryKind.TURN_COMPLETED:
                    break


async def test_followers_from_any_cursor_see_what_a_replay_shows(open_it: Open) -> None:
    """J3 J8: each entry after the cursor exactly once and in order, whenever the follower came."""
    async with opened(open_it) as store, running_engine(store, ScriptedAgent(CHATTY)) as engine:
        receipt = await engine.inbox.accept(message())
        early = [asyncio.create_task(follow(engine, receipt, after)) for after in (0, 0, 1, 2, 5)]
        await settled(store, receipt)
        late = [asyncio.create_task(follow(engine, receipt, after)) for after in (0, 3, 7)]
        replay = await store.journal.read(receipt.session_id)
        for after, seen in zip((0, 0, 1, 2, 5, 0, 3, 7), await asyncio.gather(*early, *late), strict=True):
            assert seen == [entry for entry in replay if entry.seq > after]


async def test_a_reader_that_reconnects_again_and_again_misses_nothing(open_it: Open) -> None:
    """J8: a new connection for every entry, each from the last cursor."""
    async with opened(open_it) as store, running_engine(store, ScriptedAgent(CHATTY)) as engine:
        receipt = await engine.inbox.accept(message())
        seen: list[Entry] = []
        while not seen or seen[-1].kind is not EntryKind.TURN_COMPLETED:
            async with aclosing(entries(engine, receipt, seen[-1].seq if seen else 0)) as stream:
                seen.append(await anext(stream))
        assert seen == await store.journal.read(receipt.session_id)


async def test_a_follower_too_slow_for_its_backlog_still_gets_everything(open_it: Open) -> None:
    """J3: what does not fit into memory is read from the journal."""
    many: list[Line] = [line for n in range(BACKLOG_MAX) for line in (Think(f"{n} "), Say(f"{n} "))]
    async with opened(open_it) as store, running_engine(store, ScriptedAgent(many)) as engine:
        receipt = await engine.inbox.accept(message())
        async with aclosing(entries(engine, receipt)) as stream:
            seen = [await anext(stream)]
            await settled(store, receipt)
            while seen[-1].kind is not EntryKind.TURN_COMPLETED:
                seen.append(await anext(stream))
        assert len(seen) > 2 * BACKLOG_MAX
        assert seen == await store.journal.read(receipt.session_id, limit=10_000)


class Patient:
    """Says one word, and the rest when it is released."""

    def __init__(self) -> None:
        self.hang = Hang()

    async def run(self, work: Assignment, stage: Stage) -> str:
        await stage.say("one ")
        await self.hang.wait()
        await stage.say("two")
        return "one two"


async def test_a_disconnect_is_not_a_cancel(open_it: Open) -> None:
    """J9: the turn does not notice that its only reader has gone, and the reader is forgotten."""
    agent = Patient()
    async with opened(open_it) as store, running_engine(store, agent) as engine:
        receipt = await engine.inbox.accept(message())
        async with aclosing(entries(engine, receipt)) as stream:
            while (await anext(stream)).kind is not EntryKind.TEXT:
                pass
        assert engine.feed._followers == {}
        agent.hang.release()
        assert (await settled(store, receipt)).state is TurnState.COMPLETED
        assert [entry.kind for entry in await follow(engine, receipt)][-1] is EntryKind.TURN_COMPLETED


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
async def test_a_session_can_be_followed_from_another_node(open_it: Open) -> None:
    """J3: any node serves any session's stream."""
    agent = Patient()
    async with opened(open_it) as here, opened(open_it) as there, running_engine(here, agent) as working:
        receipt = await working.inbox.accept(message())
        await _shown(here, receipt)
        async with running_engine(there, agent) as looking:
            following = asyncio.create_task(follow(looking, receipt))
            agent.hang.release()
            assert await following == await here.journal.read(receipt.session_id)


class Gated:
    """A journal that answers, when it may, with what it had when it was asked."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.asked = 0
        self.open = asyncio.Event()

    async def news(self, session_id: SessionId, after: int, limit: int = 1_000) -> list[Entry]:
        found = [entry for entry in self.entries if entry.seq > after]
        self.asked += 1
        await self.open.wait()
        return found


@pytest.mark.parametrize("published", [True, False])
async def test_who_comes_after_the_news_does_not_share_a_look_that_began_before(published: bool) -> None:
    """J8: it would miss the entry, until it looks by itself much later."""
    journal, session_id = Gated(), SessionId("ses_1")
    feed = Feed(journal)  # type: ignore[arg-type]
    entry = Entry.read(
        session_id=session_id, seq=1, turn_id=TurnId("trn_1"), attempt=1, nth=None, kind=EntryKind.NOTE, at=0, data={}
    )
    async with (
        asyncio.timeout(POLL_S / 2),
        aclosing(feed.follow(session_id)) as early,
        aclosing(feed.follow(session_id)) as late,
    ):
        first = asyncio.create_task(anext(early))
        await until(lambda: journal.asked == 1)
        journal.entries.append(entry)
        if published:
            feed.publish([entry])
        else:
            feed.hint(session_id)
        second = asyncio.create_task(anext(late))
        await until(lambda: journal.asked == 2)
        journal.open.set()
        assert (await first, await second) == (entry, entry)


async def test_those_at_the_same_place_look_once() -> None:
    journal, session_id = Gated(), SessionId("ses_1")
    feed = Feed(journal)  # type: ignore[arg-type]
    streams = [feed.follow(session_id) for _ in range(50)]
    readers = [asyncio.create_task(anext(each)) for each in streams]
    await until(lambda: len(feed._followers.get(session_id, ())) == 50)
    assert journal.asked == 1
    # One that leaves takes nothing from the others.
    readers[0].cancel()
    entry = Entry.read(
        session_id=session_id, seq=1, turn_id=TurnId("trn_1"), attempt=1, nth=None, kind=EntryKind.NOTE, at=0, data={}
    )
    journal.open.set()
    journal.entries.append(entry)
    feed.hint(session_id)
    assert await asyncio.gather(*readers[1:]) == [entry] * 49
    for each in streams:
        await each.aclose()
    assert (feed._followers, feed._looks) == ({}, {})


async def _shown(store: Store, receipt: Receipt) -> None:
    async def look() -> bool:
        return EntryKind.TEXT in {entry.kind for entry in await store.journal.read(receipt.session_id)}

    await until(look)
