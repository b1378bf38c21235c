"""The rule that tells a retry of one request from another request with the same words."""

from __future__ import annotations

import itertools

import pytest

from holdfast.core.retries import FINISHED_MS, IN_FLIGHT_MS, Candidate, Try, chosen, digest, number
from holdfast.core.turns import FINAL, TurnState
from holdfast.ids import SessionId, TurnId

NOW = 1_700_000_000_000


def candidate(
    name: str, *, tries: int = 0, state: TurnState = TurnState.RUNNING, age: int = 0, rest: int | None = None
) -> Candidate:
    return Candidate(
        turn_id=TurnId(name),
        session_id=SessionId(f"of {name}"),
        state=state,
        accepted_at=NOW - age,
        answered_at=None if rest is None else NOW - rest,
        tries=tries,
    )


def order(found: list[Candidate], number: int = 1, *attended: str) -> str:
    this = Try(digest="d", number=number, attended=frozenset(map(TurnId, attended)))
    return "".join(each.turn_id for each in chosen(found, this, NOW))


@pytest.mark.parametrize(
    ("header", "found"),
    [
        (None, 0),
        ("", 0),
        ("0", 0),
        ("1", 1),
        (" 2 ", 2),
        ("007", 7),
        ("-1", 0),
        ("1.5", 0),
        ("²", 0),
        ("x", 0),
        ("1" * 5, 0),
    ],
)
def test_only_a_count_marks_a_retry(header: str | None, found: int) -> None:
    assert number(header) == found


def test_a_digest_depends_on_every_part_and_on_where_it_ends() -> None:
    parts = [("a", "b"), ("ab", ""), ("", "ab"), ("a", "b", ""), ("1:a", "b"), ("a",), (), ("a", "c"), ("\ud800", "b")]
    assert len({digest(each) for each in parts}) == len(parts)
    assert digest(("a", "b")) == digest(["a", "b"])


@pytest.mark.parametrize(("number", "refused"), list(itertools.product(range(3), (False, True))))
def test_a_first_try_and_one_behind_a_refusal_join_nothing(number: int, refused: bool) -> None:
    assert Try(digest="d", number=number, refused=refused).joins == (number > 0 and not refused)


@pytest.mark.parametrize(("tries", "number"), list(itertools.product(range(4), repeat=2)))
def test_a_turn_answers_to_each_number_once(tries: int, number: int) -> None:
    """Tries of one request have growing numbers, so a number that a turn has answered to belongs to another request."""
    assert bool(order([candidate("a", tries=tries)], number)) == (tries < number)


@pytest.mark.parametrize("state", TurnState)
def test_a_turn_can_be_joined_for_as_long_as_its_client_may_still_come_back(state: TurnState) -> None:
    final = state in FINAL
    for age, fits in ((0, True), (IN_FLIGHT_MS, True), (IN_FLIGHT_MS + 1, False)):
        assert bool(order([candidate("a", state=state, age=age)])) == fits
    # One that has just finished may have taken any time before.
    for rest, fits in ((0, True), (FINISHED_MS, True), (FINISHED_MS + 1, False)):
        found = [candidate("a", state=state, age=10 * IN_FLIGHT_MS, rest=rest)]
        assert bool(order(found)) == (fits and final)


def test_the_newest_turn_without_a_client_comes_first() -> None:
    found = [candidate("a", age=30), candidate("c", age=10), candidate("d", age=10), candidate("b", age=20)]
    assert order(found) == "dcba"
    assert order(found, 1, "d", "b") == "cadb"
    # The gateway may not have noticed yet that the client of the only one is gone.
    assert order([candidate("a")], 1, "a") == "a"


def test_as_many_retries_as_requests_find_a_turn_each() -> None:
    """However the tries of equal requests come in, no two of the same number get the same turn."""
    for count in range(1, 4):
        for numbers in set(itertools.permutations([1] * count + [2] * count)):
            tries = dict.fromkeys("abc"[:count], 0)
            served: dict[int, list[str]] = {1: [], 2: []}
            for each in numbers:
                found = [candidate(name, tries=highest) for name, highest in tries.items()]
                if got := order(found, each)[:1]:
                    tries[got] = each
                    served[each].append(got)
            assert all(len(set(got)) == len(got) for got in served.values())
            assert len(served[2]) == count
