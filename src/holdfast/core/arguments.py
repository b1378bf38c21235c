"""Arguments: how what stands behind a program's name is told apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from holdfast.core.shell import Word


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The arguments of a program: its options one by one, and the rest."""

    options: frozenset[str]
    values: tuple[Word, ...]
    rest: tuple[Word, ...]

    @classmethod
    def of(cls, words: Sequence[Word]) -> Self:
        """Tell options, the values that stand with them, and the rest apart."""
        options: set[str] = set()
        values: list[Word] = []
        rest: list[Word] = []
        for at, word in enumerate(words):
            text = word.text
            if text == "--":
                rest += words[at + 1 :]
                break
            if text.startswith("--"):
                name, equals, value = text.partition("=")
                options.add(name)
                if equals:
                    values.append(Word(text=value, varies=word.varies, glob=word.glob))
            elif text.startswith("-") and len(text) > 1:
                options |= {f"-{letter}" for letter in text[1:]}
            else:
                rest.append(word)
        return cls(options=frozenset(options), values=tuple(values), rest=tuple(rest))

    def has(self, *options: str) -> bool:
        """Return whether one of the options is given; a long one may be cut short, as most programs allow."""
        if not self.options.isdisjoint(options):
            return True
        cut = tuple(option for option in self.options if option.startswith("--"))
        return any(whole.startswith(option) for option in cut for whole in options)
