"""What may be asked for: sessions to be opened or changed, jobs, keys and webhook routes to be made, memories to be kept."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from holdfast.errors import Rejected
from holdfast.ids import SegmentId, SessionId

DAYS_MAX = 36_500
SESSION_PREFIX = "ses_"
# Of memories that are named at once.
IDS_MAX = 500
ID_MAX = 200
# Segments that one call replays, and those that it leaves out.
REPLAYED_MAX = 100
SKIPPED_MAX = 1_000


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A document of what is remembered, as it was read and as it is to be; what was changed between is what counts."""

    base: str
    markdown: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgetting:
    """What is to be forgotten: memories by their ids, all that came from a session, or everything."""

    ids: tuple[str, ...] = ()
    session_id: SessionId | None = None
    everything: bool = False

    def __post_init__(self) -> None:
        if sum((bool(self.ids), bool(self.session_id), self.everything)) != 1:
            raise Rejected("say what to forget: ids, a session_id, or everything")
        if len(self.ids) > IDS_MAX or not all(each.isprintable() and len(each) <= ID_MAX for each in self.ids):
            raise Rejected(f"ids have printable characters only, {ID_MAX} at most, and there are {IDS_MAX} at once at most")


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaying:
    """Segments that were paid once, to be given to one more provider, `limit` at a time; with 0 they are only counted.

    Those to `skip` have failed before.  `person` is whose they are, where they are not the operator's own.
    """

    provider: str
    url: str = ""
    limit: int = 20
    skip: tuple[SegmentId, ...] = ()
    person: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.limit <= REPLAYED_MAX:
            raise Rejected(f"limit must be between 0 and {REPLAYED_MAX}")
        if len(self.skip) > SKIPPED_MAX:
            raise Rejected(f"{SKIPPED_MAX} segments can be skipped at most; find out first why they fail")


def looks_like_id(name: str) -> bool:
    """Return whether a name is meant as the id of a session, which no key may look like."""
    return name.startswith(SESSION_PREFIX)
