"""A turn as far as its journal has come: what was said, what it used, how it stands.  A fold, the same at every reading."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from holdfast.core.journal import Data, Entry, Kind
from holdfast.core.turns import State
from holdfast.core.usage import Usage

# Between what was said before a tool was used and what was said after it.
BREAK = "\n\n"
# What may stand between two pieces of text that do not belong to one sentence.
_APART = frozenset({Kind.TOOL_STARTED, Kind.TOOL_FINISHED, Kind.APPROVAL_ASKED})
_STATES = {
    Kind.TURN_STARTED: State.RUNNING,
    Kind.APPROVAL_ASKED: State.WAITING,
    Kind.APPROVAL_ANSWERED: State.QUEUED,
    Kind.TURN_COMPLETED: State.COMPLETED,
    Kind.TURN_FAILED: State.FAILED,
    Kind.TURN_CANCELLED: State.CANCELLED,
}


@dataclass(slots=True, kw_only=True)
class Progress:
    """One turn.  `question` is what it waits for; `settled_at` is when it came to rest."""

    state: State = State.QUEUED
    pieces: list[str] = field(default_factory=list[str])
    usage: Usage = field(default_factory=Usage)
    error: str = ""
    cause: str = ""
    question: Data | None = None
    settled_at: int | None = None
    _apart: bool = False
    _attempt: int = 0

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def take(self, entry: Entry) -> str:
        """Go on by one entry; returns what it adds to the answer."""
        match entry.kind:
            case Kind.TEXT:
                return self._say(str(entry.data.get("text", "")))
            case Kind.USAGE:
                self.usage += usage(entry.data)
            case Kind.TURN_INTERRUPTED:
                # One that continues by itself is on its way again.
                self.state = State.QUEUED if entry.data.get("continues") else State.INTERRUPTED
                self.error = f"the answer was cut off: {entry.data.get('cause', 'crash')}"
            case kind if kind in _STATES:
                self.state = _STATES[kind]
                self.error, self.cause = str(entry.data.get("error", "")), str(entry.data.get("cause", ""))
                self.question = entry.data if kind is Kind.APPROVAL_ASKED else None
            case _:
                pass
        self._attempt = max(self._attempt, entry.attempt)
        # What a tool of an earlier attempt came to may arrive in the middle of a sentence.
        self._apart = self._apart or (entry.kind in _APART and entry.attempt == self._attempt)
        self.settled_at = entry.at if entry.kind in SETTLING else self.settled_at
        return ""

    def _say(self, text: str) -> str:
        said = f"{BREAK}{text}" if self._apart and self.pieces else text
        self._apart = False
        self.pieces.append(said)
        return said


SETTLING = frozenset({Kind.TURN_COMPLETED, Kind.TURN_FAILED, Kind.TURN_CANCELLED, Kind.TURN_INTERRUPTED})


def usage(data: Data) -> Usage:
    """Return what one model call used."""
    return Usage(
        model=str(data.get("model", "")),
        input_tokens=_count(data, "input_tokens"),
        output_tokens=_count(data, "output_tokens"),
        cached_tokens=_count(data, "cached_tokens"),
        cost_micros=_count(data, "cost_micros"),
    )


def _count(data: Data, name: str) -> int:
    return int(cast("int", data.get(name, 0)))
