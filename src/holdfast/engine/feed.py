"""The live feed: durable entries to whoever follows a session, from any cursor, each exactly once and in order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Sequence

from holdfast.core.journal import Entry
from holdfast.ids import SessionId
from holdfast.ports import Journal

# What the journal returns at most; a shorter page is the last.
PAGE = 1_000
# A follower further behind than this reads the journal instead, so a slow one costs neither memory nor speed.
BACKLOG_MAX = 256
# A follower looks by itself this often, in case a hint from another node was lost.
POLL_S = 1.0


class _Follower:
    """One reader's mailbox: entries just published, or the news that it should look for itself."""

    __slots__ = ("backlog", "look", "news")

    def __init__(self) -> None:
        self.backlog: deque[Entry] = deque()
        self.look = True
        self.news = asyncio.Event()

    def publish(self, entries: Sequence[Entry]) -> None:
        if len(self.backlog) + len(entries) > BACKLOG_MAX:
            self.backlog.clear()
            self.look = True
        else:
            self.backlog.extend(entries)
        self.news.set()

    def hint(self) -> None:
        self.look = True
        self.news.set()


class Feed:
    """Followers by session."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._followers: dict[SessionId, set[_Follower]] = {}

    def publish(self, entries: Sequence[Entry]) -> None:
        """Show entries of one session that have just become durable."""
        if entries:
            for follower in self._followers.get(entries[0].session_id, ()):
                follower.publish(entries)

    def hint(self, session_id: SessionId) -> None:
        """Say that a session may have new entries."""
        for follower in self._followers.get(session_id, ()):
            follower.hint()

    async def follow(self, session_id: SessionId, after: int = 0) -> AsyncGenerator[Entry]:
        """Yield every entry after a cursor, for ever; live and replayed ones are the same."""
        follower = _Follower()
        self._followers.setdefault(session_id, set()).add(follower)
        try:
            while True:
                for entry in await self._next(follower, session_id, after):
                    after = entry.seq
                    yield entry
        finally:
            followers = self._followers[session_id]
            followers.discard(follower)
            if not followers:
                del self._followers[session_id]

    async def _next(self, follower: _Follower, session_id: SessionId, after: int) -> list[Entry]:
        fresh = [entry for entry in follower.backlog if entry.seq > after]
        follower.backlog.clear()
        # Others write to the session too, and are not published here: where one of theirs is missing, look for it.
        gapless = [entry for seq, entry in enumerate(fresh, after + 1) if entry.seq == seq]
        follower.look = follower.look or len(gapless) < len(fresh)
        if gapless:
            return gapless
        if follower.look:
            follower.look = False
            entries = await self._journal.read(session_id, after, PAGE)
            # A full page means that there is more where it came from.
            follower.look = follower.look or len(entries) >= PAGE
            return entries
        follower.news.clear()
        try:
            async with asyncio.timeout(POLL_S):
                await follower.news.wait()
        except TimeoutError:
            follower.look = True
        return []
