"""Ids sort by the time they were made."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import ids

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
moments = st.integers(0, 2**48 - 1)


@given(moments, moments)
def test_a_later_id_sorts_behind_an_earlier_one(one_ms: int, other_ms: int) -> None:
    """New rows land at the end of every index."""
    if one_ms != other_ms:
        earlier, later = sorted((one_ms, other_ms))
        assert ids.new_id("x", earlier) < ids.new_id("x", later)


@given(moments)
def test_an_id_is_its_prefix_and_twenty_six_characters_that_nobody_mistakes(now_ms: int) -> None:
    prefix, _, rest = ids.new_id("trn", now_ms).partition("_")
    assert prefix == "trn"
    assert len(rest) == 26
    assert set(rest) <= set(ALPHABET)


@given(moments)
def test_an_id_begins_with_its_moment(now_ms: int) -> None:
    first = ids.new_id("x", now_ms)[2:]
    number = 0
    for character in first:
        number = number * 32 + ALPHABET.index(character)
    assert number >> 80 == now_ms


def test_ids_of_the_same_moment_differ() -> None:
    assert len({ids.new_id("x", 1) for _ in range(20_000)}) == 20_000


def test_every_random_bit_is_used() -> None:
    """Half of the values of each position would still look unique for a long time."""
    made = [ids.new_id("x", 0)[2:] for _ in range(2_000)]
    assert all({one[position] for one in made} == set(ALPHABET) for position in range(10, 26))


@pytest.mark.parametrize(
    ("make", "prefix"),
    [
        (ids.new_session_id, "ses_"),
        (ids.new_turn_id, "trn_"),
        (ids.new_delivery_id, "dlv_"),
        (ids.new_segment_id, "seg_"),
        (ids.new_node_id, "nod_"),
    ],
)
def test_an_id_says_what_it_is_the_id_of(make: Callable[[int], str], prefix: str) -> None:
    assert make(1_700_000_000_000).startswith(prefix)
    assert len(make(1_700_000_000_000)) == 30


def test_no_two_processes_make_the_same_ids() -> None:
    """A child process does not use the randomness that its parent has kept."""
    ids.new_turn_id(1)
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.write(writer, "".join(ids.new_turn_id(1) for _ in range(10)).encode())
        os._exit(0)
    ours = {ids.new_turn_id(1) for _ in range(10)}
    os.waitpid(child, 0)
    theirs = os.read(reader, 10_000).decode()
    os.close(reader)
    os.close(writer)
    assert theirs.count("trn_") == 10
    assert not any(each in theirs for each in ours)


def test_many_threads_make_different_ids() -> None:
    with ThreadPoolExecutor(8) as pool:
        made = [each for some in pool.map(lambda _: [ids.new_turn_id(1) for _ in range(2_000)], range(8)) for each in some]
    assert len(set(made)) == len(made)
