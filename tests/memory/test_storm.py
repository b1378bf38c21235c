"""The storm in small; `python -m tests.memory.storm` is the long one."""

from __future__ import annotations

import pytest

from tests.memory.storm import house, storm_over


@pytest.mark.long
async def test_what_was_said_is_committed_to_its_owner_through_a_strike() -> None:
    """M1 to M4, M6, M8 to M10: killed, held still or stopped, and then under another binding, on rough servers."""
    async with house("sqlite", seed=2, hasty=True) as storm:
        ledger, _ = await storm_over(storm, sessions=8, kills=1)
    assert ledger.segments
