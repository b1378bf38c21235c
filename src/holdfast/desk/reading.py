"""What can be read of a store, also while no gateway runs: sessions, turns and deliveries of one owner."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.channels.webhook.routes import Routes
from holdfast.clock import SystemClock
from holdfast.config import ChannelsConfig
from holdfast.core.intake import Image
from holdfast.core.journal import Entry, join
from holdfast.core.sessions import Glance, Session, SessionState
from holdfast.core.transcript import fold
from holdfast.core.turns import Turn
from holdfast.desk.views import HitView, JournalPage, Search, SessionView, Transcript, TurnView
from holdfast.engine.engine import Engine
from holdfast.errors import NotFound
from holdfast.ids import SessionId, TurnId
from holdfast.operations import pages
from holdfast.operations.approvals import Approvals
from holdfast.operations.caller import OPERATOR, Caller
from holdfast.operations.deliveries import Deliveries
from holdfast.operations.jobs import Jobs
from holdfast.operations.keys import Keys
from holdfast.operations.logins import Logins
from holdfast.operations.memories import Memories
from holdfast.operations.offline import absent, offline
from holdfast.operations.pages import Page
from holdfast.operations.processes import Processes
from holdfast.operations.webhooks import Webhooks
from holdfast.ports import ProcessControl
from holdfast.store.store import Store
from holdfast.targets import Targets

# Turns whose journal is given at once.
JOURNAL_MAX = 200
# Turns whose entries are read together.
READ_AT_ONCE = 500
# Folding more than this takes so long that others would notice.
FOLD_AT_ONCE = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreReading:
    """What one owner may read of a store.  What belongs to another is not there."""

    store: Store
    caller: Caller = OPERATOR
    channels: ChannelsConfig = field(default_factory=ChannelsConfig)
    home: Path = Path()

    @property
    def owner(self) -> str:
        return self.caller.owner

    @property
    def approvals(self) -> Approvals:
        return offline(Approvals(store=self.store, caller=self.caller), self.home)

    @property
    def processes(self) -> Processes:
        control: ProcessControl = absent(self.home)
        return offline(Processes(store=self.store, caller=self.caller, control=control), self.home)

    @property
    def jobs(self) -> Jobs:
        targets: Targets = absent(self.home)
        clock = SystemClock()
        return offline(Jobs(store=self.store, caller=self.caller, clock=clock, targets=targets), self.home)

    @property
    def deliveries(self) -> Deliveries:
        return offline(Deliveries(store=self.store, caller=self.caller, clock=SystemClock()), self.home)

    @property
    def memories(self) -> Memories:
        engine: Engine = absent(self.home)
        memories = Memories(
            store=self.store, caller=self.caller, clock=SystemClock(), engine=engine, bindings=None, running=False
        )
        return offline(memories, self.home)

    @property
    def keys(self) -> Keys:
        return offline(Keys(store=self.store, clock=SystemClock()), self.home)

    @property
    def webhooks(self) -> Webhooks:
        routes: Routes = absent(self.home)
        webhooks = Webhooks(
            store=self.store,
            configured=self.channels.webhook.routes,
            routes=routes,
            clock=SystemClock(),
            url="",
            signing_secret="",
        )
        return offline(webhooks, self.home)

    @property
    def logins(self) -> Logins:
        logins: Logins = absent(self.home)
        return logins

    async def sessions(
        self,
        *,
        state: SessionState | None = None,
        channel: str | None = None,
        archived: bool | None = None,
        pinned: bool | None = None,
        key: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page[SessionView]:
        before, limit = pages.position(cursor), pages.size(limit)
        if key is None:
            found = await self.store.sessions.list(
                self.owner, before=before, limit=limit, state=state, channel=channel, archived=archived, pinned=pinned
            )
        else:
            found = await self.store.sessions.of_key(self.owner, key, limit, SessionId(before[1]) if before else None, state)
        more = pages.after((found[-1].updated_at, found[-1].id)) if len(found) == limit else None
        glances = await self.store.sessions.glances([each.id for each in found])
        # One that is gone by now is left out.
        items = [await self._view(glances[each.id]) for each in found if each.id in glances]
        return Page(items=items, next_cursor=more)

    async def session(self, session_id: SessionId) -> SessionView:
        glances = await self.store.sessions.glances([session_id])
        if session_id not in glances or glances[session_id].session.owner != self.owner:
            raise NotFound(f"there is no session {session_id}")
        return await self._view(glances[session_id])

    async def transcript(
        self, session_id: SessionId, *, cursor: str | None = None, limit: int | None = None, newest: bool = False
    ) -> Transcript:
        position = pages.position(cursor)
        session = await self.session(session_id)
        size = session.turns if limit is None else pages.size(limit)
        first, last = _turns_of_page(session.turns, position[0] if position else None, size, newest=newest)
        entries = await self._entries(session_id, first, last, session.seq)
        items = fold(entries) if len(entries) <= FOLD_AT_ONCE else await asyncio.to_thread(fold, entries)
        more = first > 1 if newest else last < session.turns
        cursor = pages.after((first if newest else last, "")) if more else None
        return Transcript(session=session, items=items, seq=session.seq, next_cursor=cursor)

    async def journal(self, session_id: SessionId, *, cursor: str | None = None, limit: int = 30) -> JournalPage:
        position = pages.position(cursor)
        # Before the turns are counted: one that comes in between has entries after this one only.
        used, seq = await self.store.spending.of_session(session_id)
        session = await self.session(session_id)
        size = min(limit, JOURNAL_MAX)
        first, last = _turns_of_page(session.turns, position[0] if position else None, size, newest=True)
        entries = await self._entries(session_id, first, last, seq)
        joined = join(entries) if len(entries) <= FOLD_AT_ONCE else await asyncio.to_thread(join, entries)
        more = pages.after((first, "")) if first > 1 else None
        return JournalPage(session=session, entries=joined, seq=seq, used=used, next_cursor=more)

    async def turns(self, session_id: SessionId, *, cursor: str | None = None, limit: int = 100) -> Page[TurnView]:
        await self._owned(session_id)
        begin, limit = pages.position(cursor), pages.size(limit)
        found = await self.store.turns.list(session_id, after=begin[0] if begin else 0, limit=limit)
        more = pages.after((found[-1].ordinal, found[-1].id)) if len(found) == limit else None
        return Page(items=[await self._receipt(each) for each in found], next_cursor=more)

    async def turn(self, turn_id: TurnId) -> TurnView:
        return await self._receipt(await self._owned_turn(turn_id))

    async def image(self, turn_id: TurnId, place: int) -> Image:
        await self._owned_turn(turn_id)
        return await self.store.turns.image(turn_id, place)

    async def search(self, query: str, limit: int = 50) -> Search:
        found = await self.store.passages.find(self.owner, query, pages.size(limit))
        hits = found.hits
        glances = await self.store.sessions.glances(list({hit.session_id for hit in hits}))
        shown = [hit for hit in hits if hit.session_id in glances]
        # What takes this long to look through must not keep others waiting.
        views = await asyncio.to_thread(lambda: [HitView.of(hit, glances[hit.session_id], query) for hit in shown])
        return Search(items=views, indexing=found.is_indexing)

    async def _owned(self, session_id: SessionId, otherwise: str | None = None) -> Session:
        session = await self.store.sessions.get(session_id)
        if session.owner != self.owner:
            raise NotFound(otherwise or f"there is no session {session_id}")
        return session

    async def _owned_turn(self, turn_id: TurnId) -> Turn:
        turn = await self.store.turns.get(turn_id)
        await self._owned(turn.session_id, f"there is no turn {turn_id}")
        return turn

    async def _view(self, glance: Glance) -> SessionView:
        session = glance.session
        # Only strikes make an open session resume pending, so most need no second look.
        reason = await self.store.sessions.resume_cause(session.id) if session.strikes else None
        return SessionView.of(glance, reason)

    async def _receipt(self, turn: Turn) -> TurnView:
        host = await self.store.turns.get(turn.joined_to) if turn.joined_to else turn
        return TurnView.of(turn, host, await self.store.turns.delivered_at(host.id))

    async def _entries(self, session_id: SessionId, first: int, last: int, seq: int) -> list[Entry]:
        """Return the entries of turns, as far as they were there when the session was read."""
        entries: list[Entry] = []
        for begin in range(first, last + 1, READ_AT_ONCE):
            limit = min(READ_AT_ONCE, last + 1 - begin)
            entries += await self.store.journal.read_turns(session_id, after=begin - 1, limit=limit)
        return [entry for entry in entries if entry.seq <= seq]


def _turns_of_page(turns: int, cursor: int | None, size: int, *, newest: bool) -> tuple[int, int]:
    """Return the first and the last turn of a page: those behind the cursor, or those in front of it."""
    if newest:
        last = turns if cursor is None else min(cursor - 1, turns)
        return max(last - size + 1, 1), last
    first = (cursor or 0) + 1
    return first, min(first + size - 1, turns)
