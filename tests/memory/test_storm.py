"""The storm in small; `python -m tests.memory.storm` is the long one."""

from __future__ import annotations

from tests.memory.storm import house, storm_over


async def test_what_was_said_is_committed_to_its_owner_through_every_strike() -> None:
    """M1 to M4, M6, M8 to M10: killed, stopped and held still, with another binding each time, on rough servers."""
    async with house("sqlite", seed=2, hasty=True) as storm:
        ledger, _ = await storm_over(storm, sessions=12, kills=2)
    assert len(ledger.segments) >= 10
