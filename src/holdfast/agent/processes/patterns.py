"""What may be watched for in output: expressions that cannot keep the gateway busy, whatever is printed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from holdfast.errors import Rejected

PATTERNS_MAX = 10
PATTERN_MAX_CHARS = 200
# Each open repeat multiplies the work by the length of a line, each optional part by two.
OPEN_REPEATS_MAX = 2
REPEATS_MAX = 5
LINE_MAX_CHARS = 250

_TOKEN = re.compile(
    r"(?P<back>\\[1-9]|\(\?P=|\(\?\()"
    r"|(?P<skip>\\.|\[\^?\]?(?:\\.|[^\]\\])*\])"
    r"|(?P<open>\)?(?:[*+]|\{\d*,?\d*\}))"
    r"|(?P<group>\)\?)"
    r"|(?P<start>\((?:\?[P<>=!:#aiLmsux-]*)?)"
    r"|(?P<maybe>\?)",
    re.DOTALL,
)


def compiled(patterns: Sequence[str]) -> list[re.Pattern[str]]:
    """Return expressions ready for use.  Raises `Rejected` for one that is invalid or may take too long."""
    if len(patterns) > PATTERNS_MAX:
        raise Rejected(f"{len(patterns)} watch_patterns are too many; {PATTERNS_MAX} are allowed, and one may hold a|b")
    found: list[re.Pattern[str]] = []
    for pattern in patterns:
        if problem := _problem(pattern):
            raise Rejected(f"watch_patterns: {pattern[:PATTERN_MAX_CHARS]!r} {problem}")
        try:
            found.append(re.compile(pattern))
        except (re.error, OverflowError, RecursionError) as error:
            raise Rejected(f"watch_patterns: {pattern!r} is no regular expression: {error}") from error
    return found


def matches(patterns: Sequence[re.Pattern[str]], line: str) -> bool:
    """Return whether a line is one that somebody waits for; only its beginning counts."""
    return any(pattern.search(line[:LINE_MAX_CHARS]) for pattern in patterns)


def _problem(pattern: str) -> str:
    """Return why a pattern may take too long; nothing where it cannot."""
    if not pattern:
        return "is empty, and would match everything"
    if len(pattern) > PATTERN_MAX_CHARS:
        return f"is too long; {PATTERN_MAX_CHARS} characters are allowed"
    open_repeats = repeats = 0
    for token in _TOKEN.finditer(pattern):
        text = token[0]
        if token.lastgroup == "back":
            return "refers back to what it matched; write it without"
        if token.lastgroup == "open":
            if text.startswith(")"):
                return "repeats a group, which may take for ever; repeat a single character or class instead"
            open_repeats += 1
        repeats += token.lastgroup in ("open", "group", "maybe")
    if open_repeats > OPEN_REPEATS_MAX or repeats > REPEATS_MAX:
        return f"repeats too much; {OPEN_REPEATS_MAX} of *, + or {{}} are allowed, and {REPEATS_MAX} with every ?"
    return ""
