"""The storm in small; `python -m tests.webhooks.storm` is the long one."""

from __future__ import annotations

from tests.blackbox.gateway import gateways
from tests.webhooks.storm import storm


async def test_every_delivery_that_was_taken_is_answered_once_through_kills() -> None:
    """A1, A2, W4, W5, W6: killed in between, each 2xx is one completed turn with one answer, and its session has ended."""
    with gateways() as (gateway,):
        tally = await storm(gateway, deliveries=200, kills=3)
    assert tally.statuses[202] + tally.statuses[200] >= 200
