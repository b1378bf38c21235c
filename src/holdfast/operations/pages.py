"""Pages of lists: their cursors, opaque to clients and checked when they come back, and their size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Generic, TypeVar

from holdfast.errors import Rejected
from holdfast.ids import SessionId
from holdfast.operations.operation import Query

T = TypeVar("T")

SIZE_MAX = 500

Cursor = Annotated[str | None, Query("Where to go on: the next_cursor of the page before.")]
Limit = Annotated[int, Query("How many at most.", least=1, most=SIZE_MAX)]
OfSession = Annotated[SessionId | None, Query("Only what belongs to this session.", name="session")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[T]):
    """One page of a list; with `next_cursor` the next one can be asked for."""

    items: Sequence[T]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """Something is not there any more."""

    removed: bool = True


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
