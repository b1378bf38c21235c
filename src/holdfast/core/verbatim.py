"""Foreign text in Markdown, so that a person sees all of it: nothing in it is markup, and nothing in it is invisible."""

from __future__ import annotations

import re
import unicodedata

from holdfast.core.legible import one_line

_LINES = frozenset("\n\t")
_HIDDEN = frozenset({"Cf", "Cc", "Cs", "Co", "Zl", "Zp"})
_TICKS = re.compile("`+")
# What cutting a text into messages knows as the beginning of a block.
_MARKER_MAX = 12
# Letters, digits, and signs that mean nothing to Markdown within a line.
_PLAIN = re.compile(r"(?:[^\W_]|[ .,:;?!'\"/()@$%-])*")


def is_plain(text: str) -> bool:
    """Return whether Markdown shows a text as it is."""
    return bool(_PLAIN.fullmatch(text)) and text == text.strip()


def block(text: str) -> str:
    """Return a text as a block of code that it cannot end."""
    seen = "".join(_seen(each) for each in text).replace("`" * _MARKER_MAX, "'" * _MARKER_MAX)
    longest = max(map(len, _TICKS.findall(seen)), default=0)
    marker = "`" * max(3, longest + 1)
    return f"{marker}\n{seen}\n{marker}"


def span(text: str) -> str:
    """Return a text as code within a line."""
    return f"`{one_line(text).replace('`', chr(39)) or ' '}`"


def inline(text: str) -> str:
    """Return a text within a line: as it is where Markdown shows it so, else as code."""
    return text if is_plain(text) else span(text)


def _seen(letter: str) -> str:
    is_hidden = letter not in _LINES and unicodedata.category(letter) in _HIDDEN
    return f"\\u{ord(letter):04x}" if is_hidden else letter
