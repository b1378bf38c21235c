"""Outages of models: when one may be asked again, by which request, and for how long a turn waits for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from holdfast.core.events import Note, TokensUsed, ToolFinished, ToolStarted
from holdfast.core.journal import Entry
from holdfast.core.turns import Mode
from holdfast.ids import TurnId

# What the note of a turn that waits says that it waits for.
MODEL = "model"
PAUSE_MIN_MS = 1_000
PAUSE_MAX_MS = 300_000
# A server that asks for a longer pause is asked once an hour all the same.
RETRY_AFTER_MAX_MS = 3_600_000


# What says that a model has come to the end of a step.  Words do not: a server may cut every answer off behind its first.
STEPS = (TokensUsed, ToolStarted, ToolFinished)


@dataclass(frozen=True, slots=True, kw_only=True)
class Circuit:
    """What is known of one provider and its models.  It is open while one of them fails.

    An outage or a limit may concern one model or all of them.  So a failure puts every model of the provider in doubt, and
    one request at a time is sent to the models in doubt.  A model that answers is no longer in doubt, even if
    others fail.  Times are monotonic milliseconds.
    """

    # The models that failed, and until when no request is sent to each.
    failing: Mapping[str, int] = field(default_factory=dict[str, int])
    # The models that have answered since the circuit opened.
    answering: frozenset[str] = frozenset()
    # Whether a request is under way that finds out for all.
    is_probed: bool = False

    def doubts(self, model: str) -> bool:
        """Return whether a request to a model has to wait for its turn."""
        return bool(self.failing) and model not in self.answering

    def open_until(self, model: str) -> int:
        """Return until when no request is sent to a model.  One that has not failed itself may be asked at once."""
        return self.failing.get(model, 0)

    def may_ask(self, model: str, now_ms: int) -> bool:
        """Return whether a request may be sent now."""
        return not self.doubts(model) or (not self.is_probed and now_ms >= self.open_until(model))

    def asked(self, model: str) -> Self:
        """Return the circuit when a request is sent."""
        return replace(self, is_probed=True) if self.doubts(model) else self

    def answered(self, model: str) -> Self:
        """Return the circuit after an answer, or after a refusal of what was asked: the model is there."""
        failing = {name: until for name, until in self.failing.items() if name != model}
        if not failing:
            return type(self)()
        return replace(self, failing=failing, answering=self.answering | {model})

    def left(self) -> Self:
        """Return the circuit when the request that finds out for all is over, or was called off."""
        return replace(self, is_probed=False)

    def failed(self, model: str, now_ms: int, pause_ms: int) -> Self:
        """Return the circuit after a failure.  Failures of requests that were under way together count as one."""
        if now_ms < self.open_until(model):
            return self
        # All that fail share the pause, so that two models are not asked twice as often as one.
        failing = {name: max(until, now_ms + pause_ms) for name, until in self.failing.items()}
        return replace(self, failing={**failing, model: now_ms + pause_ms}, answering=self.answering - {model})


def waiting_since(entries: Iterable[Entry], turn_id: TurnId) -> int | None:
    """Return since when a turn waits for its model; None where it has come a step further since, or never waited."""
    since: int | None = None
    for entry in entries:
        if entry.turn_id != turn_id:
            continue
        if isinstance(entry.event, Note) and entry.event.waiting == MODEL:
            since = entry.at if since is None else since
        elif isinstance(entry.event, STEPS):
            since = None
    return since


def retry_at(mode: Mode, since: int | None, now_ms: int, limit_ms: int, retry_after_s: float | None) -> int | None:
    """Return when a turn is tried again whose model cannot answer; None where it has to fail now.

    A client with an open connection is told at once, and decides itself.  The longer an outage lasts, the rarer the tries.
    """
    waited_ms = max(now_ms - since, 0) if since is not None else 0
    if mode is Mode.SYNCHRONOUS or waited_ms >= limit_ms:
        return None
    pause_ms = min(max(waited_ms // 2, PAUSE_MIN_MS), PAUSE_MAX_MS)
    wanted_ms = min(round((retry_after_s or 0) * 1000), RETRY_AFTER_MAX_MS)
    # The last try is made when the time is over, not before.
    return now_ms + min(max(pause_ms, wanted_ms), max(limit_ms - waited_ms, PAUSE_MIN_MS))
