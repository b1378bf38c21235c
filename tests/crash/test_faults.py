"""Faults of the disk: a failed sync ends the process, a full disk does not, and neither takes what was acknowledged."""

from __future__ import annotations

import asyncio
import gc
import itertools
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import apsw
import pytest

from holdfast.agent.scripted import Line, Pause, Say, ScriptedAgent, UseTool
from holdfast.core.effects import Effect
from holdfast.core.events import EntryKind
from holdfast.core.intake import Inbound, Receipt
from holdfast.core.turns import Cause, Mode, TurnState
from holdfast.engine.engine import Engine, Parts
from holdfast.engine.tuning import Tuning
from holdfast.errors import Damaged, DiskFull, StoreBroken, Unavailable
from holdfast.ids import TurnId, new_session_id, new_turn_id
from holdfast.store import home as store_home
from holdfast.store import sqlite, sqlite_readers
from holdfast.store.audit import audit
from holdfast.store.migrations import migrate
from holdfast.store.opening import open_store, store_path
from holdfast.store.sqlite import SqliteDatabase
from holdfast.store.store import Store
from tests.crash.disk import FaultyDisk, PowerLossDisk, everything, measure, nothing
from tests.crash.disk import Kind as FileKind
from tests.crash.world import TARGET, World, WorldCarrier, query, until

NOW = 1_800_000_000_000
BALLAST = 512 * 1024
SETTINGS = Tuning(batch_ms=1, beat_ms=50, poll_ms=50)

_numbers = itertools.count(1)


class Disk:
    """A faulty disk on a forgetful one, which keeps count of everything that still reaches it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.forgetful = PowerLossDisk("powerloss")
        self.faulty = FaultyDisk("faulty", base=self.forgetful.name)
        self.events: list[str] = []
        self.forgetful.on_event = lambda event, filename: self.events.append(f"{event} {filename}")

    async def open(self) -> Store:
        database = await self._opened()
        await migrate(database, NOW)
        # The log of the migrations would be room that a full disk still has.
        await database.close()
        self.events.clear()
        return Store(await self._opened())

    async def _opened(self) -> SqliteDatabase:
        return await SqliteDatabase.open(store_path(self.home), vfs=self.faulty.name)


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    monkeypatch.setattr(store_home, "BALLAST_BYTES", BALLAST)
    return Disk(tmp_path / "home")


async def accept(store: Store, text: str = "please", mode: Mode = Mode.CONVERSATION) -> Receipt:
    conversation = f"chat:{next(_numbers)}"
    inbound = Inbound(conversation=conversation, text=text, channel="chat", reply_to=TARGET, mode=mode)
    return await store.intake.accept(inbound, new_turn_id(NOW), new_session_id(NOW), NOW)


@asynccontextmanager
async def running(store: Store, disk: Disk, lines: list[Line]) -> AsyncIterator[tuple[Engine, asyncio.Task[None]]]:
    """Run an engine; the test fails if it has ended by itself without the test having looked."""
    carriers = {"world": WorldCarrier(World(disk.home / "world"))}
    engine = Engine(Parts(store=store, agent=ScriptedAgent(lines), carriers=carriers, tuning=SETTINGS))
    task = asyncio.create_task(engine.run())
    try:
        yield engine, task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def require_everything(folder: Path, turn_ids: list[TurnId]) -> None:
    """Require that an ordinary restart finds a sound store with every turn in it."""
    store = await open_store("sqlite", folder)
    try:
        assert {turn_id for (turn_id,) in await query(store.database, "SELECT id FROM turns")} >= set(turn_ids)
        assert await query(store.database, "PRAGMA integrity_check") == [("ok",)]
        assert await audit(store.database) == []
    finally:
        await store.close()


async def require_everything_after_a_power_cut(disk: Disk, turn_ids: list[TurnId]) -> None:
    for name, survivors in {"least": nothing, "most": everything}.items():
        disk.forgetful.image(disk.home.parent / name, survivors)
        await require_everything(disk.home.parent / name, turn_ids)


async def test_after_a_failed_sync_nothing_is_written_or_synced_ever_again(disk: Disk) -> None:
    """A2: the write that failed is refused, with all that waited for the same sync, and so is everything after it."""
    store = await disk.open()
    acknowledged = [(await accept(store)).turn_id for _ in range(3)]
    # Only one sync fails: a second try would look like success.
    disk.faulty.fail_syncs(times=1, kinds=["wal"])
    refused = await asyncio.gather(*(accept(store) for _ in range(4)), return_exceptions=True)
    assert [type(each) for each in refused] == [StoreBroken] * 4
    disk.events.clear()
    with pytest.raises(StoreBroken, match="disk failed"):
        await accept(store)
    with pytest.raises(StoreBroken):
        await store.settlement.cancel(acknowledged[0], Cause.USER, NOW)
    assert (await store.turns.get(acknowledged[0])).state is TurnState.QUEUED
    await store.close()
    del store
    gc.collect()
    assert disk.events == []
    await require_everything_after_a_power_cut(disk, acknowledged)
    await require_everything(disk.home, acknowledged)


async def test_a_failed_checkpoint_stops_the_store_but_takes_back_nothing(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A2: the commits that led to the checkpoint are durable in the log, so they stay acknowledged."""
    monkeypatch.setattr(sqlite, "CHECKPOINT_PAGES", 20)
    store = await disk.open()
    acknowledged = [(await accept(store)).turn_id]
    # A checkpoint that was due by then is over when another write has its answer.
    await store.nodes.forget(0)
    disk.faulty.fail_syncs(times=1, kinds=["db"])
    with pytest.raises(StoreBroken):
        await accept_until_it_fails(store, acknowledged)
    assert len(acknowledged) > 1
    disk.events.clear()
    with pytest.raises(StoreBroken):
        await accept(store)
    await store.close()
    del store
    gc.collect()
    assert disk.events == []
    await require_everything_after_a_power_cut(disk, acknowledged)
    await require_everything(disk.home, acknowledged)


