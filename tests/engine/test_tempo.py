"""The beat to which turns write."""

from __future__ import annotations

from collections import Counter

from holdfast.engine.tempo import PAUSE_BEATS, TURNS_PER_BEAT, Part, Tempo

BEAT = 50


def _written(part: Part, at: int = 1_007) -> Part:
    part.wrote(at)
    return part


def test_the_first_write_and_one_after_a_pause_wait_for_nobody() -> None:
    part = Tempo(BEAT).join()
    assert part.wait_ms(1_007) == 0
    part.wrote(1_007)
    assert part.wait_ms(1_008) == 1_050 - 1_008
    assert part.wait_ms(1_007 + PAUSE_BEATS * BEAT) == 0


def test_all_write_at_the_same_instants() -> None:
    tempo = Tempo(BEAT)
    parts = [_written(tempo.join(), 1_000 + nth) for nth in range(TURNS_PER_BEAT)]
    assert {now + part.wait_ms(now) for now, part in enumerate(parts, 1_000)} == {1_050}


def test_when_there_are_many_each_uses_fewer_beats_and_no_beat_is_crowded() -> None:
    tempo = Tempo(BEAT)
    parts = [_written(tempo.join()) for _ in range(4 * TURNS_PER_BEAT)]
    beats = Counter(1_010 + part.wait_ms(1_010) for part in parts)
    assert beats == {1_050 + nth * BEAT: TURNS_PER_BEAT for nth in range(4)}
    for part in parts:
        at = 1_010 + part.wait_ms(1_010)
        part.wrote(at)
        assert part.wait_ms(at) == 4 * BEAT


def test_whoever_leaves_makes_room() -> None:
    tempo = Tempo(BEAT)
    parts = [_written(tempo.join()) for _ in range(2 * TURNS_PER_BEAT)]
    assert max(part.wait_ms(1_010) for part in parts) > BEAT
    parts.pop().leave()
    assert max(part.wait_ms(1_010) for part in parts) <= BEAT
