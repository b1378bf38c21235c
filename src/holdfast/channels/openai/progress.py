"""A turn as far as its journal has come: what was said, what it used, how it stands.  A fold, the same at every reading."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from holdfast.core.journal import Data, Entry, EntryKind
from holdfast.core.turns import TurnState
from holdfast.core.usage import Usage

# Between what was said before a tool was used and what was said after it.
BREAK = "\n\n"
# What may stand between two pieces of text that do not belong to one sentence.
_APART = frozenset({EntryKind.TOOL_STARTED, EntryKind.TOOL_FINISHED, EntryKind.APPROVAL_ASKED})
_STATES = {
    EntryKind.TURN_STARTED: TurnState.RUNNING,
    EntryKind.APPROVAL_ASKED: TurnState.WAITING,
    EntryKind.APPROVAL_ANSWERED: TurnState.QUEUED,
    EntryKind.TURN_COMPLETED: TurnState.COMPLETED,
    EntryKind.TURN_FAILED: TurnState.FAILED,
    EntryKind.TURN_CANCELLED: TurnState.CANCELLED,
}


@dataclass(slots=True, kw_only=True)
class Progress:
    """One turn.  `question` is what it waits for; `settled_at` is when it came to rest."""

    state: TurnState = TurnState.QUEUED
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
            case EntryKind.TEXT:
                return self._say(str(entry.data.get("text", "")))
            case EntryKind.USAGE:
                self.usage += usage(entry.data)
            case EntryKind.TURN_INTERRUPTED:
                # One that continues by itself is on its way again.
                self.state = TurnState.QUEUED if entry.data.get("continues") else TurnState.INTERRUPTED
                self.error = f"the answer was cut off: {entry.data.get('cause', 'crash')}"
            case kind if kind in _STATES:
                self.state = _STATES[kind]
                self.error, self.cause = str(entry.data.get("error", "")), str(entry.data.get("cause", ""))
                self.question = entry.data if kind is EntryKind.APPROVAL_ASKED else None
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


SETTLING = frozenset({EntryKind.TURN_COMPLETED, EntryKind.TURN_FAILED, EntryKind.TURN_CANCELLED, EntryKind.TURN_INTERRUPTED})


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
