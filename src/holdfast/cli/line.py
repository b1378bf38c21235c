"""The line that is being typed, and what each key does to it.  Pure: keys in, lines out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

HISTORY_MAX = 500
_ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]*[@-~]|O[@-Z]|[^\[O])")
_ESCAPE_BEGUN = re.compile(r"\x1b(?:\[[0-9;?]*|O)?$")
_PASTE, _PASTED = "\x1b[200~", "\x1b[201~"
_BEFORE, _AFTER = re.compile(r"\S+\s*$|\s+$"), re.compile(r"\s*\S+|\s+")
_NAMES = {
    "\r": "new line",
    "\x01": "home",
    "\x02": "left",
    "\x04": "delete",
    "\x05": "end",
    "\x06": "right",
    "\x08": "rub",
    "\x0b": "cut after",
    "\x0e": "later",
    "\x10": "earlier",
    "\x15": "cut before",
    "\x17": "rub word",
    "\x7f": "rub",
    "\x1b[A": "earlier",
    "\x1b[B": "later",
    "\x1b[C": "right",
    "\x1b[D": "left",
    "\x1b[H": "home",
    "\x1b[F": "end",
    "\x1b[1~": "home",
    "\x1b[3~": "delete",
    "\x1b[4~": "end",
    "\x1b[1;5C": "word right",
    "\x1b[1;5D": "word left",
    "\x1b[1;3C": "word right",
    "\x1b[1;3D": "word left",
    "\x1bOA": "earlier",
    "\x1bOB": "later",
    "\x1bOC": "right",
    "\x1bOD": "left",
    "\x1bOH": "home",
    "\x1bOF": "end",
    "\x1bb": "word left",
    "\x1bf": "word right",
    "\x1b\x7f": "rub word",
    "\x1b\n": "new line",
    "\x1b\r": "new line",
}
_RECALLS = {"earlier": -1, "later": 1}


def _word_left(before: str, after: str) -> tuple[str, str]:
    start = found.start() if (found := _BEFORE.search(before)) else len(before)
    return before[:start], before[start:] + after


def _word_right(before: str, after: str) -> tuple[str, str]:
    end = found.end() if (found := _AFTER.match(after)) else 0
    return before + after[:end], after[end:]


# Each takes the text before and after the cursor, and returns both changed.
_EDITS: Mapping[str, Callable[[str, str], tuple[str, str]]] = {
    "left": lambda before, after: (before[:-1], before[-1:] + after),
    "right": lambda before, after: (before + after[:1], after[1:]),
    "home": lambda before, after: ("", before + after),
    "end": lambda before, after: (before + after, ""),
    "word left": _word_left,
    "word right": _word_right,
    "rub": lambda before, after: (before[:-1], after),
    "rub word": lambda before, after: (_word_left(before, after)[0], after),
    "delete": lambda before, after: (before, after[1:]),
    "cut before": lambda _, after: ("", after),
    "cut after": lambda before, _: (before, ""),
    "new line": lambda before, after: (f"{before}\n", after),
}


@dataclass(slots=True, kw_only=True)
class Line:
    """The text since the last Enter, the cursor, and the earlier lines."""

    text: str = ""
    cursor: int = 0
    history: list[str] = field(default_factory=list[str])
    # What the tabulator makes of the text.
    complete: Callable[[str], str] = lambda text: text
    _at: int = 0
    _pending: str = ""
    _pasting: bool = False

    def feed(self, keys: str) -> list[str | None]:
        """Take keys and return the lines that they complete; None means that the person wants to leave."""
        ended: list[str | None] = []
        keys, self._pending = self._pending + keys, ""
        while keys:
            if _ESCAPE_BEGUN.match(keys):
                self._pending = keys
                break
            key = found[0] if (found := _ESCAPE.match(keys)) else keys[0]
            keys = keys[len(key) :]
            if key in (_PASTE, _PASTED):
                self._pasting = key == _PASTE
            elif key in "\r\n" and not self._pasting:
                ended.append(self.clear(keep=True))
            elif key == "\x04" and not self.text:
                ended.append(None)
            else:
                self._press(key)
        return ended

    def clear(self, *, keep: bool = False) -> str:
        """Clear the line and return its text."""
        text, self.text, self.cursor = self.text, "", 0
        if keep and text.strip() and self.history[-1:] != [text]:
            self.history = [*self.history, text][-HISTORY_MAX:]
        self._at = len(self.history)
        return text

    def _press(self, key: str) -> None:
        before, after = self.text[: self.cursor], self.text[self.cursor :]
        name = _NAMES.get(key, key)
        if edit := _EDITS.get(name):
            self._set(*edit(before, after))
        elif name in _RECALLS:
            self._recall(self._at + _RECALLS[name])
        elif key == "\t" and not (self._pasting or after) and (completed := self.complete(before)) != before:
            self._set(completed, "")
        elif key in "\n\t" or key.isprintable():
            self._set(before + key, after)

    def _set(self, before: str, after: str) -> None:
        self.text, self.cursor = before + after, len(before)

    def _recall(self, at: int) -> None:
        if 0 <= at <= len(self.history):
            self._at = at
            self._set(self.history[at] if at < len(self.history) else "", "")
