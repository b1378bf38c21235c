"""Zombies: a node that was given up and comes back changes nothing that the others have made of its work."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from holdfast.clock import SystemClock
from holdfast.core import delivery, effects, segments
from holdfast.core.delivery import REPEAT_LABEL, Delivery, DeliveryState
from holdfast.core.effects import Call, Effect
from holdfast.core.ending import Ending
from holdfast.core.events import EntryKind
from holdfast.core.intake import Receipt
from holdfast.core.journal import DraftEntry
from holdfast.core.questions import Question
from holdfast.core.segments import Segment, SegmentState
from holdfast.core.transcript import Role, fold
from holdfast.core.turns import Cause, Policy, Resume, Turn, TurnEvent, TurnState
from holdfast.engine.engine import Engine
from holdfast.errors import Stale
from holdfast.ids import CallId, NodeId, new_delivery_id, new_node_id, new_segment_id, new_session_id, new_turn_id
from holdfast.store.audit import audit
from holdfast.store.store import Store
from tests.claims import claim
from tests.crash.world import DEADLINE_S, TARGET, World, dump, message, opened, query, until
from tests.crash.zombie import LOST, MOMENTS, SAID, Stop, make_engine
from tests.postgres import Server

NOW = 1_800_000_000_000

_names = itertools.count(1)


@pytest.fixture
def url(postgres: Server) -> Iterator[str]:
    name = f"zombies_{next(_names)}"
    yield postgres.create_database(name)
    postgres.drop_database(name)


async def accept(store: Store, number: int) -> Receipt:
    now = SystemClock().now_ms()
    return await store.intake.accept(message(number), new_turn_id(now), new_session_id(now), now)


class Zombie:
    """A node in a process of its own, which stops itself."""

    def __init__(self, url: str, world: Path, moment: str, beat_ms: int, locks_max_s: float) -> None:
        words = [sys.executable, "-m", "tests.crash.zombie", url, str(world), moment, str(beat_ms), str(locks_max_s)]
        self._process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)

    def await_standstill(self) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while True:
            pid, status = os.waitpid(self._process.pid, os.WUNTRACED | os.WNOHANG)
            if pid and os.WIFSTOPPED(status):
                return
            assert not pid, self._process.communicate()[1]
            assert time.monotonic() < deadline, "it never came to its moment"
            time.sleep(0.005)

    def wake(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def await_end(self) -> tuple[int, str]:
        _, errors = self._process.communicate(timeout=DEADLINE_S)
        return self._process.returncode, errors

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


@contextmanager
def zombie(url: str, world: Path, moment: str, beat_ms: int, locks_max_s: float = 1.0) -> Iterator[Zombie]:
    process = Zombie(url, world, moment, beat_ms, locks_max_s)
    try:
        yield process
    finally:
        process.end()


@asynccontextmanager
async def survivor(store: Store, world: World) -> AsyncIterator[Engine]:
    """A node that goes on, and takes over from whoever is silent for a moment."""
    engine = make_engine(store, world, Stop("never"), beat_ms=50, lease_ms=300)
    running = asyncio.create_task(engine.run())
    try:
        yield engine
        assert not running.done()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def is_over(store: Store, receipt: Receipt) -> bool:
    turn = await store.turns.get(receipt.turn_id)
    deliveries = await store.deliveries.of_turn(turn.id)
    segments = await store.segments.of_session(turn.session_id)
    return (
        turn.state is TurnState.COMPLETED
        and all(each.state is DeliveryState.DELIVERED for each in deliveries)
        and all(each.state is SegmentState.COMMITTED for each in segments)
    )


async def is_alone(store: Store) -> bool:
    return len(await store.nodes.beats()) == 1


# A slow heart leaves the zombie a while in which it does not know yet that it is one.
SLOW = [(moment, 1_500) for moment in ("claimed", "talking", "sending")]


@pytest.mark.parametrize(("moment", "beat_ms"), [*((moment, 100) for moment in MOMENTS), *SLOW])
async def test_a_node_that_comes_back_after_its_lease_changes_nothing(
    url: str, tmp_path: Path, moment: str, beat_ms: int
) -> None:
    """T4 A1 D1 D2 M2 X1: another node takes over and completes; the first, when it goes on, stops at once."""
    world = World(tmp_path / "world")
    async with opened(url, tmp_path) as store:
        first = await accept(store, 1)
        with zombie(url, tmp_path / "world", moment, beat_ms) as node:
            await asyncio.to_thread(node.await_standstill)
            async with survivor(store, world):
                await until(store, lambda: is_over(store, first), "taken over and completed")
                await until(store, lambda: is_alone(store), "the other one given up")
                settled = await dump(store.database)
                node.wake()
                # While it does not know, it must not take new work either.
                second = await accept(store, 2)
                await until(store, lambda: is_over(store, second), "new work completed")
                status, errors = await asyncio.to_thread(node.await_end)
                assert status == LOST, errors
        after = await dump(store.database)
        for table in ("turns", "entries", "tool_calls", "deliveries", "segments", "sessions", "dedupe"):
            mine = [row for row in after[table] if first.session_id in row or first.turn_id in row]
            assert mine == settled[table]
        assert (await store.turns.get(second.turn_id)).attempt == 1
        await check(store, world, first)


async def test_a_node_frozen_in_the_middle_of_a_round_trip_does_not_keep_its_locks(url: str, tmp_path: Path) -> None:
    """T4 A1: until a trip is sent whole no idle time counts, so a limit on the whole transaction lets the others go on."""
    async with opened(url, tmp_path) as store:
        receipt = await accept(store, 1)
        with zombie(url, tmp_path / "world", "parsed", beat_ms=100, locks_max_s=8) as node:
            await asyncio.to_thread(node.await_standstill)
            await until(store, lambda: is_half_sent(store), "the server waits for the rest")
            async with survivor(store, World(tmp_path / "world")):
                await until(store, lambda: is_over(store, receipt), "taken over and completed")


async def is_half_sent(store: Store) -> bool:
    return [tuple(row) for row in await query(store.database, HOLDERS)] == [("active", "ClientRead")]


# Who has written something and not committed it.
HOLDERS = "SELECT state, wait_event FROM pg_stat_activity WHERE backend_xid IS NOT NULL"


@pytest.mark.parametrize("moment", ["starting", "appending", "numbering", "finishing", "closing"])
async def test_while_a_frozen_node_holds_its_locks_the_others_do_not_wait_for_them(
    url: str, tmp_path: Path, moment: str
) -> None:
    """A1 T4: a sweep takes what is free, so a survivor goes on and beats; the rest follows when the locks are gone."""
    async with opened(url, tmp_path) as store:
        frozen = await accept(store, 1)
        with zombie(url, tmp_path / "world", moment, beat_ms=100, locks_max_s=120) as node:
            await asyncio.to_thread(node.await_standstill)
            async with survivor(store, World(tmp_path / "world")):
                await until(store, lambda: is_alone(store), "the frozen one given up")
                other = await accept(store, 2)
                await until(store, lambda: is_over(store, other), "work that has nothing to do with it")
                # A beat of the survivor may be on its way.
                await until(store, lambda: one_holds(store), "only the frozen one holds anything")
                assert not await is_over(store, frozen)
                node.kill()
                await until(store, lambda: is_over(store, frozen), "taken over once the locks were gone")


async def one_holds(store: Store) -> bool:
    return len(await query(store.database, HOLDERS)) == 1


async def check(store: Store, world: World, receipt: Receipt) -> None:
    assert await audit(store.database) == []
    entries = await store.journal.read(receipt.session_id)
    items = fold(entries)
    assert "".join(item.text for item in items if item.role is Role.ASSISTANT) == "".join(SAID)
    assert [entry.data for entry in entries if entry.kind is EntryKind.TURN_COMPLETED] == [{"text": "".join(SAID)}]
    runs = [line for line in world.read("tool") if line["key"].startswith(receipt.turn_id)]
    (call,) = [each for each in await store.journal.calls(receipt.turn_id) if each.name == "effectful"]
    assert len(runs) <= 1
    assert call.state == "unknown" or (call.state == "ok" and len(runs) == 1)
    for each in await store.deliveries.of_turn(receipt.turn_id):
        texts = [line["text"] for line in world.read("sent") if line["id"] == each.id]
        assert texts.count(each.text) <= 1
        assert set(texts) <= {each.text, f"{REPEAT_LABEL} {each.text}"}
    (segment,) = await store.segments.of_session(receipt.session_id)
    committed = [line["id"] for line in world.read("committed")]
    assert committed.count(segment.id) >= 1


async def test_a_node_that_was_given_up_takes_no_more_work(open_it: Callable[[], Awaitable[Store]]) -> None:
    """T4: neither turns nor deliveries nor memory, even before it knows."""
    store = await open_it()
    lost, living = await join(store), await join(store)
    await store.nodes.leave(lost)
    receipt = await accept(store, 1)
    assert await claim(store, lost, 10) == []
    (turn,) = await claim(store, living, 10)
    running, _ = await store.turns.start(turn, NOW)
    await store.settlement.finish(running, ending(running))
    assert await store.deliveries.claim(lost, NOW, 10) == []
    assert await store.segments.claim(lost, "world", NOW, 10) == []
    assert [each.turn_id for each in await store.deliveries.claim(living, NOW, 10)] == [receipt.turn_id]
    assert len(await store.segments.claim(living, "world", NOW, 10)) == 1
    await store.close()


async def test_what_a_given_up_node_still_writes_changes_nothing(open_it: Callable[[], Awaitable[Store]]) -> None:
    """T4: every write of a worker carries its fence, and an old one is refused."""
    store = await open_it()
    lost = await join(store)
    await accept(store, 1)
    (claimed,) = await claim(store, lost, 10)
    running, _ = await store.turns.start(claimed, NOW)
    living = await join(store)
    await store.nodes.leave(lost)
    await store.nodes.sweep(Cause.CRASH, Policy(resume=Resume.ON_MESSAGE), NOW)
    # Whatever has become of the turn when the zombie comes back: queued, claimed, running, and at its end.
    await refuse_all(store, claimed, running)
    (taken,) = await claim(store, living, 10)
    await refuse_all(store, claimed, running)
    again, _ = await store.turns.start(taken, NOW)
    await refuse_all(store, claimed, running)
    await store.settlement.finish(again, ending(again))
    await refuse_all(store, claimed, running)
    assert await audit(store.database) == []
    await store.close()


async def test_what_a_given_up_node_still_sent_or_committed_changes_nothing(
    open_it: Callable[[], Awaitable[Store]],
) -> None:
    """T4 D1 M2: nor does it settle what another one is sending or committing by now."""
    store = await open_it()
    lost = await join(store)
    await accept(store, 1)
    (claimed,) = await claim(store, lost, 10)
    running, _ = await store.turns.start(claimed, NOW)
    await store.settlement.finish(running, ending(running))
    (sent,) = await store.deliveries.claim(lost, NOW, 10)
    (committing,) = await store.segments.claim(lost, "world", NOW, 10)
    living = await join(store)
    await store.nodes.leave(lost)
    await store.nodes.sweep(Cause.CRASH, Policy(resume=Resume.ON_MESSAGE), NOW)
    await refuse_settling(store, sent, committing)
    (again,) = await store.deliveries.claim(living, NOW, 10)
    (once_more,) = await store.segments.claim(living, "world", NOW, 10)
    await refuse_settling(store, sent, committing)
    await store.deliveries.settle(again, delivery.DeliveryEvent.CONFIRM, NOW)
    await store.segments.settle(once_more, segments.SegmentEvent.SUCCEED, NOW)
    await refuse_settling(store, sent, committing)
    assert await audit(store.database) == []
    await store.close()


async def refuse_settling(store: Store, sent: Delivery, committing: Segment) -> None:
    before = await dump(store.database)
    for event in (
        delivery.DeliveryEvent.CONFIRM,
        delivery.DeliveryEvent.REFUSE,
        delivery.DeliveryEvent.FAIL,
        delivery.DeliveryEvent.LOSE,
    ):
        with pytest.raises(Stale):
            await store.deliveries.settle(sent, event, NOW)
    for outcome in (segments.SegmentEvent.SUCCEED, segments.SegmentEvent.FAIL):
        with pytest.raises(Stale):
            await store.segments.settle(committing, outcome, NOW)
    assert await dump(store.database) == before


async def refuse_all(store: Store, claimed: Turn, running: Turn) -> None:
    before = await dump(store.database)
    draft = DraftEntry.read(kind=EntryKind.TEXT, at=NOW, data={"text": "late"})
    call = Call(id=CallId("late"), turn_id=running.id, session_id=running.session_id, name="late", effect=Effect.EFFECTFUL)
    writes: list[Callable[[], Awaitable[object]]] = [
        lambda: store.turns.start(claimed, NOW),
        lambda: store.journal.append(running, [draft]),
        lambda: store.journal.append(running, [draft], [(call, call.on(effects.CallEvent.START))]),
        lambda: store.turns.park(running, [draft], Question(id="late", text="may I?")),
        lambda: store.settlement.finish(running, ending(running)),
    ]
    for write in writes:
        with pytest.raises(Stale):
            await write()
    await store.turns.release(claimed)
    assert running.node_id is not None
    await store.settlement.interrupt(running.node_id, [running.id], Cause.CRASH, Policy(resume=Resume.ON_MESSAGE), NOW)
    assert await dump(store.database) == before


def ending(turn: Turn) -> Ending:
    created = Delivery(
        id=new_delivery_id(NOW),
        turn_id=turn.id,
        session_id=turn.session_id,
        target=TARGET,
        part=1,
        text="late",
        created_at=NOW,
        due_at=NOW,
    )
    return Ending(
        event=TurnEvent.FINISH,
        at=NOW,
        text="late",
        deliveries=(created,),
        memory_owner="world",
        segment_id=new_segment_id(NOW),
    )


async def join(store: Store) -> NodeId:
    node = new_node_id(NOW)
    await store.nodes.join(node, NOW)
    return node
