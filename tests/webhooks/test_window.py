"""The rate of a route: so many in any minute, and exactly how long to wait."""

from __future__ import annotations

import pytest

from holdfast.channels.webhook import replays as memory
from holdfast.channels.webhook.rate import RateWindow
from holdfast.channels.webhook.replays import REPLAY_MS, Replays
from tests.engine.world import ManualClock


async def test_a_window_holds_so_many_in_any_minute() -> None:
    clock = ManualClock()
    window = RateWindow(2, clock)
    assert window.take() == 0
    await clock.advance(10_000)
    assert window.take() == 0
    assert window.take() == 50
    await clock.advance(49_001)
    assert window.take() == 1
    await clock.advance(999)
    assert window.take() == 0
    assert window.take() == 10


async def test_what_does_not_count_is_given_back() -> None:
    window = RateWindow(1, ManualClock())
    assert window.take() == 0
    window.give_back()
    assert (window.take(), window.take()) == (0, 60)
    window.give_back()
    window.give_back()
    assert window.take() == 0


async def test_a_signature_keeps_its_first_id_for_as_long_as_its_time_is_good(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ManualClock()
    replays = Replays(clock)
    assert replays.first("alerts", "mark", "one") == "one"
    assert (replays.first("alerts", "mark", "two"), replays.first("other", "mark", "two")) == ("one", "two")
    await clock.advance(REPLAY_MS - 1)
    assert (replays.first("alerts", "mark", "three"), len(replays)) == ("one", 2)
    await clock.advance(1)
    assert (replays.first("alerts", "mark", "four"), len(replays)) == ("four", 1)
    monkeypatch.setattr(memory, "REPLAYS_MAX", 3)
    for number in range(10):
        assert replays.first("alerts", f"mark {number}", "any") == "any"
    assert len(replays) == 3
