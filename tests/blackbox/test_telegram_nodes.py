"""Two gateways on one PostgreSQL with one bot: one receives, and the other goes on when it cannot."""

from __future__ import annotations

import itertools
import signal
import time
from collections.abc import Iterator

import pytest

from tests.blackbox.gateway import Gateway, until
from tests.blackbox.telegram import PATIENCE_S, Scene, scene
from tests.postgres import Server

# A node is given up after five seconds of silence, and a busy machine takes its time.
TAKEN_OVER_S = 20
# An answer takes long enough to be cut off.
SLOWLY = "pings 8 every 0.1; echo"
_names = itertools.count(1)


@pytest.fixture
def url(postgres: Server) -> Iterator[str]:
    name = f"telegram_{next(_names)}"
    yield postgres.create_database(name)
    postgres.drop_database(name)


async def _receiving(here: Scene) -> Gateway:
    """Start two gateways, of which the first receives."""
    one, other = here.nodes
    await one.start()
    await here.answered(here.writes())
    await other.start()
    return one


async def _is_taken_over(here: Scene, since: float) -> None:
    """Return when the other node receives, which must not take long."""
    polled = here.there.bot.polled_at
    await until(lambda: polled[-1] > since, "the other node receives", PATIENCE_S)
    assert polled[-1] - since < TAKEN_OVER_S


async def test_when_the_node_that_receives_is_killed_the_other_goes_on(url: str) -> None:
    """D1, T4: within ten seconds, with no two receiving at a time, and nothing is lost or doubled."""
    async with scene(2, settings={"store__url": url, "gateway__resume": "auto"}) as here:
        one = await _receiving(here)
        await here.begun(here.asks_to_count(30, 10))
        here.writes("and this")
        killed_at = time.monotonic()
        await one.kill()
        here.writes("while nobody receives")
        await _is_taken_over(here, killed_at)
        await here.answered()
        assert here.there.bot.conflicts == 0
        await here.verify(via=1)


@pytest.mark.long
async def test_a_node_that_was_frozen_is_fenced(url: str) -> None:
    """T4: it comes back while the other receives, and changes nothing: its request was ended, and it makes no other."""
    async with scene(2, settings={"store__url": url, "gateway__resume": "auto"}) as here:
        one = await _receiving(here)
        node = await one.node()
        frozen_at = time.monotonic()
        one.signal(signal.SIGSTOP)
        here.asks_to_count(30, 10)
        await _is_taken_over(here, frozen_at)
        await here.answered()
        # The request that Telegram still held of the frozen node was ended by the other one's, once.
        before = here.there.bot.conflicts
        one.signal(signal.SIGCONT)
        await one.begins_anew(node)
        for _ in range(3):
            await here.answered(here.writes())
        await here.verify(via=1)
        assert here.there.bot.conflicts == before <= 1


@pytest.mark.long
async def test_nodes_that_are_killed_in_turn_lose_and_double_nothing(url: str) -> None:
    """D1, T4: each is killed while it receives, and comes back."""
    async with scene(2, settings={"store__url": url, "gateway__resume": "auto"}, script=SLOWLY) as here:
        victim, other = await _receiving(here), here.nodes[1]
        for _ in range(4):
            await here.begun(here.writes())
            killed_at = time.monotonic()
            await victim.kill()
            here.writes("while one is away")
            await _is_taken_over(here, killed_at)
            await here.answered()
            await victim.start()
            victim, other = other, victim
        await here.verify()
        assert here.there.bot.conflicts == 0
