"""A turn as far as its journal has come: what was said, what it used, how it stands.

This is the one incremental fold of a turn.  The answers of the OpenAI interfaces, the terminal, memory and delegation all
read it, so that they agree about when a turn has ended and with what.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from holdfast.core.events import (
    ApprovalAnswered,
    ApprovalAsked,
    Text,
    TokensUsed,
    ToolFinished,
    ToolStarted,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnInterrupted,
    TurnStarted,
)
from holdfast.core.journal import Entry, ends_attempt, settles
from holdfast.core.turns import TurnState
from holdfast.core.usage import Usage

# Between what was said before a tool was used and what was said after it.
BREAK = "\n\n"
_STATES: dict[type, TurnState] = {
    TurnStarted: TurnState.RUNNING,
    ApprovalAsked: TurnState.WAITING,
    ApprovalAnswered: TurnState.QUEUED,
    TurnCompleted: TurnState.COMPLETED,
    TurnFailed: TurnState.FAILED,
    TurnCancelled: TurnState.CANCELLED,
}


class Progress:
    """One turn, up to the last entry that was taken."""

    def __init__(self) -> None:
        self.state = TurnState.QUEUED
        # Everything that was said, also by attempts that were cut off.
        self.pieces: list[str] = []
        # The whole answer, once the turn has completed.
        self.answer = ""
        self.usage = Usage()
        self.error = ""
        self.cause = ""
        # What the turn waits for.
        self.question: ApprovalAsked | None = None
        # Tool calls that run, by their id, with the time at which each began.
        self.calls: dict[str, tuple[ToolStarted, int]] = {}
        # When the last attempt ended.
        self.settled_at: int | None = None
        self._apart = False
        self._attempt = 0

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Self:
        """Return how far the entries of one turn have brought it."""
        progress = cls()
        for entry in entries:
            progress.take(entry)
        return progress

    @property
    def text(self) -> str:
        """Everything that was said, as one text."""
        return "".join(self.pieces)

    def take(self, entry: Entry) -> str:
        """Go on by one entry; returns what it adds to the answer."""
        match event := entry.event:
            case Text(text=text):
                return self._say(text)
            case TokensUsed():
                self.usage += event.usage
            case ToolStarted(call_id=call_id):
                self.calls[call_id] = event, entry.at
                self._set_apart(entry)
            case ToolFinished(call_id=call_id):
                self.calls.pop(call_id, None)
                self._set_apart(entry)
            case TurnInterrupted():
                self.state = TurnState.INTERRUPTED if settles(event) else TurnState.QUEUED
                self.error = f"the answer was cut off: {event.cause or 'crash'}"
            case TurnCompleted() | TurnFailed() | TurnCancelled():
                self._move(event, error=event.error, cause=event.cause)
                self.answer = event.text
            case TurnStarted() | ApprovalAnswered():
                self._move(event)
            case ApprovalAsked():
                self._move(event)
                self.question = event
                self._set_apart(entry)
            case _:
                pass
        self._attempt = max(self._attempt, entry.attempt)
        if ends_attempt(event):
            self.settled_at = entry.at
        return ""

    def _move(self, event: object, error: str = "", cause: str = "") -> None:
        self.state, self.question = _STATES[type(event)], None
        self.error, self.cause = error, cause

    def _set_apart(self, entry: Entry) -> None:
        # The result of a tool of an earlier attempt may arrive in the middle of a sentence.
        self._apart = self._apart or entry.attempt >= self._attempt

    def _say(self, text: str) -> str:
        said = f"{BREAK}{text}" if self._apart and self.pieces else text
        self._apart = False
        self.pieces.append(said)
        return said
