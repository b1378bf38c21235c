"""Search in a store that has seen a lot: a word costs the same, whether every entry has it or none."""

from __future__ import annotations

import statistics
import time

from bench.fill import BASE, NUMBERS, fill
from bench.ground import Ground, Kind
from bench.report import Line, Unit
from holdfast.store.database import Run, Transaction
from holdfast.store.passages import adopt
from holdfast.store.store import Store

BAR_MS = 100
ENTRIES = 2_000_000
QUICK_ENTRIES = 200_000
PER_SESSION = 20
# Of so many sessions one has a title.
TITLED = 5
INDEXED_AT_ONCE = 5_000
TIMES = 15
_INDEX = "passages_words"

_SESSIONS = f"""
    INSERT INTO sessions (id, key, channel, owner, one_shot, source, created_at, updated_at, seq, turns, title)
    {NUMBERS} SELECT 'ses_' || i, 'chat:' || i, 'chat', 'local', 0, '{{}}', i, i, {PER_SESSION}, 0,
                      CASE WHEN i % {TITLED} = 0 THEN 'Voyage number' || i || ' to the harbour' END FROM n
"""
# Words of every frequency: one that all have, then one of ten, of a hundred, and so on; and one of 33 entries.
_RARE = ENTRIES // 33
_TEXT = f"""
    'the' || ' tide' || (i % 10) || ' gull' || (i * 7 % 97) || ' sail' || (i * 11 % 997) || ' rope' || (i * 13 % 9973)
    || ' wave' || (i * 17 % 99991) || ' crew' || (i * 19 % 997) || ' mast' || (i * 23 % 9973) || ' deck' || (i * 29 % 99991)
    || ' storm' || (i * 31 % 499979) || ' and' || ' no' || (i % 3) || ' port' || i
    || CASE WHEN i % {_RARE} = 0 THEN ' lighthouse' ELSE '' END
"""
_ENTRIES = f"""
    INSERT INTO entries (session_id, seq, turn_id, attempt, nth, kind, at, data)
    {NUMBERS} SELECT 'ses_' || ({BASE} + (i - {BASE} - 1) / {PER_SESSION} + 1), 1 + (i - {BASE} - 1) % {PER_SESSION},
                      'trn_' || i, 0, NULL, CASE WHEN i % 2 = 1 THEN 'turn.accepted' ELSE 'turn.completed' END, i,
                      CAST('{{"text":"' || {_TEXT} || '"}}' AS json_type) FROM n
"""
QUERIES = {
    "a word of 33 entries": "lighthouse",
    "the beginning of it": "lighth",
    "a word of all entries": "the",
    "a word of no entry": "zeppelin",
    "two letters": "st",
    "a rare word and a common beginning": "lighthouse st",
    "two common words that never meet": "no1 no2",
    "a word of all titles": "harbour",
    "the beginning of a title": f"number{BASE}",
    "ten common words": "the and tide gull sail rope wave crew mast deck",
}


async def run(ground: Ground) -> list[Line]:
    return [line for kind in ("sqlite", "postgres") for line in await _measure(ground, kind)]


async def _measure(ground: Ground, kind: Kind) -> list[Line]:
    count = QUICK_ENTRIES if ground.quick else ENTRIES
    store, _ = await ground.store(kind)
    await fill(store.database, 1, count // PER_SESSION, (_SESSIONS,))
    await fill(store.database, 1, count, (_ENTRIES.replace("json_type", store.database.dialect.json),))
    async with store.database.unhurried():
        await store.database.write(lambda: adopt(store.database.dialect))
    rate = await _index(store, count // 100)
    if kind == "postgres":
        # Made anew it is there sooner than filled up.
        await _run(store, f"DROP INDEX {_INDEX}")
    await _index(store, count)
    if kind == "postgres":
        await _run(store, f"CREATE INDEX {_INDEX} ON passages USING gin (words) WITH (fastupdate = off)", "ANALYZE")
    lines = [Line(what=f"{kind}: indexing", measured=rate, unit=Unit.RATE, detail="entries that were there already")]
    lines += [await _line(store, f"{kind}: {what}", query) for what, query in QUERIES.items()]
    await store.close()
    return lines


async def _line(store: Store, what: str, query: str) -> Line:
    took: list[float] = []
    hits = 0
    cpu = time.process_time()
    for _ in range(TIMES):
        began = time.monotonic()
        hits = len((await store.passages.find("local", query)).hits)
        took.append((time.monotonic() - began) * 1000)
    middle = statistics.median(took)
    # Of this process: with SQLite it is all, with PostgreSQL only our part.
    cpu_ms = (time.process_time() - cpu) * 1000 / TIMES
    detail = f"{hits} hits, at worst {max(took):.0f} ms, {cpu_ms:.1f} ms CPU"
    return Line(
        what=what, measured=middle, unit=Unit.MILLISECONDS, detail=detail, bar=f"≤ {BAR_MS} ms", met=middle <= BAR_MS
    )


async def _index(store: Store, count: int) -> float:
    """Index that many entries, if there are so many; returns how many in a second."""
    began, done = time.monotonic(), 0
    while done < count and (step := await store.passages.index(INDEXED_AT_ONCE)):
        done += step
    return done / (time.monotonic() - began)


async def _run(store: Store, *statements: str) -> None:
    async with store.database.unhurried():
        for sql in statements:
            await store.database.write(lambda sql=sql: _statement(sql))


def _statement(sql: str) -> Transaction[None]:
    yield Run(sql)
