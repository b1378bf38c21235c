"""The beat to which turns write."""

from __future__ import annotations

from collections import Counter

from holdfast.engine.batching import PAUSE_BATCHES, TURNS_PER_BATCH, Batcher, Batching

BEAT = 50


def _written(batcher: Batcher, at: int = 1_007) -> Batcher:
    batcher.wrote(at)
    return batcher


def test_the_first_write_and_one_after_a_pause_wait_for_nobody() -> None:
    batcher = Batching(BEAT).join()
    assert batcher.wait_ms(1_007) == 0
    batcher.wrote(1_007)
    assert batcher.wait_ms(1_008) == 1_050 - 1_008
    assert batcher.wait_ms(1_007 + PAUSE_BATCHES * BEAT) == 0


def test_all_write_at_the_same_instants() -> None:
    batching = Batching(BEAT)
    batchers = [_written(batching.join(), 1_000 + nth) for nth in range(TURNS_PER_BATCH)]
    assert {now + batcher.wait_ms(now) for now, batcher in enumerate(batchers, 1_000)} == {1_050}


def test_when_there_are_many_each_uses_fewer_beats_and_no_beat_is_crowded() -> None:
    batching = Batching(BEAT)
    batchers = [_written(batching.join()) for _ in range(4 * TURNS_PER_BATCH)]
    beats = Counter(1_010 + batcher.wait_ms(1_010) for batcher in batchers)
    assert beats == {1_050 + nth * BEAT: TURNS_PER_BATCH for nth in range(4)}
    for batcher in batchers:
        at = 1_010 + batcher.wait_ms(1_010)
        batcher.wrote(at)
        assert batcher.wait_ms(at) == 4 * BEAT


def test_whoever_leaves_makes_room() -> None:
    batching = Batching(BEAT)
    batchers = [_written(batching.join()) for _ in range(2 * TURNS_PER_BATCH)]
    assert max(batcher.wait_ms(1_010) for batcher in batchers) > BEAT
    batchers.pop().leave()
    assert max(batcher.wait_ms(1_010) for batcher in batchers) <= BEAT
