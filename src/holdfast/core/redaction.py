"""Secrets never reach the journal: known values are masked before anything is written, even when cut by streaming."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

MASK = "[redacted]"
# Shorter values would mask ordinary words.
LENGTH_MIN = 8


class Redaction:
    """Masks a fixed set of secret values in text and JSON."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        # Longest first, so that a secret which contains another is masked as a whole.
        self._secrets = sorted({secret for secret in secrets if len(secret) >= LENGTH_MIN}, key=len, reverse=True)

    def text(self, text: str) -> str:
        """Return text with every secret masked."""
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return text

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
        """Return how many characters at the end of `text` may be the beginning of a secret."""
        longest = 0
        for secret in self._secrets:
            for length in range(min(len(secret) - 1, len(text)), longest, -1):
                if secret.startswith(text[-length:]):
                    longest = length
                    break
        return longest


class RedactedStream:
    """Text that arrives in pieces: what may turn out to be a secret is kept back until it is known."""

    def __init__(self, redaction: Redaction) -> None:
        self._redaction = redaction
        self._kept = ""

    def feed(self, piece: str) -> str:
        """Return what may be shown now."""
        text = self._redaction.text(self._kept + piece)
        keep = self._redaction.held_back(text)
        self._kept = text[len(text) - keep :]
        return text[: len(text) - keep]

    def flush(self) -> str:
        """Return the rest: nothing more will come that could make it a secret."""
        rest, self._kept = self._kept, ""
        return rest
