"""A memory segment is a debt: completed turns of one session that their owner has yet to commit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Self

from holdfast.core.commands import is_compress
from holdfast.core.journal import Entry
from holdfast.core.legible import one_line
from holdfast.core.moves import move
from holdfast.core.notes import is_note
from holdfast.core.progress import Progress
from holdfast.core.redaction import Redaction
from holdfast.core.transcript import Role, fold
from holdfast.ids import SegmentId, SessionId, TurnId

# The binding that keeps what it remembers in the store itself, where others find it too.
BUILTIN = "builtin"
# What is kept in the place of a receipt where nothing was left to hand over.
NOTHING_SAID = "nothing was said"
# What a provider has to say about a segment, good or bad, is a few words.
WORDS_MAX = 500


class SegmentState(StrEnum):
    OPEN = "open"
    SEALED = "sealed"
    COMMITTING = "committing"
    COMMITTED = "committed"
    WAIVED = "waived"


class SegmentEvent(StrEnum):
    SEAL = "seal"
    COMMIT = "commit"
    SUCCEED = "succeed"
    FAIL = "fail"
    WAIVE = "waive"


# A crash while committing is a failed commit: the provider gets the same segment id again.
MOVES: Mapping[tuple[SegmentState, SegmentEvent], SegmentState] = MappingProxyType(
    {
        (SegmentState.OPEN, SegmentEvent.SEAL): SegmentState.SEALED,
        (SegmentState.SEALED, SegmentEvent.COMMIT): SegmentState.COMMITTING,
        (SegmentState.COMMITTING, SegmentEvent.SUCCEED): SegmentState.COMMITTED,
        (SegmentState.COMMITTING, SegmentEvent.FAIL): SegmentState.SEALED,
        # Only a person gives a debt up, as when whom it is owed to will never be back.
        (SegmentState.SEALED, SegmentEvent.WAIVE): SegmentState.WAIVED,
    }
)

DIRTY = frozenset({SegmentState.OPEN, SegmentState.SEALED, SegmentState.COMMITTING})


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Completed turns of a session, in a row, owed to one memory provider."""

    id: SegmentId
    session_id: SessionId
    # The provider binding that it is owed to.
    owner: str
    # Its first completed turn, by the number in its session.
    first_generation: int
    # Its last completed turn.
    last_generation: int
    # When its first turn completed, in milliseconds since 1970.
    created_at: int
    # When it is handed over, or tried again.
    due_at: int
    state: SegmentState = SegmentState.OPEN
    # How often it was handed over.
    attempt: int = 0
    # Grows with each claim; a result with an older fence changes nothing.
    fence: int = 0
    # Why the last try failed.
    error: str | None = None
    # What the provider said it made of the turns.
    receipt: str | None = None
    # When it was committed or waived.
    settled_at: int | None = None

    def on(self, event: SegmentEvent) -> Self:
        """Return the segment after `event`."""
        return replace(self, state=move(MOVES, self.id, self.state, event))


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpaid:
    """How many unpaid segments are alike: owed to one binding, in one state, and `tried` in vain or not yet."""

    owner: str
    state: SegmentState
    tried: bool
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Debt:
    """What memory has yet to be given, in segments.  `unpaid` is the sum of `open`, `owed`, `parked` and `committing`.

    `open` ones still gather turns: their conversation is not over.  `owed` ones wait for their provider, and `failed` are
    those of them that were tried in vain.  `parked` ones wait for a provider that cannot be opened here.  `committing`
    ones are being handed over.
    """

    unpaid: int = 0
    open: int = 0
    owed: int = 0
    failed: int = 0
    parked: int = 0
    committing: int = 0


def debt(unpaid: Sequence[Unpaid], is_out_of_reach: Callable[[str], bool]) -> Debt:
    """Count what is unpaid, by what each segment waits for.  Every count of what memory is owed is made here."""
    sealed = [each for each in unpaid if each.state is SegmentState.SEALED]
    owed = [each for each in sealed if not is_out_of_reach(each.owner)]
    return Debt(
        unpaid=_sum(unpaid),
        open=_sum(each for each in unpaid if each.state is SegmentState.OPEN),
        owed=_sum(owed),
        failed=_sum(each for each in owed if each.tried),
        parked=_sum(sealed) - _sum(owed),
        committing=_sum(each for each in unpaid if each.state is SegmentState.COMMITTING),
    )


def _sum(unpaid: Iterable[Unpaid]) -> int:
    return sum(each.count for each in unpaid)


class SegmentStep(StrEnum):
    """How a completed turn joins the ledger."""

    EXTEND = "extend"
    OPEN = "open"
    SEAL_AND_OPEN = "seal_and_open"


def record(open_owner: str | None, owner: str) -> SegmentStep:
    """Decide where a turn completed under `owner` goes; consecutive turns of one owner share a segment."""
    if open_owner is None:
        return SegmentStep.OPEN
    return SegmentStep.EXTEND if open_owner == owner else SegmentStep.SEAL_AND_OPEN


def next_to_commit(dirty: Sequence[Segment], owner: str) -> Segment | None:
    """Return the segment of one session that `owner` may commit now: the oldest, and only if it is its own."""
    oldest = min(dirty, key=lambda segment: segment.first_generation, default=None)
    return oldest if oldest and oldest.owner == owner and oldest.state is SegmentState.SEALED else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpokenMessage:
    """What a person or the assistant said, as a provider reads it."""

    role: Role
    text: str
    turn_id: TurnId
    at: int


def messages(entries: Sequence[Entry]) -> list[SpokenMessage]:
    """Return what was said in the turns of these entries; what was undone was not said.

    An answer is there once and whole, however many attempts it took.  What tools returned is no part of it, nor what came
    of work in the background: it is the words of strangers.  A command to compress says nothing, nor does its answer.
    """
    turns: defaultdict[TurnId, Progress] = defaultdict(Progress)
    for entry in entries:
        turns[entry.turn_id].take(entry)
    items = fold(entries)
    chores = {item.turn_id for item in items if item.role is Role.USER and is_compress(item.text)}
    said: dict[TurnId, list[SpokenMessage]] = {}
    for item in items:
        if item.turn_id in chores:
            continue
        turn = said.setdefault(item.turn_id, [])
        if item.role is Role.USER and item.text.strip() and not is_note(item.text):
            turn.append(SpokenMessage(role=Role.USER, text=item.text, turn_id=item.turn_id, at=item.at))
    for turn_id, turn in said.items():
        progress = turns[turn_id]
        if (text := progress.answer.strip()) and progress.settled_at is not None:
            turn.append(SpokenMessage(role=Role.ASSISTANT, text=text, turn_id=turn_id, at=progress.settled_at))
    return [message for turn in said.values() for message in turn]


def receipt(said: object, redaction: Redaction) -> str:
    """Return what a provider said of a commit; one that says nothing, or no words, has committed all the same."""
    return _few_words(said, redaction) if isinstance(said, str) else ""


def failure(error: BaseException, redaction: Redaction) -> str:
    """Return why a provider did not do what it was asked."""
    return _few_words(str(error), redaction) or type(error).__name__


def _few_words(said: str, redaction: Redaction) -> str:
    # Masked before it is cut: half a secret would not be known for one.
    return one_line(redaction.text(said))[:WORDS_MAX]
