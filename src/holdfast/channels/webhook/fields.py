"""Fields: paths into a payload, written `a.b.0.c`.

No name begins with an underscore, so that none can mean an attribute of Python.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, cast

from holdfast.errors import Rejected

EVENT_TYPE = "event_type"
PATH_MAX = 200
_SEGMENT = re.compile(r"(?!_)[^\s.{}\[\]()!:'\"`,=]+")
_INDEX = re.compile(r"[0-9]{1,6}")

Path = tuple[str, ...]


class Missing:
    """The value of a field that is not there, which is not the same as null."""


MISSING: Final = Missing()


def parse(text: str) -> Path:
    """Parse a field.  Raises `Rejected`."""
    path = tuple(text.split("."))
    for segment in path:
        if segment.startswith("_"):
            raise Rejected(f"{text!r} is not a field: no name in it may begin with an underscore")
        if not _SEGMENT.fullmatch(segment):
            raise Rejected(f"{text!r} is not a field: write names with dots between them, like a.b.0.c")
    if len(text) > PATH_MAX:
        raise Rejected(f"the field {text[:40]!r}… is longer than {PATH_MAX} characters")
    return path


def find(payload: Mapping[str, object], path: Path) -> object:
    """Return the value at a path of a payload, or `MISSING`."""
    found: object = payload
    for segment in path:
        if isinstance(found, dict):
            found = cast("Mapping[str, object]", found).get(segment, MISSING)
        elif isinstance(found, list) and _INDEX.fullmatch(segment):
            items = cast("Sequence[object]", found)
            found = items[int(segment)] if int(segment) < len(items) else MISSING
        else:
            return MISSING
    return found
