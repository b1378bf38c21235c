"""What may be asked for: sessions to be opened, changed or pruned."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from holdfast.errors import Rejected
from holdfast.ids import SessionId

DAYS_MAX = 36_500
SESSION_PREFIX = "ses_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """A session to be opened.  Naming the previous one tells its memory that it is over."""

    key: str | None = None
    channel: str = "web"
    title: str | None = None
    previous_session_id: SessionId | None = None


class Order(StrEnum):
    """Which end of a conversation comes first."""

    ASC = "asc"
    DESC = "desc"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What is to be changed about a session; what is None stays as it is."""

    title: str | None = None
    pinned: bool | None = None
    archived: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruning:
    """Which ended sessions to delete."""

    channel: str
    older_than_days: float = 0

    def __post_init__(self) -> None:
        # Not a number is not between these either.
        if not 0 <= self.older_than_days <= DAYS_MAX:
            raise Rejected(f"older_than_days must be between 0 and {DAYS_MAX}")


def looks_like_id(name: str) -> bool:
    """Return whether a name is meant as the id of a session, which no key may look like."""
    return name.startswith(SESSION_PREFIX)
