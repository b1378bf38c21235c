"""Nothing that a model, a page or a client sends holds the loop: others are answered, and it is refused in time."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence

import pytest

from tests.blackbox.gateway import until
from tests.blackbox.holding import Attack, attacked

# A second is far more than is promised, and far less than any of these took.
LONGEST_MAX_S = 1.0


@pytest.mark.parametrize(
    ("calls", "said"),
    [
        (lambda attack: [attack.searches], "the search took longer than 10 s; make the pattern simpler"),
        (lambda attack: attack.fetches[:3], "took longer than 5 s; try another page"),
        (lambda attack: [attack.edits], "(200000 times)"),
    ],
    ids=["search", "pages", "edit"],
)
async def test_a_turn_that_asks_for_the_impossible_holds_up_nobody_else(
    calls: Callable[[Attack], Sequence[str]], said: str
) -> None:
    """S6, S7: health is answered, another turn goes on, and the turn that asked is told why it failed."""
    async with attacked() as attack:
        hostile = await attack.begin(*calls(attack))
        other = await attack.somebody.send(await attack.somebody.session(), "script: stream 50 at 50")
        await attack.somebody.answered(other)
        await attack.somebody.answered(hostile)
        assert said in await attack.somebody.said(hostile)
        assert max(attack.took_s) < LONGEST_MAX_S


async def test_a_body_that_is_hard_to_look_through_is_refused_at_once() -> None:
    async with attacked() as attack:
        await until(lambda: attack.took_s, "the gateway is well")
        assert await attack.ask_in_bad_json() == 400
        await attack.look_again()
        assert max(attack.took_s) < LONGEST_MAX_S


async def test_a_gateway_stops_in_time_while_pages_are_read() -> None:
    """S7: seven hostile pages kept SIGTERM from ending the process."""
    async with attacked() as attack:
        gateway = attack.workshop.gateway
        await attack.begin(*attack.fetches)
        await until(lambda: len(attack.web.asked) == len(attack.fetches), "the pages are there")
        gateway.signal(signal.SIGTERM)
        # Two signals at once may be one.
        await until(attack.somebody.drains, "it has heard the first")
        gateway.signal(signal.SIGTERM)
        assert await gateway.ended() in (0, -signal.SIGTERM)
