"""The byte offset of a mistake in a JSON body, so that its sender finds it."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterator
from itertools import islice

# Enough for bodies that people write.  For a mistake after this many tokens no offset is given.
TOKENS_MAX = 20_000
# An unclosed string is a token too: searching for its end again from each quote would take quadratic time.
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[\[\]{}:,]|[^\s\[\]{}:,"]+', re.DOTALL)
_BYTE = re.compile(r"\(byte (\d+)\)")
_PATH = re.compile(r" - at `\$(.*)`$")
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]")

# Keys and positions on the way to a value.
Path = tuple[bytes | int, ...]


def offset(raw: bytes, error: Exception) -> int | None:
    """Return at which byte a body went wrong, where that can be told."""
    match error:
        case UnicodeDecodeError():
            return _not_text(raw)
        case RecursionError():
            deepest = sys.getrecursionlimit()
            return _find(raw, lambda path, _: len(path) == deepest)
        case _:
            return _of_message(raw, str(error))


def _of_message(raw: bytes, message: str) -> int | None:
    if found := _BYTE.search(message):
        return int(found[1])
    if message == "Input data was truncated":
        return len(raw)
    if message.startswith("Number out of range"):
        return _find(raw, lambda _, token: _is_beyond(token))
    wanted = _path(message)
    return _find(raw, lambda path, _: path == wanted)


def _not_text(raw: bytes) -> int | None:
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        return error.start
    return None


def _is_beyond(token: bytes) -> bool:
    try:
        return math.isinf(float(token))
    except ValueError:
        return False


def _path(message: str) -> Path:
    """Return the way to the value that a message is about, as far as it names it."""
    found = _PATH.search(message)
    steps = _STEP.finditer(found[1]) if found else ()
    return tuple(int(step[2]) if step[2] else step[1].encode() for step in steps)


def _find(raw: bytes, wanted: Callable[[Path, bytes], bool]) -> int | None:
    return next((start for path, start, token in _values(raw) if wanted(path, token)), None)


def _values(raw: bytes) -> Iterator[tuple[Path, int, bytes]]:
    """Yield every value of a JSON text with its path and its first byte.  Nothing is called again for what is inside it."""
    path: list[bytes | int] = []
    is_key = False
    for match in islice(_TOKEN.finditer(raw), TOKENS_MAX):
        token = match[0]
        if token in b"]}":
            path.pop()
            is_key = False
        elif token == b",":
            is_key = isinstance(path[-1], bytes)
            path[-1] = b"" if is_key else int(path[-1]) + 1
        elif token == b":":
            is_key = False
        elif is_key:
            path[-1] = token[1:-1]
        else:
            yield tuple(path), match.start(), token
            if token in b"[{":
                is_key = token == b"{"
                path.append(b"" if is_key else 0)
