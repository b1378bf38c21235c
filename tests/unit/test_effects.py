"""What may be done about a tool call that was cut off."""

from __future__ import annotations

import pytest

from holdfast.core.effects import MOVES, CallEvent, CallState, Effect, after_cut


@pytest.mark.parametrize(
    ("effect", "decision"),
    [(Effect.PURE, CallEvent.REPEAT), (Effect.KEYED, CallEvent.REPEAT), (Effect.EFFECTFUL, CallEvent.LOSE)],
)
def test_a_cut_call_is_repeated_only_where_that_is_harmless(effect: Effect, decision: CallEvent) -> None:
    """X1, R10."""
    assert after_cut(effect) is decision


@pytest.mark.parametrize("effect", Effect)
def test_every_decision_about_a_cut_call_is_a_move_from_started(effect: Effect) -> None:
    """X1: the sweep that decides can never be refused by the table."""
    assert (CallState.STARTED, after_cut(effect)) in MOVES


def most_starts(effect: Effect, limit: int) -> int:
    """Walk every history that the table and `after_cut` allow, and return the most starts that any of them has."""
    frontier, seen, most = [(CallState.PLANNED, 0)], set[tuple[CallState, int]](), 0
    while frontier:
        state, starts = frontier.pop()
        most = max(most, starts)
        if (state, starts) in seen or starts == limit:
            continue
        seen.add((state, starts))
        for (before, event), after in MOVES.items():
            cut_otherwise = event in (CallEvent.REPEAT, CallEvent.LOSE) and event is not after_cut(effect)
            if before is state and not cut_otherwise:
                frontier.append((after, starts + (event is CallEvent.START)))
    return most


def test_no_history_starts_an_effectful_call_twice() -> None:
    """X1."""
    assert most_starts(Effect.EFFECTFUL, limit=5) == 1


@pytest.mark.parametrize("effect", [Effect.PURE, Effect.KEYED])
def test_a_harmless_call_may_be_started_as_often_as_it_takes(effect: Effect) -> None:
    """X1: the guard is about effects; a call that is safe to repeat is never given up as unknown."""
    assert most_starts(effect, limit=5) == 5
