"""What is remembered about people: few short texts for each, every one there once, and found by its words."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum

from holdfast.core.facts import FACTS_MAX, MemoriesChanged, Memory, MemoryChanges, MemoryKind, MemoryOrigin, folded, receipt
from holdfast.core.words import ASKED_MAX, QUERY_MAX_CHARS, stem, telling, words
from holdfast.errors import NotFound, Rejected
from holdfast.ids import MemoryId, SegmentId, SessionId, TurnId
from holdfast.store import quotas, rows
from holdfast.store.database import Database, Dialect, Params, Row, Run, Transaction, clean

_MEMORY = "id, owner, text, created_at, updated_at, turn_id, kind, segment_id"
_INSERT = f"""
    INSERT INTO memories ({_MEMORY}, folded)
    VALUES (:id, :owner, :text, :created_at, :updated_at, :turn_id, :kind, :segment_id, :folded)
    ON CONFLICT DO NOTHING RETURNING {_MEMORY}
"""
_GET = f"SELECT {_MEMORY} FROM memories WHERE owner = :owner AND id = :id"
_OF_TEXT = f"SELECT {_MEMORY} FROM memories WHERE owner = :owner AND folded = :folded"
_UPDATE = f"""
    UPDATE memories
       SET text = :text, folded = :folded, updated_at = :updated_at, turn_id = :turn_id, segment_id = :segment_id
     WHERE owner = :owner AND id = :id
 RETURNING {_MEMORY}
"""
_REMOVE = "DELETE FROM memories WHERE owner = :owner AND id = :id RETURNING id"
_FACTS = "SELECT COUNT(*) FROM memories WHERE owner = :owner AND kind = 'fact'"
_LIST = f"""
    SELECT {_MEMORY} FROM memories
     WHERE owner = :owner AND (created_at, id) > (:after_at, :after_id) ORDER BY created_at, id LIMIT :limit
"""
_TALLY = "SELECT kind, COUNT(*) FROM memories WHERE owner = :owner GROUP BY kind"
_TALLY_OF_ALL = "SELECT kind, COUNT(*) FROM memories GROUP BY kind"
_PROFILE = f"SELECT {_MEMORY} FROM memories WHERE owner = :owner AND kind = 'profile'"
_RECENT = f"""
    SELECT {_MEMORY} FROM memories WHERE owner = :owner AND kind = 'fact' ORDER BY updated_at DESC, id DESC LIMIT :limit
"""
_OF_SESSION = f"""
    SELECT {_MEMORY} FROM memories
     WHERE owner = :owner AND (turn_id IN (SELECT t.id FROM turns t WHERE t.session_id = :session_id)
                            OR segment_id IN (SELECT m.id FROM segments m WHERE m.session_id = :session_id))
     ORDER BY created_at, id
"""
_ORIGINS = """
    SELECT t.id, s.id, s.key, s.title, t.ordinal, t.accepted_at
      FROM turns t JOIN sessions s ON s.id = t.session_id WHERE t.id IN {turns}
"""
# Word by word: the other way round it would read all that is remembered about a person.
_BEGINS = "w.owner = :owner AND w.word >= asked.word AND w.word < asked.word || CAST(:last AS TEXT)"
_LAST = "\U0010ffff"
_SEARCH = f"""
    WITH asked (word) AS {{words}},
         hits AS (SELECT DISTINCT asked.word, w.memory_id FROM asked CROSS JOIN memory_words w WHERE {_BEGINS}),
         found AS (SELECT memory_id FROM hits GROUP BY memory_id HAVING COUNT(*) = :count)
    SELECT {_MEMORY} FROM memories WHERE id IN (SELECT memory_id FROM found) ORDER BY updated_at DESC, id DESC LIMIT :limit
"""
# A word counts the less the more it is found in, and twice where it is the very same.  In whole numbers, because sums of
# others depend on their order.
_RECALL = f"""
    WITH asked (word) AS {{stems}},
         hits AS (SELECT asked.word, w.memory_id, MAX(CASE WHEN w.word IN {{words}} THEN 2 ELSE 1 END) AS closeness
                    FROM asked CROSS JOIN memory_words w WHERE {_BEGINS} GROUP BY asked.word, w.memory_id),
         spreads AS (SELECT word, COUNT(*) AS spread FROM hits GROUP BY word),
         ranks AS (SELECT hits.memory_id, SUM(hits.closeness * 1000000 / (spreads.spread + 4)) AS rank
                     FROM hits JOIN spreads ON spreads.word = hits.word GROUP BY hits.memory_id)
    SELECT {rows.qualified(_MEMORY, "m")} FROM ranks JOIN memories m ON m.id = ranks.memory_id
     WHERE m.kind = 'fact' ORDER BY ranks.rank DESC, m.updated_at DESC, m.id DESC LIMIT :limit
