"""Text as a person sees it, without invisible characters, which could instruct a model or steer a terminal."""

from __future__ import annotations

import re
import unicodedata

# They stand inside of words and pictures, one or two at a time, and show nothing themselves.
_JOINERS = frozenset("\u200c\u200d")
_HIDDEN = re.compile("[\u200c\u200d\ufe00-\ufe0f\U000e0100-\U000e01ef]{3,}")


def legible(text: str) -> str:
    """Return a text on one line, without what a model would read and no person sees."""
    if not text.isascii():
        seen = (each for each in text if each in _JOINERS or unicodedata.category(each) != "Cf")
        text = _HIDDEN.sub("", "".join(seen))
    return " ".join(text.split())


def one_line(text: str) -> str:
    """Return a text without anything that cannot be seen, on one line."""
    text = legible(text)
    if not text.isprintable():
        text = "".join(each if each.isprintable() or each in _JOINERS else " " for each in text)
    return " ".join(text.split())
