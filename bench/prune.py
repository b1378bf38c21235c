"""Pruning many sessions at once: what others wait for meanwhile, and how much of the file comes back."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from dataclasses import replace
from pathlib import Path

from bench import fill, workload
from bench.ground import Ground, Kind
from bench.producers import percentile
from bench.report import Line, Unit
from holdfast.clock import SystemClock
from holdfast.config import GatewayConfig, SessionsConfig
from holdfast.core.redaction import Redaction
from holdfast.engine.inbox import Inbox
from holdfast.store.store import Store

P99_MAX_MS = 50.0
ALONE_S = 3
KINDS: tuple[Kind, ...] = ("sqlite", "postgres")
_clock = SystemClock()


async def run(ground: Ground) -> list[Line]:
    sessions = 5_000 if ground.quick else 100_000
    lines: list[Line] = []
    for kind in KINDS:
        store, path = await ground.store(kind)
        await fill.ended(store.database, sessions)
        lines += await _measured(store, Path(path) if kind == "sqlite" else None, sessions, kind)
        await store.close()
    return lines


async def _measured(store: Store, path: Path | None, sessions: int, kind: str) -> list[Line]:
    if path:
        await store.database.tidy()
    before = path.stat().st_size if path else 0
    alone: list[float] = []
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(_accept(store, alone, "alone"), ALONE_S)
    accepts: list[float] = []
    accepting = asyncio.create_task(_accept(store, accepts, "beside"))
    began = time.monotonic()
    pruned = await store.sessions.prune("webhook", 2**60)
    took_s = time.monotonic() - began
    while await store.give_back():
        pass
    accepting.cancel()
    p99 = percentile(accepts, 99)
    after = path.stat().st_size if path else 0
    shrunk = f", the file from {before / 2**20:.0f} to {after / 2**20:.0f} MB" if path else ""
    return [
        Line(
            what=f"accept while {sessions:,} sessions are pruned, {kind}",
            measured=p99,
            unit=Unit.MILLISECONDS,
            detail=f"p99 of {len(accepts):,}, at most {max(accepts):.0f} ms; {pruned / took_s:,.0f} sessions/s{shrunk}",
            bar=f"≤ {P99_MAX_MS:.0f} ms",
            raw=percentile(alone, 99),
            met=p99 <= P99_MAX_MS,
        )
    ]


async def _accept(store: Store, took_ms: list[float], name: str) -> None:
    inbox = Inbox(store, GatewayConfig(), SessionsConfig(), Redaction(), _clock)
    for number in itertools.count(1):
        began = time.monotonic()
        await inbox.accept(replace(workload.message(number), conversation=f"{name}:{number}", dedupe_key=f"{name}:{number}"))
        took_ms.append((time.monotonic() - began) * 1000)
        await asyncio.sleep(0.005)
