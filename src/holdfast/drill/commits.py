"""Compares the segments that memory was given in a drill with those that the store says it was given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Self

from holdfast.core.segments import Segment, SegmentState
from holdfast.core.turns import Turn, TurnState
from holdfast.ids import SegmentId, SessionId, TurnId
from holdfast.store import rows
from holdfast.store.database import Run, Transaction
from holdfast.store.store import Store

# How a line begins that tells of a commit.
COMMITTED = "committed"
_SEGMENTS = f"SELECT {rows.SEGMENT} FROM segments ORDER BY session_id, first_generation"  # noqa: S608 - Columns of our own.


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A segment as the provider got it."""

    segment_id: SegmentId
    turns: Sequence[TurnId]

    @classmethod
    def read(cls, words: Sequence[str]) -> Self:
        return cls(segment_id=SegmentId(words[1]), turns=[TurnId(each) for each in words[2:]])

    def words(self) -> Sequence[str]:
        return (COMMITTED, self.segment_id, *self.turns)


async def judge_commits(store: Store, commits: Sequence[Commit], turns: Sequence[Turn]) -> list[str]:
    """Compare what the provider got, in its order, with the segments and the turns of the store."""
    segments = await store.database.read(_segments)
    said = await store.segments.turns_of([each.id for each in segments])
    first = {commit.segment_id: number for number, commit in reversed([*enumerate(commits)])}
    return [
        *(f"M1 completed, and never remembered: {turn.id}" for turn in turns if _is_missed(turn)),
        *_judge_segments(segments, first),
        *_judge_told(said, commits),
        *_judge_order(segments, first),
    ]


def _is_missed(turn: Turn) -> bool:
    return turn.state is TurnState.COMPLETED and turn.remembers and turn.generation is None


def _judge_segments(segments: Sequence[Segment], first: Mapping[SegmentId, int]) -> Iterator[str]:
    for segment in segments:
        if segment.state is not SegmentState.COMMITTED:
            yield f"M6 never committed: {segment.id} is {segment.state}"
        elif segment.id not in first:
            yield f"M6 recorded as committed, and the provider knows nothing of it: {segment.id}"


def _judge_told(said: Mapping[SegmentId, Sequence[TurnId]], commits: Sequence[Commit]) -> Iterator[str]:
    for commit in commits:
        if list(commit.turns) != said.get(commit.segment_id):
            yield f"M2 {commit.segment_id} was told as {list(commit.turns)}, and is {said.get(commit.segment_id)}"


def _judge_order(segments: Sequence[Segment], first: Mapping[SegmentId, int]) -> Iterator[str]:
    by_session: dict[SessionId, list[Segment]] = {
        session_id: [each for each in found if each.id in first]
        for session_id, found in groupby(segments, key=lambda segment: segment.session_id)
    }
    for told in by_session.values():
        for early, late in pairwise(told):
            if first[early.id] > first[late.id]:
                yield f"M2 {late.id} was told before {early.id}"


def _segments() -> Transaction[list[Segment]]:
    found = yield Run(_SEGMENTS)
    return [rows.segment(row) for row in found]
