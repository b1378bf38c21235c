"""Following a session while others write to it: live stays replay across gaps, lost answers and restarts."""

from __future__ import annotations

from holdfast.core.events import EntryKind
from holdfast.core.turns import TurnState
from holdfast.errors import StoreDown
from holdfast.ids import SessionId
from holdfast.store.store import Store
from tests.engine.players import Follower, Puppet, ReluctantJournal, in_state, journal_of, text_of
from tests.engine.world import Altered, ManualClock, Open, message, opened, running_engine, settled, until


async def shows(store: Store, session_id: SessionId, kind: EntryKind) -> bool:
    return any(entry.kind is kind for entry in await journal_of(store, session_id))


async def test_nobody_sees_an_entry_before_the_store_has_it(open_it: Open) -> None:
    """J1: while a write waits, its text is shown to no one, though everything else is."""
    async with opened(open_it) as store:
        journal, agent = ReluctantJournal(store), Puppet()
        async with running_engine(Altered(store, journal=journal), agent) as engine:
            receipt = await engine.inbox.accept(message())
            follower = Follower(engine, receipt.session_id)
            await follower.until(EntryKind.TURN_STARTED)
            journal.may_write.clear()
            await agent.say("not yet durable")
            await until(lambda: journal.asked)
            other = await engine.inbox.accept(message("meanwhile"))
            await follower.until(EntryKind.TURN_ACCEPTED, 2)
            assert not any(entry.kind is EntryKind.TEXT for entry in follower.seen)
            journal.may_write.set()
            await follower.until(EntryKind.TEXT)
            await engine.cancel(other.turn_id)
            await agent.finish()
            await settled(store, receipt)
            await follower.leave()


async def test_followers_who_come_at_any_time_with_any_cursor_see_the_same(open_it: Open) -> None:
    """J3 J8: none twice, none lost, also when messages arrive in the middle of a turn."""
    agent = Puppet()
    async with opened(open_it) as store, running_engine(store, agent) as engine:
        receipt = await engine.inbox.accept(message("first"))
        followers = {0: Follower(engine, receipt.session_id)}
        for number in range(1, 13):
            await agent.say(f"say {number} ")
            await agent.think(f"think {number} ")
            if number % 3 == 0:
                await engine.inbox.accept(message(f"next {number}"))
            followers[number] = Follower(engine, receipt.session_id, number)
        for _ in range(5):
            await agent.finish()
        await followers[0].until(EntryKind.TURN_COMPLETED, 5)
        journal = await journal_of(store, receipt.session_id)
        for cursor, follower in followers.items():
            await until(lambda follower=follower: follower.seen and follower.seen[-1].seq == journal[-1].seq)
            assert await follower.leave() == journal[cursor:]


async def test_a_message_accepted_between_two_writes_of_a_turn_is_not_skipped(open_it: Open) -> None:
    """J3: what this node publishes has gaps, because others write to the session too; the journal fills them."""
    agent, pace = Puppet(), ManualClock()
    async with opened(open_it) as store, running_engine(store, agent) as engine:
        receipt = await engine.inbox.accept(message("first"))
        busy = Follower(engine, receipt.session_id, pace=pace)
        await until(lambda: busy.seen)
        # While the follower is busy with its first entry, its mailbox fills up on both sides of the second message.
        await until(lambda: shows(store, receipt.session_id, EntryKind.TURN_STARTED))
        await agent.say("before")
        await until(lambda: shows(store, receipt.session_id, EntryKind.TEXT))
        second = await engine.inbox.accept(message("second"))
        await agent.think("after")
        await until(lambda: shows(store, receipt.session_id, EntryKind.REASONING))
        await engine.cancel(second.turn_id)
        await agent.finish()
        await settled(store, receipt)
        journal = await journal_of(store, receipt.session_id)
        while busy.seen[-1].seq < journal[-1].seq:
            await pace.asleep(seen := len(busy.seen))
            await pace.advance(1)
            await until(lambda seen=seen: len(busy.seen) > seen)
        assert await busy.leave() == journal


async def test_a_cursor_is_good_across_a_restart(open_it: Open) -> None:
    """J8: the next engine goes on behind it, with what became of the turn."""
    agent = Puppet()
    async with opened(open_it) as store:
        async with running_engine(store, agent) as engine:
            receipt = await engine.inbox.accept(message())
            follower = Follower(engine, receipt.session_id)
            await agent.say("before the restart")
            await follower.until(EntryKind.TEXT)
            seen = await follower.leave()
        async with running_engine(store, Puppet()) as engine:
            await in_state(store, receipt, TurnState.INTERRUPTED)
            follower = Follower(engine, receipt.session_id, seen[-1].seq)
            await follower.until(EntryKind.TURN_INTERRUPTED)
            seen += await follower.leave()
        assert seen == await journal_of(store, receipt.session_id)


async def test_what_the_store_took_without_an_answer_is_shown_once(open_it: Open) -> None:
    """J1 J3: the same append again brings the entries that the first one wrote."""
    async with opened(open_it) as store:
        journal, agent = ReluctantJournal(store), Puppet()
        async with running_engine(Altered(store, journal=journal), agent) as engine:
            receipt = await engine.inbox.accept(message())
            follower = Follower(engine, receipt.session_id)
            await follower.until(EntryKind.TURN_STARTED)
            journal.failures_after.append(StoreDown("the answer was lost"))
            await agent.say("hello")
            await follower.until(EntryKind.TEXT)
            journal.failures_before.append(StoreDown("the question was lost"))
            await agent.think("hm")
            await follower.until(EntryKind.REASONING)
            await agent.finish("hello")
            await follower.until(EntryKind.TURN_COMPLETED)
            assert await follower.leave() == await journal_of(store, receipt.session_id)
        assert (journal.failures_after, journal.failures_before) == ([], [])
        assert await text_of(store, receipt) == "hello"
