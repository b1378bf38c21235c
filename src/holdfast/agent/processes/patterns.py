"""Patterns that output is matched with.  Any regular expression is allowed: a child process matches, and can be killed."""

from __future__ import annotations

import re
import time

import msgspec

from holdfast.agent.processes.folder import readable
from holdfast.errors import Rejected
from holdfast.offload.function import offloadable
from holdfast.offload.pool import Pool

PATTERNS_MAX = 10
PATTERN_MAX_CHARS = 200
LINE_MAX_CHARS = 250
LINES_MAX = 20
CHECK_MAX_S = 2.0


class MatchInput(msgspec.Struct, kw_only=True):
    """Lines of output, and the patterns to match."""

    patterns: tuple[str, ...]
    lines: list[bytes]


class Matches(msgspec.Struct, kw_only=True):
    """The first lines that match, the number of further ones, and how long the matching took."""

    lines: list[str]
    more: int
    took_s: float


async def check(pool: Pool, patterns: list[str]) -> None:
    """Raise `Rejected` for patterns that are invalid."""
    if not patterns:
        return
    if len(patterns) > PATTERNS_MAX:
        raise Rejected(f"{len(patterns)} watch_patterns are too many; {PATTERNS_MAX} are allowed, and one may hold a|b")
    for pattern in patterns:
        if not pattern:
            raise Rejected("watch_patterns: one is empty, and would match everything")
        if len(pattern) > PATTERN_MAX_CHARS:
            raise Rejected(f"watch_patterns: one is too long; {PATTERN_MAX_CHARS} characters are allowed")
    try:
        await pool.run(compile_all, patterns, CHECK_MAX_S)
    except TimeoutError:
        raise Rejected(f"the watch_patterns took longer than {CHECK_MAX_S:g} s to compile; make them simpler") from None


@offloadable
def compile_all(patterns: list[str]) -> None:
    """Raise `Rejected` for the first pattern that is not a regular expression."""
    for pattern in patterns:
        _compiled(pattern)


@offloadable
def match(output: MatchInput) -> Matches:
    """Return the lines that match; only the beginning of a line counts."""
    began, lines, more = time.perf_counter(), list[str](), 0
    patterns = [_compiled(each) for each in output.patterns]
    for line in output.lines:
        text = readable(line[: LINE_MAX_CHARS * 4])[:LINE_MAX_CHARS]
        if not text or not any(pattern.search(text) for pattern in patterns):
            continue
        if len(lines) < LINES_MAX:
            lines.append(text)
        else:
            more += 1
    return Matches(lines=lines, more=more, took_s=time.perf_counter() - began)


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise Rejected(f"watch_patterns: {pattern!r} is not a regular expression: {error}") from error
