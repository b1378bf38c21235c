"""A delivery carries one part of an answer out of Holdfast, and says so when it cannot know whether it arrived.

A delivery without a turn is a notice: what Holdfast itself has to say, such as the reply to a command.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Self

from msgspec import Struct, structs

from holdfast.core.moves import move
from holdfast.ids import DeliveryId, SessionId, TurnId

# With the longest wait between attempts, this lasts about a day, so a receiver that is away overnight still gets it.
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
_ID_CHARS = 26


class DeliveryState(StrEnum):
    PENDING = "pending"
    SENDING = "sending"
    RETRY = "retry"
    UNKNOWN = "unknown"
    DELIVERED = "delivered"
    FAILED = "failed"
    EXPIRED = "expired"


class DeliveryEvent(StrEnum):
    SEND = "send"
    CONFIRM = "confirm"
    REFUSE = "refuse"
    FAIL = "fail"
    LOSE = "lose"
    RESEND = "resend"
    REPEAT = "repeat"
    REVIVE = "revive"
    EXPIRE = "expire"


# REFUSE means that the far side certainly has nothing; LOSE means that this is unknown.  RESEND means that it is unknown,
# and that the far side drops what it has already.  REVIVE is an operator's wish.
MOVES: Mapping[tuple[DeliveryState, DeliveryEvent], DeliveryState] = MappingProxyType(
    {
        (DeliveryState.PENDING, DeliveryEvent.SEND): DeliveryState.SENDING,
        (DeliveryState.PENDING, DeliveryEvent.EXPIRE): DeliveryState.EXPIRED,
        (DeliveryState.SENDING, DeliveryEvent.CONFIRM): DeliveryState.DELIVERED,
        (DeliveryState.SENDING, DeliveryEvent.REFUSE): DeliveryState.RETRY,
        (DeliveryState.SENDING, DeliveryEvent.FAIL): DeliveryState.FAILED,
        (DeliveryState.SENDING, DeliveryEvent.LOSE): DeliveryState.UNKNOWN,
        (DeliveryState.SENDING, DeliveryEvent.RESEND): DeliveryState.RETRY,
        (DeliveryState.RETRY, DeliveryEvent.SEND): DeliveryState.SENDING,
        (DeliveryState.RETRY, DeliveryEvent.EXPIRE): DeliveryState.EXPIRED,
        (DeliveryState.UNKNOWN, DeliveryEvent.CONFIRM): DeliveryState.DELIVERED,
        (DeliveryState.UNKNOWN, DeliveryEvent.REPEAT): DeliveryState.SENDING,
        (DeliveryState.UNKNOWN, DeliveryEvent.EXPIRE): DeliveryState.EXPIRED,
        (DeliveryState.FAILED, DeliveryEvent.REVIVE): DeliveryState.RETRY,
        (DeliveryState.EXPIRED, DeliveryEvent.REVIVE): DeliveryState.RETRY,
    }
)

# From then on every send may be a repeat, and says so.
_REPEATING = frozenset({DeliveryEvent.RESEND, DeliveryEvent.REPEAT})

UNSETTLED = frozenset({DeliveryState.PENDING, DeliveryState.SENDING, DeliveryState.RETRY})
SETTLED = frozenset(DeliveryState) - UNSETTLED
GIVEN_UP = frozenset(state for state, event in MOVES if event is DeliveryEvent.REVIVE)


class Button(Struct, frozen=True, kw_only=True):
    """A button below a message."""

    label: str
    # What comes back when it is pressed; 64 bytes at most.
    value: str


class KeptFile(Struct, frozen=True, kw_only=True):
    """A file that is sent with a message.  Its content is kept until the delivery is at rest."""

    # What the content is kept under.
    id: str
    name: str
    media_type: str
    bytes: int


class Extra(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a chat shows with the text; other targets leave it out."""

    # One row for each inner sequence.
    buttons: tuple[tuple[Button, ...], ...] = ()
    file: KeptFile | None = None
    # The message of the chat that it answers.
    reply_to: str = ""
    # Whether the person is not alerted.
    is_quiet: bool = False
    # The question of the turn that it asks.
    question_id: str = ""


