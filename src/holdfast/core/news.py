"""News: what the operator is told in the home chat by itself, many facts in one message."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.core.legible import one_line
from holdfast.core.notes import ago
from holdfast.core.verbatim import inline, span
from holdfast.ids import DeliveryId, NodeId, TurnId

# At most one message in this time, however much happens.
PAUSE_MS = 180_000
# What is older is no news.
SINCE_MS = 7 * 24 * 3_600_000
# An account that cannot be reached for a shorter time only has to connect again.
OUTAGE_MS = 300_000
# So many of a kind are named, and the rest is counted.
NAMED_MAX = 5
REASON_MAX_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A delivery that was given up."""

    id: DeliveryId
    target: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MissedJob:
    """A job with instants that passed unserved."""

    name: str
    count: int
    last_instant: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedJob:
    """A job whose turn failed, and whose answers go nowhere."""

    name: str
    instant: int
    turn_id: TurnId
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """An account that does not receive, or did not and does again."""

    account: str
    problem: str
    since: int
    is_over: bool
    # Whether the operator knows that it began.
    was_told: bool

    def is_news(self, now_ms: int) -> bool:
        return not self.is_over or self.was_told or now_ms - self.since >= OUTAGE_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """Facts that the operator has not been told."""

    found: Sequence[str] = ()
    outages: Sequence[Outage] = ()
    missed: Sequence[MissedJob] = ()
    failed: Sequence[FailedJob] = ()
    dead_letters: Sequence[DeadLetter] = ()

    def text(self, now_ms: int) -> str:
        """Return the message; empty where there is nothing to tell."""
        outages = [_outage(each, now_ms) for each in self.outages if each.is_news(now_ms)]
        missed = [_missed(each, now_ms) for each in self.missed]
        failed = [_failed(each, now_ms) for each in self.failed]
        dead = [_dead(each) for each in self.dead_letters]
        return "\n".join(
            (
                *self.found,
                *_named(outages, "`holdfast channels list`"),
                *_named(missed, "`holdfast jobs list`"),
                *_named(failed, "`holdfast jobs list`"),
                *_named(dead, "`holdfast deliveries list --state failed` and `--state expired`"),
            )
        )


def crashed(nodes: Sequence[NodeId]) -> str:
    """Say which nodes stopped without leaving."""
    where = f" on {len(nodes)} nodes" if len(nodes) > 1 else ""
    return f"The gateway stopped without warning{where} ({', '.join(nodes[:NAMED_MAX])})."


def _outage(outage: Outage, now_ms: int) -> str:
    long = ago(now_ms - outage.since)
    problem, account = _reason(outage.problem), inline(outage.account)
    if outage.is_over:
        return f"{account} receives messages again. It did not for {long}: {problem}"
    return f"{account} has received no messages for {long}: {problem}"


def _missed(job: MissedJob, now_ms: int) -> str:
    times = f"{job.count} times, the last" if job.count > 1 else "once,"
    when = f"{ago(now_ms - job.last_instant)} ago"
    return f"The job {inline(job.name)} was missed {times} {when}. Run it now: {span(f'holdfast jobs run {job.name}')}"


def _failed(job: FailedJob, now_ms: int) -> str:
    return (
        f"The job {inline(job.name)} failed {ago(now_ms - job.instant)} ago: {_reason(job.error)}. "
        f"See what it did: `holdfast turns show {job.turn_id}`"
    )


def _dead(letter: DeadLetter) -> str:
    return (
        f"{letter.id} to {inline(letter.target)} was given up: {_reason(letter.error)}. "
        f"Send it again: `holdfast deliveries retry {letter.id}`"
    )


def _named(lines: Sequence[str], rest: str) -> Sequence[str]:
    if len(lines) <= NAMED_MAX:
        return lines
    return (*lines[:NAMED_MAX], f"And {len(lines) - NAMED_MAX:,} more; see {rest}.")


def _reason(error: str) -> str:
    line = one_line(error).rstrip(".")
    return inline(line if len(line) <= REASON_MAX_CHARS else f"{line[:REASON_MAX_CHARS]}…")