"""
_WORDS = """
    WITH said (word) AS {words}
    INSERT INTO memory_words (owner, word, memory_id) SELECT CAST(:owner AS TEXT), word, CAST(:id AS TEXT) FROM said
"""
_FORGET_WORDS = "DELETE FROM memory_words WHERE memory_id = :id"
# The receipt is filled in once it is known; that the row is there keeps a second commit out.
_ABSORB = """
    INSERT INTO absorbed (segment_id, receipt, at)
    SELECT m.id, '', CAST(:now AS BIGINT) FROM segments m WHERE m.id = :id AND m.person = :owner
    ON CONFLICT (segment_id) DO NOTHING RETURNING segment_id
"""
_RECEIPT = "UPDATE absorbed SET receipt = :receipt WHERE segment_id = :id"
_ABSORBED = "SELECT receipt FROM absorbed WHERE segment_id = :id"
_OLD = f"SELECT {_MEMORY} FROM memories ORDER BY created_at, id"
_FOLD = "UPDATE memories SET folded = :folded WHERE id = :id"


class MemoryStore:
    """All memories, by the person they are about."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._dialect = database.dialect
        each = {name: database.dialect.each(name) for name in ("words", "stems")}
        self._search = _SEARCH.format(**each)
        self._recall = _RECALL.format(**each)

    async def add(self, memory: Memory) -> Memory:
        """Remember a text; returns the memory that has it, which may be an older one.  A second profile replaces the first.

        Raises `Rejected` when there is no room for one more.
        """
        return await self._database.write(lambda: _add(self._dialect, memory))

    async def replace(self, owner: str, memory_id: MemoryId, text: str, now_ms: int) -> Memory:
        """Change what a memory says.  Raises `NotFound`, and `Rejected` where another one says it already."""
        return await self._database.write(lambda: _replace(self._dialect, owner, memory_id, text, now_ms))

    async def remove(self, owner: str, memory_id: MemoryId) -> bool:
        """Forget a memory; False when there is none."""
        return await self._database.write(lambda: _remove(owner, memory_id))

    async def list(self, owner: str, limit: int = 200, after: tuple[int, str] | None = None) -> list[Memory]:
        """Return what is remembered about an owner, the oldest first; `after` is the (created_at, id) of the last one."""
        at, id_ = after or (-1, "")
        params = {"owner": owner, "after_at": at, "after_id": id_, "limit": limit}
        return await self._database.read(lambda: _list(_LIST, params))

    async def search(self, owner: str, query: str, limit: int = 20) -> list[Memory]:
        """Return what has a word that begins like each word of a query, the last changed first.

        An empty query finds everything.
        """
        asked = words(clean(query[:QUERY_MAX_CHARS]))[:ASKED_MAX]
        if not asked:
            return [] if query.strip() else await self._database.read(lambda: _recent(owner, limit))
        params = {"owner": owner, "words": rows.encode(asked), "count": len(asked), "last": _LAST, "limit": limit}
        return await self._database.read(lambda: _list(self._search, params))

    async def recall(self, owner: str, query: str, limit: int = 8) -> list[Memory]:
        """Return the facts that have most to do with a message, best first."""
        asked = telling(clean(query))
        if not asked:
            return []
        stems = rows.encode(list(dict.fromkeys(map(stem, asked))))
        params = {"owner": owner, "words": rows.encode(asked), "stems": stems, "last": _LAST, "limit": limit}
        return await self._database.read(lambda: _list(self._recall, params))

    async def tally(self, owner: str | None = None) -> dict[MemoryKind, int]:
        """Count the memories of each kind, of one owner or of all."""
        sql, params = (_TALLY_OF_ALL, {}) if owner is None else (_TALLY, {"owner": owner})
        found = await self._database.read(lambda: _run(sql, params))
        return {**dict.fromkeys(MemoryKind, 0), **{MemoryKind(kind): count for kind, count in found}}

    async def recent(self, owner: str, limit: int = 200) -> list[Memory]:
        """Return the profile of an owner, and then the facts, the last changed first."""
        return await self._database.read(lambda: _recent(owner, limit))

    async def of_session(self, owner: str, session_id: SessionId) -> list[Memory]:
        """Return what came from the turns of a session, the oldest first."""
        return await self._database.read(lambda: _list(_OF_SESSION, {"owner": owner, "session_id": session_id}))

    async def origins(self, turn_ids: Sequence[TurnId]) -> dict[TurnId, MemoryOrigin]:
        """Return where each turn is that is still there."""
        sql = _ORIGINS.format(turns=self._dialect.each("turns"))
        found = await self._database.read(lambda: _run(sql, {"turns": rows.encode(list(turn_ids))}))
        return {row[0]: _origin(row[1:]) for row in found}

    async def change(self, owner: str, changes: MemoryChanges, now_ms: int) -> MemoriesChanged:
        """Make all changes to what is remembered about an owner, or none."""
        return await self._database.write(lambda: _change(self._dialect, owner, changes, now_ms))

    async def absorb(self, owner: str, segment_id: SegmentId, changes: MemoryChanges, now_ms: int) -> str:
        """Make the changes that a segment calls for, once, and return what they came to.

        Raises `NotFound` when there is no such segment of this person.
        """
        return await self._database.write(lambda: _absorb(self._dialect, owner, segment_id, changes, now_ms))

    async def absorbed(self, segment_id: SegmentId) -> str | None:
        """Return what the changes of a segment came to; None while they were not made."""
        found = await self._database.read(lambda: _run(_ABSORBED, {"id": segment_id}))
        return found[0][0] if found else None