@pytest.mark.parametrize("kind", ["wal", "db"])
async def test_an_engine_whose_disk_failed_ends(disk: Disk, kind: FileKind, monkeypatch: pytest.MonkeyPatch) -> None:
    """A1: a gateway that can write nothing more must not go on looking alive; what it accepted waits for the next."""
    monkeypatch.setattr(sqlite, "CHECKPOINT_PAGES", 20)
    store = await disk.open()
    async with running(store, disk, [Say("one "), Pause(60_000)]) as (_, task):
        receipt = await accept(store)
        await until(store, lambda: is_in(store, receipt, TurnState.RUNNING), "running")
        disk.faulty.fail_syncs(times=1, kinds=[kind])
        acknowledged = [receipt.turn_id]
        with pytest.raises(StoreBroken):
            await accept_until_it_fails(store, acknowledged)
        with pytest.raises(StoreBroken):
            await asyncio.wait_for(task, 10)
    await store.close()
    await require_everything(disk.home, acknowledged)


async def accept_until_it_fails(store: Store, acknowledged: list[TurnId]) -> None:
    for _ in range(200):
        acknowledged.append((await accept(store)).turn_id)  # noqa: PERF401 - What came before the failure counts.


async def is_in(store: Store, receipt: Receipt, *states: TurnState) -> bool:
    return (await store.turns.get(receipt.turn_id)).state in states


