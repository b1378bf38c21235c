"""The backlog of a running turn: what it has written and the store has not taken yet, in order.

While the store answers, the backlog is one batch long.  When it does not, the batches are kept on disk as well, and are
repeated exactly as they were tried until the store has them; the agent need not wait for that.  When the store has no room
for a batch, the turn is stopped: nothing is written behind that batch before it is.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from holdfast.clock import Clock
from holdfast.core.effects import Call, CallState
from holdfast.core.events import ToolStarted
from holdfast.core.journal import LATE, DraftEntry, Entry
from holdfast.core.turns import Turn
from holdfast.engine.feed import Feed
from holdfast.engine.persistence import persist
from holdfast.engine.spool import Line, SpoolFile
from holdfast.errors import DiskFull, Unavailable
from holdfast.store.journal import JournalStore

log = logging.getLogger(__name__)

T = TypeVar("T")

# A store that takes longer to answer counts as away: entries must then not be in memory only.
_ANSWER_MAX_S = 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batch:
    """Entries and tool-call moves that are appended together."""

    drafts: Sequence[DraftEntry]
    moves: Sequence[tuple[Call, Call]] = ()

    def that_happened(self) -> Batch:
        """Return a batch that the store refused without the starts of calls: these were recorded first, so none ran."""
        moves = [(before, after) for before, after in self.moves if after.state is not CallState.STARTED]
        return Batch(drafts=[draft for draft in self.drafts if not isinstance(draft.event, ToolStarted)], moves=moves)


class Backlog:
    """One caller at a time puts batches in.  `turn` moves with every batch that the store takes."""

    def __init__(
        self,
        turn: Turn,
        *,
        journal: JournalStore,
        feed: Feed,
        clock: Clock,
        file: SpoolFile | None,
        wake: Callable[[], None],
    ) -> None:
        self.turn = turn
        self._journal = journal
        self._feed = feed
        self._clock = clock
        self._file = file
        self._wake = wake
        self._batches: deque[Batch] = deque()
        self._catching_up: asyncio.Task[None] | None = None
        # Why the store does not take the oldest batch; what comes behind it is kept in order.
        self._refusal: DiskFull | None = None
        # Keeps the disk and the backlog the same while either of them changes.
        self._filing = asyncio.Lock()

    def is_behind(self) -> bool:
        """Return whether the store has been away and lacks something.

        Raises what kept it from being taken for good, and `DiskFull` from when there was no room until `rescue`.
        """
        if self._catching_up is not None and self._catching_up.done():
            # Cleared first, so that its error is raised once; the end of the turn must not fail of it again.
            caught_up, self._catching_up = self._catching_up, None
            caught_up.result()
        if self._refusal is not None:
            raise self._refusal
        return self._catching_up is not None

    async def put(self, drafts: Sequence[DraftEntry], moves: Sequence[tuple[Call, Call]] = ()) -> bool:
        """Return once these entries are durable, in the store or on our own disk; False where that was not possible.

        Raises `Stale` when the turn is not ours any more, and `DiskFull` where there is no room for it to go on.
        """
        batch = Batch(drafts=drafts, moves=moves)
        if drafts:
            # Before the next line, which may raise: the batch belongs behind what could not be written.
            self._batches.append(batch)
        behind = self.is_behind()
        if not drafts:
            return True
        if not behind:
            try:
                async with asyncio.timeout(_ANSWER_MAX_S if self._file else None):
                    await self._land()
            except DiskFull as refusal:
                self._stop(refusal)
                raise
            except (Unavailable, TimeoutError):
                self._catching_up = asyncio.create_task(self._catch_up())
                self._catching_up.add_done_callback(lambda _: self._wake())
            else:
                return True
        return await self._keep(batch)

    async def caught_up(self) -> None:
        """Return when the store has everything."""
        while self.is_behind() and self._catching_up is not None:
            await asyncio.shield(self._catching_up)

    async def move(self, write: Callable[[Turn], Awaitable[tuple[Turn, list[Entry]]]]) -> list[Entry]:
        """Let the store write to the turn by itself, while it lacks nothing of ours; returns what it wrote."""
        try:
            self.turn, entries = await write(self.turn)
        except DiskFull as refusal:
            self._stop(refusal)
            raise
        self._feed.publish(entries)
        return entries

    async def rescue(self, drafts: Sequence[DraftEntry]) -> None:
        """Let the store take what it refused, and then these entries, once there is room, be it that kept for ends."""
        self._refusal = None
        refused = [batch.that_happened() for batch in (*self._batches, Batch(drafts=drafts))]
        self._batches = deque(batch for batch in refused if batch.drafts)
        while self._batches:
            await persist(self._clock, lambda: self._land(essential=True))
        await self._tidy()

    def hold(self, drafts: Sequence[DraftEntry]) -> None:
        """Take the last entries, which the store is given together with the end of the turn."""
        self._batches.append(Batch(drafts=drafts))

    async def keep(self) -> None:
        """Put the last batch on our own disk, if there is a place for it."""
        await self._keep(self._batches[-1])

    async def clear(self) -> None:
        """Forget everything: the store has it."""
        self._batches.clear()
        await self._tidy()

    async def leave(self, drafts: Sequence[DraftEntry]) -> None:
        """Stop; what the store has not taken stays on disk, with these entries, to be handed in later."""
        if self._catching_up is not None:
            self._catching_up.cancel()
        if self._file is not None:
            self._batches.append(Batch(drafts=drafts))
            await self._abandon(self._file, self._lines(self._batches))
        if self._catching_up is not None:
            await asyncio.gather(self._catching_up, return_exceptions=True)

    async def _abandon(self, file: SpoolFile, lines: Sequence[Line]) -> None:
        try:
            await (file.rewrite(lines) if lines else file.remove())
        except OSError as error:
            log.warning("what turn %s said last is lost: %s", self.turn.id, error)
        finally:
            # Also when cancelled here: the file is whole before and after, so it can be handed in.
            file.release()

    def _stop(self, refusal: DiskFull) -> None:
        self._refusal = refusal
        # The turn ends even if its agent ignores the refusal.
        self._wake()

    async def _land(self, *, essential: bool = False) -> None:
        """Let the store take the oldest batch, exactly as it was tried before, if it was."""
        batch = self._batches[0]
        self.turn, entries = await self._journal.append(self.turn, batch.drafts, batch.moves, essential=essential)
        self._batches.popleft()
        self._feed.publish(entries)

    async def _catch_up(self) -> None:
        """Let the store take everything, beginning with the batch that it did not."""
        has_failed = True
        while self._batches:
            try:
                await persist(self._clock, self._land, give_up_on=(DiskFull,), has_failed=has_failed)
            except DiskFull as refusal:
                self._stop(refusal)
                return
            has_failed = False
            if not self._batches:
                await self._tidy()

    async def _tidy(self) -> None:
        if self._file is not None:
            async with self._filing:
                if not self._batches:
                    # A file that stays is handed in later, and found to be known.
                    with contextlib.suppress(OSError):
                        await self._file.remove()

    async def _keep(self, batch: Batch) -> bool:
        """Put a batch on disk; False where that is not enough to go on."""
        if self._file is None:
            return False
        async with self._filing:
            if batch not in self._batches:
                return True
            try:
                if lines := self._lines(self._batches, only=batch):
                    await self._file.append(lines)
            except OSError as error:
                log.warning("cannot keep what turn %s says while the store is away: %s", self.turn.id, error)
                return False
        return len(lines) == len(batch.drafts) and self._file.size <= self._file.size_max

    def _lines(self, batches: Sequence[Batch], only: Batch | None = None) -> list[Line]:
        """Return what may be kept on disk, with the places that it will have in the journal."""
        lines: list[Line] = []
        nth = self.turn.nth
        for batch in batches:
            for draft in batch.drafts:
                nth += 1
                if isinstance(draft.event, LATE) and only in (None, batch):
                    lines.append((nth, draft))
        return lines
