"""A job falls due at instants, and every one of them ends up ran, missed or failed, however the clock behaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from holdfast.core import turns
from holdfast.core.intake import Inbound
from holdfast.core.sessions import Source
from holdfast.core.timekeeping import EARLIEST_MS, STEP_MAX_MS
from holdfast.ids import TurnId

CHANNEL = "cron"
# Where results go that are only kept.
LOG = "log"
NAME_MAX = 100

# A machine that slept for months, or whose clock was wrong by years, must not list every minute of them.
HORIZON_MS = 31 * 24 * 3_600_000


class JobOutcome(StrEnum):
    """What became of one due instant; derived from its turn, so it can never disagree with it."""

    DUE = "due"
    RAN = "ran"
    MISSED = "missed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One due instant of a job, and whether it is still worth firing."""

    instant: int
    fires: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A prompt that runs by itself.  `last_instant` is the newest due instant that has its slot."""

    name: str
    owner: str
    schedule: str
    prompt: str
    created_at: int
    last_instant: int
    deliver: str | None = None
    paused: bool = False

    def is_ahead(self, now_ms: int) -> bool:
        """Return whether it has got to an instant that has not come: the clock was ahead, and is back.

        A clock that shows what cannot be proves nothing.
        """
        return self.last_instant > now_ms + 2 * STEP_MAX_MS and now_ms >= EARLIEST_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class Fired:
    """What became of one due instant."""

    instant: int
    turn_id: TurnId | None
    outcome: JobOutcome


def is_name(name: str) -> bool:
    """Return whether a job can be called that: its name is a part of addresses, which lead down only, and by plain names."""
    leads = "/" in name or name in (".", "..")
    return bool(name.strip()) and name.isprintable() and len(name) <= NAME_MAX and not leads


def due_slots(after: int, now_ms: int, grace_ms: int, next_instant: Callable[[int], int]) -> list[Slot]:
    """List the instants in (`after`, `now_ms`], oldest first; those older than the grace are only recorded as missed.

    `after` is the newest instant that already has a slot.  When the clock jumps back, `now_ms` is before it and nothing
    is due; when it jumps forward, each skipped instant within the horizon appears once.
    """
    slots: list[Slot] = []
    instant = next_instant(max(after, now_ms - HORIZON_MS))
    while instant <= now_ms:
        slots.append(Slot(instant=instant, fires=now_ms - instant <= grace_ms))
        instant = next_instant(instant)
    return slots


def outcome(turn: turns.TurnState | None) -> JobOutcome:
    """Return the outcome of a slot whose turn is in this state; a slot without a turn was missed."""
    if turn is None:
        return JobOutcome.MISSED
    if turn not in turns.SETTLED:
        return JobOutcome.DUE
    return JobOutcome.RAN if turn is turns.TurnState.COMPLETED else JobOutcome.FAILED


def slot_key(job: str, instant: int) -> str:
    """Return the dedupe key, which makes one turn of one instant even if several nodes fire it."""
    return f"job:{job}:{instant}"


def message(job: Job, instant: int) -> Inbound:
    """Return what a job says when it falls due: a turn of its own, in a session of its own."""
    conversation = f"{CHANNEL}:{job.name}:{instant}"
    target = None if job.deliver == LOG else job.deliver
    return Inbound(
        conversation=conversation,
        text=job.prompt,
        channel=CHANNEL,
        owner=job.owner,
        source=Source(
            chat_id=conversation, chat_name=f"{CHANNEL}/{job.name}", chat_type=CHANNEL, user=f"{CHANNEL}:{job.name}"
        ),
        dedupe_key=slot_key(job.name, instant),
        mode=turns.Mode.DETACHED,
        # A job without a target can deliver nothing later either.
        delivers_later=target is not None,
        reply_to=target,
        one_shot=True,
    )
