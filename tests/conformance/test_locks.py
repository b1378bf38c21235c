"""No two transactions ever wait for each other: everything that writes, on the same few sessions, from several nodes."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from pathlib import Path

import asyncpg
import pytest

from holdfast.core import segments
from holdfast.core.intake import Busy, Receipt
from holdfast.core.turns import Cause, Policy, Resume, Turn
from holdfast.errors import NotFound, Rejected, Stale
from holdfast.ids import NodeId, SessionId, TurnId
from holdfast.store import locks
from holdfast.store.database import Lock, Run, Transaction
from holdfast.store.opening import open_store
from holdfast.store.store import Store
from tests.claims import claim
from tests.conformance.scenes import OWNER, Scene, on_postgres, on_sqlite
from tests.watched import Undeclared

SECONDS = 6
CONVERSATIONS = ("a", "b", "c")
POLICY = Policy(resume=Resume.AUTO)


class Turmoil:
    """Nodes that do all there is to do with a few conversations, in any order."""

    def __init__(self, scene: Scene, seed: int) -> None:
        self.scene = scene
        self.dice = random.Random(seed)
        self.turns: list[tuple[TurnId, SessionId]] = []
        self.done = 0

    async def rage(self, store: Store, node: NodeId, until: float) -> None:
        acts = [self.accept, self.accept, self.supersede, self.work, self.work, self.work, self.cancel, self.end]
        acts += [self.sweep, self.seal, self.undo, self.delete, self.commit]
        while asyncio.get_running_loop().time() < until:
            # What another node did first is refused, as it should be.
            with suppress(Stale, Rejected, NotFound):
                await self.dice.choice(acts)(store, node)
            self.done += 1

    async def accept(self, store: Store, _node: NodeId, **changes: object) -> None:
        # Some at once, which share a commit: a session may be opened by another node while they wait for the others.
        keys = self.dice.sample(CONVERSATIONS, self.dice.randint(1, len(CONVERSATIONS)))
        found = [self.scene.accept(conversation=key, by=store, dedupe_key=self._key(key), **changes) for key in keys]
        for each in await asyncio.gather(*found):
            self.turns = [*self.turns[-8:], (each.turn_id, each.session_id)]

    async def supersede(self, store: Store, node: NodeId) -> None:
        await self.accept(store, node, busy=Busy.INTERRUPT)

    async def work(self, store: Store, node: NodeId) -> None:
        claimed = await claim(store, node, len(CONVERSATIONS))
        await asyncio.gather(*(self._play(store, node, turn) for turn in claimed))

    async def _play(self, store: Store, node: NodeId, turn: Turn) -> None:
        with suppress(Stale):
            turn, _ = await store.turns.start(turn, self.scene.now)
            for number in range(self.dice.randrange(3)):
                turn, _ = await store.journal.append(turn, [self.scene.text(str(number))])
            match self.dice.randrange(4):
                case 0:
                    await store.settlement.interrupt(node, [turn.id], Cause.CRASH, POLICY, self.scene.now)
                case 1:
                    question = self.scene.question()
                    await store.turns.park(turn, [self.scene.asked(question.id)], question)
                case _:
                    ending = self.scene.ending(turn, deliveries=self.scene.parts(turn, "one", "two"))
                    await store.settlement.finish(turn, ending)

    async def cancel(self, store: Store, _node: NodeId) -> None:
        turn_id, _ = self._any()
        await store.settlement.cancel(turn_id, Cause.USER, self.scene.now)

    async def end(self, store: Store, _node: NodeId) -> None:
        _, session_id = self._any()
        if self.dice.random() < 0.5:
            await store.settlement.suspend_session(session_id, self.scene.now)
        else:
            await store.settlement.end_session(session_id, "user", self.scene.now)

    async def sweep(self, store: Store, _node: NodeId) -> None:
        lost = await self.scene.joined(store)
        await claim(store, lost, 1)
        await store.nodes.leave(lost)
        await store.nodes.sweep(Cause.CRASH, POLICY, self.scene.now)

    async def seal(self, store: Store, _node: NodeId) -> None:
        await store.segments.seal_all([session_id for _, session_id in self.turns], self.scene.now)

    async def commit(self, store: Store, node: NodeId) -> None:
        for segment in await store.segments.claim(node, OWNER, self.scene.now, 4):
            await store.segments.settle(segment, segments.SegmentEvent.SUCCEED, self.scene.now)

    async def undo(self, store: Store, _node: NodeId) -> None:
        _, session_id = self._any()
        await store.settlement.undo(session_id, self.scene.now)

    async def delete(self, store: Store, _node: NodeId) -> None:
        _, session_id = self._any()
        await store.sessions.delete(session_id, self.scene.now)

    def _any(self) -> tuple[TurnId, SessionId]:
        if not self.turns:
            raise NotFound("nothing was accepted yet")
        return self.dice.choice(self.turns)

    def _key(self, conversation: str) -> str:
        # Few enough that some come twice, from several nodes at once.
        return f"{conversation}:{self.dice.randrange(40)}"


@on_postgres
async def test_no_two_transactions_wait_for_each_other(scene: Scene, tmp_path: Path) -> None:
    """A1: of two that meet, one waits for the other and both end; the database never has to end one of them."""
    before = await deadlocks(scene)
    turmoil = Turmoil(scene, seed=5)
    fleet = [await open_store(f"{scene.url}&application_name=turmoil", tmp_path) for _ in range(3)]
    until = asyncio.get_running_loop().time() + SECONDS
    async with asyncio.timeout(SECONDS * 10), asyncio.TaskGroup() as group:
        for store in fleet:
            for node in [await scene.joined(store) for _ in range(3)]:
                group.create_task(turmoil.rage(store, node, until))
    for store in fleet:
        await store.close()
    assert turmoil.done > 100
    assert await deadlocks(scene) == before


@on_postgres
async def test_a_session_that_opens_behind_a_commit_of_several_does_not_end_it(scene: Scene, tmp_path: Path) -> None:
    """A1: two nodes accept for the same two conversations, and a third opens one of them in between."""
    before = await deadlocks(scene)
    fleet = [await open_store(f"{scene.url}&application_name=turmoil", tmp_path) for _ in range(3)]
    connection = await asyncpg.connect(scene.url)
    holding = connection.transaction()
    await holding.start()
    # The first node is held up between its conversations, as a slow disk may hold it up anywhere.
    await connection.execute("INSERT INTO dedupe VALUES ('first:b', '', '', '', 0)")

    def accepted(store: Store, name: str, *keys: str) -> asyncio.Future[list[Receipt]]:
        each = (scene.accept(conversation=key, by=store, dedupe_key=f"{name}:{key}") for key in keys)
        return asyncio.gather(*each)

    async with asyncio.timeout(30):
        first = accepted(fleet[0], "first", "a", "b")
        await _stands(scene, first, 1)
        opens = accepted(fleet[1], "opens", "b")
        waiting = await _stands(scene, opens, 2)
        second = accepted(fleet[2], "second", "a", "b")
        await _stands(scene, second, waiting + 1)
        await holding.rollback()
        receipts = [*await first, *await opens, *await second]
    await connection.close()
    for store in fleet:
        await store.close()
    assert len({each.turn_id for each in receipts}) == 5
    assert await deadlocks(scene) == before


async def _stands(scene: Scene, work: asyncio.Future[list[Receipt]], count: int) -> int:
    """Return how many transactions wait for a lock, once some work is done or so many wait."""
    connection = await asyncpg.connect(scene.url)
    waits = "SELECT COUNT(*) FROM pg_stat_activity WHERE application_name = 'turmoil' AND wait_event_type = 'Lock'"
    try:
        while (waiting := await connection.fetchval(waits)) < count and not work.done():
            pass
        return waiting
    finally:
        await connection.close()


async def deadlocks(scene: Scene) -> int:
    """Return how many deadlocks the database has resolved; a connection counts them at the latest when it ends."""
    connection = await asyncpg.connect(scene.url)
    try:
        others = "SELECT COUNT(*) FROM pg_stat_activity WHERE application_name = 'turmoil'"
        async with asyncio.timeout(10):
            while await connection.fetchval(others):
                pass
        return await connection.fetchval("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
    finally:
        await connection.close()


def _title(session_id: SessionId, *first: Lock) -> Transaction[None]:
    for lock in first:  # noqa: UP028 - A tuple takes nothing that is sent back.
        yield lock
    yield Run("UPDATE sessions SET title = 'other' WHERE id = :id", {"id": session_id})


@on_sqlite
async def test_a_transaction_writes_no_session_that_it_has_not_locked(scene: Scene) -> None:
    """Every transaction of this suite is watched like these: see tests/watched.py."""
    turn, other = await scene.running(conversation="a"), await scene.running(conversation="b")
    write, session = scene.store.database.write, locks.session(turn.session_id)
    for enough in ([Lock([session])], [Lock([locks.turn(turn.id)])], [Lock([locks.conversation("local", "a")])]):
        await write(lambda enough=enough: _title(turn.session_id, *enough))
    for short in ([], [Lock([locks.session(other.session_id)])], [Lock([locks.turn(other.id)])], [Lock([("job", "a")])]):
        with pytest.raises(Undeclared, match=turn.session_id):
            await write(lambda short=short: _title(turn.session_id, *short))


@on_sqlite
async def test_only_a_transaction_that_is_alone_locks_what_it_finds_later(scene: Scene) -> None:
    turn, other = await scene.running(conversation="a"), await scene.running(conversation="b")
    write, later = scene.store.database.write, Lock([locks.session(other.session_id)])
    await write(lambda: _title(other.session_id, Lock([locks.session(turn.session_id)], alone=True), later))
    with pytest.raises(Undeclared, match="alone"):
        await write(lambda: _title(other.session_id, Lock([locks.session(turn.session_id)]), later))
