"""Cursors of lists: opaque to whoever holds one, checked when it comes back."""

from __future__ import annotations

from holdfast.errors import Rejected


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
