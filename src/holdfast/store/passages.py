"""Passages: messages, answers and titles, found by their words.

Words are indexed in the background, in steps that are a transaction each.  `unsearched` lists the entries that wait for
it; a search looks through the newest of them itself, so that what was said a moment ago is found.

A term of the index begins with its owner and with the part of the journal that its entry is in.  A search reads the parts
of its owner from the newest on, and stops as soon as it has enough: how many entries there are hardly matters, neither for
a word that all of them have nor for one that none has.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from holdfast.core.events import TurnAccepted, TurnCompleted
from holdfast.core.search import TEXT_MAX_CHARS, Wanted, matches, terms, wanted
from holdfast.core.sessions import TITLE, SearchFindings, SearchHit
from holdfast.ids import SessionId
from holdfast.store import rows
from holdfast.store.database import Database, Dialect, Params, Row, Run, RunMany, Transaction

# Entries of one part of the journal, as a power of two.
PART_BITS = 13
# So many of the newest entries that are not indexed yet are looked through by a search.
UNSEARCHED_MAX = 200
# One step of the index: every other write waits for it.
STEP_MAX = 32
# Titles come first, but leave room for what was said.
TITLES_MAX = 10
# The newest sessions with such a title, of which those that were last used are shown.
TITLED_MAX = 1_000
# A word with fewer hits than this in some parts is rare there: the other words are asked for only where it is.
RARE_MAX = 100
# Terms that one statement may ask for.
ASKED_MAX = 256
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_OWNER_DIGITS = 5
_PART_DIGITS = 4
# Behind every word that begins with the same letters.
_LAST = "\U0010ffff"
# Ends every word of a title, so that a whole word is what begins with the word and its end.
_END = " "

# Which entries are indexed.  Not a view: a schema of SQLite that has one is not checked whole for damage.
INDEXED: Mapping[str, str] = MappingProxyType({"sqlite": "passages_docsize", "postgres": "passages"})
_EXTENT = "SELECT (SELECT MIN(id) FROM {indexed}), (SELECT MAX(id) FROM {indexed})"
_HIT = "e.session_id, e.turn_id, e.seq, e.kind, e.at, e.data, e.id"
# The index of SQLite gives the newest first, and is read only as far as needed.  That of PostgreSQL gives all at once: they
# are collected first, because its planner may else prefer to read every passage from the newest on.
_FIND: Mapping[str, str] = MappingProxyType(
    {
        "sqlite": f"""
            SELECT {_HIT} FROM passages p CROSS JOIN entries e ON e.id = p.rowid
             CROSS JOIN sessions s ON s.id = e.session_id AND s.owner = :owner
             WHERE p.passages MATCH :terms ORDER BY p.rowid DESC LIMIT :limit
        """,
        "postgres": f"""
            WITH hits AS MATERIALIZED (
                SELECT id, session_id, seq FROM passages WHERE owner = :owner
                   AND words @@ ANY (ARRAY(SELECT CAST(json_array_elements_text(CAST(:terms AS json)) AS tsquery)))
            ), newest AS MATERIALIZED (SELECT * FROM hits ORDER BY id DESC LIMIT :limit)
            SELECT {_HIT} FROM newest n JOIN entries e ON e.session_id = n.session_id AND e.seq = n.seq
              JOIN sessions s ON s.id = n.session_id AND s.owner = :owner
             ORDER BY n.id DESC
        """,
    }
)
_WHERE: Mapping[str, str] = MappingProxyType({name: sql.replace(_HIT, "e.id") for name, sql in _FIND.items()})
_ADD: Mapping[str, str] = MappingProxyType(
    {
        "sqlite": "INSERT INTO passages (rowid, words) VALUES (:id, :words)",
        "postgres": """
            INSERT INTO passages (id, session_id, seq, owner, words)
            SELECT id, session_id, seq, :owner, array_to_tsvector(string_to_array(:words, ' '))
              FROM unsearched WHERE id = :id
        """,
    }
)
_NEXT = """
    SELECT u.id, (SELECT s.owner FROM sessions s WHERE s.id = u.session_id), {text}
      FROM unsearched u JOIN entries e ON e.session_id = u.session_id AND e.seq = u.seq
     ORDER BY u.id DESC LIMIT :limit {skip_locked}
"""
_DONE = "DELETE FROM unsearched WHERE id = :id"
# In this order: SQLite would begin with all sessions of the owner.
_UNSEARCHED = f"""
    SELECT {_HIT} FROM (SELECT id, session_id, seq FROM unsearched ORDER BY id DESC LIMIT :looked) u
     CROSS JOIN entries e CROSS JOIN sessions s
     WHERE e.session_id = u.session_id AND e.seq = u.seq AND s.id = e.session_id AND s.owner = :owner
     ORDER BY u.id DESC
