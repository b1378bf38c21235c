"""Vital signs: what a store says of itself to whoever only looks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.store.database import Database, Dialect, Run, Transaction

# Damage is seldom alone, and the first of it says enough.
DAMAGE_MAX = 3
# Of the last ones: where a clock was set back, what was written before is the newest for a while.
_NEWEST = "SELECT MAX(at) FROM (SELECT at FROM entries ORDER BY id DESC LIMIT 1000) AS written"
_SIZE_BYTES = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
# Reading more than this takes longer than anybody waits for a look.
LOOKED_THROUGH_MAX_BYTES = 1024 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Vitals:
    """How a store is.  `now_ms` is its own clock's time, where it has one; `newest_at` is that of its newest entry.

    It was not `looked_through` where it is too large, or where somebody else takes care of that.
    """

    newest_at: int | None
    now_ms: int | None
    looked_through: bool
    damage: Sequence[str]


async def vitals(database: Database) -> Vitals:
    """Look at a store; nothing is changed."""
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
