"""Space: the file of an embedded store gives back what deleted rows have left free, a few pages at a time."""

from __future__ import annotations

import time
from dataclasses import dataclass

from holdfast.store.database import Database, Run, Transaction
from holdfast.store.removal import STEP_S

# Moved between two looks at the clock.
CHUNK_PAGES = 32
# In one write, however fast they move.
CHUNKS_MAX = 16
# So much stays free for what comes next, because a file that shrinks and grows all the time is slow.
KEEP_PAGES = 1_000
KEEP_SHARE = 20
_INCREMENTAL = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """What the file of a store holds.  `shrinks` is False for one that was made before files could give pages back."""

    page_bytes: int
    pages: int
    free_pages: int
    shrinks: bool

    @property
    def spare_pages(self) -> int:
        """How many pages there are to give back."""
        return max(self.free_pages - max(KEEP_PAGES, self.pages // KEEP_SHARE), 0)


async def space(database: Database) -> Space | None:
    """Look at the file of a store; None for a database that looks after its own."""
    return await database.read(_look) if database.dialect.name == "sqlite" else None


async def give_back(database: Database) -> int:
    """Give some pages back to the disk; returns how many there are still to give."""
    found = await space(database)
    # Moving pages about in a damaged file could make it worse.
    if database.damage or not found or not found.shrinks or not found.spare_pages:
        return 0
    if spare := await database.write(lambda: _give_back(time.monotonic() + STEP_S)):
        return spare
    await database.tidy()
    return 0


def _look() -> Transaction[Space]:
    ((page_bytes,),) = yield Run("PRAGMA page_size")
    ((pages,),) = yield Run("PRAGMA page_count")
    ((free_pages,),) = yield Run("PRAGMA freelist_count")
    ((mode,),) = yield Run("PRAGMA auto_vacuum")
    return Space(page_bytes=page_bytes, pages=pages, free_pages=free_pages, shrinks=mode == _INCREMENTAL)


def _give_back(deadline_s: float) -> Transaction[int]:
    found = yield from _look()
    for _ in range(CHUNKS_MAX):
        if not found.spare_pages or time.monotonic() >= deadline_s:
            break
        yield Run(f"PRAGMA incremental_vacuum({min(CHUNK_PAGES, found.spare_pages)})")
        found = yield from _look()
    return found.spare_pages
