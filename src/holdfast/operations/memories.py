"""Memory: what is remembered about one owner, and which parts of conversations are still to be handed to a provider."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, TypeVar

from holdfast.clock import Clock
from holdfast.core import document as documents
from holdfast.core.facts import FACTS_MAX, Memory, MemoryChanges, MemoryKind, MemoryOrigin, Recollection, objection
from holdfast.core.keys import ADMIN, LOCAL
from holdfast.core.legible import legible
from holdfast.core.recall import RECALLED_MAX, bounded
from holdfast.core.redaction import Redaction
from holdfast.core.segments import DIRTY, Debt, Segment, SegmentState, debt, failure
from holdfast.errors import NotFound, Rejected, TooManyCommits
from holdfast.foreign_call import foreign_call
from holdfast.ids import MemoryId, SegmentId, SessionId, new_memory_id
from holdfast.operations import pages
from holdfast.operations.caller import Caller
from holdfast.operations.forgetting import Eraser, Forgetting, Forgotten, elsewhere
from holdfast.operations.operation import Query, operation
from holdfast.operations.ownership import own_session
from holdfast.operations.pages import Cursor, Limit, OfSession, Page, Removed
from holdfast.operations.projection import project
from holdfast.operations.replay import Replay, Replayed, Replaying, chosen
from holdfast.operations.segments import SegmentView, Viewer

if TYPE_CHECKING:
    # A command that asks a running gateway does not import these.
    from holdfast.engine.engine import Engine
    from holdfast.ports import Bindings, MemoryProvider
    from holdfast.store.store import Store

T = TypeVar("T")

# How long a provider may take while a client waits.
PROVIDER_TIMEOUT_S = 5
# How long a client waits where a provider, and the model behind it, may need minutes.
CLIENT_TIMEOUT_S = 900
# The sessions that a status shows.
OWING_SHOWN = 50
# The facts and the profile of an owner, as they were and as they are to be, with every character escaped.
DOCUMENTS_MAX = 32 * 1024 * 1024
# Sessions that one tenant commits at once.  Each is a request to a provider, and to the model behind it.
COMMITS_MAX = 8
# More than there can be: the facts, and a profile.
_EVERYTHING = FACTS_MAX + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What a client wants to be remembered."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryView(Memory):
    """Something that is remembered.  `origin` is missing where a person added it, or where its turn was deleted."""

    origin: MemoryOrigin | None = None

    @classmethod
    def of(cls, memory: Memory, origin: MemoryOrigin | None) -> MemoryView:
        return project(cls, memory, origin=origin)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What is remembered, as Markdown that can be edited."""

    markdown: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A document of what is remembered, as it was read and as it is to be.  Only the difference is applied."""

    base: str
    markdown: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    """What an edit has changed, and what is remembered after it."""

    added: int
    changed: int
    removed: int
    known: int
    left_out: int
    markdown: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallResult:
    """What a provider elsewhere recalls; with a `problem` it could not be asked."""

    provider: str = ""
    items: Sequence[Recollection] = ()
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryProviderView:
    """The provider that the turns which complete now are owed to, and how it is."""

    owner: str
    healthy: bool
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts(Debt):
    """What memory has yet to be given, what it was given, and what is remembered."""

    committed: int = 0
    waived: int = 0
    facts: int = 0
    profile: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Owing:
    """A session that owes something: the first segment that must be paid, and how many segments there are with it."""

    session_id: SessionId
    key: str
    title: str | None
    segments: int
    next: SegmentView


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryStatus:
    """The state of memory.  Of the sessions that owe, the first are shown, those that have owed for longest first.

    Without a `provider`, either memory is off or no gateway runs.  In the second case, what is parked counts as owed.
    `everyone` is the debt of all owners together, which only the operator is shown.
    """

    provider: MemoryProviderView | None
    counts: Counts
    everyone: Debt | None = None
    owing: Sequence[Owing] = ()
    owing_sessions: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Payment:
    """A session whose debt is to be paid.  Without `wait`, the answer is immediate if another commit is paying it."""

    session_id: str | None = None
    wait: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """Whether something was owed and is paid now."""

    committed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Memory as Prometheus reads it, of all owners.  `unpaid` is by binding."""

    debt: Debt
    settled: Mapping[SegmentState, int]
    unpaid: Mapping[str, int]
    facts: int


