"""A gateway whose machine has a clock that is set wrong for a while: nothing is skipped, and the node is named."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from holdfast.clock import SystemClock
from holdfast.store.opening import open_readonly
from tests.blackbox.gateway import Gateway, until
from tests.blackbox.settable import AHEAD

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
BOOT = SystemClock().boot()
SETTABLE = [sys.executable, "-m", "tests.blackbox.settable"]


class Settable(Gateway):
    """A gateway on a machine whose clock can be set."""

    command = SETTABLE

    def __init__(self, home: Path, **settings: str) -> None:
        super().__init__(home, **settings)
        self._ahead = home.with_suffix(".clock")
        self.environment[AHEAD] = str(self._ahead)
        self.set_clock(0)

    def set_clock(self, ahead_ms: int) -> None:
        new = self._ahead.with_suffix(".new")
        new.write_text(str(ahead_ms))
        new.replace(self._ahead)

    async def get(self, path: str) -> Any:
        async with httpx2.AsyncClient(base_url=self.url, verify=False, trust_env=False) as web:
            return (await web.get(path)).json()


@contextlib.contextmanager
def made(folder: Path, count: int, **settings: str) -> Iterator[list[Settable]]:
    gateways = [Settable(folder / f"home-{number}", **settings) for number in range(count)]
    try:
        yield gateways
    finally:
        for each in gateways:
            each.close()


@contextlib.asynccontextmanager
async def with_a_job(folder: Path, url: str) -> AsyncIterator[list[Settable]]:
    """Run one gateway, or two where they can share a store, that have something to do each minute."""
    with made(folder, 1 if url == "sqlite" else 2, store__url=url) as gateways:
        for each in gateways:
            await each.start()
        await gateways[0].run("jobs", "add", "tides", "--schedule", "* * * * *", "--prompt", "count to 1")
        yield gateways


async def is_found_out(gateway: Settable, node: str) -> bool:
    """Return whether a wrong clock has shown: it was named, or it has led a job astray."""
    off = (await gateway.get("/api/status")).get("clocks_off", [])
    return node in [each["node"] for each in off] or bool(missed(await gateway.get("/api/jobs/tides")))


def missed(job: Any) -> list[int]:
    return [each["instant"] for each in job["slots"] if each["outcome"] == "missed"]


def is_soon(job: Any) -> bool:
    return job["next_at"] <= time.time() * 1000 + MINUTE_MS


async def knows_the_time(home: Path) -> bool:
    """Return whether the store has what the next process needs to know."""
    store = await open_readonly("sqlite", home)
    try:
        return await store.nodes.boot_clock(BOOT) is not None
    finally:
        await store.close()


@pytest.mark.parametrize("ahead_ms", [24 * HOUR_MS, -5 * HOUR_MS])
async def test_a_clock_that_is_set_wrong_for_a_while_skips_nothing_and_is_named(
    store_url: str, tmp_path: Path, ahead_ms: int
) -> None:
    """C1: no instant that has not come is missed, and each job goes on when, and while, the clock is wrong."""
    async with with_a_job(tmp_path, store_url) as gateways:
        wrong, asked = gateways[0], gateways[-1]
        node = await wrong.node()
        wrong.set_clock(ahead_ms)
        await until(lambda: is_found_out(asked, node), "the wrong clock shows")
        job = await asked.get("/api/jobs/tides")
        assert missed(job) == []
        assert is_soon(job)
        (off,) = (await asked.get("/api/status"))["clocks_off"]
        assert (off["node"], round(off["off_ms"] / HOUR_MS)) == (node, ahead_ms // HOUR_MS)
        words = f"{abs(ahead_ms) // HOUR_MS} h {'ahead' if ahead_ms > 0 else 'behind'}"
        assert words in await asked.run("status")
        report = json.loads(await asked.run("doctor", "--json"))
        assert any(f"the clock of node {node} is {words}" in each["found"] for each in report["checks"])
        wrong.set_clock(0)

        async def is_right_again() -> bool:
            return not (await asked.get("/api/status"))["clocks_off"]

        await until(is_right_again, "the clock is right again")
        job = await asked.get("/api/jobs/tides")
        assert missed(job) == []
        assert is_soon(job)


@pytest.mark.skipif(not BOOT, reason="this system does not tell one start of the machine from another")
async def test_a_restart_does_not_make_a_wrong_clock_right(tmp_path: Path) -> None:
    """C1: the machine was not started anew, so that the next process still knows how much time has passed."""
    async with with_a_job(tmp_path, "sqlite") as (gateway,):
        await until(lambda: knows_the_time(gateway.home), "the store knows the time")
        await gateway.kill()
        gateway.set_clock(24 * HOUR_MS)
        await gateway.start()
        node = await gateway.node()
        await until(lambda: is_found_out(gateway, node), "the wrong clock shows")
        job = await gateway.get("/api/jobs/tides")
        assert missed(job) == []
        assert is_soon(job)
