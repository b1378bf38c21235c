"""Pages of lists: their cursors, opaque to whoever holds one and checked when they come back, and their size."""

from __future__ import annotations

from holdfast.errors import Rejected

SIZE_MAX = 500


def after(position: tuple[int, str]) -> str:
    """Return the cursor behind the last thing of a page."""
    return f"{position[0]}~{position[1]}"


def position(cursor: str | None) -> tuple[int, str] | None:
    """Return where a page begins.  Raises `Rejected` for a cursor that was never given out."""
    if not cursor:
        return None
    number, divider, name = cursor.partition("~")
    if not divider or not number.isascii() or not number.isdigit() or len(number) > 18:
        raise Rejected(f"{cursor[:80]!r} is no cursor; leave it out to begin anew")
    return int(number), name


def size(limit: int) -> int:
    """Return how many things a page has at most.  Raises `Rejected` for a page that could hold none."""
    if limit < 1:
        raise Rejected(f"a page cannot have {limit} things; its limit is 1 or more")
    return min(limit, SIZE_MAX)