class Commits:
    """How many commits each owner has under way."""

    def __init__(self) -> None:
        self._under_way: Counter[str] = Counter()

    @contextmanager
    def one_more(self, owner: str) -> Generator[None]:
        """Count one while the context lasts.  Raises `TooManyCommits` for a tenant; the operator has no limit."""
        if self._under_way[owner] >= COMMITS_MAX and owner != LOCAL:
            raise TooManyCommits(f"{COMMITS_MAX} commits are under way already")
        self._under_way[owner] += 1
        try:
            yield
        finally:
            self._under_way[owner] -= 1
            if not self._under_way[owner]:
                del self._under_way[owner]


@dataclass(frozen=True, slots=True, kw_only=True)
class Memories:
    """The memory of the caller.  `bindings` are the providers; without them memory is off.

    `running` is false where only the store is read.  Then it is unknown which providers could be reached.
    """

    store: Store
    caller: Caller
    clock: Clock
    engine: Engine
    bindings: Bindings | None
    commits: Commits = field(default_factory=Commits)
    redaction: Redaction = field(default_factory=Redaction)
    provider_timeout_s: float = PROVIDER_TIMEOUT_S
    running: bool = True

    @operation("GET /api/memory", "List what is remembered, or find some of it", offline=True)
    async def list(
        self,
        *,
        query: Annotated[str | None, Query("Words to look for.", name="q")] = None,
        cursor: Cursor = None,
        limit: Limit = 200,
    ) -> Page[MemoryView]:
        """Return what is remembered, the oldest first; with a query, what has all of its words."""
        limit = pages.size(limit)
        if query:
            return Page(items=await self._with_origins(await self.store.memories.search(self.caller.owner, query, limit)))
        found = await self.store.memories.list(self.caller.owner, limit, pages.position(cursor))
        more = pages.after((found[-1].created_at, found[-1].id)) if len(found) == limit else None
        return Page(items=await self._with_origins(found), next_cursor=more)

    @operation("POST /api/memory", "Remember something", status=201)
    async def add(self, fact: Remembered) -> MemoryView:
        """Remember a fact.  Raises `Rejected` for an empty or unusable text, and for a secret."""
        text, now = self._fact(fact.text), self.clock.now_ms()
        memory = Memory(id=new_memory_id(now), owner=self.caller.owner, text=text, created_at=now, updated_at=now)
        return await self._with_origin(await self.store.memories.add(memory))

    @operation(
        "POST /api/memory/forget",
        "Forget memories by id, all that came from a session, or everything",
        timeout_s=CLIENT_TIMEOUT_S,
    )
    async def forget(self, forgetting: Forgetting) -> Forgotten:
        """Forget here and, as far as they can be told to, at the other places that keep it."""
        eraser = Eraser(
            store=self.store,
            person=self.caller.owner,
            bindings=self.bindings,
            clock=self.clock,
            ask=self._within,
            told=self._told,
            named=self._viewer().named,
        )
        if forgetting.session_id:
            await own_session(self.store, self.caller, forgetting.session_id)
            return await eraser.session(forgetting.session_id)
        return await (eraser.everything(await self._all()) if forgetting.everything else eraser.memories(forgetting.ids))

    @operation("GET /api/memory/recall", "Ask a memory provider elsewhere what it recalls", offline=True)
    async def recall(
        self, query: Annotated[str, Query("Words to look for.", name="q")] = "", limit: Limit = 20
    ) -> RecallResult:
        """Return what a provider elsewhere recalls for a query; nothing where there is no such provider."""
        provider = elsewhere(self.bindings)
        if provider is None or not query.strip():
            return RecallResult()
        name = self._viewer().named(provider.owner)
        # A provider recalls for a conversation, and the last one is the closest to what is looked for.
        latest = await self.store.sessions.list(self.caller.owner, limit=1)
        if not latest:
            return RecallResult(provider=name)
        try:
            most = min(pages.size(limit), RECALLED_MAX)
            found = bounded(await self._within(provider.recall(latest[0], query, most)), most)
        except Exception as error:  # The edge to a provider: what is kept here was found all the same.
            return RecallResult(provider=name, problem=self._told(error))
        return RecallResult(provider=name, items=[replace(each, text=self.redaction.text(each.text)) for each in found])

    @operation("GET /api/memory/document", "Read what is remembered as Markdown", offline=True)
    async def document(self) -> Document:
        return Document(markdown=documents.as_markdown(await self._all()))

    @operation("PUT /api/memory/document", "Change what is remembered as Markdown was edited", body_max=DOCUMENTS_MAX)
    async def edit(self, edit: Edit) -> Edited:
        """Apply an edited document.  Raises `Rejected`, and then nothing has changed."""
        now = self.clock.now_ms()
        # A document may be long, and other requests should not wait while it is parsed.
        asked = await asyncio.to_thread(self._asked, edit, now)
        changed = await self.store.memories.change(self.caller.owner, asked, now)
        return Edited(
            added=changed.added,
            changed=changed.replaced,
            removed=changed.removed,
            known=changed.known,
            left_out=changed.left_out,
            markdown=(await self.document()).markdown,
        )

    @operation("GET /api/memory/status", "Show how memory stands, and what is owed to it", offline=True)
    async def status(self) -> MemoryStatus:
        current = self.bindings.current if self.bindings else None
        longest, sessions = await self.store.segments.longest_owing(self.caller.owner, OWING_SHOWN)
        owing = [await self._owing(session_id, segments) for session_id, segments in longest]
        return MemoryStatus(
            provider=await self._health(current) if current else None,
            counts=await self._counts(),
            everyone=await self.debt() if self.caller.owner == LOCAL else None,
            owing=[each for each in owing if each],
            owing_sessions=sessions,
        )

    @operation("GET /api/memory/segments", "List the receipts of memory, the newest first", offline=True)
    async def segments(
        self,
        *,
        session_id: OfSession = None,
        state: Annotated[SegmentState | None, Query("Only those in this state.")] = None,
        unpaid: Annotated[bool, Query("Only those that are still to be paid.")] = False,
        cursor: Cursor = None,
        limit: Limit = 50,
    ) -> Page[SegmentView]:
        before, limit = pages.position(cursor), pages.size(limit)
        if session_id is not None:
            await own_session(self.store, self.caller, session_id)
        states = [each for each in SegmentState if (each is state or state is None) and (each in DIRTY or not unpaid)]
        if not states:
            return Page(items=[])
        found = await self.store.segments.list(
            self.caller.owner, session_id=session_id, states=states, before=before, limit=limit
        )
        more = pages.after((found[-1].created_at, found[-1].id)) if len(found) == limit else None
        return Page(items=await self._views(found), next_cursor=more)

    @operation("POST /api/memory/commit", "Commit what a session has to remember, now", timeout_s=CLIENT_TIMEOUT_S)
    async def commit(self, payment: Payment) -> Committed:
        """Pay what a session owes.  An empty id owes nothing.  Raises `NotFound` for a session that is not there."""
        session_id = SessionId(payment.session_id or "")
        if not session_id.isprintable():
            raise Rejected("an id has printable characters only")
        with self.commits.one_more(self.caller.owner):
            if not session_id:
                return Committed(committed=False)
            await own_session(self.store, self.caller, session_id)
            return Committed(committed=await self.engine.commit(session_id, wait=payment.wait))

    @operation("POST /api/memory/segments/{id}/waive", "Give up that something is remembered", scope=ADMIN)
    async def waive(self, segment_id: SegmentId) -> SegmentView:
        """Give a debt up.  Raises `NotFound`, and `IllegalMove` where it is not owed or is just being paid."""
        segment = await self.store.segments.get(segment_id)
        # The operator decides which providers debts can be paid to, and so may waive the debts of all owners.
        if self.caller.owner != LOCAL:
            await own_session(self.store, self.caller, segment.session_id, f"there is no memory segment {segment_id}")
        (view,) = await self._views([await self.store.segments.waive(segment_id, self.clock.now_ms())])
        return view

    @operation(
        "POST /api/memory/replay",
        "Give some of what was committed once to another provider",
        scope=ADMIN,
        timeout_s=CLIENT_TIMEOUT_S,
    )
    async def replay(self, replaying: Replaying) -> Replayed:
        """Replay some segments.  Called until nothing is left, it replays all of them."""
        provider = chosen(self.bindings, replaying.provider, replaying.url)
        replay = Replay(self.store, replaying.person or self.caller.owner, provider, self.clock, self.redaction)
        return await replay.go_on(replaying.limit, replaying.skip)

    @operation("GET /api/memory/{id}", "Show one thing that is remembered, and where it was said", offline=True)
    async def get(self, memory_id: MemoryId) -> MemoryView:
        found = [each for each in await self._all() if each.id == memory_id]
        if not found:
            raise NotFound(f"there is no memory {memory_id}")
        return await self._with_origin(found[0])

    @operation("PATCH /api/memory/{id}", "Remember something else instead")
    async def change(self, memory_id: MemoryId, fact: Remembered) -> MemoryView:
        owner = self.caller.owner
        kind = next((each.kind for each in await self._all() if each.id == memory_id), MemoryKind.FACT)
        text = self._fact(fact.text, kind)
        return await self._with_origin(await self.store.memories.replace(owner, memory_id, text, self.clock.now_ms()))

    @operation("DELETE /api/memory/{id}", "Forget something")
    async def remove(self, memory_id: MemoryId) -> Removed:
        forgotten = await self.forget(Forgetting(ids=(memory_id,)))
        if forgotten.missing:
            raise NotFound("; ".join((f"there is no memory {memory_id}", *forgotten.problems)))
        return Removed()

    async def debt(self, owner: str | None = None) -> Debt:
        """Count what an owner, or all of them, have yet to pay."""
        return debt(await self.store.segments.unpaid(owner), self._unreachable)

    async def tally(self) -> Tally:
        unpaid, by_binding = await self.store.segments.unpaid(), Counter[str]()
        for each in unpaid:
            by_binding[each.owner] += each.count
        return Tally(
            debt=debt(unpaid, self._unreachable),
            settled=await self.store.segments.settled(),
            unpaid=by_binding,
            facts=(await self.store.memories.tally())[MemoryKind.FACT],
        )

    async def _counts(self) -> Counts:
        owner = self.caller.owner
        owed = await self.debt(owner)
        settled, remembered = await self.store.segments.settled(owner), await self.store.memories.tally(owner)
        return Counts(
            **asdict(owed),
            committed=settled[SegmentState.COMMITTED],
            waived=settled[SegmentState.WAIVED],
            facts=remembered[MemoryKind.FACT],
            profile=remembered[MemoryKind.PROFILE] > 0,
        )

    async def _owing(self, session_id: SessionId, segments: int) -> Owing | None:
        owed = await self.store.segments.closed_off(session_id)
        if not owed:
            # It was paid, or deleted, since they were counted.
            return None
        (view,) = await self._views(owed[:1])
        session = await self.store.sessions.get(session_id)
        return Owing(session_id=session.id, key=session.key, title=session.title, segments=segments, next=view)

    async def _health(self, provider: MemoryProvider) -> MemoryProviderView:
        name = self._viewer().named(provider.owner)
        try:
            detail = await self._within(provider.check())
        except Exception as error:  # The edge to a provider: any error of it means that it does not work.
            return MemoryProviderView(owner=name, healthy=False, detail=self._told(error))
        return MemoryProviderView(
            owner=name, healthy=True, detail=self.redaction.text(detail) if self.caller.owner == LOCAL else ""
        )

    async def _views(self, segments: Sequence[Segment]) -> Sequence[SegmentView]:
        turns, viewer = await self.store.segments.turns_of([each.id for each in segments]), self._viewer()
        return [viewer.view(each, turns.get(each.id, ())) for each in segments]

    async def _with_origin(self, memory: Memory) -> MemoryView:
        (view,) = await self._with_origins([memory])
        return view

    async def _with_origins(self, memories: Sequence[Memory]) -> Sequence[MemoryView]:
        origins = await self.store.memories.origins([each.turn_id for each in memories if each.turn_id])
        return [MemoryView.of(each, origins.get(each.turn_id) if each.turn_id else None) for each in memories]

    async def _all(self) -> Sequence[Memory]:
        return await self.store.memories.list(self.caller.owner, _EVERYTHING)

    def _viewer(self) -> Viewer:
        return Viewer(operator=self.caller.owner == LOCAL, parked=self._unreachable)

    def _unreachable(self, binding: str) -> bool:
        return self.running and (self.bindings is None or self.bindings.of(binding) is None)

    def _asked(self, edit: Edit, now_ms: int) -> MemoryChanges:
        text, new_id = self.redaction.text(edit.markdown), partial(new_memory_id, now_ms)
        return documents.changes(edit.base, text, owner=self.caller.owner, now_ms=now_ms, new_id=new_id)

    async def _within(self, asked: Awaitable[T]) -> T:
        return await foreign_call(asked, self.provider_timeout_s, "ask memory")

    def _told(self, error: Exception) -> str:
        if self.caller.owner != LOCAL:
            # The error may name machines that only the operator may know.
            return "the memory provider does not answer as it should"
        if isinstance(error, TimeoutError):
            return f"the provider did not answer within {self.provider_timeout_s} seconds"
        return failure(error, self.redaction)

    def _fact(self, text: str, kind: MemoryKind = MemoryKind.FACT) -> str:
        text = legible(self.redaction.text(text))
        if reason := objection(text, kind) if text else "there is nothing to remember; give it some text":
            raise Rejected(reason)
        return text
