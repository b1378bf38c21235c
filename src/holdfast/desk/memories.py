"""What is remembered about one owner, and what is owed to memory."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import TypeVar

from holdfast.clock import Clock
from holdfast.core import document as documents
from holdfast.core.facts import FACTS_MAX, Memory, MemoryChanges, MemoryKind, objection
from holdfast.core.keys import LOCAL
from holdfast.core.legible import legible
from holdfast.core.recall import RECALLED_MAX, bounded
from holdfast.core.redaction import Redaction
from holdfast.core.segments import DIRTY, Debt, Segment, SegmentState, debt, failure
from holdfast.core.sessions import Session
from holdfast.desk.debts import (
    Counts,
    Document,
    Edited,
    Eye,
    Forgotten,
    MemoryStatus,
    Owing,
    ProviderView,
    Recalled,
    Replayed,
    SegmentView,
    Tally,
)
from holdfast.desk.forgetting import Eraser, elsewhere
from holdfast.desk.plans import Edit, Forgetting, Replaying
from holdfast.desk.replay import Replay, chosen
from holdfast.desk.views import MemoryView
from holdfast.engine.engine import Engine
from holdfast.errands import errand
from holdfast.errors import NotFound, Rejected
from holdfast.ids import MemoryId, SegmentId, SessionId, new_memory_id
from holdfast.operations import pages
from holdfast.operations.pages import Page
from holdfast.ports import MemoryProvider
from holdfast.store.store import Store

T = TypeVar("T")

# How long somebody who looks waits for a provider.
PATIENCE_S = 5
# Sessions that a status shows.
OWING_SHOWN = 50
# More than anybody remembers: the facts that there may be, and a profile.
_EVERYTHING = FACTS_MAX + 1


@dataclass(frozen=True, slots=True)
class StoreMemories:
    """What the store knows of it.  Who could be paid, only a gateway knows."""

    store: Store
    owner: str

    async def list(self, *, cursor: str | None = None, limit: int = 200) -> Page[MemoryView]:
        after, limit = pages.position(cursor), pages.size(limit)
        found = await self.store.memories.list(self.owner, limit, after)
        more = pages.after((found[-1].created_at, found[-1].id)) if len(found) == limit else None
        return Page(items=await self._with_origins(found), next_cursor=more)

    async def get(self, memory_id: MemoryId) -> MemoryView:
        found = [each for each in await self._all() if each.id == memory_id]
        if not found:
            raise NotFound(f"there is no memory {memory_id}")
        return await self._with_origin(found[0])

    async def search(self, query: str, limit: int = 20) -> Page[MemoryView]:
        found = await self.store.memories.search(self.owner, query, pages.size(limit))
        return Page(items=await self._with_origins(found))

    async def recall(self, query: str, limit: int = 20) -> Recalled:  # noqa: ARG002 - Nobody runs who could be asked.
        return Recalled()

    async def document(self) -> Document:
        return Document(markdown=documents.as_markdown(await self._all()))

    async def segments(
        self,
        *,
        session_id: SessionId | None = None,
        state: SegmentState | None = None,
        unpaid: bool = False,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page[SegmentView]:
        before, limit = pages.position(cursor), pages.size(limit)
        if session_id is not None:
            await self._owned(session_id)
        states = [each for each in SegmentState if (each is state or state is None) and (each in DIRTY or not unpaid)]
        if not states:
            return Page(items=[])
        found = await self._ledger(states, session_id, before, limit)
        more = pages.after((found[-1].created_at, found[-1].id)) if len(found) == limit else None
        return Page(items=await self._views(found), next_cursor=more)

    async def status(self) -> MemoryStatus:
        return await self._status(None)

    async def _status(self, provider: ProviderView | None) -> MemoryStatus:
        longest, sessions = await self.store.segments.longest_owing(self.owner, OWING_SHOWN)
        owing = [await self._owing(session_id, segments) for session_id, segments in longest]
        return MemoryStatus(
            provider=provider,
            counts=await self._counts(),
            everyone=await self.debt() if self.owner == LOCAL else None,
            owing=[each for each in owing if each],
            owing_sessions=sessions,
        )

    async def debt(self, owner: str | None = None) -> Debt:
        """Count what a person, or everybody, has yet to pay."""
        return debt(await self.store.segments.unpaid(owner), self._unreachable)

    async def _counts(self) -> Counts:
        owed = await self.debt(self.owner)
        settled, remembered = await self.store.segments.settled(self.owner), await self.store.memories.tally(self.owner)
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

    async def _ledger(
        self, states: Sequence[SegmentState], session_id: SessionId | None, before: tuple[int, str] | None, limit: int
    ) -> Sequence[Segment]:
        ledger = self.store.segments
        return await ledger.list(self.owner, session_id=session_id, states=states, before=before, limit=limit)

    async def _views(self, segments: Sequence[Segment]) -> Sequence[SegmentView]:
        turns, eye = await self.store.segments.turns_of([each.id for each in segments]), self._eye()
        return [eye.view(each, turns.get(each.id, ())) for each in segments]

    async def _with_origin(self, memory: Memory) -> MemoryView:
        (view,) = await self._with_origins([memory])
        return view

    async def _with_origins(self, memories: Sequence[Memory]) -> Sequence[MemoryView]:
        origins = await self.store.memories.origins([each.turn_id for each in memories if each.turn_id])
        return [MemoryView.of(each, origins.get(each.turn_id) if each.turn_id else None) for each in memories]

    async def _all(self) -> Sequence[Memory]:
        return await self.store.memories.list(self.owner, _EVERYTHING)

    async def _owned(self, session_id: SessionId) -> Session:
        session = await self.store.sessions.get(session_id)
        if session.owner != self.owner:
            raise NotFound(f"there is no session {session_id}")
        return session

    def _eye(self) -> Eye:
        return Eye(operator=self.owner == LOCAL, parked=self._unreachable)

    def _unreachable(self, binding: str) -> bool:  # noqa: ARG002 - Nobody runs who could tell.
        return False


@dataclass(frozen=True, slots=True)
class LocalMemories(StoreMemories):
    """The same, to be changed and paid."""

    clock: Clock
    engine: Engine
    redaction: Redaction = field(default_factory=Redaction)
    patience_s: float = PATIENCE_S

    async def add(self, text: str) -> MemoryView:
        text, now = self._fact(text), self.clock.now_ms()
        memory = Memory(id=new_memory_id(now), owner=self.owner, text=text, created_at=now, updated_at=now)
        return await self._with_origin(await self.store.memories.add(memory))

    async def change(self, memory_id: MemoryId, text: str) -> MemoryView:
        kind = next((each.kind for each in await self._all() if each.id == memory_id), MemoryKind.FACT)
        text = self._fact(text, kind)
        return await self._with_origin(await self.store.memories.replace(self.owner, memory_id, text, self.clock.now_ms()))

    async def remove(self, memory_id: MemoryId) -> None:
        forgotten = await self.forget(Forgetting(ids=(memory_id,)))
        if forgotten.missing:
            raise NotFound("; ".join((f"there is no memory {memory_id}", *forgotten.problems)))

    async def edit(self, edit: Edit) -> Edited:
        now = self.clock.now_ms()
        # A document may be long, and nobody else should wait while it is read.
        changed = await self.store.memories.change(self.owner, await asyncio.to_thread(self._asked, edit, now), now)
        return Edited(
            added=changed.added,
            changed=changed.replaced,
            removed=changed.removed,
            known=changed.known,
            left_out=changed.left_out,
            markdown=(await self.document()).markdown,
        )

    async def forget(self, forgetting: Forgetting) -> Forgotten:
        eraser = Eraser(
            store=self.store,
            person=self.owner,
            bindings=self.engine.memory,
            clock=self.clock,
            ask=self._within,
            told=self._told,
            named=self._eye().named,
        )
        if forgetting.session_id:
            await self._owned(forgetting.session_id)
            return await eraser.session(forgetting.session_id)
        return await (eraser.everything(await self._all()) if forgetting.everything else eraser.memories(forgetting.ids))

    async def recall(self, query: str, limit: int = 20) -> Recalled:
        provider = elsewhere(self.engine.memory)
        if provider is None or not query.strip():
            return Recalled()
        name = self._eye().named(provider.owner)
        # A provider recalls for a conversation; the last one knows best what is looked for.
        latest = await self.store.sessions.list(self.owner, limit=1)
        if not latest:
            return Recalled(provider=name)
        try:
            most = min(pages.size(limit), RECALLED_MAX)
            found = bounded(await self._within(provider.recall(latest[0], query, most)), most)
        except Exception as error:  # The edge to a provider: what is kept here was found all the same.
            return Recalled(provider=name, problem=self._told(error))
        return Recalled(provider=name, items=[replace(each, text=self.redaction.text(each.text)) for each in found])

    async def status(self) -> MemoryStatus:
        bindings = self.engine.memory
        if bindings is None or bindings.current is None:
            return await self._status(None)
        return await self._status(await self._health(bindings.current))

    async def commit(self, session_id: SessionId, *, wait: bool = True) -> bool:
        if not session_id:
            return False
        await self._owned(session_id)
        return await self.engine.commit(session_id, wait=wait)

    async def waive(self, segment_id: SegmentId) -> SegmentView:
        segment = await self.store.segments.get(segment_id)
        if self.owner != LOCAL and (await self.store.sessions.get(segment.session_id)).owner != self.owner:
            # Whom debts can be paid to is the operator's to say, whosever they are.
            raise NotFound(f"there is no memory segment {segment_id}")
        waived = await self.store.segments.waive(segment_id, self.clock.now_ms())
        (view,) = await self._views([waived])
        return view

    async def replay(self, replaying: Replaying) -> Replayed:
        provider = chosen(self.engine.memory, replaying.provider, replaying.url)
        replay = Replay(self.store, replaying.person or self.owner, provider, self.clock, self.redaction)
        return await replay.go_on(replaying.limit, replaying.skip)

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

    async def _health(self, provider: MemoryProvider) -> ProviderView:
        name, operator = self._eye().named(provider.owner), self.owner == LOCAL
        try:
            detail = await self._within(provider.check())
        except Exception as error:  # The edge to a provider: whatever it raises keeps it from working.
            return ProviderView(owner=name, healthy=False, detail=self._told(error))
        return ProviderView(owner=name, healthy=True, detail=self.redaction.text(detail) if operator else "")

    def _asked(self, edit: Edit, now_ms: int) -> MemoryChanges:
        text, new_id = self.redaction.text(edit.markdown), partial(new_memory_id, now_ms)
        return documents.changes(edit.base, text, owner=self.owner, now_ms=now_ms, new_id=new_id)

    def _provider(self, binding: str) -> MemoryProvider | None:
        return self.engine.memory.of(binding) if self.engine.memory else None

    def _unreachable(self, binding: str) -> bool:
        return self._provider(binding) is None

    async def _within(self, asked: Awaitable[T]) -> T:
        return await errand(asked, self.patience_s, "ask memory")

    def _told(self, error: Exception) -> str:
        if self.owner != LOCAL:
            # It may name machines that only the operator knows.
            return "the memory provider does not answer as it should"
        if isinstance(error, TimeoutError):
            return f"the provider did not answer within {self.patience_s} seconds"
        return failure(error, self.redaction)

    def _fact(self, text: str, kind: MemoryKind = MemoryKind.FACT) -> str:
        text = legible(self.redaction.text(text))
        if reason := objection(text, kind) if text else "there is nothing to remember; give it some text":
            raise Rejected(reason)
        return text
