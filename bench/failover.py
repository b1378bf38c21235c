"""Two gateways on one PostgreSQL, and one is killed: how long until the other has started the last of its turns again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

from bench.gateway import LOOK_S, Gateway
from bench.ground import Ground
from bench.report import Line, Unit
from holdfast.clock import SystemClock
from holdfast.config import GatewayConfig, SessionsConfig
from holdfast.core.intake import Inbound
from holdfast.core.redaction import Redaction
from holdfast.core.turns import Mode, Turn, TurnState
from holdfast.engine.inbox import Inbox
from holdfast.engine.tuning import Tuning
from holdfast.ids import TurnId
from holdfast.store.opening import open_store
from holdfast.store.store import Store

SECONDS_MAX = 10.0
WAIT_MAX_S = 60
# As many as one gateway runs at once, so that all of them can start again at once.
TURNS = GatewayConfig().max_running


async def run(ground: Ground) -> list[Line]:
    turns, rounds = (10, 1) if ground.quick else (TURNS, 3)
    taken = [await _measure(ground, turns) for _ in range(rounds)]
    return [
        Line(
            what=f"failover of {turns} running turns",
            measured=max(taken),
            unit=Unit.SECONDS,
            detail=f"slowest of {rounds}: " + ", ".join(f"{each:.1f}" for each in taken),
            bar=f"< {SECONDS_MAX:.0f} s",
            met=max(taken) < SECONDS_MAX,
            note=f"from the kill until the last turn has started on the other node; the lease is {Tuning().lease_ms} ms",
        )
    ]


async def _measure(ground: Ground, turns: int) -> float:
    url = ground.database()
    store = await open_store(url, ground.folder)
    try:
        with Gateway(ground.home(), url) as doomed:
            await doomed.ready()
            running = [await _send(store, number) for number in range(turns)]
            await _until(lambda: _all(store, running, lambda turn: turn.state is TurnState.RUNNING))
            with Gateway(ground.home(), url) as other:
                await other.ready()
                began = time.perf_counter()
                doomed.kill()
                await _until(lambda: _all(store, running, lambda turn: turn.attempt > 1))
                return time.perf_counter() - began
    finally:
        await store.close()


async def _send(store: Store, number: int) -> TurnId:
    """Send what takes long, and what nobody has to ask for again."""
    message = Inbound(
        conversation=f"hook:{number}", text="count to 1000 slowly", channel="webhook", mode=Mode.DETACHED, one_shot=True
    )
    return (await Inbox(store, GatewayConfig(), SessionsConfig(), Redaction(), SystemClock()).accept(message)).turn_id


async def _all(store: Store, turn_ids: Sequence[TurnId], is_there: Callable[[Turn], bool]) -> bool:
    return all([is_there(await store.turns.get(turn_id)) for turn_id in turn_ids])


async def _until(reached: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(WAIT_MAX_S):
        while not await reached():  # noqa: ASYNC110 - Another process sets no event of ours.
            await asyncio.sleep(LOOK_S)
