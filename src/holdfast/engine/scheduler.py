"""The scheduler fires the jobs that are due: each instant once, on any number of nodes and with any clock."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from holdfast.clock import Clock
from holdfast.core.schedule import HORIZON_MS, Job, Slot, due_slots, message
from holdfast.cron import is_once, next_instant
from holdfast.engine.tuning import Tuning
from holdfast.errors import Rejected, Stale, Unavailable
from holdfast.ids import new_session_id, new_turn_id
from holdfast.store.store import Store

log = logging.getLogger(__name__)

# A missed instant still fires for this long; later it is only recorded as missed.
GRACE_MS = 3_600_000
# Later than every instant that is ever due.
NEVER = 2**62

# Returns the first instant at which a schedule is due after another.  Raises `Rejected` where there is none.
Next = Callable[[str, int], int]


class Scheduler:
    """Scheduled work of all owners.  Every node runs one; the slots in the store say who was first."""

    def __init__(
        self, store: Store, tuning: Tuning, clock: Clock, grace_ms: int = GRACE_MS, next_due: Next = next_instant
    ) -> None:
        self._store = store
        self._tuning = tuning
        self._clock = clock
        self._grace_ms = grace_ms
        self._next_due = next_due
        self._complained: set[tuple[str, str]] = set()
        self._worked_out: dict[str, tuple[tuple[str, int], int]] = {}

    async def run(self) -> None:
        """Fire what is due until cancelled."""
        while True:
            try:
                pause_ms = await self.fire_due()
            except Unavailable as error:
                log.warning("cannot look for jobs that are due: %s", error)
                pause_ms = self._tuning.poll_ms
            await self._clock.sleep_ms(pause_ms)

    async def fire_due(self) -> int:
        """Deal with every instant that is due, and return how long to wait for the next one."""
        now = self._clock.now_ms()
        nearest = NEVER
        jobs = await self._store.jobs.list()
        self._worked_out = {job.name: self._worked_out[job.name] for job in jobs if job.name in self._worked_out}
        for found in jobs:
            job = await self._store.jobs.rewind(found, now) if found.is_ahead(now) else found
            due = self._next(job)
            if due <= now:
                # After a long sleep there may be thousands to list; the loop is not held up by it.
                for slot in await asyncio.to_thread(self._due, job, now):
                    await self._serve(job, slot)
                due = self._after(job, now)
            nearest = min(nearest, due)
        return max(1, min(nearest - self._clock.now_ms(), self._tuning.poll_ms))

    def _next(self, job: Job) -> int:
        """Return when a job is due next.  Only a change of the job changes that, so it is worked out once."""
        known = (job.schedule, job.last_instant)
        if self._worked_out.get(job.name, (None, 0))[0] != known:
            self._worked_out[job.name] = (known, self._after(job, job.last_instant))
        return self._worked_out[job.name][1]

    def _due(self, job: Job, now_ms: int) -> list[Slot]:
        # A job that runs only once runs late rather than never.
        grace_ms = HORIZON_MS if is_once(job.schedule) else self._grace_ms
        slots = due_slots(job.last_instant, now_ms, grace_ms, lambda at: self._after(job, at))
        return newest_only([Slot(instant=each.instant, fires=False) for each in slots] if job.paused else slots)

    def _after(self, job: Job, instant: int) -> int:
        try:
            return self._next_due(job.schedule, instant)
        except Rejected as error:
            if not is_once(job.schedule) and (job.name, job.schedule) not in self._complained:
                self._complained.add((job.name, job.schedule))
                log.warning("job %s is not due any more: %s", job.name, error)
            return NEVER

    async def _serve(self, job: Job, slot: Slot) -> None:
        try:
            if slot.fires:
                await self._fire(job, slot)
            else:
                await self._store.jobs.miss(job.name, slot.instant)
        except Stale:
            # Another node was faster, the job is gone, or the instant was fired while a clock was ahead.
            log.debug("job %s has dealt with %d already", job.name, slot.instant)
            await self._store.jobs.skip(job.name, slot.instant)

    async def _fire(self, job: Job, slot: Slot) -> None:
        now = self._clock.now_ms()
        ids = (new_turn_id(now), new_session_id(now))
        try:
            await self._store.jobs.fire(job.name, slot.instant, message(job, slot.instant), *ids, now)
        except Rejected as error:
            # It would be refused again, for example where an earlier job of this name had that instant.
            log.warning("job %s cannot run at %d: %s", job.name, slot.instant, error)
            await self._store.jobs.miss(job.name, slot.instant)


def newest_only(slots: Sequence[Slot]) -> list[Slot]:
    """Let only the newest of the instants fire that are due at once: after a long sleep one report is wanted, not sixty."""
    last = max((slot.instant for slot in slots if slot.fires), default=None)
    return [Slot(instant=slot.instant, fires=slot.instant == last) for slot in slots]
