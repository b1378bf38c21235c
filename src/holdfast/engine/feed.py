"""The live feed: durable entries for the followers of a session, from any cursor, each exactly once and in order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Sequence

from holdfast.core.journal import Entry
from holdfast.ids import SessionId
from holdfast.store.journal import JournalStore

# What the journal returns at most; a shorter page is the last.
PAGE = 1_000
# A follower further behind than this reads the journal instead, so a slow one costs neither memory nor speed.
BACKLOG_MAX = 256
# A follower looks by itself this often, in case a hint from another node was lost; the longer it is quiet, the less often.
POLL_S = 1.0
POLL_MAX_S = 16.0

_Look = asyncio.Task[list[Entry]]


class _Follower:
    """One reader's mailbox: entries just published, or the news that it should look for itself."""

    __slots__ = ("_pause_s", "_quiet", "_timer", "backlog", "look", "news")

    def __init__(self) -> None:
        self.backlog: deque[Entry] = deque()
        self.look = True
        self.news = asyncio.Event()
        self._quiet = True
        self._pause_s = POLL_S
        self._timer = asyncio.get_running_loop().call_later(POLL_S, self._wonder)

    def publish(self, entries: Sequence[Entry]) -> None:
        if len(self.backlog) + len(entries) > BACKLOG_MAX:
            self.backlog.clear()
            self.look = True
        else:
            self.backlog.extend(entries)
        self._quiet = False
        self.news.set()

    def hint(self) -> None:
        self.look = True
        self._quiet = False
        self.news.set()

    def leave(self) -> None:
        self._timer.cancel()

    def _wonder(self) -> None:
        """Look unasked when there was nothing since the last time.  It costs no timer for every entry that comes."""
        if self._quiet:
            self.look = True
            self.news.set()
            self._pause_s = min(self._pause_s * 2, POLL_MAX_S)
        else:
            self._pause_s = POLL_S
        self._quiet = True
        self._timer = asyncio.get_running_loop().call_later(self._pause_s, self._wonder)


class Feed:
    """Followers by session."""

    def __init__(self, journal: JournalStore) -> None:
        self._journal = journal
        self._followers: dict[SessionId, set[_Follower]] = {}
        # What is being read, by session and cursor: followers at the same cursor share one look.
        # Forgotten as soon as there is news, which a look that has begun may not see.
        self._looks: dict[SessionId, dict[int, _Look]] = {}

    def publish(self, entries: Sequence[Entry]) -> None:
        """Show entries of one session that have just become durable."""
        if entries:
            self._looks.pop(entries[0].session_id, None)
            for follower in self._followers.get(entries[0].session_id, ()):
                follower.publish(entries)

    def hint(self, session_id: SessionId) -> None:
        """Say that a session may have new entries."""
        self._looks.pop(session_id, None)
        for follower in self._followers.get(session_id, ()):
            follower.hint()

    async def follow(self, session_id: SessionId, after: int = 0) -> AsyncGenerator[Entry]:
        """Yield every entry after a cursor, for ever; live and replayed ones are the same.  Raises `NotFound` once the
        session is deleted.
        """
        follower = _Follower()
        self._followers.setdefault(session_id, set()).add(follower)
        try:
            while True:
                for entry in await self._next(follower, session_id, after):
                    after = entry.seq
                    yield entry
        finally:
            follower.leave()
            followers = self._followers[session_id]
            followers.discard(follower)
            if not followers:
                del self._followers[session_id]

    async def _next(self, follower: _Follower, session_id: SessionId, after: int) -> list[Entry]:
        if len(follower.backlog) == 1 and follower.backlog[0].seq == after + 1:
            # So it is with almost every one.
            return [follower.backlog.popleft()]
        fresh = [entry for entry in follower.backlog if entry.seq > after]
        follower.backlog.clear()
        # Others write to the session too, and are not published here: where one of theirs is missing, look for it.
        gapless = [entry for seq, entry in enumerate(fresh, after + 1) if entry.seq == seq]
        follower.look = follower.look or len(gapless) < len(fresh)
        if gapless:
            return gapless
        if follower.look:
            follower.look = False
            entries = await self._look(session_id, after)
            # A full page means that there is more where it came from.
            follower.look = follower.look or len(entries) >= PAGE
            return entries
        follower.news.clear()
        await follower.news.wait()
        return []

    async def _look(self, session_id: SessionId, after: int) -> list[Entry]:
        looks = self._looks.setdefault(session_id, {})
        if after not in looks:
            looks[after] = asyncio.create_task(self._journal.news(session_id, after, PAGE))
            looks[after].add_done_callback(lambda look: self._looked(session_id, looks, after, look))
        # A follower that leaves does not end it for the others.
        return await asyncio.shield(looks[after])

    def _looked(self, session_id: SessionId, looks: dict[int, _Look], after: int, look: _Look) -> None:
        if not look.cancelled():
            # Every follower may have left.
            look.exception()
        del looks[after]
        if not looks and self._looks.get(session_id) is looks:
            del self._looks[session_id]
