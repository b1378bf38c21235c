"""Shows a conversation as it happens: each entry of the journal becomes lines on a screen."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from rich.text import Text as Styled

from holdfast.cli import cards
from holdfast.cli.frame import console, visible
from holdfast.cli.screen import Screen
from holdfast.core.events import (
    ApprovalAnswered,
    ApprovalAsked,
    ContextCompacted,
    MessageJoined,
    Note,
    Reasoning,
    Text,
    TokensUsed,
    ToolFinished,
    ToolStarted,
    TurnAccepted,
    TurnCancelled,
    TurnCompleted,
    TurnDeferred,
    TurnFailed,
    TurnInterrupted,
    TurnRecovered,
    TurnRevised,
    TurnStarted,
    TurnUndone,
    UnknownEvent,
)
from holdfast.core.journal import Entry, settles
from holdfast.core.progress import Progress
from holdfast.core.transcript import fold
from holdfast.ids import TurnId
from holdfast.operations.approvals import ApprovalView

_STYLES = {Text: "", Reasoning: "dim italic"}
_NEXT_MAX = 40
_AT_WORK = "Ctrl-C stops it; you can write meanwhile"
# What is shown nowhere, and so does not end the line of what is being said.
_SILENT = (TokensUsed, ToolStarted, TurnDeferred, TurnRecovered, TurnUndone)


class Narrator:
    """What a person has seen of a session, and which turns still run in it."""

    def __init__(self, screen: Screen, *, is_mine: Callable[[TurnId], bool] = lambda _: False) -> None:
        self.question: ApprovalView | None = None
        # The turns that are being answered.
        self.live: dict[TurnId, Progress] = {}
        self._screen = screen
        self._is_mine = is_mine
        self._asked: dict[TurnId, str] = {}
        # Late entries of these turns do not bring them back.
        self._over: set[TurnId] = set()
        self._speaking: type[Text | Reasoning] | None = None

    def tell(self, entry: Entry) -> None:
        """Show one entry."""
        if self._speaking and not isinstance(entry.event, (self._speaking, *_SILENT)):
            self._pause()
        self._show(entry)
        if settles(entry.event):
            self._settle(entry.turn_id)
        self._label()

    def ask(self, question: ApprovalView) -> None:
        """Show a question, and let the next line be its answer."""
        self.question = question
        self._print(cards.question(question))
        if not self._screen.is_live:
            self._print(Styled(f"  {cards.choices(question)}", "dim"))
        self._label()

    def answered(self) -> None:
        """Stop waiting for an answer."""
        self.question = None
        self._label()

    def _pause(self) -> None:
        self._screen.stream("\n")
        self._speaking = None

    def _print(self, text: Styled) -> None:
        self._screen.print(text)

    def _label(self) -> None:
        if self.question:
            self._screen.label(cards.choices(self.question))
            return
        calls = [call for live in self.live.values() for call in live.calls.values()]
        doing = [f"{call.name} {cards.about(call.args)}" for call, _ in calls]
        waiting = [f"next: {cards.shortened(text, _NEXT_MAX)}" for text in self._asked.values()]
        status = f"… {' · '.join((*doing, *waiting))}" if self.live else ""
        self._screen.label(_AT_WORK if self.live else "", status)

    def _show(self, entry: Entry) -> None:  # noqa: C901 - One case for each type of event.
        match event := entry.event:
            case Text() | Reasoning():
                self._take(entry)
                self._say(event)
            case ToolStarted() | TokensUsed():
                self._take(entry)
            case ToolFinished():
                self._end_call(entry, event)
            case TurnAccepted():
                self._asked[entry.turn_id] = event.text
            case TurnStarted():
                self._start(entry)
            case TurnRevised():
                self._asked[entry.turn_id] = event.text
            case MessageJoined():
                if self._screen.is_live:
                    self._print(cards.message(event.text))
            case ApprovalAsked():
                self.ask(cards.asked(entry, event))
            case ApprovalAnswered():
                self._forget_question(entry.turn_id)
                self._print(Styled(f"  → {visible(event.text)}", "dim"))
            case Note() | UnknownEvent():
                self._print(Styled(visible(event.text), "dim"))
            case ContextCompacted():
                summary = cards.shortened(event.text, 200)
                self._print(Styled(f"⤺ What was said so far is read as a summary from now on: {summary}", "dim"))
            case TurnFailed() | TurnCancelled() | TurnInterrupted():
                for item in fold([entry]):
                    self._print(Styled(f"■ {visible(item.text)}", "magenta"))
            case TurnCompleted() | TurnDeferred() | TurnRecovered() | TurnUndone():
                pass
            case _:
                assert_never(event)

    def _take(self, entry: Entry) -> Progress:
        """Add an entry to the progress of its turn."""
        is_over = entry.turn_id in self._over
        progress = Progress() if is_over else self.live.setdefault(entry.turn_id, Progress())
        progress.take(entry)
        return progress

    def _say(self, event: Text | Reasoning) -> None:
        # Below a card it begins a line of its own.
        said = event.text if self._speaking else event.text.lstrip()
        if said:
            self._speaking = type(event)
            self._screen.stream(said, _STYLES[type(event)])

    def _start(self, entry: Entry) -> None:
        self._over.discard(entry.turn_id)
        self.live[entry.turn_id] = Progress()
        text = self._asked.pop(entry.turn_id, None)
        # In a pipe, a message of one's own is not repeated.
        if text is not None and (self._screen.is_live or not self._is_mine(entry.turn_id)):
            self._print(cards.message(text))

    def _end_call(self, entry: Entry, finished: ToolFinished) -> None:
        live = self.live.get(entry.turn_id)
        started, began = live.calls.get(finished.call_id, (None, None)) if live else (None, None)
        self._take(entry)
        self._print(
            cards.card(
                started.name if started else finished.name,
                started.args if started else finished.args or None,
                finished.outcome,
                finished.result or None,
                entry.at - began if began is not None else None,
                min(console.width, cards.WIDTH_MAX),
            )
        )

    def _forget_question(self, turn_id: TurnId) -> None:
        if self.question and self.question.turn_id == turn_id:
            self.question = None

    def _settle(self, turn_id: TurnId) -> None:
        self._over.add(turn_id)
        live = self.live.pop(turn_id, None)
        self._asked.pop(turn_id, None)
        self._forget_question(turn_id)
        if live and live.usage.tokens:
            self._print(cards.usage(live.usage))