"""
_IS_INDEXING = "SELECT id FROM unsearched ORDER BY id DESC LIMIT 1 OFFSET :looked"
# Word by word, and then session by session: the other way round it would read every title of a person.
_TITLES = """
    WITH asked (word) AS {words},
         hits AS (SELECT DISTINCT asked.word, w.session_id FROM asked CROSS JOIN title_words w
                   WHERE w.owner = :owner AND w.word >= asked.word AND w.word < asked.word || CAST(:last AS TEXT)),
         found AS (SELECT session_id FROM hits GROUP BY session_id HAVING COUNT(*) = :count
                    ORDER BY session_id DESC LIMIT :looked)
    SELECT s.id, s.title, s.updated_at FROM found CROSS JOIN sessions s
     WHERE s.id = found.session_id AND s.owner = :owner
     ORDER BY s.updated_at DESC, s.id DESC LIMIT :limit
"""
_UNTITLE = "DELETE FROM title_words WHERE session_id = :session_id"
_TITLE = "INSERT INTO title_words (owner, word, session_id) VALUES (:owner, :word, :session_id)"
_TITLED = "SELECT id, owner, title FROM sessions WHERE title IS NOT NULL"


class PassageStore:
    """All that can be found by its words."""

    def __init__(self, database: Database) -> None:
        self._database = database
        dialect = database.dialect
        self._next = _NEXT.format(text=dialect.text("e.data", TEXT_MAX_CHARS), skip_locked=dialect.skip_locked)

    async def find(self, owner: str, query: str, limit: int = 50) -> SearchFindings:
        """Find what has all words of a query, or words that begin with them: titles first, then the newest entries."""
        asked = await asyncio.to_thread(wanted, query)
        if not asked:
            return SearchFindings()
        dialect = self._database.dialect
        titles, indexed, fresh, is_indexing = await self._database.read(lambda: _find(dialect, owner, asked, limit))
        return await asyncio.to_thread(_findings, titles, indexed, fresh, asked, limit, is_indexing=is_indexing)

    async def index(self, limit: int = STEP_MAX) -> int:
        """Index the newest entries that are not yet; returns how many."""
        # Most often there are none, and looking keeps no other write waiting.
        if not await self._database.read(_waiting):
            return 0
        dialect, sql = self._database.dialect, self._next
        return await self._database.write(lambda: _index(dialect, sql, limit))


def name(session_id: SessionId, owner: str, title: str | None) -> Transaction[None]:
    """Have a session found by the words of its title, and by no others."""
    yield Run(_UNTITLE, {"session_id": session_id})
    if words := _title_words(session_id, owner, title or ""):
        yield RunMany(_TITLE, words)


def adopt(dialect: Dialect) -> Transaction[None]:  # noqa: ARG001 - The shape of every other step of a migration.
    """Have the sessions that had a title before words of titles were kept found by them."""
    words = [each for titled in (yield Run(_TITLED)) for each in _title_words(*titled)]
    if words:
        yield RunMany(_TITLE, words)


def _title_words(session_id: SessionId, owner: str, title: str) -> list[Params]:
    return [{"session_id": session_id, "owner": owner, "word": word + _END} for word in terms(title)]


def _waiting() -> Transaction[list[Row]]:
    return (yield Run(_IS_INDEXING, {"looked": 0}))


def _index(dialect: Dialect, sql: str, limit: int) -> Transaction[int]:
    found = yield Run(sql, {"limit": limit})
    added = [
        {"id": id_, "owner": owner, "words": _marked(owner, id_ >> PART_BITS, terms(text or ""))}
        for id_, owner, text in found
    ]
    if added:
        yield RunMany(_ADD[dialect.name], added)
        yield RunMany(_DONE, [{"id": each["id"]} for each in added])
    return len(added)


def _marked(owner: str, part: int, words: Sequence[str]) -> str:
    mark = _mark(owner, part)
    return " ".join([mark + word for word in words])


def _mark(owner: str, part: int) -> str:
    """Return what the terms of an owner's entries in a part of the journal begin with.

    Two owners may share it by chance, so that whose an entry is must be asked as well.
    """
    digest = int.from_bytes(hashlib.blake2b(owner.encode(), digest_size=8).digest(), "big")
    return _digits(digest, _OWNER_DIGITS) + _digits(part, _PART_DIGITS)


def _digits(number: int, count: int) -> str:
    found = ""
    for _ in range(count):
        number, digit = divmod(number, len(_DIGITS))
        found = _DIGITS[digit] + found
    return found


def _find(
    dialect: Dialect, owner: str, asked: Sequence[Wanted], limit: int
) -> Transaction[tuple[list[Row], list[Row], list[Row], bool]]:
    words = rows.encode([each.text + _END if each.is_whole else each.text for each in asked])
    params = {
        "owner": owner,
        "words": words,
        "last": _LAST,
        "count": len(asked),
        "looked": TITLED_MAX,
        "limit": min(limit, TITLES_MAX),
    }
    titles = yield Run(_TITLES.format(words=dialect.each("words")), params)
    fresh = yield Run(_UNSEARCHED, {"owner": owner, "looked": UNSEARCHED_MAX})
    is_indexing = yield Run(_IS_INDEXING, {"looked": UNSEARCHED_MAX})
    ((oldest, newest),) = yield Run(_EXTENT.format(indexed=INDEXED[dialect.name]))
    indexed = yield from _read_parts(dialect, owner, asked, limit, _spans(oldest, newest, len(asked)))
    return titles, indexed, fresh, bool(is_indexing)


def _read_parts(
    dialect: Dialect, owner: str, asked: Sequence[Wanted], limit: int, spans: Iterator[Sequence[int]]
) -> Transaction[list[Row]]:
    found: list[Row] = []
    # The longest word is likely the rarest.  Two letters that many words begin with cost the more the more parts are read.
    longest = max(asked, key=lambda each: len(each.text))
    is_rare = len(asked) > 1
    for parts in spans:
        if is_rare:
            terms = _asking(dialect, owner, [longest], parts)
            hits = yield Run(_WHERE[dialect.name], {"owner": owner, "terms": terms, "limit": RARE_MAX})
            is_rare = len(hits) < RARE_MAX
            parts = sorted({id_ >> PART_BITS for (id_,) in hits}, reverse=True) if is_rare else parts  # noqa: PLW2901
        if parts:
            terms = _asking(dialect, owner, asked, parts)
            found += yield Run(_FIND[dialect.name], {"owner": owner, "terms": terms, "limit": limit - len(found)})
        if len(found) >= limit:
            break
    return found


def _spans(oldest: int | None, newest: int | None, words: int) -> Iterator[range]:
    """Yield the parts of the journal from the newest on: first one, for what is common, then ever more, for what is rare."""
    if oldest is None or newest is None:
        return
    part, first, count = newest >> PART_BITS, oldest >> PART_BITS, 1
    while part >= first:
        span = range(part, max(part - count, first - 1), -1)
        yield span
        part, count = span[-1] - 1, min(2 * count, max(ASKED_MAX // words, 1))


def _asking(dialect: Dialect, owner: str, asked: Sequence[Wanted], parts: Sequence[int]) -> str:
    """Return the condition that an entry of these parts has all that is asked for, as a parameter of `_FIND`."""
    marks = [_mark(owner, part) for part in parts]
    if dialect.name == "sqlite":
        ways = [" AND ".join(f'"{mark}{each.text}"{"" if each.is_whole else "*"}' for each in asked) for mark in marks]
        return " OR ".join(f"({way})" for way in ways)
    ways = [" & ".join(f"'{mark}{each.text}'{'' if each.is_whole else ':*'}" for each in asked) for mark in marks]
    return rows.encode(ways)


def _findings(
    titles: list[Row], indexed: list[Row], fresh: list[Row], asked: Sequence[Wanted], limit: int, *, is_indexing: bool
) -> SearchFindings:
    named = [SearchHit(session_id=id_, turn_id=None, seq=0, kind=TITLE, at=at, text=title) for id_, title, at in titles]
    said = [(row[-1], _hit(row)) for row in indexed]
    said += [(row[-1], hit) for row in fresh if matches((hit := _hit(row)).text, asked)]
    said.sort(key=lambda each: each[0], reverse=True)
    return SearchFindings(hits=tuple([*named, *(hit for _, hit in said)][:limit]), is_indexing=is_indexing)


def _hit(row: Row) -> SearchHit:
    session_id, turn_id, seq, kind, at, data, _ = row
    event = rows.event(kind, data)
    text = event.text if isinstance(event, TurnAccepted | TurnCompleted) else ""
    return SearchHit(session_id=session_id, turn_id=turn_id, seq=seq, kind=kind, at=at, text=text)
