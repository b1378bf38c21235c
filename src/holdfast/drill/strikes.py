"""Which turns a drill may give up: those interrupted often enough, and running alone if it was a crash."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from holdfast.core import notes
from holdfast.core.events import TurnCompleted, TurnInterrupted, TurnStarted
from holdfast.core.journal import Entry
from holdfast.core.sessions import STRIKES_MAX
from holdfast.core.turns import Cause, Turn, TurnState
from holdfast.ids import SessionId, TurnId

_Attempt = tuple[TurnId, int]


def judge_strikes(
    turns: Sequence[Turn], journals: Mapping[SessionId, Sequence[Entry]], ends_ms: Sequence[int]
) -> Iterator[str]:
    """Compare the turns without an answer with their interruptions.  `ends_ms` are the times at which lives ended."""
    for turn in turns:
        if turn.state is TurnState.CANCELLED:
            yield f"S2 cancelled, and no one asked for it: {turn.id}"
        elif turn.state is TurnState.INTERRUPTED and turn.error != notes.GIVEN_UP:
            yield f"A1 cut off, neither continued nor given up: {turn.id}"
    lives = _lives(journals, ends_ms)
    company = Counter(
        lives[attempt] for entries in journals.values() for entry in entries if (attempt := _crashed(entry)) in lives
    )
    for entries in journals.values():
        yield from _judge_given_up(entries, lives, company)


def _judge_given_up(entries: Sequence[Entry], lives: Mapping[_Attempt, int], company: Counter[int]) -> Iterator[str]:
    strikes = 0
    for entry in entries:
        if isinstance(entry.event, TurnCompleted):
            strikes = 0
        if not isinstance(entry.event, TurnInterrupted):
            continue
        strikes += 1
        if entry.event.error != notes.GIVEN_UP:
            continue
        if strikes < STRIKES_MAX:
            yield f"S2 given up after {strikes} interruptions: {entry.turn_id}"
        attempt = _crashed(entry)
        if attempt is not None and attempt in lives and (cut := company[lives[attempt]]) > 1:
            yield f"S2 given up after a crash that cut off {cut - 1} more: {entry.turn_id}"


def _lives(journals: Mapping[SessionId, Sequence[Entry]], ends_ms: Sequence[int]) -> dict[_Attempt, int]:
    """Return the life in which each attempt was started.  One life ends before the next begins."""
    return {
        (entry.turn_id, entry.attempt): bisect_left(ends_ms, entry.at)
        for entries in journals.values()
        for entry in entries
        if isinstance(entry.event, TurnStarted)
    }


def _crashed(entry: Entry) -> _Attempt | None:
    """Return the attempt that an entry says was cut off by a crash."""
    is_crash = isinstance(entry.event, TurnInterrupted) and entry.event.cause == Cause.CRASH
    return (entry.turn_id, entry.attempt) if is_crash else None