def adopt(dialect: Dialect) -> Transaction[None]:
    """Give memories of a time before there were words theirs.  All are kept, also those that are the same by now."""
    known: set[tuple[str, str]] = set()
    for memory in (yield from _list(_OLD, {})):
        digest = _folded(memory.kind, memory.text)
        if (memory.owner, digest) not in known:
            known.add((memory.owner, digest))
            yield Run(_FOLD, {"id": memory.id, "folded": digest})
        yield from _index(dialect, memory)


class _Outcome(StrEnum):
    """What came of one change, by the name that `Changed` has for it."""

    ADDED = "added"
    REPLACED = "replaced"
    REMOVED = "removed"
    KNOWN = "known"
    LEFT_OUT = "left_out"


def _add(dialect: Dialect, memory: Memory) -> Transaction[Memory]:
    yield from quotas.hold(memory.owner)
    if (yield from _admit(dialect, memory.owner, memory)) is _Outcome.LEFT_OUT:
        raise Rejected(f"{FACTS_MAX:,} facts are remembered already; replace or remove one first")
    found = yield from _like(memory.owner, memory.kind, memory.text)
    # A call that is repeated after its fact was changed finds it under its id.
    return found or (yield from _get(memory.owner, memory.id))


def _replace(dialect: Dialect, owner: str, memory_id: MemoryId, text: str, now_ms: int) -> Transaction[Memory]:
    before = yield from _get(owner, memory_id)
    same = yield from _like(owner, before.kind, text)
    if same and same.id != memory_id:
        raise Rejected(f"memory {same.id} says this already; remove one of them instead")
    return (yield from _update(dialect, replace(before, text=text, updated_at=now_ms)))


def _change(dialect: Dialect, owner: str, changes: MemoryChanges, now_ms: int) -> Transaction[MemoriesChanged]:
    counts: Counter[str] = Counter()
    # Before any row of theirs, as everywhere, so that no two can wait for each other.
    yield from quotas.hold(owner)
    for memory_id in dict.fromkeys(changes.removed):
        counts[_Outcome.REMOVED] += yield from _remove(owner, memory_id)
    counts.update((yield from _revise(dialect, owner, {each.id: each for each in changes.replaced}, now_ms)))
    for memory in changes.added:
        counts[(yield from _admit(dialect, owner, memory))] += 1
    return MemoriesChanged(**counts)


def _revise(dialect: Dialect, owner: str, replaced: Mapping[MemoryId, Memory], now_ms: int) -> Transaction[list[_Outcome]]:
    """Put other words in place of what is there; one that comes to say what another says is one with it."""
    outcomes: list[_Outcome] = []
    moving: list[Memory] = []
    for after in replaced.values():
        for before in (yield from _list(_GET, {"owner": owner, "id": after.id})):
            if before.text == clean(after.text):
                outcomes.append(_Outcome.KNOWN)
                continue
            # None stands in the way of another that takes its words while it gets new ones itself.
            yield Run(_FOLD, {"id": before.id, "folded": before.id})
            source = {"turn_id": after.turn_id or before.turn_id, "segment_id": after.segment_id or before.segment_id}
            moving.append(replace(before, text=after.text, updated_at=now_ms, **source))
    for after in moving:
        outcomes.append(_Outcome.REPLACED)
        if (yield from _like(owner, after.kind, after.text)):
            yield from _remove(owner, after.id)
        else:
            yield from _update(dialect, after)
    return outcomes


