"""Vital signs: the state of a store, read without changing it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.store.database import Database, Dialect, Run, Transaction

# Damage is seldom alone, and the first of it says enough.
DAMAGE_MAX = 3
# Of the last ones: where a clock was set back, what was written before is the newest for a while.
_NEWEST = "SELECT MAX(at) FROM (SELECT at FROM entries ORDER BY id DESC LIMIT 1000) AS written"
_SIZE_BYTES = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
# A larger store takes too long to read for a quick check.
LOOKED_THROUGH_MAX_BYTES = 1024 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Vitals:
    """How a store is."""

    newest_at: int | None
    """The time of its newest entry."""
    now_ms: int | None
    """The time by its own clock; None for an embedded store."""
    looked_through: bool
    """Whether all of it was read.  A large store, and a database with tools of its own, is not."""
    damage: Sequence[str]


async def vitals(database: Database) -> Vitals:
    """Read the vital signs of a store."""
    return await database.read(lambda: _look(database.dialect))


def _look(dialect: Dialect) -> Transaction[Vitals]:
    ((newest_at,),) = yield Run(_NEWEST)
    if dialect.now_ms is not None:
        ((now_ms,),) = yield Run(f"SELECT {dialect.now_ms}")
        return Vitals(newest_at=newest_at, now_ms=int(now_ms), looked_through=False, damage=())
    ((size,),) = yield Run(_SIZE_BYTES)
    if size > LOOKED_THROUGH_MAX_BYTES:
        return Vitals(newest_at=newest_at, now_ms=None, looked_through=False, damage=())
    found = yield Run(f"PRAGMA quick_check({DAMAGE_MAX})")
    damage = [str(row[0]) for row in found if row[0] != "ok"]
    return Vitals(newest_at=newest_at, now_ms=None, looked_through=True, damage=damage)
