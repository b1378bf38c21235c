"""PostgreSQL stops, and then the gateway that was speaking is killed: its words are on its own disk, and come back."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Literal

import pytest

from holdfast.agent.scripted import ScriptedAgent
from holdfast.core.events import EntryKind
from holdfast.core.transcript import Item, Role, fold
from holdfast.core.turns import TurnState
from holdfast.engine.engine import Engine, Parts
from holdfast.engine.spool import Spool
from holdfast.ids import SessionId, TurnId
from holdfast.store.audit import audit
from holdfast.store.store import Store
from tests import scratch
from tests.crash.speaker import tuning
from tests.crash.world import DEADLINE_S, opened, until
from tests.postgres import Server

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server of its own, because these tests take it down; a crash loses nothing that it has written to memory."""
    with Server(durable=True, parent=scratch.parent()) as server:
        yield server


@contextmanager
def speaker(url: str, home: Path, *text: str) -> Iterator[subprocess.Popen[str]]:
    words = [sys.executable, "-m", "tests.crash.speaker", url, str(home), *text]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def on_disk(home: Path) -> list[int]:
    """Return the numbers that were said and are only on the disk of a home."""
    files = list((home / "spool").glob("*/*.jsonl"))
    lines = [line for file in files for line in file.read_text().splitlines(keepends=True) if line.endswith("\n")]
    return numbers("".join(json.loads(line)["data"]["text"] for line in lines))


def numbers(text: str) -> list[int]:
    return [int(word) for word in text.split()]


async def said(store: Store, session_id: SessionId) -> list[int]:
    return numbers("".join(item.text for item in await items(store, session_id) if item.role is Role.ASSISTANT))


async def items(store: Store, session_id: SessionId) -> list[Item]:
    entries = []
    while page := await store.journal.read(session_id, len(entries)):
        entries += page
    return fold(entries)


def await_on_disk(home: Path, count: int) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while len(on_disk(home)) < count:
        assert time.monotonic() < deadline, f"only {on_disk(home)} on disk"
        time.sleep(0.01)


@pytest.mark.parametrize("death", ["immediate", "killed"])
async def test_words_said_while_the_database_was_down_survive_the_death_of_their_gateway(
    server: Server, tmp_path: Path, death: Literal["immediate", "killed"]
) -> None:
    """J1 J2 J3 J4: pending for everybody else until its home is back; then every word is there once, above one marker."""
    url = server.create_database(f"lost_words_{death}")
    here, there = tmp_path / "here", tmp_path / "there"
    with speaker(url, there, "count") as process:
        session_id, turn_id = await accepted(process)
        async with opened(url, here) as store:
            await until(store, lambda: at_least(store, session_id, 20), "some words in the journal")
        await asyncio.to_thread(server.stop if death == "immediate" else server.kill)
        await asyncio.to_thread(await_on_disk, there, 50)
        process.send_signal(signal.SIGKILL)
        await asyncio.to_thread(process.wait)
    left = on_disk(there)
    assert left == list(range(left[0], left[0] + len(left)))
    await asyncio.to_thread(server.start)

    async with survivor(url, here) as (engine, store):
        await until(store, lambda: is_interrupted(store, turn_id), "taken over")
        assert await engine.repair.retry(session_id) is False
        journalled = await said(store, session_id)
        assert journalled == list(range(1, len(journalled) + 1))
        assert len(journalled) < left[-1]
        assert "pending" in (await items(store, session_id))[-1].text
        with speaker(url, there):
            await until(store, lambda: is_resolved(store, session_id), "the first home has brought what it had")
        assert not on_disk(there)
        await check(store, session_id, turn_id, last=left[-1])


async def test_a_gateway_that_stood_still_for_too_long_leaves_its_words_for_its_next_start(
    server: Server, tmp_path: Path
) -> None:
    """J2 J3 J4 T4: what it said after it had been given up changes nothing, and is not lost either."""
    url = server.create_database("stood_still")
    here, there = tmp_path / "here", tmp_path / "there"
    with speaker(url, there, "count") as process:
        session_id, turn_id = await accepted(process)
        # The survivor comes later, or it might claim the turn itself.
        async with opened(url, here) as store:
            await until(store, lambda: at_least(store, session_id, 20), "some words in the journal")
        async with survivor(url, here) as (_, store):
            process.send_signal(signal.SIGSTOP)
            await until(store, lambda: is_interrupted(store, turn_id), "taken over")
            journalled = await said(store, session_id)
            process.send_signal(signal.SIGCONT)
            assert await asyncio.to_thread(process.wait, DEADLINE_S) != 0
            # None where it stood still between two words, or handed them in itself before it learned of its loss.
            left = on_disk(there)
            with speaker(url, there):
                await until(store, lambda: is_resolved(store, session_id), "the first home has brought what it had")
            await check(store, session_id, turn_id)
            spoken = await said(store, session_id)
            assert spoken[: len(journalled)] == journalled
            assert spoken[len(spoken) - len(left) :] == left


async def accepted(process: subprocess.Popen[str]) -> tuple[SessionId, TurnId]:
    assert process.stdout
    session_id, turn_id = (await asyncio.to_thread(process.stdout.readline)).split()
    return SessionId(session_id), TurnId(turn_id)


@asynccontextmanager
async def survivor(url: str, home: Path) -> AsyncIterator[tuple[Engine, Store]]:
    """A node with a home of its own that takes over, and says nothing."""
    async with opened(url, home) as store:
        engine = Engine(Parts(store=store, agent=ScriptedAgent([]), tuning=tuning(), spool=Spool(home)))
        running = asyncio.create_task(engine.run())
        try:
            yield engine, store
            assert not running.done()
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


async def check(store: Store, session_id: SessionId, turn_id: TurnId, last: int | None = None) -> None:
    """Require that every word is there once and in order, above the one marker, which says where they came from."""
    spoken = await said(store, session_id)
    assert spoken == list(range(1, (last or len(spoken)) + 1))
    shown = await items(store, session_id)
    assert [item.role for item in shown] == [Role.USER, Role.ASSISTANT, Role.MARKER]
    assert (shown[1].recovered, "recovered from the run journal" in shown[-1].text) == (True, True)
    kinds = [entry.kind for entry in await store.journal.read_turn(turn_id)]
    assert (kinds.count(EntryKind.TURN_INTERRUPTED), kinds.count(EntryKind.TURN_RECOVERED)) == (1, 1)
    assert await audit(store.database) == []


async def at_least(store: Store, session_id: SessionId, count: int) -> bool:
    return len(await said(store, session_id)) >= count


async def is_interrupted(store: Store, turn_id: TurnId) -> bool:
    return (await store.turns.get(turn_id)).state is TurnState.INTERRUPTED


async def is_resolved(store: Store, session_id: SessionId) -> bool:
    return not await store.recoveries.of_session(session_id)
