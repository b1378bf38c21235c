"""A delivery carries one part of an answer out of Holdfast, and says so when it cannot know whether it arrived."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Self

from holdfast.core.moves import move
from holdfast.ids import DeliveryId, SessionId, TurnId

# With the longest wait between them, about as long as an answer is worth sending: whoever is away overnight gets it too.
ATTEMPTS_MAX = 100
BACKOFF_FIRST_MS = 1_000
BACKOFF_MAX_MS = 15 * 60_000
# Clocks of several machines differ a little.
SKEW_MAX_MS = 60_000
REPEAT_LABEL = "[possible repeat]"
EXPIRES_AFTER_MS = 24 * 3_600_000
# What a turn sends before its answer is numbered upwards from the first of these: below every banner, and no part of the
# answer.
ASIDE_FIRST = -2_000_000
ASIDE_LAST = -1_000_001
# The banner of a stop; once the gateway is back it would only confuse.
BANNER_EXPIRES_AFTER_MS = 60_000


class State(StrEnum):
    PENDING = "pending"
    SENDING = "sending"
    RETRY = "retry"
    UNKNOWN = "unknown"
    DELIVERED = "delivered"
    FAILED = "failed"
    EXPIRED = "expired"


class Event(StrEnum):
    SEND = "send"
    CONFIRM = "confirm"
    REFUSE = "refuse"
    FAIL = "fail"
    LOSE = "lose"
    RESEND = "resend"
    REPEAT = "repeat"
    REVIVE = "revive"
    EXPIRE = "expire"


# REFUSE means that the far side certainly has nothing; LOSE means that nobody can tell.  RESEND means that nobody can tell,
# and that the far side drops what it has already.  REVIVE is an operator's wish.
MOVES: Mapping[tuple[State, Event], State] = MappingProxyType(
    {
        (State.PENDING, Event.SEND): State.SENDING,
        (State.PENDING, Event.EXPIRE): State.EXPIRED,
        (State.SENDING, Event.CONFIRM): State.DELIVERED,
        (State.SENDING, Event.REFUSE): State.RETRY,
        (State.SENDING, Event.FAIL): State.FAILED,
        (State.SENDING, Event.LOSE): State.UNKNOWN,
        (State.SENDING, Event.RESEND): State.RETRY,
        (State.RETRY, Event.SEND): State.SENDING,
        (State.RETRY, Event.EXPIRE): State.EXPIRED,
        (State.UNKNOWN, Event.CONFIRM): State.DELIVERED,
        (State.UNKNOWN, Event.REPEAT): State.SENDING,
        (State.UNKNOWN, Event.EXPIRE): State.EXPIRED,
        (State.FAILED, Event.REVIVE): State.RETRY,
        (State.EXPIRED, Event.REVIVE): State.RETRY,
    }
)

# From then on every send may be a repeat, and says so.
_REPEATING = frozenset({Event.RESEND, Event.REPEAT})

UNSETTLED = frozenset({State.PENDING, State.SENDING, State.RETRY})
SETTLED = frozenset(State) - UNSETTLED
GIVEN_UP = frozenset(state for state, event in MOVES if event is Event.REVIVE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One part of an answer on its way to one target.  `repeats` is 1 once a send may be a repeat, which is labelled.

    The parts of an answer are numbered from 1.  What is below is no part of it: the banner of a stop, or a message that the
    turn sent while it was at work.
    """

    id: DeliveryId
    turn_id: TurnId
    session_id: SessionId
    target: str
    part: int
    text: str
    created_at: int
    due_at: int
    state: State = State.PENDING
    attempt: int = 0
    repeats: int = 0
    fence: int = 0
    receipt: str | None = None
    error: str | None = None
    settled_at: int | None = None

    def on(self, event: Event) -> Self:
        """Return the delivery after `event`."""
        repeats = 1 if event in _REPEATING else self.repeats
        return replace(self, state=move(MOVES, self.id, self.state, event), repeats=repeats)

    @property
    def kind(self) -> str:
        """The kind of its target, which is the name of the carrier that takes it there."""
        return self.target.partition(":")[0]

    @property
    def next_try_at(self) -> int | None:
        """When it is tried next, or asked after; None where that is over."""
        waits = self.state in (State.PENDING, State.RETRY) or (self.state is State.UNKNOWN and not self.repeats)
        return self.due_at if waits else None

    @property
    def outgoing(self) -> str:
        """The text as it must leave: a resend after an unknown outcome says what it is."""
        return f"{REPEAT_LABEL} {self.text}" if self.repeats else self.text


def banner_part(attempt: int) -> int:
    """Return the part as which the banner of a stop goes out: each attempt has its own, and none is part of the answer."""
    return -attempt


def is_banner(part: int) -> bool:
    """Return whether a part is the banner of a stop."""
    return ASIDE_LAST < part < 0


def lifetime_ms(part: int) -> int:
    """Return how long a part is worth sending."""
    return BANNER_EXPIRES_AFTER_MS if is_banner(part) else EXPIRES_AFTER_MS


def backoff_ms(attempt: int, jitter: float) -> int:
    """Return how long to wait after the `attempt`-th refusal; `jitter` in [0, 1) spreads the herd."""
    longest = min(BACKOFF_FIRST_MS * 2 ** max(attempt - 1, 0), BACKOFF_MAX_MS)
    return int(longest * (0.5 + jitter / 2))


def due_after_refusal(sent: Delivery, now_ms: int, wanted_s: float | None, jitter: float) -> int:
    """Return when a refused delivery is tried again: exactly when the far side says, within its lifetime; else by back-off.

    A far side that wants no wait at all has said nothing: all tries would be over within a second.
    """
    if not wanted_s or wanted_s < 0:
        return now_ms + backoff_ms(sent.attempt, jitter)
    left_ms = max(0, sent.created_at + lifetime_ms(sent.part) - now_ms)
    return now_ms + math.ceil(min(wanted_s * 1000, left_ms))


def after_refusal(sent: Delivery) -> Event:
    """Decide whether a refused delivery is tried again."""
    return Event.REFUSE if sent.attempt < ATTEMPTS_MAX else after_rejection(sent)


def after_loss(sent: Delivery, *, dedupes: bool) -> Event:
    """Decide what becomes of a send of which nobody can tell whether it arrived.

    Where the far side `dedupes` by the delivery's id, it is sent again as often as a refused one; anywhere else there is
    one labelled repeat.  The banner of a stop is never sent again, because the stop is over.
    """
    again = dedupes and sent.attempt < ATTEMPTS_MAX and not is_banner(sent.part)
    return Event.RESEND if again else Event.LOSE


def after_rejection(sent: Delivery) -> Event:
    """Decide what is known of a delivery that will never be taken: of a resend, only that the first may have arrived."""
    return Event.LOSE if sent.repeats else Event.FAIL
