"""A breaker: who may ask, who waits for all, and for how long nobody asks after a failure."""

from __future__ import annotations

from itertools import product

import pytest

from holdfast.core.breaker import PAUSE_FIRST_MS, PAUSE_MAX_MS, Breaker, pause_ms

# What can happen, one at each instant of a manual clock.
MOVES = ("ask", "wait on", "answer", "fail", "pause", "longest pause")
DEPTH = 6


def test_the_pause_doubles_from_thirty_seconds_to_five_minutes() -> None:
    assert [pause_ms(failures) // 1000 for failures in range(1, 7)] == [30, 60, 120, 240, 300, 300]
    assert pause_ms(1_000_000) == PAUSE_MAX_MS


def test_the_first_who_asks_asks_for_all_until_there_is_an_answer() -> None:
    """M10: of many that begin at once, one waits to find out how the provider is."""
    breaker = Breaker()
    assert breaker.is_unknown
    assert breaker.may_ask(0)
    breaker = breaker.asked()
    assert not breaker.may_ask(0)
    breaker = breaker.answered()
    assert breaker.may_ask(0)
    # From now on all may ask beside each other, until one of them waits longer than the others would.
    assert breaker.asked().may_ask(0)
    assert not breaker.tried().may_ask(0)


@pytest.mark.parametrize("proven", [False, True])
def test_after_a_failure_nobody_asks_until_the_pause_is_over_and_then_one(proven: bool) -> None:
    breaker = Breaker(is_proven=proven).asked().failed(1_000)
    assert not breaker.is_unknown
    assert [breaker.may_ask(at) for at in (1_000, 999 + PAUSE_FIRST_MS, 1_000 + PAUSE_FIRST_MS)] == [False, False, True]
    assert not breaker.asked().may_ask(1_000 + PAUSE_FIRST_MS)


def test_failures_that_were_under_way_together_count_as_one() -> None:
    once = Breaker(is_proven=True).failed(0)
    assert once.failed(1) is once
    assert once.failed(PAUSE_FIRST_MS).failures == 2


def test_an_answer_makes_everything_good_however_late() -> None:
    assert Breaker().asked().failed(0).answered() == Breaker(is_proven=True)


def test_whatever_happens_in_whatever_order_the_breaker_keeps_its_word() -> None:
    """Every sequence of so many moves: nobody is ever let in twice, nobody during a pause, and somebody always after it."""
    for moves in product(MOVES, repeat=DEPTH):
        _hold(moves)


def _hold(moves: tuple[str, ...]) -> None:
    breaker, now, alone, in_a_row = Breaker(), 0, False, 0
    for move in moves:
        may_ask = breaker.may_ask(now)
        match move:
            case "ask" if may_ask:
                assert not alone, moves
                alone = not breaker.is_proven
                breaker = breaker.asked()
            case "wait on" if may_ask and breaker.is_proven:
                alone, breaker = True, breaker.tried()
            case "answer":
                alone, in_a_row, breaker = False, 0, breaker.answered()
            case "fail":
                if now >= breaker.open_until:
                    in_a_row += 1
                before, breaker = breaker, breaker.failed(now)
                assert breaker.failures == in_a_row
                assert breaker is before or breaker.open_until == now + pause_ms(in_a_row)
                alone = breaker.is_tried
            case "pause":
                now += PAUSE_FIRST_MS
            case "longest pause":
                now += PAUSE_MAX_MS
            case _:
                pass
        assert breaker.may_ask(now) is (not alone and now >= breaker.open_until), moves
        assert breaker.open_until - now <= PAUSE_MAX_MS
