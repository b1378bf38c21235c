"""The size of what a browser fetches before the first paint."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator, Mapping

from holdfast.web.page import File, built

PACKED_MAX = 150 * 1024
_NAMED = re.compile(r'(?:src|href)="(/[^"]+\.(?:js|css))"')
# Not dynamic imports, which have a bracket: they are fetched on demand.
_IMPORTED = re.compile(r'(?:from|import)\s*"\./([^"]+\.js)"')


def test_what_is_fetched_before_the_first_paint_is_small() -> None:
    files = {file.path: file for file in built()}
    sizes = {path: len(gzip.compress(files[path].plain)) for path in needed(files, "/")}
    assert any(path.endswith(".js") for path in sizes)
    assert len(files) > len(sizes), "nothing is left for later"
    assert sum(sizes.values()) < PACKED_MAX, sizes


def needed(files: Mapping[str, File], path: str) -> set[str]:
    """Return a file and all files that it needs at once."""
    found, waiting = set[str](), [path]
    while waiting:
        if (each := waiting.pop()) not in found:
            found.add(each)
            waiting += _mentioned(files[each])
    return found


def _mentioned(file: File) -> Iterator[str]:
    text = file.plain.decode()
    if file.kind == "text/html":
        yield from _NAMED.findall(text)
    elif file.kind == "text/javascript":
        folder = file.path.rpartition("/")[0]
        yield from (f"{folder}/{name}" for name in _IMPORTED.findall(text))
