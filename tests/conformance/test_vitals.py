"""Vital signs: a store says how it is to whoever only looks, and nothing in it changes."""

from __future__ import annotations

import time

from holdfast.store.vitals import vitals
from tests.conformance.scenes import START, Scene


async def test_a_store_that_is_sound_says_so(scene: Scene) -> None:
    seen = await vitals(scene.store.database)
    assert (seen.newest_at, list(seen.damage)) == (None, [])
    assert seen.looked_through is not scene.postgres
    if scene.postgres:
        assert seen.now_ms
        assert abs(seen.now_ms - time.time() * 1000) < 60_000
    else:
        assert seen.now_ms is None, "an embedded store has no clock of its own"


async def test_the_newest_entry_is_known_also_after_the_clock_was_set_back(scene: Scene) -> None:
    """C1: nothing breaks by it, and whoever looks can tell."""
    await scene.finished()
    assert (await vitals(scene.store.database)).newest_at == START
    scene.now -= 1_000
    await scene.finished()
    before = await scene.snapshot()
    assert (await vitals(scene.store.database)).newest_at == START
    assert await scene.snapshot() == before
