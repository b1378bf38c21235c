"""The board: what becomes of the sessions of one owner, for readers that watch all of them at once.

A hint says which session may have changed, and not how.  So the hinted sessions are read together, and shown where they
differ from what was shown before.  The words of a running turn change nothing here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field, replace

from holdfast.core.sessions import Glance, SessionDeleted, SessionsMissed
from holdfast.engine.wake import Wake
from holdfast.errors import Unavailable
from holdfast.ids import SessionId
from holdfast.store.sessions import SessionStore

# Between two looks, so that no session is shown more than a few times a second.
PAUSE_S = 0.25
# Those that were used last are looked at this often unasked, in case a hint from another node was lost.
LOOK_MS = 16_000
RECENT = 50
# Sessions that one statement looks at.
AT_ONCE = 500
# A reader with this much waiting is told to look for itself instead.
BACKLOG_MAX = 500
# How many sessions are known well enough not to be shown again unchanged.
KNOWN_MAX = 1_000

Sight = Glance | SessionDeleted | SessionsMissed


class _Watcher:
    """One reader's mailbox.  It holds only the latest state of each session, so a slow reader costs no more than another."""

    __slots__ = ("_backlog", "_missed", "news")

    def __init__(self) -> None:
        self._backlog: dict[SessionId, Glance | SessionDeleted] = {}
        # What there was before it came it has to look for itself.
        self._missed = True
        self.news = asyncio.Event()
        self.news.set()

    def put(self, session_id: SessionId, sight: Glance | SessionDeleted) -> None:
        self._backlog[session_id] = sight
        self.news.set()
        if len(self._backlog) > BACKLOG_MAX:
            self.miss()

    def miss(self) -> None:
        self._backlog.clear()
        self._missed = True
        self.news.set()

    def take(self) -> list[Sight]:
        taken: list[Sight] = [*([SessionsMissed()] if self._missed else []), *self._backlog.values()]
        self._backlog.clear()
        self._missed = False
        self.news.clear()
        return taken


@dataclass(slots=True, kw_only=True)
class _Audience:
    """Those who watch the sessions of one owner, and what they have been shown last."""

    watchers: set[_Watcher] = field(default_factory=set[_Watcher])
    known: dict[SessionId, Glance] = field(default_factory=dict[SessionId, Glance])

    def show(self, glance: Glance) -> None:
        session_id = glance.session.id
        # How much has been said is for those who follow the session itself.
        seen = replace(glance, session=replace(glance.session, seq=0))
        if self.known.pop(session_id, None) != seen:
            self.put(session_id, glance)
        self.known[session_id] = seen
        if len(self.known) > KNOWN_MAX:
            del self.known[next(iter(self.known))]

    def put(self, session_id: SessionId, sight: Glance | SessionDeleted) -> None:
        for watcher in self.watchers:
            watcher.put(session_id, sight)


class Board:
    """Watchers by owner.  While there is none, nothing is looked at."""

    def __init__(self, sessions: SessionStore) -> None:
        self._sessions = sessions
        self._audiences: dict[str, _Audience] = {}
        self._hinted: set[SessionId] = set()
        self._wake = Wake()

    async def watch(self, owner: str) -> AsyncGenerator[Sight]:
        """Yield what becomes of an owner's sessions, for ever.  `Missed` comes first, and whenever something was missed."""
        watcher, audience = _Watcher(), self._audiences.setdefault(owner, _Audience())
        audience.watchers.add(watcher)
        try:
            while True:
                await watcher.news.wait()
                for sight in watcher.take():
                    yield sight
        finally:
            audience.watchers.discard(watcher)
            if not audience.watchers:
                self._audiences.pop(owner, None)

    def hint(self, session_id: SessionId) -> None:
        """Say that a session may have changed."""
        if self._audiences:
            self._hinted.add(session_id)
            self._wake.set()

    def gone(self, session_id: SessionId, owner: str) -> None:
        """Say that a session was deleted."""
        if audience := self._audiences.get(owner):
            audience.known.pop(session_id, None)
            audience.put(session_id, SessionDeleted(id=session_id))

    def miss(self) -> None:
        """Say that hints may have been lost."""
        for audience in self._audiences.values():
            for watcher in audience.watchers:
                watcher.miss()

    async def run(self) -> None:
        """Look at what was hinted at, and now and then at what was used last."""
        loop = asyncio.get_running_loop()
        looked_at = loop.time()
        while True:
            await self._wake.wait(LOOK_MS)
            try:
                if loop.time() - looked_at >= LOOK_MS / 1000:
                    looked_at = loop.time()
                    await self._hint_at_recent()
                await self._look()
            except Unavailable:
                # It is looked at when the store is back.
                self._wake.set()
            await asyncio.sleep(PAUSE_S)

    async def _hint_at_recent(self) -> None:
        for owner in list(self._audiences):
            self._hinted.update(each.id for each in await self._sessions.list(owner, limit=RECENT))

    async def _look(self) -> None:
        hinted, self._hinted = list(self._hinted), set()
        for begin in range(0, len(hinted), AT_ONCE):
            try:
                glances = await self._sessions.glances(hinted[begin : begin + AT_ONCE])
            except Unavailable:
                self._hinted.update(hinted[begin:])
                raise
            for glance in glances.values():
                if audience := self._audiences.get(glance.session.owner):
                    audience.show(glance)
