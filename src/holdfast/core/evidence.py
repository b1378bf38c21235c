"""Evidence: what is found against a command, and where that command stands by then."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from fnmatch import fnmatchcase
from posixpath import join, normpath

from holdfast.core import programs
from holdfast.core.places import Place, locate
from holdfast.core.shell import UNKNOWN, Word

REASONS_MAX = 8
SHOWN_MAX_CHARS = 80


class Verdict(IntEnum):
    """What a command needs before it runs, in rising order: nothing, a person's word, or it never may."""

    SAFE = 0
    DANGEROUS = 1
    FORBIDDEN = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A verdict, with what led to it in plain words."""

    verdict: Verdict
    reasons: tuple[str, ...] = ()


class Evidence:
    """What was found so far, and the folder in which the command would be by now."""

    def __init__(
        self, *, workspace: str, bounded: bool = True, start: str = "", private: tuple[str, ...] = (), cwd: str = ""
    ) -> None:
        self.workspace = workspace
        # Whether a sandbox bounds what code of the workspace can do.
        self.bounded = bounded
        # The whole path of the folder that it is in by then, and the folders that only the gateway itself reads.
        self.start = start
        self.private = private
        self.findings: dict[str, Verdict] = {}
        # The folder it went to; empty is where it began.
        self.cwd = cwd
        # What it may have written by then, and could run unseen.
        self.written: set[str] = set()

    @property
    def judgement(self) -> Judgement:
        """Return the worst that was found, with what led to it."""
        verdict = max(self.findings.values(), default=Verdict.SAFE)
        reasons = [reason for reason, each in self.findings.items() if each == verdict]
        return Judgement(verdict=verdict, reasons=tuple(reasons[:REASONS_MAX]))

    def ask(self, reason: str) -> None:
        self.findings.setdefault(reason, Verdict.DANGEROUS)

    def forbid(self, reason: str) -> None:
        self.findings[reason] = Verdict.FORBIDDEN

    def place(self, word: Word) -> Place:
        return locate(word, self.cwd, self.workspace)

    def reads(self, word: Word) -> None:
        if word.varies:
            self.ask("what it reads is only known when it runs")
        if self.place(word).is_device:
            self.ask(f"it reads a whole device, {shown(word)}")
        if self.place(word).is_secret:
            self.ask(f"it reads {shown(word)}, which may hold secrets")
        if self._is_private(word):
            self.ask(f"it reads {shown(word)}, where the gateway keeps what is its own")

    def holds_secrets(self, word: Word) -> bool:
        """Return whether secrets are to be expected somewhere below a folder."""
        return self.place(word).holds_secrets or any(leads_into(each, self.path(word)) for each in self.private)

    def path(self, word: Word) -> str:
        """Return the whole path that a word means, from where the command stands by then."""
        return normpath(join(self.start, word.text))

    def _is_private(self, word: Word) -> bool:
        path = self.path(word)
        if f"{path}/".startswith(f"{self.workspace}/"):
            return False
        # In a folder that could be any, a file could be any.
        return bool(self.private) and (UNKNOWN in path or any(leads_into(path, each) for each in self.private))

    def writes(self, word: Word) -> None:
        place = self.place(word)
        if place.is_device:
            self.forbid(f"it overwrites a device, {shown(word)}")
        elif place.is_sink:
            return
        elif word.varies:
            self.ask("what it changes is only known when it runs")
        elif not place.inside:
            self.ask(f"it changes {shown(word)}, outside of the workspace")
        elif place.is_guarded:
            self.ask(f"it changes {shown(word)}, which others rely on")
        self.written.add(place.path)

    def sets(self, name: str, value: Word) -> None:
        if name in programs.STEERING_NAMES or name.startswith(programs.STEERING):
            self.ask(f"it sets {name}, which decides what other programs do")
        elif name in programs.SEARCHED and any(not self.place(Word(text=each)).inside for each in value.text.split(":")):
            self.ask(f"it sets {name}, so that programs are looked for outside of the workspace")
        if value.text.startswith("() {"):
            self.ask("it defines a function in a variable")

    def run_file(self, word: Word) -> None:
        if word.varies or not self.place(word).inside:
            self.ask(f"it runs {shown(word)}, from outside of the workspace")
        elif self.place(word).path in self.written:
            self.ask(f"it runs {shown(word)}, which it has written itself")
        self.runs_code(shown(word))

    def runs_code(self, what: str) -> None:
        if not self.bounded:
            self.ask(f"{what} can do anything that you can: there is no sandbox")

    def deletes(self, targets: Sequence[Word], what: str) -> None:
        for word in targets:
            if self.place(word).is_vital:
                self.forbid(f"it deletes {shown(word)}, which the system or its user needs")
        self.ask(what)


def leads_into(path: str, folder: str) -> bool:
    """Return whether a path is, or may be where it is a pattern, a folder or in one; either may be the pattern."""
    steps, within = path.split("/"), folder.split("/")
    pairs = zip(steps, within, strict=False)
    return len(steps) >= len(within) and all(fnmatchcase(a, b) or fnmatchcase(b, a) for a, b in pairs)


def shown(word: Word) -> str:
    text = word.text.replace(UNKNOWN, "…")
    return repr(text if len(text) <= SHOWN_MAX_CHARS else f"{text[:SHOWN_MAX_CHARS]}…")


def joined(words: Iterable[Word]) -> str:
    return " ".join(word.text for word in words)
