"""What is remembered about people: few short texts for each, every one there once."""

from __future__ import annotations

import hashlib

from holdfast.core.memories import Kind, Memory, folded
from holdfast.errors import NotFound, Rejected
from holdfast.ids import MemoryId
from holdfast.store.database import Database, Params, Row, Run, Transaction, clean

_MEMORY = "id, owner, text, created_at, updated_at, turn_id, kind, segment_id"
_ADD = f"""
    INSERT INTO memories ({_MEMORY}, folded)
    VALUES (:id, :owner, :text, :created_at, :updated_at, :turn_id, :kind, :segment_id, :folded)
    ON CONFLICT (owner, folded) DO NOTHING
"""
_OF_TEXT = f"SELECT {_MEMORY} FROM memories WHERE owner = :owner AND folded = :folded"
_REPLACE = f"""
    UPDATE memories SET text = :text, folded = :folded, updated_at = :now WHERE owner = :owner AND id = :id
 RETURNING {_MEMORY}
"""
_REMOVE = "DELETE FROM memories WHERE owner = :owner AND id = :id RETURNING id"
_LIST = f"""
    SELECT {_MEMORY} FROM memories
     WHERE owner = :owner AND (created_at, id) > (:after_at, :after_id) ORDER BY created_at, id LIMIT :limit
"""
_ALL = f"SELECT {_MEMORY} FROM memories WHERE owner = :owner ORDER BY updated_at DESC, id DESC"


def digest(text: str) -> str:
    """Return what a text is told from others by; no index would hold a long one itself."""
    return hashlib.sha256(folded(clean(text)).encode()).hexdigest()


class Memories:
    """Everything that is remembered, by whom it is about."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, memory: Memory) -> Memory:
        """Remember a text; returns the memory that has it, which may be an older one."""
        return await self._database.write(lambda: _add(memory))

    async def replace(self, owner: str, memory_id: MemoryId, text: str, now_ms: int) -> Memory:
        """Change what a memory says.  Raises `NotFound`, and `Rejected` where another one says it already."""
        params = {"owner": owner, "id": memory_id, "text": text, "folded": digest(text), "now": now_ms}
        return await self._database.write(lambda: _replace(params))

    async def remove(self, owner: str, memory_id: MemoryId) -> bool:
        """Forget a memory; False when there is none."""
        return bool(await self._database.write(lambda: _run(_REMOVE, {"owner": owner, "id": memory_id})))

    async def list(self, owner: str, limit: int = 200, after: tuple[int, str] | None = None) -> list[Memory]:
        """Return what is remembered about an owner, the oldest first; `after` is the (created_at, id) of the last one."""
        at, id_ = after or (-1, "")
        params = {"owner": owner, "after_at": at, "after_id": id_, "limit": limit}
        found = await self._database.read(lambda: _run(_LIST, params))
        return [_memory(row) for row in found]

    async def search(self, owner: str, query: str, limit: int = 20) -> list[Memory]:
        """Return what contains all words of a query, whatever their case, the last changed first."""
        words = query.casefold().split()
        # They are few, and only here do both databases agree on what the case of a letter is.
        found = [_memory(row) for row in await self._database.read(lambda: _run(_ALL, {"owner": owner}))]
        matching = [memory for memory in found if all(word in memory.text.casefold() for word in words)]
        return matching[:limit]


def _add(memory: Memory) -> Transaction[Memory]:
    params: Params = {
        "id": memory.id,
        "owner": memory.owner,
        "text": memory.text,
        "created_at": memory.created_at,
        "updated_at": memory.updated_at,
        "turn_id": memory.turn_id,
        "kind": memory.kind.value,
        "segment_id": memory.segment_id,
        "folded": digest(memory.text),
    }
    yield Run(_ADD, params)
    found = yield Run(_OF_TEXT, {"owner": memory.owner, "folded": digest(memory.text)})
    return _memory(found[0])


def _replace(params: Params) -> Transaction[Memory]:
    same = yield Run(_OF_TEXT, {"owner": params["owner"], "folded": params["folded"]})
    if same and same[0][0] != params["id"]:
        raise Rejected(f"memory {same[0][0]} says this already; remove one of them instead")
    replaced = yield Run(_REPLACE, params)
    if not replaced:
        raise NotFound(f"there is no memory {params['id']}")
    return _memory(replaced[0])


def _run(sql: str, params: Params) -> Transaction[list[Row]]:
    return (yield Run(sql, params))


def _memory(row: Row) -> Memory:
    id_, owner, text, created_at, updated_at, turn_id, kind, segment_id = row
    return Memory(
        id=id_,
        owner=owner,
        text=text,
        created_at=created_at,
        updated_at=updated_at,
        turn_id=turn_id,
        kind=Kind(kind),
        segment_id=segment_id,
    )
