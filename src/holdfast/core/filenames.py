"""Names of files: a name that a sender gave becomes one that is safe on every file system."""

from __future__ import annotations

import re
import unicodedata

from holdfast.core.words import MARKS

# With what is put in front of it, less than any file system takes.
NAME_MAX_BYTES = 120
# What follows the last dot says what a file is, unless it is longer than this.
SUFFIX_MAX_BYTES = 16
_UNFIT = re.compile(rf"[^\w{re.escape(MARKS)}.+@()-]+")


def safe(name: str, otherwise: str = "file") -> str:
    """Return the last part of a path as a plain name: no folder, nothing hidden, nothing that cannot be seen."""
    last = re.split(r"[/\\]", name.rstrip("/\\"))[-1]
    plain = _UNFIT.sub("-", unicodedata.normalize("NFC", last)).strip(".-")
    return _shortened(plain).strip(".-") or otherwise


def _shortened(name: str) -> str:
    if len(name.encode()) <= NAME_MAX_BYTES:
        return name
    stem, dot, suffix = name.rpartition(".")
    if not dot or len(suffix.encode()) > SUFFIX_MAX_BYTES:
        return _cut(name, NAME_MAX_BYTES)
    end = dot + suffix
    return _cut(stem, NAME_MAX_BYTES - len(end.encode())) + end


def _cut(text: str, most: int) -> str:
    return text.encode()[:most].decode(errors="ignore")
