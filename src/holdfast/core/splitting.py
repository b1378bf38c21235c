"""Cuts Markdown into messages that a platform takes: at a paragraph, else at a line, else at a word.

A code block that is cut is closed in the one message and opened again in the next.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

# Whether a text is short enough for one message.  What fits still fits when its end is taken away.
Fits = Callable[[str], bool]

# Longer ones are no fences that people write, and would leave no room for the code.
_FENCE = re.compile(r"^ {0,3}(`{3,12}|~{3,12})([^`\n]{0,60})$", re.MULTILINE)
# A break is only taken where it leaves a message that is not much shorter than it could be.
_FILLED = 3
_JOINER = "\u200d"
_MODIFIERS = range(0x1F3FB, 0x1F400)
_FLAGS = range(0x1F1E6, 0x1F200)
# A cluster of characters that is longer is cut all the same.
_CLUSTER_MAX = 32


def split(text: str, fits: Fits) -> list[str]:
    """Return a text in parts that fit, in order."""
    parts: list[str] = []
    marker = max((found[1] for found in _FENCE.finditer(text)), key=len, default="")
    head = ""
    while not fits(head + text):
        closing = f"\n{marker}" if marker else ""
        if not fits(head + text[:_CLUSTER_MAX] + closing):
            # There is no room to keep the code a code.
            head, closing = "", "" if not fits(text[:_CLUSTER_MAX] + closing) else closing
        end = _cut(text, _longest(text, lambda piece, head=head, closing=closing: fits(head + piece + closing)))
        part, text, head = _parted(head + text[:end], text[end:])
        if part.strip():
            parts.append(part)
    return [*parts, head + text] if (head + text).strip() or not parts else parts


def _parted(part: str, rest: str) -> tuple[str, str, str]:
    """Return a part with its code closed, what is left, and what opens the code again."""
    fence = _open_fence(part)
    if fence is None:
        return part.rstrip(), rest.lstrip("\n") if part.endswith("\n") else rest.lstrip(), ""
    marker, info = fence
    part = f"{part.rstrip()}\n{marker}"
    rest = rest.removeprefix("\n")
    if ends := re.match(rf" {{0,3}}{marker[0]}{{{len(marker)},}} *(?:\n|$)", rest):
        return part, rest[ends.end() :].lstrip("\n"), ""
    return part, rest, f"{marker}{info}\n"


def _open_fence(part: str) -> tuple[str, str] | None:
    """Return the marker and the language of the code block that a part ends in."""
    opened: tuple[str, str] | None = None
    for found in _FENCE.finditer(part):
        marker, info = found[1], found[2].strip()
        if opened is None:
            opened = marker, info
        elif marker.startswith(opened[0]) and not info:
            opened = None
    return opened


def _longest(text: str, fits: Fits) -> int:
    """Return how many characters of a text fit, one at least."""
    low, high = 1, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(text[:middle]) else (low, middle - 1)
    return low


def _cut(text: str, most: int) -> int:
    """Return where to cut a text, behind `most` characters at the latest."""
    window, least = text[: most + 1], most // _FILLED
    for between in ("\n\n", "\n", " "):
        at = window.rfind(between, least)
        if at > 0:
            return min(at + len(between) - (between == " "), most)
    end = most
    while end > max(1, most - _CLUSTER_MAX) and end < len(text) and _belong_together(text, end):
        end -= 1
    return end


def _belong_together(text: str, at: int) -> bool:
    """Return whether the characters on both sides of a place are shown as one."""
    before, after = text[at - 1], text[at]
    if before == _JOINER or after == _JOINER or (before == after == "`"):
        return True
    if ord(before) in _FLAGS and ord(after) in _FLAGS:
        flags = re.search(f"[{chr(_FLAGS.start)}-{chr(_FLAGS.stop - 1)}]+$", text[max(0, at - 2 * _CLUSTER_MAX) : at])
        return flags is not None and len(flags[0]) % 2 == 1
    return ord(after) in _MODIFIERS or unicodedata.combining(after) > 0 or unicodedata.category(after) in ("Mn", "Me")
