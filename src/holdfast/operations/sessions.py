"""Sessions: conversations, what is said in them, and what can be done about one."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

from holdfast.core import images as pictures
from holdfast.core.intake import Busy, Image, Inbound, Receipt
from holdfast.core.journal import Entry, join
from holdfast.core.keys import ADMIN
from holdfast.core.sessions import Glance, Session, SessionDeleted, SessionsMissed, SessionState
from holdfast.core.transcript import fold
from holdfast.errors import IllegalMove, NotFound, Rejected, TooLarge
from holdfast.ids import SessionId, TurnId, new_id, new_session_id
from holdfast.operations import pages
from holdfast.operations.caller import Caller
from holdfast.operations.conversation import HitView, JournalPage, Search, SessionView, Transcript
from holdfast.operations.operation import BODY_MAX, Header, Query, Retry, operation
from holdfast.operations.ownership import own_session
from holdfast.operations.pages import SIZE_MAX, Cursor, Limit, Page

if TYPE_CHECKING:
    # A command that asks a running gateway does not import these.
    from holdfast.clock import Clock
    from holdfast.engine.engine import Engine
    from holdfast.store.store import Store

SESSION_PREFIX = "ses_"
NAME_MAX = 200
DAYS_MAX = 36_500
DAY_MS = 86_400_000
# Four thirds, because bytes are written as base64.
MESSAGE_MAX = BODY_MAX + pictures.IMAGES_MAX * (pictures.BYTES_MAX * 4 // 3 + 4)
# Turns whose journal is given at once.
JOURNAL_MAX = 200
TURNS_SHOWN = 30
# Turns whose entries are read together.
READ_AT_ONCE = 500
# A list of entries that is longer than this is folded in a thread, because it takes so long.
FOLD_AT_ONCE = 2_000
# A request to prune ends after this time, well before a client gives up.
PRUNING_MS = 2_000
OPERATOR_ENDED = "operator"
# With this message the agent puts a summary in the place of what it has read.
COMPRESS = "/compress"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """A session is gone, with all that belonged to it."""

    deleted: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneResult:
    """How many sessions were deleted by this request; with `more`, the same request goes on where it ended."""

    pruned: int
    more: bool = False


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
    # The model that answers from the next message on; empty for the configured one.
    model: str | None = None


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
class Message:
    """What a client sends to a session.  `busy` is what it wants if the session is at another message."""

    text: str
    busy: Busy | None = None
    images: tuple[Image, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork:
    """How much of a session a fork takes along: all up to and with a turn, or before one; without either, all of it."""

    through: TurnId | None = None
    before: TurnId | None = None


async def unrepaired(_session_id: SessionId) -> None:
    """Repair nothing: no gateway runs that could."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sessions:
    """The sessions of the caller."""

    store: Store
    caller: Caller
    clock: Clock
    engine: Engine
    # Looks once more for what a lost node may have left behind in a session.
    repair: Callable[[SessionId], Awaitable[object]] = unrepaired

    @operation("GET /api/sessions", "List sessions, last used first", offline=True)
    async def list(
        self,
        *,
        state: Annotated[SessionState | None, Query("Only those in this state.")] = None,
        channel: Annotated[str | None, Query("Only sessions of this channel.")] = None,
        archived: Annotated[bool | None, Query("Only those that are archived, or only those that are not.")] = None,
        pinned: Annotated[bool | None, Query("Only those that are pinned, or only those that are not.")] = None,
        key: Annotated[str | None, Query("Only sessions of this key.")] = None,
        cursor: Cursor = None,
        limit: Limit = 50,
    ) -> Page[SessionView]:
        """Return sessions, last used first; of one key, the newest first."""
        before, limit = pages.position(cursor), pages.size(limit)
        owner, sessions = self.caller.owner, self.store.sessions
        if key is None:
            found = await sessions.list(
                owner, before=before, limit=limit, state=state, channel=channel, archived=archived, pinned=pinned
            )
        else:
            found = await sessions.of_key(owner, key, limit, SessionId(before[1]) if before else None, state)
        more = pages.after((found[-1].updated_at, found[-1].id)) if len(found) == limit else None
        glances = await sessions.glances([each.id for each in found])
        # One that is gone by now is left out.
        items = [await self._view(glances[each.id]) for each in found if each.id in glances]
        return Page(items=items, next_cursor=more)

    @operation("POST /api/sessions", "Open a session", status=201, retry=Retry.UNHEARD)
    async def open(self, opening: Opening) -> SessionView:
        """Return the open session of a key, made if need be.  Raises `Rejected` for a key that looks like an id."""
        for text in (opening.key or "", opening.channel, opening.title or ""):
            _check_name(text)
        if looks_like_id(opening.key or ""):
            raise Rejected(f"a key cannot begin with {SESSION_PREFIX!r}, because the ids of sessions do")
        now = self.clock.now_ms()
        await self._leave(opening.previous_session_id, now)
        channel = opening.channel or Opening().channel
        key = opening.key or new_id(channel, now)
        session = await self.store.sessions.open(self.caller.owner, key, channel, new_session_id(now), now)
        if opening.title:
            return await self.change(session.id, Change(title=opening.title))
        return await self.get(session.id)

    @operation("GET /api/sessions/{id}", "Show a session", offline=True)
    async def get(self, session_id: SessionId) -> SessionView:
        glances = await self.store.sessions.glances([session_id])
        if session_id not in glances or glances[session_id].session.owner != self.caller.owner:
            raise NotFound(f"there is no session {session_id}")
        return await self._view(glances[session_id])

    @operation("PATCH /api/sessions/{id}", "Change a session")
    async def change(self, session_id: SessionId, change: Change) -> SessionView:
        _check_name(change.title or "")
        await self._owned(session_id)
        model = change.model
        if model:
            model = await self.engine.models.find(model, is_operator=self.caller.is_operator)
            # The configured one is kept as none, so that the conversation goes along when the configuration changes.
            model = "" if model == self.engine.models.configured else model
        await self.store.sessions.change(
            session_id, title=change.title, pinned=change.pinned, archived=change.archived, model=model
        )
        return await self.get(session_id)

    @operation("DELETE /api/sessions/{id}", "Delete a session and all of it")
    async def delete(self, session_id: SessionId) -> Deleted:
        """Delete a session with everything in it; what still runs is cancelled."""
        await self._owned(session_id)
        await self.store.sessions.delete(session_id, self.clock.now_ms())
        return Deleted()

    @operation(
        "GET /api/sessions/{id}/messages",
        "Read what was said; with a limit, by pages of turns",
        long_list="items",
        offline=True,
    )
    async def transcript(
        self,
        session_id: SessionId,
        *,
        order: Annotated[Order, Query("The oldest first, or the newest.")] = Order.ASC,
        cursor: Cursor = None,
        limit: Annotated[int | None, Query("How many at most.", least=1, most=SIZE_MAX)] = None,
    ) -> Transcript:
        """Return a page of `limit` turns, or all of them; the newest page first, or the oldest."""
        await self._owned(session_id)
        await self.repair(session_id)
        position, newest = pages.position(cursor), order is Order.DESC
        session = await self.get(session_id)
        size = session.turns if limit is None else pages.size(limit)
        first, last = _turns_of_page(session.turns, position[0] if position else None, size, newest=newest)
        entries = await self._entries(session_id, first, last, session.seq)
        items = fold(entries) if len(entries) <= FOLD_AT_ONCE else await asyncio.to_thread(fold, entries)
        more = first > 1 if newest else last < session.turns
        cursor = pages.after((first if newest else last, "")) if more else None
        return Transcript(session=session, items=items, seq=session.seq, next_cursor=cursor)

    @operation(
        "GET /api/sessions/{id}/journal", "Read what happened, by pages of turns, the newest first", long_list="entries"
    )
    async def journal(
        self,
        session_id: SessionId,
        *,
        turns: Annotated[int, Query("How many turns at most.", least=1, most=JOURNAL_MAX)] = TURNS_SHOWN,
        cursor: Cursor = None,
    ) -> JournalPage:
        """Return what happened in the newest turns of a session, or in those before a cursor."""
        await self._owned(session_id)
        await self.repair(session_id)
        position = pages.position(cursor)
        # Before the turns are counted: one that comes in between has entries after this one only.
        used, seq = await self.store.spending.of_session(session_id)
        session = await self.get(session_id)
        size = min(turns, JOURNAL_MAX)
        first, last = _turns_of_page(session.turns, position[0] if position else None, size, newest=True)
        entries = await self._entries(session_id, first, last, seq)
        joined = join(entries) if len(entries) <= FOLD_AT_ONCE else await asyncio.to_thread(join, entries)
        more = pages.after((first, "")) if first > 1 else None
        return JournalPage(session=session, entries=joined, seq=seq, used=used, next_cursor=more)

    @operation(
        "POST /api/sessions/{id}/messages",
        "Send a message; it is durable when this answers",
        status=202,
        body_max=MESSAGE_MAX,
        retry=Retry.ALWAYS,
    )
    async def send(
        self,
        session_id: SessionId,
        message: Message,
        *,
        key: Annotated[
            str | None, Header("Idempotency-Key", "The same key is the same message, however often it is sent.")
        ] = None,
    ) -> Receipt:
        """Return once the message is durable.  With the same `key` it is the same message, however often it is sent."""
        if len(message.text) > BODY_MAX:
            raise TooLarge(f"the text is longer than {BODY_MAX} characters")
        if not message.text.strip():
            raise Rejected("the message is empty")
        pictures.check(message.images)
        session = await self._owned(session_id)
        if session.one_shot and session.state is not SessionState.OPEN:
            raise IllegalMove(session.id, session.state, "take another message")
        owner = self.caller.owner
        return await self.engine.inbox.accept(
            Inbound(
                conversation=session.key,
                text=message.text,
                channel=session.channel,
                owner=owner,
                source=session.source,
                # The same key of another owner, or for another session, is another message.
                dedupe_key=f"message:{owner}:{session_id}:{key}" if key else None,
                sent_as=key,
                busy=message.busy,
                images=message.images,
                names_session=True,
                is_operator=self.caller.is_operator,
            )
        )

    @operation("POST /api/sessions/{id}/end", "End a session")
    async def end(self, session_id: SessionId) -> SessionView:
        await self._owned(session_id)
        await self.store.settlement.end_session(session_id, OPERATOR_ENDED, self.clock.now_ms())
        return await self.get(session_id)

    @operation("POST /api/sessions/{id}/suspend", "Stop what runs, and begin anew with the next message")
    async def suspend(self, session_id: SessionId) -> SessionView:
        await self._owned(session_id)
        await self.store.settlement.suspend_session(session_id, self.clock.now_ms())
        return await self.get(session_id)

    @operation("POST /api/sessions/{id}/fork", "Copy a session, up to and with a turn, or before one", status=201)
    async def fork(self, session_id: SessionId, fork: Fork) -> SessionView:
        """Copy a conversation, up to and with one of its turns or only before one, into a new one."""
        if fork.through and fork.before:
            raise Rejected("a fork ends with a turn or before one: name it as through or as before, and not both")
        now = self.clock.now_ms()
        origin = await self._owned(session_id)
        copy = Session(
            id=new_session_id(now),
            key=new_id("fork", now),
            channel=origin.channel,
            owner=self.caller.owner,
            one_shot=False,
            created_at=now,
            updated_at=now,
            source=origin.source,
            title=origin.title,
        )
        await self.store.sessions.fork(session_id, copy, fork.through, fork.before)
        return await self.get(copy.id)

    @operation(
        "POST /api/sessions/{id}/compact", "Let a summary stand for the older part in what the model reads", status=202
    )
    async def compact(self, session_id: SessionId) -> Receipt:
        """Let the agent put a summary in the place of what it has read so far, as a turn of its own."""
        session = await self._owned(session_id)
        if session.state is not SessionState.OPEN:
            # Its next message would begin another session, with nothing to summarise.
            raise IllegalMove(session.id, session.state, "be compacted")
        return await self.send(session_id, Message(text=COMPRESS, busy=Busy.QUEUE))

    @operation("GET /api/search", "Find messages, answers and titles", offline=True)
    async def search(
        self, query: Annotated[str | None, Query("Words to look for.", name="q")] = None, *, limit: Limit = 50
    ) -> Search:
        query = query or ""
        found = await self.store.passages.find(self.caller.owner, query, pages.size(limit))
        hits = found.hits
        glances = await self.store.sessions.glances(list({hit.session_id for hit in hits}))
        shown = [hit for hit in hits if hit.session_id in glances]
        # In a thread, because it may take long.
        views = await asyncio.to_thread(lambda: [HitView.of(hit, glances[hit.session_id], query) for hit in shown])
        return Search(items=views, indexing=found.is_indexing)

    @operation(
        "POST /api/prune",
        "Delete ended sessions of a channel, for a second or two; with `more` in the answer, ask again",
        scope=ADMIN,
        retry=Retry.ALWAYS,
    )
    async def prune(self, pruning: Pruning) -> PruneResult:
        """Delete ended sessions for a second or two; the caller asks again as long as there are more."""
        until_ms = self.clock.monotonic_ms() + PRUNING_MS
        before, pruned = self.clock.now_ms() - int(pruning.older_than_days * DAY_MS), 0
        async with contextlib.aclosing(self.store.sessions.pruning(pruning.channel, before)) as steps:
            async for gone in steps:
                pruned += gone
                if self.clock.monotonic_ms() >= until_ms:
                    return PruneResult(pruned=pruned, more=True)
        while await self.store.give_back():
            if self.clock.monotonic_ms() >= until_ms:
                return PruneResult(pruned=pruned, more=True)
        return PruneResult(pruned=pruned)

    async def follow(self, session_id: SessionId, after: int = 0) -> AsyncGenerator[Entry]:
        """Yield every entry after a cursor, without an end."""
        await self._owned(session_id)
        async with contextlib.aclosing(self.engine.feed.follow(session_id, after)) as entries:
            async for entry in entries:
                yield entry

    async def watch(self) -> AsyncGenerator[SessionView | SessionDeleted | SessionsMissed]:
        """Yield every session that is opened or changed, and those that are deleted, without an end.

        `SessionsMissed` comes first, and whenever something may have changed unseen: the client lists sessions then.
        """
        async with contextlib.aclosing(self.engine.board.watch(self.caller.owner)) as sights:
            async for sight in sights:
                yield await self._view(sight) if isinstance(sight, Glance) else sight

    async def _leave(self, session_id: SessionId | None, now_ms: int) -> None:
        """Close off what the session that is left owes to memory, if it is a session of the caller."""
        with contextlib.suppress(NotFound):
            if session_id:
                await self._owned(session_id)
                await self.store.segments.seal(session_id, now_ms)

    async def _owned(self, session_id: SessionId) -> Session:
        return await own_session(self.store, self.caller, session_id)

    async def _view(self, glance: Glance) -> SessionView:
        session = glance.session
        # Only strikes make an open session resume pending, so most need no second look.
        reason = await self.store.sessions.resume_cause(session.id) if session.strikes else None
        return SessionView.of(glance, reason)

    async def _entries(self, session_id: SessionId, first: int, last: int, seq: int) -> Sequence[Entry]:
        """Return the entries of turns, as far as they were there when the session was read."""
        entries: list[Entry] = []
        for begin in range(first, last + 1, READ_AT_ONCE):
            limit = min(READ_AT_ONCE, last + 1 - begin)
            entries += await self.store.journal.read_turns(session_id, after=begin - 1, limit=limit)
        return [entry for entry in entries if entry.seq <= seq]


def looks_like_id(name: str) -> bool:
    """Return whether a name is meant as the id of a session, which no key may look like."""
    return name.startswith(SESSION_PREFIX)


def _check_name(name: str) -> None:
    if not name.isprintable() or len(name) > NAME_MAX:
        raise Rejected(f"a name has printable characters only, {NAME_MAX} at most")


def _turns_of_page(turns: int, cursor: int | None, size: int, *, newest: bool) -> tuple[int, int]:
    """Return the first and the last turn of a page: those behind the cursor, or those in front of it."""
    if newest:
        last = turns if cursor is None else min(cursor - 1, turns)
        return max(last - size + 1, 1), last
    first = (cursor or 0) + 1
    return first, min(first + size - 1, turns)
