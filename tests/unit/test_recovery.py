"""What a sweep reports, and which rows nobody knows of."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.recovery import Interrupted, Swept, orphans

ids = st.frozensets(st.integers(0, 9))
turn_ids = st.lists(st.text("abc", min_size=1, max_size=2), max_size=4).map(tuple)
interrupted = st.builds(Interrupted, continued=turn_ids, rested=turn_ids, given_up=turn_ids)


@given(ids, ids, ids)
def test_only_what_was_unknown_at_two_looks_in_a_row_is_an_orphan(
    held: frozenset[int], known: frozenset[int], suspected: frozenset[int]
) -> None:
    """P1: a claim whose answer is still on its way is not taken from the worker that is about to get it."""
    certain, unsure = orphans(held, known, suspected)
    assert certain == {each for each in held if each not in known and each in suspected}
    assert unsure == {each for each in held if each not in known and each not in suspected}


@given(ids, ids)
def test_an_orphan_is_found_at_the_second_look(held: frozenset[int], known: frozenset[int]) -> None:
    """P1: nothing that this node has forgotten stays with it."""
    first, suspected = orphans(held, known, frozenset())
    second, _ = orphans(held, known, suspected)
    assert not first
    assert second == held - known


@given(ids, ids)
def test_what_became_known_meanwhile_is_not_an_orphan(held: frozenset[int], known: frozenset[int]) -> None:
    _, suspected = orphans(held, known, frozenset())
    assert orphans(held, known | suspected, suspected) == (set(), set())


@given(interrupted, interrupted)
def test_two_reports_add_up(one: Interrupted, other: Interrupted) -> None:
    both = one + other
    assert len(both) == len(one) + len(other)
    assert both.continued == one.continued + other.continued
    assert both.rested == one.rested + other.rested
    assert both.given_up == one.given_up + other.given_up


@given(interrupted, st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
def test_a_sweep_found_nothing_exactly_when_it_changed_nothing(
    turns: Interrupted, released: int, deliveries: int, segments: int
) -> None:
    """P1: the total is what decides whether to sweep once more."""
    total = Swept(turns=turns, released=released, deliveries=deliveries, segments=segments).total
    assert total == len(turns.continued + turns.rested + turns.given_up) + released + deliveries + segments
    assert Swept().total == 0
