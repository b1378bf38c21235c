"""A database that is far away: how many round trips each operation takes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from holdfast.core.intake import Receipt
from holdfast.core.turns import Turn, TurnState
from holdfast.errors import Stale
from holdfast.ids import new_session_id, new_turn_id
from holdfast.store.opening import open_store
from holdfast.store.postgres import PostgresDatabase
from holdfast.store.store import Store
from tests.conformance.scenes import OWNER, Scene, on_postgres
from tests.distance import far


class Away:
    """A second node, with its database far away."""

    def __init__(self, scene: Scene, store: Store) -> None:
        self.scene = scene
        self.store = store

    async def count(self, work: Callable[[], Awaitable[object]]) -> int:
        """Return how many round trips an operation waits for."""
        before = self._trips()
        await work()
        return self._trips() - before

    def _trips(self) -> int:
        database = self.store.database
        assert isinstance(database, PostgresDatabase)
        return sum(wire.trips for line in (database._writers, database._readers) for wire in line.wires if wire)

    async def accept(self, conversation: str, key: str | None = None) -> Receipt:
        ids = (new_turn_id(self.scene.now), new_session_id(self.scene.now))
        message = self.scene.message(conversation=conversation, dedupe_key=key or conversation)
        return await self.store.intake.accept(message, *ids, self.scene.now)

    async def take(self) -> list[Turn]:
        taken = await self.store.turns.take(self.scene.node, 256, self.scene.now, detached=8)
        return [turn for turn, _ in taken]

    async def running(self, conversation: str) -> Turn:
        await self.accept(conversation)
        (turn,) = await self.take()
        return (await self.store.turns.start(turn, self.scene.now))[0]

    async def finish(self, turn: Turn, **changes: object) -> None:
        await self.store.settlement.finish(turn, self.scene.ending(turn, **changes))


@asynccontextmanager
async def away(scene: Scene, home: Path) -> AsyncGenerator[Away]:
    """Yield a node whose connections are open and whose database is 2 ms away."""
    async with far(scene.url) as way:
        store = await open_store(way.url, home)
        try:
            node = Away(scene, store)
            turn = await node.running("first")
            await store.journal.brief(turn)
            await node.finish(turn)
            way.round_trip_s = 0.002
            yield node
        finally:
            way.round_trip_s = 0
            await store.close()


@on_postgres
async def test_a_message_is_accepted_in_two_round_trips(scene: Scene, tmp_path: Path) -> None:
    async with away(scene, tmp_path) as node:
        assert await node.count(lambda: node.accept("new")) == 2
        assert await node.count(lambda: node.accept("new", key="another")) == 2


@on_postgres
async def test_messages_that_come_together_take_no_more_round_trips_than_one(scene: Scene, tmp_path: Path) -> None:
    async with away(scene, tmp_path) as node:
        many = [f"chat:{number}" for number in range(50)]
        assert await node.count(lambda: asyncio.gather(*(node.accept(each) for each in many))) == 2


@on_postgres
async def test_messages_that_are_repeated_together_take_no_more_round_trips_than_one(scene: Scene, tmp_path: Path) -> None:
    """A3: as after an outage, when everybody sends again what was not confirmed; some of it is new."""
    async with away(scene, tmp_path) as node:
        many = [f"chat:{number}" for number in range(50)]
        first = await asyncio.gather(*(node.accept(each) for each in many))
        alone = await node.count(lambda: node.accept(many[0]))
        together = asyncio.gather(*(node.accept(each) for each in [*many, "new"]))
        assert await node.count(lambda: together) <= alone + 1
        *again, new = await together
        assert [(each.turn_id, each.duplicate) for each in again] == [(each.turn_id, True) for each in first]
        assert not new.duplicate


@on_postgres
async def test_each_step_of_a_turn_takes_as_few_round_trips_as_it_can(scene: Scene, tmp_path: Path) -> None:
    """What is written and not decided in between takes one, and what is decided takes two."""
    async with away(scene, tmp_path) as node:
        receipt = await node.accept("new")
        assert await node.count(node.take) == 2
        claimed = await node.store.turns.get(receipt.turn_id)
        assert await node.count(lambda: node.store.turns.start(claimed, scene.now)) == 1
        turn = await node.store.turns.get(receipt.turn_id)
        assert await node.count(lambda: node.store.journal.brief(turn)) == 1
        assert await node.count(lambda: node.store.journal.append(turn, [scene.text("a"), scene.text("b")])) == 1
        turn = await node.store.turns.get(receipt.turn_id)
        assert await node.count(lambda: node.finish(turn, deliveries=scene.parts(turn, "a b"))) == 2
        assert (await node.store.turns.get(receipt.turn_id)).state is TurnState.COMPLETED
        (segment,) = await node.store.segments.of_session(turn.session_id)
        assert segment.owner == OWNER


@on_postgres
async def test_a_guess_that_goes_wrong_costs_round_trips_and_changes_nothing(scene: Scene, tmp_path: Path) -> None:
    """T4 J2: what was written behind a fence that had moved is taken back, with the numbers that it had got."""
    async with away(scene, tmp_path) as node:
        turn = await node.running("new")
        said, _ = await node.store.journal.append(turn, [scene.text("a")])
        again, _ = await node.store.journal.append(turn, [scene.text("a")])
        assert again == said
        for number in range(3):
            try:
                await node.store.journal.append(turn, [scene.text(f"b{number}")])
            except Stale:
                continue
            raise AssertionError("a stale append was taken")
        await node.finish(said)
        numbers = [entry.seq for entry in await node.store.journal.read(turn.session_id)]
        assert numbers == list(range(1, len(numbers) + 1))


@on_postgres
async def test_a_stale_write_does_not_spoil_those_that_share_its_commit(scene: Scene, tmp_path: Path) -> None:
    """A2 T4"""
    async with away(scene, tmp_path) as node:
        turns = [await node.running(f"chat:{number}") for number in range(6)]
        stale = turns[2]
        await node.store.journal.append(stale, [scene.text("already")])
        appends = [node.store.journal.append(turn, [scene.text(turn.id)]) for turn in turns]
        done = await asyncio.gather(*appends, return_exceptions=True)
        assert [isinstance(each, Stale) for each in done] == [turn is stale for turn in turns]
        for turn in turns:
            said = [entry.data["text"] for entry in await scene.entries(turn.session_id) if entry.kind == "text"]
            assert said == ["already" if turn is stale else turn.id]


@on_postgres
async def test_what_is_far_away_is_as_it_was_written(scene: Scene, tmp_path: Path) -> None:
    """J3: pieces of any size arrive whole."""
    async with away(scene, tmp_path) as node:
        turn = await node.running("new")
        texts = ["ä" * 70_000, "", "\n", "ok"]
        turn, shown = await node.store.journal.append(turn, [scene.text(text) for text in texts])
        read = await node.store.journal.read(turn.session_id)
        assert read[-len(shown) :] == shown
        assert [entry.data["text"] for entry in shown] == texts
