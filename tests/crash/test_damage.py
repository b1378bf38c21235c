"""Damaged files: what can be read is served, what cannot be is named, and there is never a traceback."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import apsw
import httpx2
import pytest

from holdfast.store.database import Run, Transaction
from holdfast.store.opening import open_store, store_path
from tests.blackbox.gateway import Gateway, until
from tests.cli.terminal import Terminal

SESSIONS = 40
ENTRIES = 100
PAGE = 4096
EXIT_DAMAGED = 78
INTERIOR, LEAF = (2, 5), (10, 13)

_NUMBERS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < CAST(:last AS BIGINT))"
_FILL = (
    f"""
    INSERT INTO sessions (id, key, channel, owner, one_shot, source, created_at, updated_at, seq, turns)
    {_NUMBERS} SELECT 'ses_' || i, 'chat:' || i, 'web', 'local', 0, '{{}}', i, i, :entries, 1 FROM n
    """,
    f"""
    INSERT INTO turns (id, session_id, ordinal, accepted_at, mode, delivers_later, remembers, state, attempt, nth, fence,
                       answered_at)
    {_NUMBERS} SELECT 'trn_' || i, 'ses_' || i, 1, i, 'conversation', 0, 0, 'completed', 1, :entries - 1, 1, i FROM n
    """,
    f"""
    INSERT INTO entries (session_id, seq, turn_id, attempt, nth, kind, at, data)
    {_NUMBERS} SELECT 'ses_' || :session, i, 'trn_' || :session, CASE i WHEN 1 THEN 0 ELSE 1 END,
                      CASE i WHEN 1 THEN NULL ELSE i - 1 END,
                      CASE i WHEN 1 THEN 'turn.accepted' WHEN :entries THEN 'turn.completed' ELSE 'text' END,
                      1, '{{"text":"{"some words of an answer " * 8}"}}' FROM n
    """,
)


def _fill() -> Transaction[None]:
    sessions, turns, entries = _FILL
    yield Run(sessions, {"last": SESSIONS, "entries": ENTRIES})
    yield Run(turns, {"last": SESSIONS, "entries": ENTRIES})
    for number in range(1, SESSIONS + 1):
        yield Run(entries, {"last": ENTRIES, "entries": ENTRIES, "session": number})


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home whose store has many conversations, each on pages of its own, and no log beside its file."""
    home = tmp_path / "home"

    async def fill() -> None:
        store = await open_store("sqlite", home)
        await store.database.write(_fill)
        await store.close()

    asyncio.run(fill())
    return home


class Pages:
    """The pages of one table or index of a file."""

    def __init__(self, file: Path, name: str) -> None:
        self.file = file
        connection = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
        ((self.root,),) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (name,)).fetchall()
        connection.close()
        self.bytes = file.read_bytes()
        self.leaves = [number for number in self._below(self.root) if self._page(number)[0] in LEAF]

    def _page(self, number: int) -> bytes:
        return self.bytes[(number - 1) * PAGE : number * PAGE]

    def _below(self, number: int) -> Iterator[int]:
        yield number
        page = self._page(number)
        if page[0] in INTERIOR:
            cells = [int.from_bytes(page[at : at + 2]) for at in range(12, 12 + 2 * int.from_bytes(page[3:5]), 2)]
            for child in (*(int.from_bytes(page[at : at + 4]) for at in cells), int.from_bytes(page[8:12])):
                yield from self._below(child)

    def overwrite(self, *numbers: int) -> None:
        with self.file.open("r+b") as file:
            for number in numbers:
                file.seek((number - 1) * PAGE)
                file.write(os.urandom(PAGE))


@asynccontextmanager
async def served(home: Path) -> AsyncGenerator[tuple[Gateway, httpx2.AsyncClient]]:
    gateway = Gateway(home)
    try:
        gateway.launch()
        await gateway.says("Listening")
        async with httpx2.AsyncClient(base_url=gateway.url, trust_env=False, timeout=30) as web:
            yield gateway, web
        assert "Traceback" not in gateway.log.read_text()
    finally:
        gateway.close()


async def transcripts(web: httpx2.AsyncClient) -> dict[str, httpx2.Response]:
    return {f"ses_{number}": await web.get(f"/api/sessions/ses_{number}/messages") for number in range(1, SESSIONS + 1)}


def refused(terminal: Terminal, *words: str) -> str:
    """Run a command that must be refused in one clear line."""
    done = terminal.run(*words)
    assert done.returncode == EXIT_DAMAGED, done.stderr
    assert done.stderr.startswith("holdfast: ")
    assert len(done.stderr.splitlines()) == 1
    assert "restore the last backup" in done.stderr
    return done.stderr


