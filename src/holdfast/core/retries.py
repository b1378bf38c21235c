"""Retries: which turn a repeated request belongs to, when its client has no key for it but says that it repeats itself.

The official clients send `X-Stainless-Retry-Count` with every try: 0 with the first, then 1, 2 and so on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from holdfast.core.turns import FINAL, TurnState
from holdfast.ids import SessionId, TurnId

# Three tries of ten minutes each, which is what the official clients do by default, and as much again.
IN_FLIGHT_MS = 60 * 60_000
# The answer may have been lost without a sign: the client then waits for its whole timeout before it tries again.
FINISHED_MS = 15 * 60_000
_DIGEST_CHARS = 32
_NUMBER_CHARS_MAX = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """One try of a request that has no key.

    `digest` is the same for every try, and for every other request with the same body by the same principal.  `number` is 0
    for the first try, or where the client does not count.  `refused` says that nothing was accepted of the try before it.
    `attended` are turns whose clients are still connected.
    """

    digest: str
    number: int = 0
    refused: bool = False
    attended: frozenset[TurnId] = frozenset()

    @property
    def joins(self) -> bool:
        """Whether a turn of an earlier try may be there."""
        return self.number > 0 and not self.refused


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A turn that was accepted for a request with the same digest.  `tries` is the highest number that has joined it."""

    turn_id: TurnId
    session_id: SessionId
    state: TurnState
    accepted_at: int
    answered_at: int | None
    tries: int


def digest(parts: Iterable[str]) -> str:
    """Return one name for several parts; no part can run into the next."""
    told = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_CHARS]


def number(header: str | None) -> int:
    """Return which try a client says that this is; anything that is no count is a first try."""
    said = (header or "").strip()
    return int(said) if said.isascii() and said.isdigit() and len(said) <= _NUMBER_CHARS_MAX else 0


def chosen(found: Sequence[Candidate], this: Try, now_ms: int) -> list[Candidate]:
    """Return the turns that a try may join, the best one first.

    The tries of one request come one after the other with growing numbers, so a turn that has answered to this number
    belongs to another request with the same words.  A turn without a client is preferred, then the newest one.
    """
    fitting = [each for each in found if each.tries < this.number and _is_recent(each, now_ms)]
    return sorted(
        fitting, key=lambda each: (each.turn_id not in this.attended, each.accepted_at, each.turn_id), reverse=True
    )


def _is_recent(candidate: Candidate, now_ms: int) -> bool:
    if candidate.state in FINAL and candidate.answered_at is not None:
        return now_ms - candidate.answered_at <= FINISHED_MS
    return now_ms - candidate.accepted_at <= IN_FLIGHT_MS