NO_EXTRA = Extra()


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One part of an answer, or a notice, on its way to one target."""

    id: DeliveryId
    # The turn whose words it carries; None for a notice.
    turn_id: TurnId | None
    session_id: SessionId | None
    # Where it goes: the kind of carrier, a colon, and an address for that carrier.
    target: str
    # Its number among the parts of the answer, from 1.  Banners and messages that are sent during the turn are below 0.
    part: int
    # The words, without the label of a repeat.
    text: str
    # When it was written, in milliseconds since 1970.
    created_at: int
    # When it is tried next, or looked for at the far side.
    due_at: int
    state: DeliveryState = DeliveryState.PENDING
    # How often it was sent.
    attempt: int = 0
    # 1 once a send may be a repeat, which is labelled; else 0.
    repeats: int = 0
    # Grows with each claim; a result with an older fence changes nothing.
    fence: int = 0
    # What the far side said when it took it.
    receipt: str | None = None
    # Why the last try failed.
    error: str | None = None
    # When its outcome was known.
    settled_at: int | None = None
    # Who sees it in lists.  It is that of the session where there is one.
    owner: str = ""
    extra: Extra = NO_EXTRA

    def on(self, event: DeliveryEvent) -> Self:
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
        waits = self.state in (DeliveryState.PENDING, DeliveryState.RETRY) or (
            self.state is DeliveryState.UNKNOWN and not self.repeats
        )
        return self.due_at if waits else None

    @property
    def outgoing(self) -> str:
        """The text as it must leave: a resend after an unknown outcome says what it is."""
        return f"{REPEAT_LABEL} {self.text}" if self.repeats else self.text


def notice(
    key: str, owner: str, target: str, parts: Sequence[str], now_ms: int, extra: Extra = NO_EXTRA
) -> tuple[Delivery, ...]:
    """Return a notice in parts.  The same key gives the same ids, so that it is sent once however often it is written.

    What it answers is shown at its first part; its buttons and its file are at its last.
    """
    first, last = Extra(reply_to=extra.reply_to, is_quiet=extra.is_quiet), structs.replace(extra, reply_to="")
    shown = [extra] if len(parts) == 1 else [first, *[Extra(is_quiet=extra.is_quiet)] * (len(parts) - 2), last]
    return tuple(
        Delivery(
            id=delivery_id(f"{owner}:{target}:{key}", number),
            turn_id=None,
            session_id=None,
            owner=owner,
            target=target,
            part=number,
            text=part,
            created_at=now_ms,
            due_at=now_ms,
            extra=each,
        )
        for number, (part, each) in enumerate(zip(parts, shown, strict=False), 1)
    )


def delivery_id(key: str, number: int) -> DeliveryId:
    """Return the id of one part, which is the same each time for one key."""
    return DeliveryId(f"dlv_{hashlib.sha256(f'{key}:{number}'.encode()).hexdigest()[:_ID_CHARS]}")


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


def after_refusal(sent: Delivery) -> DeliveryEvent:
    """Decide whether a refused delivery is tried again."""
    return DeliveryEvent.REFUSE if sent.attempt < ATTEMPTS_MAX else after_rejection(sent)


def after_loss(sent: Delivery, *, dedupes: bool) -> DeliveryEvent:
    """Decide what becomes of a send when it is unknown whether it arrived.

    Where the far side `dedupes` by the delivery's id, it is sent again as often as a refused one; anywhere else there is
    one labelled repeat.  The banner of a stop is never sent again, because the stop is over.
    """
    again = dedupes and sent.attempt < ATTEMPTS_MAX and not is_banner(sent.part)
    return DeliveryEvent.RESEND if again else DeliveryEvent.LOSE


def after_rejection(sent: Delivery) -> DeliveryEvent:
    """Decide what is known of a delivery that will never be taken: of a resend, only that the first may have arrived."""
    return DeliveryEvent.LOSE if sent.repeats else DeliveryEvent.FAIL
