"""Power cuts: whatever the disk forgets at whatever moment, nothing that was acknowledged or shown is forgotten."""

from __future__ import annotations

import asyncio
import itertools
import random
import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import apsw
import pytest

from holdfast.agent.scripted import Pause, Say, ScriptedAgent, Think, UseTool
from holdfast.core.effects import Effect
from holdfast.core.intake import Inbound, Receipt
from holdfast.core.journal import Entry, ends_attempt
from holdfast.core.turns import IN_FLIGHT, SETTLED, Mode
from holdfast.engine.engine import Engine, Parts
from holdfast.engine.tuning import Tuning
from holdfast.errors import HoldfastError
from holdfast.memory.bindings import MemoryBindings
from holdfast.store import home as store_home
from holdfast.store import sqlite
from holdfast.store.audit import audit
from holdfast.store.migrations import migrate
from holdfast.store.opening import store_path
from holdfast.store.rows import encode
from holdfast.store.sqlite import SqliteDatabase
from holdfast.store.store import Store
from tests import scratch
from tests.crash.disk import PowerLossDisk, everything, nothing, some
from tests.crash.world import TARGET, World, WorldCarrier, WorldMemory, query, until

CLIENTS = 4
NOW = 1_800_000_000_000


@pytest.fixture
def memory() -> Iterator[Path]:
    """A folder in memory: the disks here say themselves what they forget."""
    with scratch.folder() as folder:
        yield folder


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the log wrap around many times, and the ballast quick to write."""
    monkeypatch.setattr(sqlite, "CHECKPOINT_PAGES", 50)
    monkeypatch.setattr(store_home, "BALLAST_BYTES", 4096)


class Cuts:
    """Cuts the power at many moments of a workload, opens what each leaves, and notes what is missing."""

    def __init__(self, disk: PowerLossDisk, folder: Path, *, stride: int) -> None:
        self.receipts: list[Receipt] = []
        self.shown: list[Entry] = []
        self.count = 0
        self.resumed = 0
        self.losses: list[str] = []
        self.damages: list[str] = []
        self._disk = disk
        self._folder = folder
        self._stride = stride
        self._events = itertools.count(1)
        self._rng = random.Random(7)
        self._inspector = ThreadPoolExecutor(1)
        disk.on_event = self._notice

    def _notice(self, event: str, filename: str) -> None:
        if next(self._events) % self._stride == 0:
            self.cut(f"{event} {filename}", worst=event != "write")

    def cut(self, moment: str, *, worst: bool = True) -> None:
        """Draw what a power cut may leave now.  What is durable does not change with a write, so the worst need not be."""
        for survivors in [nothing, everything, some(self._rng)][not worst :]:
            self.count += 1
            receipts, shown = tuple(self.receipts), tuple(self.shown)
            image = self._folder / str(self.count)
            self._disk.image(image, survivors)
            # Here somebody waits for the disk, perhaps in a loop: what is left is opened in another.
            inspection = self._inspect(image, f"image {self.count}, {moment}", receipts, shown)
            self._inspector.submit(asyncio.run, inspection).result()
            shutil.rmtree(image)

    async def _inspect(self, image: Path, moment: str, receipts: tuple[Receipt, ...], shown: tuple[Entry, ...]) -> None:
        try:
            store = await reopen(image)
        except (apsw.Error, HoldfastError) as error:
            self.damages.append(f"{moment}: {error!r}")
            return
        # What is wrong is noted and not raised: SQLite would take it for an error of its disk.
        try:
            self.damages += [f"{moment}: {violation}" for violation in await audit(store.database)]
            ((integrity,),) = await query(store.database, "PRAGMA integrity_check")
            if integrity != "ok":
                self.damages.append(f"{moment}: {integrity}")
            lost = await missing(store, receipts, shown)
            self.losses += [f"{moment}: {loss}" for loss in lost]
            if receipts and not lost and self.count % 25 == 0:
                await go_on(store, image, receipts)
                self.resumed += 1
        except (AssertionError, HoldfastError) as error:
            self.damages.append(f"{moment}: {error!r}")
        finally:
            await store.close()


async def reopen(image: Path) -> Store:
    database = await SqliteDatabase.open(store_path(image))
    await migrate(database, NOW)
    return Store(database)


async def missing(store: Store, receipts: tuple[Receipt, ...], shown: tuple[Entry, ...]) -> list[str]:
    turns = {turn_id for (turn_id,) in await query(store.database, "SELECT id FROM turns")}
    rows = await query(store.database, "SELECT session_id, seq, turn_id, kind, data FROM entries")
    entries = {(session_id, seq): tuple(rest) for session_id, seq, *rest in rows}
    lost = [f"accepted {receipt.turn_id}" for receipt in receipts if receipt.turn_id not in turns]
    return lost + [
        f"shown {entry.turn_id} {entry.seq} {entry.kind}"
        for entry in shown
        if entries.get((entry.session_id, entry.seq)) != (entry.turn_id, entry.kind, encode(entry.data))
    ]


async def go_on(store: Store, image: Path, receipts: tuple[Receipt, ...]) -> None:
    """Let an engine take over what a power cut has left, and bring everything to its end."""
    running = asyncio.create_task(make_engine(store, image).run())
    try:
        await until(store, lambda: nothing_in_flight(store), "everything settled")
        for receipt in receipts:
            assert (await store.turns.get(receipt.turn_id)).state in SETTLED
        assert await audit(store.database) == []
    finally:
        await stop(running)


async def nothing_in_flight(store: Store) -> bool:
    return not IN_FLIGHT & {state for state, count in (await store.turns.tally()).items() if count}


async def stop(running: asyncio.Task[None]) -> None:
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def make_engine(store: Store, folder: Path) -> Engine:
    world = World(folder / "world")
    lines = [Think("hm"), Say("one "), UseTool(world.tool(Effect.EFFECTFUL)), Say("two "), Pause(3), Say("three " * 200)]
    parts = Parts(
        store=store,
        agent=ScriptedAgent(lines),
        carriers={"world": WorldCarrier(world)},
        memory=MemoryBindings(WorldMemory(world)),
        tuning=Tuning(batch_ms=1, beat_ms=50, poll_ms=50),
    )
    return Engine(parts)


def message(client: int, number: int) -> Inbound:
    facts: Mapping[str, object] = {"text": f"please {number}", "dedupe_key": f"{client}:{number}", "reply_to": TARGET}
    if client % 2:
        return Inbound(conversation=f"hook:{client}:{number}", channel="webhook", mode=Mode.DETACHED, one_shot=True, **facts)
    return Inbound(conversation=f"chat:{client}", channel="chat", **facts)


async def work(folder: Path, disk: PowerLossDisk, cuts: Cuts, messages: int) -> None:
    """Let clients ask at the same time, on a disk whose power is cut again and again."""
    home = folder / "home"
    database = await SqliteDatabase.open(store_path(home), vfs=disk.name)
    await migrate(database, NOW)
    store = Store(database)
    engine = make_engine(store, home)
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        running = group.create_task(engine.run())
        await asyncio.gather(*(converse(engine, cuts, client, messages) for client in range(CLIENTS)))
        cuts.cut("at rest")
        running.cancel()
    await store.close()
    cuts.cut("closed")


async def converse(engine: Engine, cuts: Cuts, client: int, messages: int) -> None:
    for number in range(messages):
        receipt = await engine.inbox.accept(message(client, number))
        cuts.receipts.append(receipt)
        async for entry in engine.feed.follow(receipt.session_id):
            cuts.shown.append(entry)
            if entry.turn_id == receipt.turn_id and ends_attempt(entry.event):
                break


@pytest.mark.parametrize(
    ("powersafe_overwrite", "messages", "stride"), [pytest.param(True, 6, 11, marks=pytest.mark.long), (False, 2, 7)]
)
def test_a_power_cut_takes_nothing_that_was_acknowledged_or_shown(
    memory: Path, powersafe_overwrite: bool, messages: int, stride: int
) -> None:
    """A1 A2 J1 J2 CONSERVATION: nothing is lost or damaged at any moment, and an engine goes on from what is left."""
    disk = PowerLossDisk("powerloss", powersafe_overwrite=powersafe_overwrite)
    cuts = Cuts(disk, memory / "images", stride=stride)
    asyncio.run(work(memory, disk, cuts, messages))
    assert len(cuts.receipts) == CLIENTS * messages
    assert cuts.losses == []
    assert cuts.damages == []
    assert cuts.count > 50 * messages
    assert cuts.resumed > messages


def test_with_a_weaker_sync_the_same_cuts_take_acknowledged_work(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A2: the proof that these cuts find a loss where there is one, and why the store pays for a full sync."""
    weaker = sqlite._WRITER_SETTINGS.replace("synchronous = FULL", "synchronous = NORMAL")
    assert weaker != sqlite._WRITER_SETTINGS
    monkeypatch.setattr(sqlite, "_WRITER_SETTINGS", weaker)
    disk = PowerLossDisk("powerloss")
    cuts = Cuts(disk, memory / "images", stride=11)
    asyncio.run(work(memory, disk, cuts, messages=3))
    assert [loss for loss in cuts.losses if "accepted" in loss]
    assert [loss for loss in cuts.losses if "shown" in loss]
    assert cuts.damages == []
