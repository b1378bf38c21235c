"""Secrets never reach the journal: known values are masked before anything is written, even when cut by streaming."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Self, cast

MASK = "[redacted]"
# Shorter values would mask ordinary words.
LENGTH_MIN = 8
# An attacker who can send text through the mask can try out guesses; 2^72 are too many at any rate a gateway can take.
BITS_MIN = 72
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+|[^A-Za-z\d]")
# A word is one of some ten thousand; a longer run of letters counts as several words.
_WORD_BITS = 14
_WORD_LETTERS = 8
_LETTER_BITS, _DIGIT_BITS, _MARK_BITS = 4.7, 3.3, 3.0


def is_long(secret: str) -> bool:
    """Return whether a secret is no ordinary word."""
    return len(secret) >= LENGTH_MIN


def is_unguessable(secret: str) -> bool:
    """Return whether a secret is too random to be found by trying: words count as words, not as letters."""
    # What is repeated adds nothing.
    return sum(map(_bits, set(_PARTS.findall(secret)))) >= BITS_MIN


def _bits(part: str) -> float:
    if part.isdigit():
        return len(part) * _DIGIT_BITS
    if part.isascii() and part.isalpha():
        return min(len(set(part)) * _LETTER_BITS, -(-len(part) // _WORD_LETTERS) * _WORD_BITS)
    return _MARK_BITS


class Redaction:
    """Masks secret values in text and JSON: those it begins with, and those that it learns of later.

    `masks` says which of them.  `everything` masks all that are known, for texts that only the operator sees.
    """

    def __init__(self, secrets: Iterable[str] = (), masks: Callable[[str], bool] = is_long) -> None:
        self._secrets: list[str] = []
        self._masks = masks
        self.everything: Self | Redaction = self if masks is is_long else Redaction()
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        """Mask further secrets from now on."""
        known = frozenset(secrets)
        if self.everything is not self:
            self.everything.learn(known)
        masked = set(filter(self._masks, known))
        # Inside JSON text a secret with a quote or a line break is spelt differently.
        spelt = masked | {json.dumps(secret)[1:-1] for secret in masked}
        if not spelt.issubset(self._secrets):
            # A new list, because another thread may be reading the old one.
            self._secrets = sorted(spelt.union(self._secrets))

    def finds(self, text: str) -> bool:
        """Return whether there is a secret in a text."""
        return any(secret in text for secret in self._secrets)

    def text(self, text: str) -> str:
        """Return text with every secret masked; where secrets overlap, one mask covers them all."""
        shown: list[str] = []
        end = 0
        for start, stop in self._covered(text):
            shown += (text[end:start], MASK)
            end = stop
        return "".join([*shown, text[end:]])

    def value(self, value: object) -> object:
        """Return JSON with every secret masked, in keys too."""
        if not self._secrets:
            return value
        match value:
            case str():
                return self.text(value)
            case Mapping():
                pairs = cast("Mapping[str, object]", value).items()
                return {self.text(key): self.value(each) for key, each in pairs}
            case list() | tuple():
                return [self.value(each) for each in cast("list[object]", value)]
            case _:
                return value

    def held_back(self, text: str) -> int:
        """Return how many characters at the end of `text` may be the beginning of a secret, or overlap with one that is."""
        longest = 0
        for secret in self._secrets if text else ():
            # Only a beginning that has the last character of the text at its end can be meant.
            last = secret.rfind(text[-1], 0, min(len(secret) - 1, len(text)))
            while last >= longest and not text.endswith(secret[: last + 1]):
                last = secret.rfind(text[-1], 0, last)
            longest = max(longest, last + 1)
        if not longest:
            return 0
        begun = len(text) - longest
        return len(text) - min((start for start, stop in self._covered(text) if start < begun < stop), default=begun)

    def _covered(self, text: str) -> list[tuple[int, int]]:
        """Return the stretches of `text` that secrets cover, in order; overlapping ones are one stretch."""
        found: list[tuple[int, int]] = []
        for secret in self._secrets:
            start = text.find(secret)
            while start >= 0:
                found.append((start, start + len(secret)))
                start = text.find(secret, start + 1)
        covered: list[tuple[int, int]] = []
        for start, stop in sorted(found):
            if covered and start < covered[-1][1]:
                covered[-1] = (covered[-1][0], max(stop, covered[-1][1]))
            else:
                covered.append((start, stop))
        return covered


class RedactedStream:
    """Text that arrives in pieces: what may turn out to be a secret is kept back until it is known."""

    def __init__(self, redaction: Redaction) -> None:
        self._redaction = redaction
        self._kept = ""

    def feed(self, piece: str) -> str:
        """Return what may be shown now."""
        text = self._kept + piece
        known = len(text) - self._redaction.held_back(text)
        self._kept = text[known:]
        return self._redaction.text(text[:known])

    def flush(self) -> str:
        """Return the rest: nothing more will come that could make it a secret."""
        rest, self._kept = self._kept, ""
        return self._redaction.text(rest)
