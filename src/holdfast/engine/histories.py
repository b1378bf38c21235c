"""What the last turns of recent sessions have read of their journals, so that the next ones read only what is new.

A journal only grows, and what of it belongs to one turn is folded by itself, so what was read once stays true.  These are
copies: what is not here is read again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import structs

from holdfast.core.events import ContextCompacted, TurnAccepted
from holdfast.core.journal import Entry
from holdfast.core.transcript import Item, fold
from holdfast.core.turns import Turn
from holdfast.engine.live import LiveSessions
from holdfast.ids import SessionId, TurnId
from holdfast.store.journal import Brief, JournalStore

# What the journal returns at most; a shorter page is the last.
PAGE = 1_000
# All histories together; one that alone is larger is read anew each time.
CHARS_MAX = 4_000_000
# What an entry takes besides its words.
_ENTRY_CHARS = 600

Folds = dict[TurnId, tuple[int, Sequence[Item]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The context of a session: the entries that make it, and the transcript that they make."""

    entries: Sequence[Entry]
    items: Sequence[Item]
    # Everything that was read, all of it behind `after`.
    journal: Sequence[Entry]
    after: int
    # How many entries of each turn were folded, and to what.
    folds: Folds
    chars: int


class Histories:
    """Recent histories, the least recently used first.  A session that is not for one turn only becomes a live one."""

    def __init__(self, live: LiveSessions, chars_max: int = CHARS_MAX) -> None:
        self._live = live
        self._chars_max = chars_max
        self._kept: OrderedDict[SessionId, History] = OrderedDict()
        self._chars = 0

    async def read(self, journal: JournalStore, turn: Turn) -> tuple[Brief, History]:
        """Return what a turn begins with, and the history of its session up to now."""
        known = self._kept.get(turn.session_id)
        brief = await journal.brief(turn, known.journal[-1].seq if known else None)
        page, fresh = brief.entries, list(brief.entries)
        while len(page) >= PAGE:
            page = await journal.read(turn.session_id, fresh[-1].seq)
            fresh += page
        if known and _last_summary(fresh):
            # The context begins elsewhere now.
            self.drop(turn.session_id)
            return await self.read(journal, turn)
        history = _grown(known, brief.after, fresh)
        self._keep(brief, history)
        return brief, history

    def drop(self, session_id: SessionId) -> None:
        """Forget a history; the next turn reads it anew."""
        if (dropped := self._kept.pop(session_id, None)) is not None:
            self._chars -= dropped.chars

    def _keep(self, brief: Brief, history: History) -> None:
        self.drop(brief.session.id)
        # A session that lives for one turn is not read again.
        if brief.session.one_shot:
            return
        self._live.enter(brief.session.id)
        if not history.journal or history.chars > self._chars_max:
            return
        self._kept[brief.session.id] = history
        self._chars += history.chars
        while self._chars > self._chars_max:
            self.drop(next(iter(self._kept)))


def _grown(known: History | None, after: int, fresh: Sequence[Entry]) -> History:
    """Return a history with what has come since."""
    chars = sum(map(_size, fresh))
    if known is not None:
        after, fresh, chars = known.after, [*known.journal, *fresh], known.chars + chars
    entries = _from_the_summary_on(fresh) if after else fresh
    folds = _folds(entries, known.folds if known else {})
    items = [*fold(_last_summary(entries)), *(item for _, folded in folds.values() for item in folded)]
    return History(entries=entries, items=items, journal=fresh, after=after, folds=folds, chars=chars)


def _folds(entries: Sequence[Entry], known: Folds) -> Folds:
    """Fold each turn by itself, and only those that have grown."""
    turns: dict[TurnId, list[Entry]] = {}
    for entry in entries:
        if not isinstance(entry.event, ContextCompacted):
            turns.setdefault(entry.turn_id, []).append(entry)
    folds: Folds = {}
    for turn_id, placed in turns.items():
        before = known.get(turn_id)
        folds[turn_id] = before if before and before[0] == len(placed) else (len(placed), fold(placed))
    return folds


def _from_the_summary_on(entries: Sequence[Entry]) -> list[Entry]:
    """Leave out what older turns, for which a summary stands, wrote while a later one was waiting already."""
    staying = {entry.turn_id for entry in entries if isinstance(entry.event, TurnAccepted)}
    return [entry for entry in entries if entry.turn_id in staying or isinstance(entry.event, ContextCompacted)]


def _last_summary(entries: Sequence[Entry]) -> list[Entry]:
    return [entry for entry in entries if isinstance(entry.event, ContextCompacted)][-1:]


def _size(entry: Entry) -> int:
    return _ENTRY_CHARS + sum(len(value) for value in structs.astuple(entry.event) if isinstance(value, str))