@pytest.mark.parametrize(("kind", "after"), [("wal", 0), ("wal", 25), ("db", 0), ("db", 2)])
async def test_a_process_whose_disk_failed_exits_by_itself(tmp_path: Path, kind: FileKind, after: int) -> None:
    """A2: nobody has to notice; the exit code says that something was wrong, and every acknowledged message is there."""
    words = [sys.executable, "-m", "tests.crash.broken", str(tmp_path), str(after), kind]
    process = await asyncio.create_subprocess_exec(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        async with asyncio.timeout(30):
            output, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode not in (0, None)
    assert b"StoreBroken" in errors
    accepted = [TurnId(line) for line in output.decode().split()]
    assert accepted
    await require_everything(tmp_path, accepted)


async def test_on_a_full_disk_new_work_is_refused_and_running_work_still_ends(disk: Disk) -> None:
    """A1 X1: the ballast pays for the end of what was begun; reads go on; with room, everything does."""
    # What was done is recorded, so that it is neither repeated nor in doubt.
    touched = asyncio.Event()
    go_on = asyncio.Event()

    class Touch:
        name = "touch"
        effect = Effect.EFFECTFUL

        async def run(self, args: object, key: str) -> str:
            touched.set()
            await go_on.wait()
            return "touched"

    store = await disk.open()
    lines: list[Line] = [Say("one "), UseTool(Touch()), *[Say("x" * 8_000), Pause(2)] * 500]
    async with running(store, disk, lines) as (engine, task):
        receipt = await accept(store)
        await touched.wait()
        disk.faulty.limit(disk.home, measure(disk.home))
        with pytest.raises(DiskFull, match="free some space; everything accepted so far is safe"):
            await accept(store, "no room for this" * 10_000)
        go_on.set()
        await until(store, lambda: is_in(store, receipt, TurnState.INTERRUPTED), "interrupted")
        turn = await store.turns.get(receipt.turn_id)
        assert turn.cause == Cause.DISK_FULL
        (call,) = await store.journal.calls(turn.id)
        assert (call.state, call.starts) == ("ok", 1)
        entries = await store.journal.read_turn(turn.id)
        assert [entry.data["outcome"] for entry in entries if entry.kind is EntryKind.TOOL_FINISHED] == ["ok"]
        assert entries[-1].kind is EntryKind.TURN_INTERRUPTED
        with pytest.raises(DiskFull):
            await accept(store, "no room for this" * 10_000)
        with pytest.raises(DiskFull):
            await store.nodes.probe(engine.node_id)
        assert await audit(store.database) == []
        assert not task.done()
        disk.faulty.heal()
        second = await accept(store)
        assert (disk.home / "holdfast.ballast").stat().st_size == BALLAST
        await until(store, lambda: is_in(store, second, TurnState.COMPLETED), "the next one completed")
    await store.close()
    await require_everything(disk.home, [receipt.turn_id, second.turn_id])


WORDS = [f"x{number} " for number in range(400)]
STREAM: list[Line] = [line for word in WORDS for line in (Say(word), Pause(2))]


async def said(store: Store, turn_id: TurnId) -> str:
    """Return the words of a turn as the journal has them."""
    entries = await store.journal.read_turn(turn_id)
    return "".join(str(entry.data["text"]) for entry in entries if entry.kind is EntryKind.TEXT)


async def fill(disk: Disk, store: Store) -> None:
    """Let the disk have no room from now on, as the next message is told."""
    disk.faulty.limit(disk.home, measure(disk.home))
    with pytest.raises(DiskFull):
        await accept(store, "no room for this" * 10_000)


async def test_a_full_disk_tears_no_transcript(disk: Disk) -> None:
    """J1 R5: of what a turn says nothing is left out, also where the disk takes some of it and then no more."""
    store = await disk.open()
    async with running(store, disk, STREAM):
        receipts = [await accept(store) for _ in range(16)]
        for receipt in receipts:
            await until(store, lambda each=receipt: has_said(store, each, "x20 "), "speaking")
        await fill(disk, store)
        for receipt in receipts:
            await until(store, lambda each=receipt: is_stopped(store, each), "stopped")
            text = await said(store, receipt.turn_id)
            assert text == "".join(WORDS)[: len(text)]
            turn = await store.turns.get(receipt.turn_id)
            assert (turn.state, turn.cause) == (TurnState.INTERRUPTED, Cause.DISK_FULL)
            # Whoever reads the conversation is told why it stands still.
            entries = await store.journal.read_turn(turn.id)
            assert [entry.data.get("cause") for entry in entries if entry.kind is EntryKind.TURN_INTERRUPTED] == [
                "disk_full"
            ]
        disk.faulty.heal()
    await store.close()
    await require_everything(disk.home, [receipt.turn_id for receipt in receipts])


async def is_stopped(store: Store, receipt: Receipt) -> bool:
    return not await is_in(store, receipt, TurnState.RUNNING)


async def has_said(store: Store, receipt: Receipt, word: str) -> bool:
    return word in await said(store, receipt.turn_id)


async def test_work_that_a_full_disk_stops_goes_on_when_there_is_room(
    disk: Disk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """R8 R10: however often the disk runs full, detached work is interrupted, and continues from where it stopped."""
    # A log that starts over needs no room, however full the disk is.
    monkeypatch.setattr(sqlite, "CHECKPOINT_PAGES", 1_000_000)
    store = await disk.open()
    async with running(store, disk, STREAM):
        receipt = await accept(store, mode=Mode.DETACHED)
        for attempt, word in enumerate(("x20 ", "x80 ", "x140 ", "x200 ", "x260 "), 1):
            await until(store, lambda word=word: has_said(store, receipt, word), "speaking")
            await fill(disk, store)
            await until(store, lambda: is_stopped(store, receipt), "stopped")
            assert await is_in(store, receipt, TurnState.QUEUED)
            turn = await store.turns.get(receipt.turn_id)
            assert (turn.attempt, turn.cause) == (attempt, Cause.DISK_FULL)
            # It does not begin again while there is no room, and the log does not grow with every message.
            for _ in range(20):
                with pytest.raises(DiskFull):
                    await accept(store, "no room for this" * 10_000)
            assert sum("cannot claim: " in line for line in caplog.messages) <= 3 * attempt
            assert (await store.turns.get(receipt.turn_id)).attempt == attempt
            disk.faulty.heal()
        await until(store, lambda: is_in(store, receipt, TurnState.COMPLETED), "completed")
        assert await said(store, receipt.turn_id) == "".join(WORDS)
    await store.close()
    await require_everything(disk.home, [receipt.turn_id])


async def test_whoever_asks_hears_that_nothing_new_can_be_taken(disk: Disk) -> None:
    """A2: readiness is the answer that a message would get, and comes back with the room."""
    store = await disk.open()
    ballast = disk.home / "holdfast.ballast"
    async with running(store, disk, []) as (engine, _):
        await store.nodes.probe(engine.node_id)
        store.database._ballast.release()
        # There is no room here; the failed attempt takes the link away, and with it the trouble.
        ballast.symlink_to("/dev/full")
        with pytest.raises(DiskFull):
            await store.nodes.probe(engine.node_id)
        await store.nodes.probe(engine.node_id)
    await store.close()


async def delivered(store: Store, receipt: Receipt) -> bool:
    return await store.turns.delivered_at(receipt.turn_id) is not None


async def test_when_even_the_ballast_is_used_up_nothing_breaks_and_room_heals_it(disk: Disk) -> None:
    """A1: the end of a turn waits for room; the store does not call a full disk a broken one."""
    store = await disk.open()
    receipts = [await accept(store) for _ in range(2)]
    disk.faulty.limit(disk.home, measure(disk.home) - BALLAST)
    with pytest.raises(DiskFull):
        await store.settlement.cancel(receipts[0].turn_id, Cause.USER, NOW)
    assert await is_in(store, receipts[0], TurnState.QUEUED)
    disk.faulty.heal()
    await store.settlement.cancel(receipts[0].turn_id, Cause.USER, NOW)
    await accept(store)
    await store.close()
    await require_everything(disk.home, [receipt.turn_id for receipt in receipts])


async def test_a_write_that_finds_no_memory_is_refused_and_breaks_nothing(disk: Disk) -> None:
    """A1: it is safe to try again; the store goes on as soon as there is some."""
    store = await disk.open()
    acknowledged = [(await accept(store)).turn_id]
    apsw.hard_heap_limit(apsw.memory_used() + 300_000)
    try:
        with pytest.raises(Unavailable, match="no memory"):
            await accept(store, "too much of it" * 200_000)
    finally:
        apsw.hard_heap_limit(0)
    acknowledged.append((await accept(store)).turn_id)
    await store.close()
    await require_everything(disk.home, acknowledged)


def unlink(path: Path) -> None:
    path.unlink()


def replace(path: Path) -> None:
    copy = path.with_name("copy")
    copy.write_bytes(path.read_bytes())
    copy.rename(path)


@pytest.mark.parametrize("name", ["holdfast.db-wal", "holdfast.db"])
@pytest.mark.parametrize("move", [unlink, replace])
async def test_files_moved_under_us_stop_the_store(tmp_path: Path, name: str, move: Callable[[Path], None]) -> None:
    """A2: a commit into a file that no restart will find is no commit."""
    store = await open_store("sqlite", tmp_path)
    await accept(store)
    move(tmp_path / name)
    with pytest.raises(StoreBroken, match=name):
        await accept(store)
    with pytest.raises(StoreBroken):
        await accept(store)
    await store.close()


async def test_a_read_that_the_disk_fails_is_refused_as_damage(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite ends the transaction of such a read by itself, which must not hide why."""
    monkeypatch.setattr(sqlite_readers, "READERS", 1)
    store = await disk.open()
    receipt = await accept(store)
    await store.nodes.beats()
    disk.faulty.fail_reads()
    with pytest.raises(Damaged):
        await store.journal.read(receipt.session_id)
    assert store.damage
    disk.faulty.heal()
    assert len(await store.journal.read(receipt.session_id)) == 1
    await store.close()
