"""Leases: a node that beats is alive, a silent one is not, and no wall clock has a say."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, cycle, takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.leases import Sighting, lapsed, watch

LEASE_MS = 100


@dataclass(frozen=True)
class Look:
    """One look at the beats, on the watcher's monotonic clock: before asking, when the store reads, after the answer."""

    before: int
    read: int
    after: int


def looks_from(steps: Sequence[tuple[int, int, int]]) -> list[Look]:
    times = list(accumulate(chain.from_iterable(steps)))
    return [Look(*times[i : i + 3]) for i in range(0, len(times), 3)]


# Each look may come at once or very late, and take no time or very long: a slow disk, a stopped process, a suspended laptop.
delays = st.one_of(st.integers(0, 3), st.integers(0, 2 * LEASE_MS), st.integers(0, 20 * LEASE_MS))
looks = st.lists(st.tuples(delays, delays, delays), min_size=2, max_size=20).map(looks_from)
gaps = st.lists(st.one_of(st.just(LEASE_MS), st.integers(1, LEASE_MS)), min_size=1, max_size=10)
nodes = st.dictionaries(st.sampled_from("abcde"), st.integers(0, 5))
sightings = st.dictionaries(
    st.sampled_from("abcde"), st.builds(Sighting, beat=st.integers(0, 5), since_ms=st.integers(0, 5 * LEASE_MS))
)


@given(looks, gaps)
def test_a_node_that_beats_once_per_lease_is_never_given_up(looks: list[Look], gaps: list[int]) -> None:
    """C1: only the watcher's monotonic clock and the beats decide; how slow the watcher or its reads are does not."""
    beats = list(takewhile(lambda at: at <= looks[-1].read, accumulate(chain([0], cycle(gaps)))))
    seen: dict[str, Sighting] = {}
    for look in looks:
        seen = watch(seen, {"node": bisect_right(beats, look.read)}, look.after)
        assert lapsed(seen, look.before, LEASE_MS) == {}


@given(st.integers(0, 5), looks)
def test_a_silent_node_is_given_up_once_a_whole_lease_has_passed(beat: int, looks: list[Look]) -> None:
    """C1, P1: neither earlier, nor ever overlooked."""
    seen: dict[str, Sighting] = {}
    for look in looks:
        seen = watch(seen, {"node": beat}, look.after)
        silent_ms = look.before - looks[0].after
        assert lapsed(seen, look.before, LEASE_MS) == ({"node": beat} if silent_ms >= LEASE_MS else {})


@pytest.mark.parametrize(("silent_ms", "given_up"), [(LEASE_MS - 1, {}), (LEASE_MS, {"node": 7})])
def test_a_lease_ends_with_its_last_millisecond(silent_ms: int, given_up: dict[str, int]) -> None:
    seen = {"node": Sighting(beat=7, since_ms=1_000)}
    assert lapsed(seen, 1_000 + silent_ms, LEASE_MS) == given_up


@given(sightings, nodes, st.integers(0, 10 * LEASE_MS), st.integers(1, LEASE_MS))
def test_a_node_first_seen_now_is_never_given_up_at_once(
    seen: dict[str, Sighting], beats: dict[str, int], now_ms: int, lease_ms: int
) -> None:
    """C1: a watcher that has just started knows nobody's past, so it judges nobody by it."""
    fresh = beats.keys() - seen.keys()
    assert not fresh & lapsed(watch(seen, beats, now_ms), now_ms, lease_ms).keys()


@given(sightings, nodes, st.integers(0, 10 * LEASE_MS))
def test_a_beat_makes_a_node_young_again(seen: dict[str, Sighting], beats: dict[str, int], now_ms: int) -> None:
    """C1: however long it had been silent before."""
    after = watch(seen, beats, now_ms)
    for node, beat in beats.items():
        unchanged = node in seen and seen[node].beat == beat
        assert after[node] == Sighting(beat=beat, since_ms=seen[node].since_ms if unchanged else now_ms)


@given(sightings, nodes, st.integers(0, 10 * LEASE_MS))
def test_nodes_that_are_gone_are_forgotten(seen: dict[str, Sighting], beats: dict[str, int], now_ms: int) -> None:
    """P1: what was buried once is not buried again."""
    assert watch(seen, beats, now_ms).keys() == beats.keys()


@given(sightings, st.integers(0, 10 * LEASE_MS))
def test_a_node_is_given_up_with_the_beat_it_stopped_at(seen: dict[str, Sighting], now_ms: int) -> None:
    """T4: the burial compares that beat, so one that comes in between saves the node."""
    for node, beat in lapsed(seen, now_ms, LEASE_MS).items():
        assert beat == seen[node].beat
