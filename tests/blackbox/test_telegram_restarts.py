"""A bot whose gateway is killed, stopped and restarted again and again while people write."""

from __future__ import annotations

import random
import signal

import pytest

from tests.blackbox.telegram import Scene, scene

SETTINGS = {"gateway__resume": "auto", "gateway__drain_timeout": "0.3"}
# An answer takes long enough to be cut off.
SLOWLY = "pings 4 every 0.1; echo"
WAYS = ("kill", "stop", "kill", "restart")


async def _restarts(here: Scene, way: str) -> None:
    gateway = here.gateway
    match way:
        case "kill":
            await gateway.kill()
            here.writes("while it is away")
            await gateway.start()
        case "stop":
            gateway.signal(signal.SIGTERM)
            here.writes("while it stops")
            assert await gateway.ended() == 0
            await gateway.start()
        case _:
            await gateway.run("restart", "--timeout", "0.3")
            await gateway.ready()


async def _survives(restarts: int, seed: int) -> None:
    chance = random.Random(seed)
    async with scene(settings=SETTINGS, script=SLOWLY) as here:
        # A restart begins a new interpreter, which takes its time on a busy machine.
        here.gateway.patience_s = 120
        team = here.there.group(-77, "Team")
        await here.gateway.start()
        for number in range(restarts):
            here.writes()
            here.writes("@holdfast_bot in the group", team)
            if chance.random() < 0.5:
                await here.answered(here.written[-1])
            await _restarts(here, WAYS[number % len(WAYS)])
            # A conversation that is interrupted three times in a row without an answer is given up.
            if number % 2:
                await here.answered()
        await here.verify(status_lines_lost=restarts)
        assert len(here.there.calls_of("setMyCommands")) == 1, "the menu is offered once"


async def test_nothing_is_lost_or_doubled_over_restarts() -> None:
    """D1, R2, R9: a short form of the hundred."""
    await _survives(4, seed=1)


@pytest.mark.long
@pytest.mark.timeout(1_800)
async def test_nothing_is_lost_or_doubled_over_a_hundred_restarts() -> None:
    """D1, R2, R9"""
    await _survives(100, seed=2)
