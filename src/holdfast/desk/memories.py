"""What is remembered about one owner."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.clock import Clock
from holdfast.core.memories import Memory
from holdfast.desk import cursors
from holdfast.desk.views import Page
from holdfast.errors import NotFound, Rejected
from holdfast.ids import MemoryId, new_memory_id
from holdfast.ports import Store

TEXT_MAX = 2_000


@dataclass(frozen=True, slots=True)
class StoreMemories:
    """What the store knows of it."""

    store: Store
    owner: str

    async def list(self, *, cursor: str | None = None, limit: int = 200) -> Page[Memory]:
        after, limit = cursors.position(cursor), cursors.size(limit)
        found = await self.store.memories.list(self.owner, limit, after)
        more = cursors.after((found[-1].created_at, found[-1].id)) if len(found) == limit else None
        return Page(items=found, next_cursor=more)

    async def search(self, query: str, limit: int = 20) -> Page[Memory]:
        return Page(items=await self.store.memories.search(self.owner, query, cursors.size(limit)))


@dataclass(frozen=True, slots=True)
class LocalMemories(StoreMemories):
    """The same, to be changed."""

    clock: Clock

    async def add(self, text: str) -> Memory:
        if not text.strip() or len(text) > TEXT_MAX:
            raise Rejected(f"a memory has some text, {TEXT_MAX} characters at most")
        now = self.clock.now_ms()
        memory = Memory(id=new_memory_id(now), owner=self.owner, text=text.strip(), created_at=now, updated_at=now)
        return await self.store.memories.add(memory)

    async def remove(self, memory_id: MemoryId) -> None:
        if not await self.store.memories.remove(self.owner, memory_id):
            raise NotFound(f"there is no memory {memory_id}")
