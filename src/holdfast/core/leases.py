"""A node is alive while its beat grows, judged by the watcher's own monotonic clock.

No wall clock takes part, neither ours nor the database's, so no clock jump can expire a live lease.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from holdfast.ids import NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """A node's beat and when, on the watcher's clock, it was first seen at that value."""

    beat: int
    since_ms: int


def watch(seen: Mapping[NodeId, Sighting], beats: Mapping[NodeId, int], now_ms: int) -> dict[NodeId, Sighting]:
    """Fold one look at the beats into what was seen before; nodes that are gone drop out.

    `now_ms` is read after the beats, so that a look which takes long makes no node older than it is.
    """
    fresh = {node: Sighting(beat=beat, since_ms=now_ms) for node, beat in beats.items()}
    return {node: old if (old := seen.get(node)) and old.beat == new.beat else new for node, new in fresh.items()}


def lapsed(seen: Mapping[NodeId, Sighting], now_ms: int, lease_ms: int) -> dict[NodeId, int]:
    """Return the nodes that have not beaten for a whole lease, each with the beat it stopped at.

    `now_ms` is read before the beats of the last look: a node may have beaten while they were on their way.
    """
    return {node: sighting.beat for node, sighting in seen.items() if now_ms - sighting.since_ms >= lease_ms}
