"""Memory as it is shown: the receipts of segments, how the ledger of a person stands, and what came of changing it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from holdfast.core.facts import Recollection
from holdfast.core.segments import Debt, Segment, SegmentState
from holdfast.ids import SegmentId, SessionId, TurnId

# What somebody else than the operator reads in the place of an error, which may name machines.
FAILED = "it could not be handed over"


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentView:
    """The receipt of a segment: which turns it is made of, whom it is owed to, and what has come of it.

    `parked` is a debt to somebody whom nobody here can reach; only a person can waive it.
    """

    id: SegmentId
    session_id: SessionId
    owner: str
    state: SegmentState
    parked: bool
    generations: tuple[int, int]
    turns: Sequence[TurnId]
    attempt: int
    error: str | None
    receipt: str | None
    created_at: int
    next_try_at: int | None
    settled_at: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Eye:
    """Whoever looks at a ledger.  Only the operator may see at which address a provider is, and what it said."""

    operator: bool
    parked: Callable[[str], bool]

    def view(self, segment: Segment, turns: Sequence[TurnId]) -> SegmentView:
        parked = self.is_parked(segment)
        return SegmentView(
            id=segment.id,
            session_id=segment.session_id,
            owner=self.named(segment.owner),
            state=segment.state,
            parked=parked,
            generations=(segment.first_generation, segment.last_generation),
            turns=turns,
            attempt=segment.attempt,
            error=self.told(segment.error),
            receipt=segment.receipt,
            created_at=segment.created_at,
            next_try_at=segment.due_at if segment.state is SegmentState.SEALED and not parked else None,
            settled_at=segment.settled_at,
        )

    def is_parked(self, segment: Segment) -> bool:
        return segment.state is SegmentState.SEALED and self.parked(segment.owner)

    def named(self, owner: str) -> str:
        return owner if self.operator else owner.partition(":")[0]

    def told(self, error: str | None) -> str | None:
        return error if self.operator or error is None else FAILED


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderView:
    """Whom the turns that complete now are owed to, and how it is."""

    owner: str
    healthy: bool
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts(Debt):
    """What memory has yet to be given, what it was given, and what is remembered."""

    committed: int = 0
    waived: int = 0
    facts: int = 0
    profile: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Owing:
    """A session that owes something: the first that must be paid, and how many segments there are with it."""

    session_id: SessionId
    key: str
    title: str | None
    segments: int
    next: SegmentView


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryStatus:
    """How memory stands.  Of the sessions that owe, the first are shown, those that have owed for longest first.

    Without a provider nothing more will be owed, or no gateway runs that could say; then what is parked counts as owed.
    `everyone` is the debt of all people together, which only the operator is shown.
    """

    provider: ProviderView | None
    counts: Counts
    everyone: Debt | None = None
    owing: Sequence[Owing] = ()
    owing_sessions: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """Whether something was owed and is paid now."""

    committed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What is remembered, as Markdown that can be edited."""

    markdown: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    """What an edit came to, and what is remembered after it."""

    added: int
    changed: int
    removed: int
    known: int
    left_out: int
    markdown: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """How much is not remembered any more: here, and `elsewhere`, by other providers.

    `missing` are ids that nobody knows.  What is still `owed`, in segments, will be remembered once it is committed.
    `problems` say what could not be forgotten elsewhere.
    """

    forgotten: int
    elsewhere: int = 0
    missing: Sequence[str] = ()
    owed: int = 0
    problems: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """What a provider elsewhere recalls; with a `problem` it could not be asked."""

    provider: str = ""
    items: Sequence[Recollection] = ()
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A segment that could not be replayed, and why."""

    segment_id: SegmentId
    session_id: SessionId
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """How far a replay has come: what this call did, and what is left."""

    provider: str
    replayed: int
    failed: int
    left: int
    failures: Sequence[Failure] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Memory as Prometheus reads it, of everyone.  `unpaid` is by binding."""

    debt: Debt
    settled: Mapping[SegmentState, int]
    unpaid: Mapping[str, int]
    facts: int


def in_words(debt: Debt) -> str:
    """Return a debt as people read it: what waits for a provider, and then what waits for something else."""
    owed = f"{debt.owed} owed" + (f" ({debt.failed} of them failed)" if debt.failed else "")
    rest = {"parked": debt.parked, "gathering": debt.open, "being committed": debt.committing}
    return ", ".join([owed, *(f"{number} {what}" for what, number in rest.items() if number)])
