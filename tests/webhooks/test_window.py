"""The rate of a route: so many in any minute, and exactly how long to wait."""

from __future__ import annotations

from holdfast.web.webhooks import Window
from tests.engine.world import ManualClock


async def test_a_window_holds_so_many_in_any_minute() -> None:
    clock = ManualClock()
    window = Window(2, clock)
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
    window = Window(1, ManualClock())
    assert window.take() == 0
    window.give_back()
    assert (window.take(), window.take()) == (0, 60)
    window.give_back()
    window.give_back()
    assert window.take() == 0
