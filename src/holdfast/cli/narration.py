"""Telling a conversation as it happens: each entry of the journal, as it is shown on a screen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

from rich.text import Text

from holdfast.cli import cards
from holdfast.cli.frame import console, visible
from holdfast.cli.screen import Screen
from holdfast.core.journal import CLOSING, Entry, EntryKind
from holdfast.core.transcript import fold
from holdfast.core.usage import Usage
from holdfast.ids import TurnId
from holdfast.operations.approvals import ApprovalView

_CLOSING = frozenset(CLOSING.values())
_SAID = {EntryKind.TEXT: "", EntryKind.REASONING: "dim italic"}
_NEXT_MAX = 40
_AT_WORK = "Ctrl-C stops it; you can write meanwhile"


@dataclass(slots=True, kw_only=True)
class _Live:
    """A turn that is being answered: the calls that run, and what it has used."""

    calls: dict[str, tuple[str, object, int]] = field(default_factory=dict[str, "tuple[str, object, int]"])
    used: Usage = field(default_factory=Usage)


def settles(entry: Entry) -> bool:
    """Return whether an entry is the last of its turn."""
    return entry.kind in _CLOSING and not entry.data.get("continues")


def joined(entry: Entry) -> TurnId | None:
    """Return the turn that a message became a part of, where that is what an entry says."""
    host = entry.data.get("joined")
    return TurnId(str(host)) if host else None


class Narrator:
    """What a person has been shown of a session, and what still goes on in it."""

    def __init__(self, screen: Screen, *, is_mine: Callable[[TurnId], bool] = lambda _: False) -> None:
        self.question: ApprovalView | None = None
        self.live: dict[TurnId, _Live] = {}
        self._screen = screen
        self._is_mine = is_mine
        self._asked: dict[TurnId, str] = {}
        # What of them arrives late does not make them go on.
        self._over: set[TurnId] = set()
        self._speaking: EntryKind | None = None
        self._tellers: Mapping[EntryKind, Callable[[Entry], None]] = {
            EntryKind.TURN_ACCEPTED: self._accept,
            EntryKind.TURN_STARTED: self._start,
            EntryKind.MESSAGE_JOINED: self._join,
            EntryKind.TEXT: self._say,
            EntryKind.REASONING: self._say,
            EntryKind.TOOL_STARTED: self._begin_call,
            EntryKind.TOOL_FINISHED: self._end_call,
            EntryKind.APPROVAL_ASKED: self._ask,
            EntryKind.APPROVAL_ANSWERED: self._answer,
            EntryKind.USAGE: self._use,
            EntryKind.NOTE: self._note,
            EntryKind.CONTEXT_COMPACTED: self._compact,
            EntryKind.TURN_FAILED: self._mark,
            EntryKind.TURN_CANCELLED: self._mark,
            EntryKind.TURN_INTERRUPTED: self._mark,
        }

    def tell(self, entry: Entry) -> None:
        """Show one entry."""
        if entry.kind is not self._speaking and self._speaking and entry.kind in _SHOWN:
            self._pause()
        if tell := self._tellers.get(entry.kind):
            tell(entry)
        if settles(entry):
            self._settle(entry)
        self._label()

    def ask(self, question: ApprovalView) -> None:
        """Show a question, and let the next line be its answer."""
        self.question = question
        self._print(cards.question(question))
        if not self._screen.is_live:
            self._print(Text(f"  {cards.choices(question)}", "dim"))
        self._label()

    def answered(self) -> None:
        """Wait for no answer any more."""
        self.question = None
        self._label()

    def _pause(self) -> None:
        self._screen.stream("\n")
        self._speaking = None

    def _print(self, text: Text) -> None:
        self._screen.print(text)

    def _label(self) -> None:
        if self.question:
            self._screen.label(cards.choices(self.question))
            return
        calls = [call for live in self.live.values() for call in live.calls.values()]
        doing = [f"{name} {cards.about(args)}" for name, args, _ in calls]
        waiting = [f"next: {cards.shortened(text, _NEXT_MAX)}" for text in self._asked.values()]
        status = f"… {' · '.join((*doing, *waiting))}" if self.live else ""
        self._screen.label(_AT_WORK if self.live else "", status)

    def _going_on(self, entry: Entry) -> _Live:
        return _Live() if entry.turn_id in self._over else self.live.setdefault(entry.turn_id, _Live())

    def _say(self, entry: Entry) -> None:
        self._going_on(entry)
        text = str(entry.data.get("text", ""))
        # Below a card it begins a line of its own.
        said = text if self._speaking else text.lstrip()
        if said:
            self._speaking = entry.kind
            self._screen.stream(said, _SAID[entry.kind])

    def _accept(self, entry: Entry) -> None:
        self._asked[entry.turn_id] = str(entry.data.get("text", ""))

    def _start(self, entry: Entry) -> None:
        self._over.discard(entry.turn_id)
        self.live[entry.turn_id] = _Live()
        text = self._asked.pop(entry.turn_id, None)
        # What was written into a pipe stands nowhere, and nobody there has to be reminded of it.
        if text is not None and (self._screen.is_live or not self._is_mine(entry.turn_id)):
            self._print(cards.message(text))

    def _join(self, entry: Entry) -> None:
        if self._screen.is_live:
            self._print(cards.message(str(entry.data.get("text", ""))))

    def _begin_call(self, entry: Entry) -> None:
        live = self._going_on(entry)
        name, args = str(entry.data.get("name", "")), entry.data.get("args")
        live.calls[str(entry.data.get("call_id"))] = name, args, entry.at

    def _end_call(self, entry: Entry) -> None:
        live, data = self._going_on(entry), entry.data
        name, args, began = live.calls.pop(str(data.get("call_id")), (str(data.get("name", "")), data.get("args"), None))
        result = data.get("result")
        self._print(
            cards.card(
                name,
                args,
                str(data.get("outcome", "")),
                result if isinstance(result, str) else None,
                entry.at - began if began is not None else None,
                min(console.width, cards.WIDTH_MAX),
            )
        )

    def _ask(self, entry: Entry) -> None:
        self.ask(cards.asked(entry.turn_id, entry.session_id, entry.at, entry.data))

    def _answer(self, entry: Entry) -> None:
        if self.question and self.question.turn_id == entry.turn_id:
            self.question = None
        self._print(Text(f"  → {visible(str(entry.data.get('text', '')))}", "dim"))

    def _use(self, entry: Entry) -> None:
        live, data = self._going_on(entry), entry.data
        numbers = {key: int(cast("int", data.get(key, 0))) for key in _NUMBERS}
        live.used += Usage(model=str(data.get("model", "")), **numbers)

    def _note(self, entry: Entry) -> None:
        self._print(Text(visible(str(entry.data.get("text", ""))), "dim"))

    def _compact(self, entry: Entry) -> None:
        summary = cards.shortened(str(entry.data.get("text", "")), 200)
        self._print(Text(f"⤺ What was said so far is read as a summary from now on: {summary}", "dim"))

    def _mark(self, entry: Entry) -> None:
        for item in fold([entry]):
            self._print(Text(f"■ {visible(item.text)}", "magenta"))

    def _settle(self, entry: Entry) -> None:
        self._over.add(entry.turn_id)
        live = self.live.pop(entry.turn_id, None)
        self._asked.pop(entry.turn_id, None)
        if self.question and self.question.turn_id == entry.turn_id:
            self.question = None
        if live and live.used.tokens:
            self._print(cards.usage(live.used))


_NUMBERS = ("input_tokens", "output_tokens", "cached_tokens", "cost_micros")
# What ends the line of what is being said.
_SHOWN = frozenset(EntryKind) - {
    EntryKind.USAGE,
    EntryKind.TOOL_STARTED,
    EntryKind.TURN_DEFERRED,
    EntryKind.TURN_RECOVERED,
    EntryKind.TURN_UNDONE,
}
