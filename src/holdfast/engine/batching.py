"""Batching: when the running turns of a node write.

They write at the same instants, so that one sync of the disk serves all of them.  When many turns run, each of them uses
only some of the instants, so that one batch stays within what one event loop can show.
"""

from __future__ import annotations

import itertools

# This many turns write at one instant.
TURNS_PER_BATCH = 50
# A turn that has been silent for this many batches does not wait for the next one.
PAUSE_BATCHES = 4


class Batching:
    """The instants at which all turns of a node write: every `batch_ms`."""

    def __init__(self, batch_ms: int) -> None:
        self.batch_ms = batch_ms
        self.turns = 0
        self._numbers = itertools.count()

    def join(self) -> Batcher:
        """Return the batcher of one more turn, which counts until `leave`."""
        self.turns += 1
        return Batcher(self, next(self._numbers))


class Batcher:
    """Says when one turn writes."""

    __slots__ = ("_batching", "_number", "_wrote_ms")

    def __init__(self, batching: Batching, number: int) -> None:
        self._batching = batching
        self._number = number
        self._wrote_ms: int | None = None

    def wait_ms(self, now_ms: int) -> int:
        """Return how long to wait before the next write: not at all for the first, and after a pause."""
        batch_ms, every = self._batching.batch_ms, max(self._batching.turns // TURNS_PER_BATCH, 1)
        if self._wrote_ms is None or now_ms - self._wrote_ms >= PAUSE_BATCHES * every * batch_ms:
            return 0
        next_batch = now_ms // batch_ms + 1
        return (next_batch + (self._number - next_batch) % every) * batch_ms - now_ms

    def wrote(self, now_ms: int) -> None:
        self._wrote_ms = now_ms

    def leave(self) -> None:
        self._batching.turns -= 1
