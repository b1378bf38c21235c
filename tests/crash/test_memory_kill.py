"""Killed while a memory provider works: it sees the same segment again, and the ledger says committed once."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.core.segments import SegmentState
from holdfast.store.audit import audit
from holdfast.store.store import Store
from tests.crash.committing import MOMENTS, WAYS, make_engine
from tests.crash.world import World, opened, query, until

DEADLINE_S = 30


def killed(url: str, home: Path, way: str, moment: str) -> None:
    """Live until the provider kills us."""
    words = [sys.executable, "-m", "tests.crash.committing", url, str(home), way, moment]
    died = subprocess.run(words, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert died.returncode == -signal.SIGKILL, died.stderr


@pytest.mark.parametrize(("way", "moment"), [(WAYS[0], MOMENTS[0]), *((way, MOMENTS[1]) for way in WAYS)])
async def test_a_commit_in_which_we_are_killed_is_made_again_under_the_same_id(
    way: str, moment: str, store_url: str, tmp_path: Path
) -> None:
    """M6 M8: at least once for the provider, which can tell by the id; exactly once in the ledger."""
    killed(store_url, tmp_path, way, moment)
    world = World(tmp_path / "world")
    assert len(world.read("committed")) == (moment == "taken")
    async with opened(store_url, tmp_path) as store:
        (left,) = await query(store.database, "SELECT id, state, attempt FROM segments")
        assert left[1:] == (SegmentState.COMMITTING, 1)
        engine = make_engine(store, world)
        running = asyncio.create_task(engine.run())
        try:
            session_id = (await query(store.database, "SELECT session_id FROM segments"))[0][0]
            if way == "request":
                # Whoever asked has a head start before the background, and asks again.
                await engine.recovered()
                await engine.commit(session_id)
            await until(store, lambda: is_paid(store), "the debt paid")
            assert not await engine.commit(session_id), "there is nothing left to pay"
        finally:
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running
        assert await audit(store.database) == []
        (paid,) = await store.segments.of_session(session_id)
        assert (paid.state, paid.attempt, paid.receipt) == (SegmentState.COMMITTED, 2, "2 messages written down")
    assert [(line["id"], line["attempt"]) for line in world.read("asked")] == [(left[0], 1), (left[0], 2)]
    texts = [[text for _, _, text in line["messages"]] for line in world.read("committed")]
    assert texts == [["please", "done"]] * (1 + (moment == "taken"))


async def is_paid(store: Store) -> bool:
    return await query(store.database, "SELECT state FROM segments") == [(SegmentState.COMMITTED,)]