def _admit(dialect: Dialect, owner: str, memory: Memory) -> Transaction[_Outcome]:
    """Add one memory, unless it is known or there is no room; a second profile takes the place of the first."""
    known = yield from _like(owner, memory.kind, memory.text)
    if known and memory.kind is MemoryKind.PROFILE and known.text != clean(memory.text):
        source = {"turn_id": memory.turn_id, "segment_id": memory.segment_id}
        yield from _update(dialect, replace(known, text=memory.text, updated_at=memory.updated_at, **source))
        return _Outcome.REPLACED
    if known:
        return _Outcome.KNOWN
    ((facts,),) = yield Run(_FACTS, {"owner": owner})
    if memory.kind is MemoryKind.FACT and facts >= FACTS_MAX:
        return _Outcome.LEFT_OUT
    added = yield from _list(_INSERT, _params(replace(memory, owner=owner)))
    if not added:
        # Another request was faster, or this one is a repeat.
        return _Outcome.KNOWN
    yield from _index(dialect, added[0])
    return _Outcome.ADDED


def _update(dialect: Dialect, memory: Memory) -> Transaction[Memory]:
    updated = yield from _list(_UPDATE, _params(memory))
    if not updated:
        raise NotFound(f"there is no memory {memory.id}")
    yield Run(_FORGET_WORDS, {"id": memory.id})
    yield from _index(dialect, updated[0])
    return updated[0]


def _absorb(dialect: Dialect, owner: str, segment_id: SegmentId, changes: MemoryChanges, now_ms: int) -> Transaction[str]:
    named: Params = {"id": segment_id}
    yield from quotas.hold(owner)
    if not (yield Run(_ABSORB, {**named, "owner": owner, "now": now_ms})):
        earlier = yield Run(_ABSORBED, named)
        if not earlier:
            raise NotFound(f"there is no memory segment {segment_id}")
        return earlier[0][0]
    said = receipt((yield from _change(dialect, owner, changes, now_ms)), changes.remark)
    yield Run(_RECEIPT, {**named, "receipt": said})
    return said


def _index(dialect: Dialect, memory: Memory) -> Transaction[None]:
    params = {"id": memory.id, "owner": memory.owner, "words": rows.encode(words(memory.text))}
    yield Run(_WORDS.format(words=dialect.each("words")), params)


def _remove(owner: str, memory_id: MemoryId) -> Transaction[bool]:
    return bool((yield Run(_REMOVE, {"owner": owner, "id": memory_id})))


def _get(owner: str, memory_id: MemoryId) -> Transaction[Memory]:
    found = yield from _list(_GET, {"owner": owner, "id": memory_id})
    if not found:
        raise NotFound(f"there is no memory {memory_id}")
    return found[0]


def _like(owner: str, kind: MemoryKind, text: str) -> Transaction[Memory | None]:
    """Return the memory that says the same, or the one profile."""
    found = yield from _list(_OF_TEXT, {"owner": owner, "folded": _folded(kind, text)})
    return found[0] if found else None


def _recent(owner: str, limit: int) -> Transaction[list[Memory]]:
    profile = yield from _list(_PROFILE, {"owner": owner})
    facts = yield from _list(_RECENT, {"owner": owner, "limit": limit})
    return [*profile, *facts][:limit]


def _folded(kind: MemoryKind, text: str) -> str:
    """Return what identifies a memory: a digest, because an index cannot hold a long text.

    A person has only one profile, so that is identified by its kind.
    """
    return kind.value if kind is MemoryKind.PROFILE else hashlib.sha256(folded(clean(text)).encode()).hexdigest()


def _params(memory: Memory) -> Params:
    return {
        "id": memory.id,
        "owner": memory.owner,
        "text": memory.text,
        "created_at": memory.created_at,
        "updated_at": memory.updated_at,
        "turn_id": memory.turn_id,
        "kind": memory.kind.value,
        "segment_id": memory.segment_id,
        "folded": _folded(memory.kind, memory.text),
    }


def _list(sql: str, params: Params) -> Transaction[list[Memory]]:
    found = yield Run(sql, params)
    return [_memory(row) for row in found]


def _run(sql: str, params: Params) -> Transaction[list[Row]]:
    return (yield Run(sql, params))


_origin = rows.reader(MemoryOrigin, "session_id, key, title, ordinal, at")
_memory = rows.reader(Memory, _MEMORY)