async def answers(web: httpx2.AsyncClient, session_id: str) -> None:
    """Send a message and see it answered."""
    receipt = await web.post(f"/api/sessions/{session_id}/messages", json={"text": "hello"})
    assert receipt.status_code in (200, 201, 202), receipt.text
    turn_id = receipt.json()["turn_id"]

    async def is_done() -> bool:
        return (await web.get(f"/api/turns/{turn_id}")).json()["state"] == "completed"

    await until(is_done, "the turn is answered")


async def named(web: httpx2.AsyncClient) -> dict[str, Any]:
    """Return the status once it names damage."""

    async def is_named() -> bool:
        return bool((await web.get("/api/status")).json()["damage"])

    await until(is_named, "the damage is named")
    return (await web.get("/api/status")).json()


@pytest.mark.parametrize("name", ["entries", "sqlite_autoindex_entries_2"], ids=["rows", "index"])
async def test_what_cannot_be_read_is_named_and_all_else_is_served(home: Path, name: str) -> None:
    """A1"""
    pages = Pages(store_path(home), name)
    middle = len(pages.leaves) // 2
    pages.overwrite(*pages.leaves[middle : middle + 3])
    async with served(home) as (_, web):
        found = await transcripts(web)
        damaged = {session_id: each for session_id, each in found.items() if each.status_code != 200}
        assert 0 < len(damaged) < SESSIONS / 2
        for each in damaged.values():
            assert (each.status_code, each.json()["error"]["code"]) == (503, "damaged")
            assert "holdfast doctor" in each.text
        listed = await web.get("/api/sessions", params={"limit": 100})
        assert len(listed.json()["items"]) == SESSIONS
        status = await named(web)
        assert status["ready"]
        health = await web.get("/health")
        assert (health.status_code, health.json()["problem"]) == (200, "the store is damaged; run: holdfast doctor")
        assert (await web.get("/ready")).status_code == 200
        terminal = Terminal(home)
        assert "holdfast doctor" in terminal.run("status").stdout
        doctor = terminal.run("doctor")
        assert doctor.returncode == 1
        assert "damage" in doctor.stdout
        assert "restore the last backup" in " ".join(doctor.stdout.split())
        new = await web.post("/api/sessions", json={"key": "new", "channel": "web"})
        await answers(web, new.json()["id"])


async def test_a_store_that_takes_no_new_session_is_not_ready(home: Path) -> None:
    """A1: only what is old can be read, so that a balancer has to send new work to somebody else."""
    pages = Pages(store_path(home), "sessions_by_key")
    pages.overwrite(*pages.leaves)
    async with served(home) as (_, web):
        new = await web.post("/api/sessions", json={"key": "new", "channel": "web"})
        assert (new.status_code, new.json()["error"]["code"]) == (503, "damaged")
        ready = await web.get("/ready")
        assert (ready.status_code, ready.json()["error"]["code"]) == (503, "not_ready")
        # Anybody may ask this, and what exactly is damaged is for the operator.
        assert ready.json()["error"]["message"] == "the store is damaged; run: holdfast doctor"
        assert (await web.get("/health")).status_code == 200
        assert (await web.get("/api/sessions/ses_1/messages")).status_code == 200


async def test_nothing_of_a_rehearsal_is_left(home: Path) -> None:
    """It looks whether a message would be accepted, and is no message."""
    store = await open_store("sqlite", home)
    before = await store.turns.tally(), await store.sessions.list("local", limit=2 * SESSIONS)
    await store.intake.rehearse(1)
    assert (await store.turns.tally(), await store.sessions.list("local", limit=2 * SESSIONS)) == before
    await store.close()


async def test_damage_is_found_before_anybody_needs_what_is_damaged(home: Path) -> None:
    """The whole store is read beside the work, without a request that meets the damage."""
    pages = Pages(store_path(home), "entries")
    pages.overwrite(pages.leaves[3])
    store = await open_store("sqlite", home)
    assert list(store.damage) == []
    assert any("page" in line for line in await store.inspect())
    assert store.damage
    await store.close()


async def test_a_store_whose_free_pages_are_in_disorder_is_read_only(home: Path) -> None:
    """A1: a new row could be written over another, so that nothing is accepted, and all is still shown."""
    store = await open_store("sqlite", home)
    for number in range(1, 20):
        await store.sessions.delete(f"ses_{number}", 1)
    await store.close()
    file = store_path(home)
    raw = bytearray(file.read_bytes())
    trunk = int.from_bytes(raw[32:36])
    assert trunk, "no page is free, so that there is no order to disturb"
    # A page that is in use is said to be free, as the first of those that this page lists.
    begins = (trunk - 1) * PAGE
    listed = max(1, int.from_bytes(raw[begins + 4 : begins + 8]))
    raw[begins + 4 : begins + 12] = listed.to_bytes(4) + Pages(file, "images").root.to_bytes(4)
    file.write_bytes(raw)
    store = await open_store("sqlite", home)
    await store.inspect()
    with pytest.raises(Exception, match="damaged") as refusal:
        await store.sessions.open("local", "new", "web", "ses_new", 1)
    assert type(refusal.value).__name__ == "Damaged"
    assert await store.sessions.get("ses_30")
    await store.close()


