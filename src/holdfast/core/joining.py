"""Joining: what a person sent as one thing may arrive as several messages.

A platform splits a long text, and an album is a message for each picture.  Such parts arrive right after each other, so a
message waits a moment for the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# How long a message waits for the next one, in milliseconds.
WINDOW_MS = 300
# After a part that is as long as platforms let one be, and within an album.
LONG_WINDOW_MS = 1_500
# From which length on a message may be a part of a longer text, in UTF-16 units.
PART_UNITS = 4_000
# Messages that were sent further apart than this are never one, as after a time in which nothing was received.
APART_MS = 2_000
# What is older than this counts as backlog, and more of it than this is asked about before it is answered.
BACKLOG_MS = 3_600_000
BACKLOG_MAX = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrived:
    """What joining needs to know of a message."""

    # Who sent it, in which thread.
    speaker: tuple[str, str]
    text: str
    # By the clock of the platform.
    sent_at: int
    received_at: int
    album: str = ""
    # A command stands alone.
    alone: bool = False

    @property
    def window_ms(self) -> int:
        """How long it waits for the next part."""
        if self.alone:
            return 0
        return LONG_WINDOW_MS if self.album or _units(self.text) >= PART_UNITS else WINDOW_MS

    def takes(self, later: Arrived) -> bool:
        """Return whether the next message of the same speaker is a part of the same."""
        if self.alone or later.alone or self.album != later.album:
            return False
        if abs(later.sent_at - self.sent_at) > APART_MS:
            return False
        return later.received_at - self.received_at <= self.window_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """The messages that belong to the first one: their places among those that wait, and how long to wait for more."""

    places: tuple[int, ...]
    wait_ms: int


def gather(waiting: Sequence[Arrived], now_ms: int) -> Gathered:
    """Return what belongs to the first of the messages that wait in one chat, in the order of their arrival.

    Messages of other speakers may stand in between.
    """
    first, *others = waiting
    places, last = [0], first
    for place, each in enumerate(others, 1):
        if each.speaker != first.speaker:
            continue
        if not last.takes(each):
            return Gathered(places=tuple(places), wait_ms=0)
        places.append(place)
        last = each
    # However the clock was set, it is no longer than the window.
    passed_ms = max(0, now_ms - last.received_at)
    return Gathered(places=tuple(places), wait_ms=max(0, last.window_ms - passed_ms))


def is_backlog(sent_at: Sequence[int], now_ms: int) -> bool:
    """Return whether so many old messages of a chat wait that a person decides about them first."""
    return sum(is_old(each, now_ms) for each in sent_at) > BACKLOG_MAX


def is_old(sent_at: int, now_ms: int) -> bool:
    """Return whether a message counts as backlog.  A platform that does not tell when it was sent says 0."""
    return 0 < sent_at < now_ms - BACKLOG_MS


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
