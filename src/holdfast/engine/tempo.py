"""The beat to which the turns of a node write.

They write at the same instants, so that one sync of the disk serves all of them.  The more turns there are, the fewer beats
each of them uses: what all of them write together stays within what one loop can show.
"""

from __future__ import annotations

import itertools

# So many turns write at one beat; when there are more, they take turns.
TURNS_PER_BEAT = 50
# Whoever has been silent for longer does not wait for a beat.
PAUSE_BEATS = 4


class Tempo:
    """One beat for all turns of a node."""

    def __init__(self, beat_ms: int) -> None:
        self.beat_ms = beat_ms
        self.parts = 0
        self._numbers = itertools.count()

    def join(self) -> Part:
        """Take part until `leave`."""
        self.parts += 1
        return Part(self, next(self._numbers))


class Part:
    """One turn's part in the beat."""

    __slots__ = ("_number", "_tempo", "_wrote_ms")

    def __init__(self, tempo: Tempo, number: int) -> None:
        self._tempo = tempo
        self._number = number
        self._wrote_ms: int | None = None

    def wait_ms(self, now_ms: int) -> int:
        """Return how long to wait before the next write: not at all for the first, and after a pause."""
        beat_ms, every = self._tempo.beat_ms, max(self._tempo.parts // TURNS_PER_BEAT, 1)
        if self._wrote_ms is None or now_ms - self._wrote_ms >= PAUSE_BEATS * every * beat_ms:
            return 0
        next_beat = now_ms // beat_ms + 1
        return (next_beat + (self._number - next_beat) % every) * beat_ms - now_ms

    def wrote(self, now_ms: int) -> None:
        self._wrote_ms = now_ms

    def leave(self) -> None:
        self._tempo.parts -= 1
