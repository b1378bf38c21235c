"""Space: what deleted rows leave free goes back to the disk."""

from __future__ import annotations

import itertools
from pathlib import Path

import apsw
import pytest

from holdfast.errors import DiskFull, Owned
from holdfast.store.audit import audit
from holdfast.store.compacting import compact
from holdfast.store.database import Run, Transaction
from holdfast.store.opening import open_store, store_path
from holdfast.store.space import CHUNK_PAGES, CHUNKS_MAX, KEEP_PAGES, space
from holdfast.store.store import Store
from tests.cli.terminal import Terminal
from tests.crash.disk import FaultyDisk

KEYS = 100_000
_FILL = """
    INSERT INTO dedupe (key, body_hash, turn_id, session_id, accepted_at)
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :count)
    SELECT 'a key that is long enough to need some room ' || i, 'digest', 'trn_' || i, 'ses', 1 FROM n
"""


def _fill() -> Transaction[None]:
    yield Run(_FILL, {"count": KEYS})


async def filled(home: Path) -> Store:
    store = await open_store("sqlite", home)
    await store.database.write(_fill)
    await store.database.tidy()
    return store


def without_giving_back(home: Path) -> None:
    """Make the file of a store as older versions made it."""
    connection = apsw.Connection(str(store_path(home)))
    connection.execute("PRAGMA journal_mode = DELETE").fetchall()
    connection.execute("PRAGMA auto_vacuum = NONE").fetchall()
    connection.execute("VACUUM").fetchall()
    connection.close()


async def test_the_file_of_a_store_shrinks_when_its_rows_are_gone(tmp_path: Path) -> None:
    store = await filled(tmp_path)
    before = store_path(tmp_path).stat().st_size
    await store.sessions.forget_keys(1)
    left = [await store.give_back()]
    while left[-1]:
        left.append(await store.give_back())
    at_once = max(more - less for more, less in itertools.pairwise(left))
    assert at_once <= CHUNK_PAGES * CHUNKS_MAX, "others would have waited for it"
    found = await space(store.database)
    assert found
    assert found.free_pages <= KEEP_PAGES
    assert store_path(tmp_path).stat().st_size < before / 2
    assert store_path(tmp_path).with_name("holdfast.db-wal").stat().st_size == 0
    await store.close()


async def test_a_store_of_an_older_version_gives_space_back_once_it_was_compacted(tmp_path: Path) -> None:
    store = await filled(tmp_path)
    await store.close()
    without_giving_back(tmp_path)
    store = await open_store("sqlite", tmp_path)
    before = store_path(tmp_path).stat().st_size
    await store.sessions.forget_keys(1)
    assert await store.give_back() == 0
    with pytest.raises(Owned):
        compact(store_path(tmp_path))
    await store.close()
    assert store_path(tmp_path).stat().st_size == before
    done = Terminal(tmp_path).run("store", "compact")
    assert done.returncode == 0, done.stderr
    assert store_path(tmp_path).stat().st_size < before / 2
    store = await open_store("sqlite", tmp_path)
    found = await space(store.database)
    assert found
    assert found.shrinks
    assert await audit(store.database) == []
    await store.close()


async def test_a_store_that_there_is_no_room_to_compact_is_left_as_it_is(tmp_path: Path) -> None:
    """The disk can become full while it is written, also by others."""
    store = await filled(tmp_path)
    await store.close()
    before, usual = store_path(tmp_path).stat().st_size, apsw.vfs_names()[0]
    disk = FaultyDisk("full while compacting", base=usual)
    disk.limit(tmp_path, sum(each.stat().st_size for each in tmp_path.iterdir() if each.is_file()) + before // 2)
    apsw.set_default_vfs(disk.name)
    try:
        with pytest.raises(DiskFull, match="nothing was changed"):
            compact(store_path(tmp_path))
    finally:
        apsw.set_default_vfs(usual)
    assert not store_path(tmp_path).with_name("holdfast.db.compact").exists()
    connection = apsw.Connection(str(store_path(tmp_path)), flags=apsw.SQLITE_OPEN_READONLY)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert connection.execute("SELECT count(*) FROM dedupe").fetchall() == [(KEYS,)]
    connection.close()


async def test_what_a_killed_compaction_has_left_goes_with_the_next_start(tmp_path: Path) -> None:
    left = store_path(tmp_path).with_name("holdfast.db.compact")
    left.write_bytes(b"half of it")
    await (await open_store("sqlite", tmp_path)).close()
    assert not left.exists()