@pytest.mark.parametrize("name", ["entries", "sessions", "sqlite_schema"])
def test_a_store_that_nothing_can_be_done_with_is_refused_in_one_line(home: Path, name: str) -> None:
    """The page that everything else hangs from."""
    file = store_path(home)
    if name == "sqlite_schema":
        raw = bytearray(file.read_bytes())
        raw[100:PAGE] = os.urandom(PAGE - 100)
        file.write_bytes(raw)
    else:
        pages = Pages(file, name)
        pages.overwrite(pages.root)
    before = file.read_bytes()
    terminal = Terminal(home)
    assert str(file) in refused(terminal, "serve", "--port", "0")
    assert file.read_bytes() == before
    assert "Traceback" not in (told := terminal.run("doctor")).stderr
    assert told.returncode == 1


@pytest.mark.parametrize("share", ["half", "50 bytes", "1 byte", "nothing"])
def test_a_file_that_was_cut_off_is_refused_in_one_line(home: Path, share: str) -> None:
    file = store_path(home)
    size = {"half": file.stat().st_size // 2 // PAGE * PAGE + 100, "50 bytes": 50, "1 byte": 1, "nothing": 0}[share]
    os.truncate(file, size)
    terminal = Terminal(home)
    for words in (("serve", "--port", "0"), ("sessions", "list"), ("ask", "hello")):
        assert str(file) in refused(terminal, *words)
        assert file.stat().st_size == size
    told = terminal.run("doctor")
    assert (told.returncode, told.stderr) == (1, "")
    assert "damaged" in told.stdout


@pytest.mark.parametrize("fate", ["missing", "empty"])
async def test_a_log_without_its_file_is_refused_and_left_as_it_is(home: Path, fate: str) -> None:
    """SQLite deletes the log beside a file that it takes for new, with all that was committed to it."""
    file = store_path(home)
    store = await open_store("sqlite", home)
    await store.sessions.change("ses_1", title="kept")
    log = file.with_name("holdfast.db-wal")
    written = log.read_bytes()
    await store.close()
    (home / "holdfast.ballast").unlink()
    if fate == "missing":
        file.unlink()
    else:
        os.truncate(file, 0)
    log.write_bytes(written)
    terminal = Terminal(home)
    for words in (("serve", "--port", "0"), ("sessions", "list"), ("ask", "hello"), ("store", "compact")):
        assert f"it is {fate}, and its write-ahead log is not" in refused(terminal, *words)
        assert log.read_bytes() == written
    told = terminal.run("doctor")
    assert (told.returncode, told.stderr) == (1, "")
    assert "damaged" in told.stdout


def test_a_file_that_was_removed_is_made_anew(home: Path) -> None:
    """Whoever removes it, and leaves nothing that was committed, means to."""
    store_path(home).unlink()
    assert Terminal(home).run("ask", "hello").returncode == 0


async def test_a_log_that_cannot_be_read_is_kept_and_named(home: Path) -> None:
    """SQLite takes it for an empty one, so that nobody would know that anything was in it."""
    log = store_path(home).with_name("holdfast.db-wal")
    log.write_bytes(garbage := os.urandom(10_000))
    async with served(home) as (_, web):
        assert "write-ahead log" in (await named(web))["damage"][0]
        assert (await web.get("/api/sessions/ses_1/messages")).status_code == 200
        assert log.with_name("holdfast.db-wal.unreadable").read_bytes() == garbage


def test_a_store_is_not_compacted_over_a_log_that_cannot_be_read(home: Path) -> None:
    """SQLite would delete it, and nobody has kept it."""
    log = store_path(home).with_name("holdfast.db-wal")
    log.write_bytes(garbage := os.urandom(10_000))
    before = store_path(home).read_bytes()
    assert "its write-ahead log cannot be read" in refused(Terminal(home), "store", "compact")
    assert (store_path(home).read_bytes(), log.read_bytes()) == (before, garbage)


async def test_a_log_whose_end_was_torn_by_a_power_cut_is_nothing_to_speak_of(home: Path) -> None:
    store = await open_store("sqlite", home)
    await store.sessions.change("ses_1", title="kept")
    log = store_path(home).with_name("holdfast.db-wal")
    written = log.read_bytes()
    await store.close()
    log.write_bytes(written + os.urandom(3_000))
    store = await open_store("sqlite", home)
    assert list(store.damage) == []
    await store.close()
