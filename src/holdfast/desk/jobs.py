"""Scheduled work of one owner."""

from __future__ import annotations

from dataclasses import dataclass, replace

from holdfast import cron
from holdfast.clock import Clock
from holdfast.core.intake import Receipt
from holdfast.core.keys import LOCAL
from holdfast.core.schedule import LOG, NAME_MAX, Job, is_name, message
from holdfast.desk import cursors
from holdfast.desk.plans import Plan
from holdfast.desk.views import Forecast, JobView, Page
from holdfast.errors import NotFound, Rejected
from holdfast.ids import new_session_id, new_turn_id
from holdfast.store.store import Store
from holdfast.targets import Targets

SHOWN_SLOTS = 20
FORECAST = 5
PROMPT_MAX = 20_000


@dataclass(frozen=True, slots=True)
class StoreJobs:
    """What the store knows of it."""

    store: Store
    owner: str

    async def list(self, *, cursor: str | None = None, limit: int = 50) -> Page[JobView]:
        after, limit = cursors.position(cursor), cursors.size(limit)
        found = await self.store.jobs.of_owner(self.owner, after[1] if after else "", limit)
        more = cursors.after((0, found[-1].name)) if len(found) == limit else None
        return Page(items=[_view(job) for job in found], next_cursor=more)

    async def get(self, name: str) -> JobView:
        job = await self._owned(name)
        slots = await self.store.jobs.slots(name, SHOWN_SLOTS)
        return replace(_view(job), slots=slots)

    async def _owned(self, name: str) -> Job:
        job = await self.store.jobs.find(name)
        if job is None or job.owner != self.owner:
            raise NotFound(f"there is no job {name!r}")
        return job


def _view(job: Job) -> JobView:
    return JobView.of(job, None if job.paused else cron.upcoming(job.schedule, job.last_instant))


@dataclass(frozen=True, slots=True)
class LocalJobs(StoreJobs):
    """The same, to be changed and run."""

    clock: Clock
    targets: Targets

    async def save(self, plan: Plan) -> JobView:
        _refuse_odd(plan)
        if plan.deliver not in (None, LOG):
            if self.owner != LOCAL:
                # It would be sent in the operator's name, to wherever the operator can send.
                raise Rejected(f"only the operator's jobs are delivered; leave deliver out, or say {LOG!r}")
            self.targets.find(plan.deliver)
        taken = await self.store.jobs.find(plan.name)
        if taken and taken.owner != self.owner:
            raise Rejected(f"the name {plan.name!r} is taken; choose another")
        now = self.clock.now_ms()
        # Raises for a schedule that is none.
        cron.next_instant(plan.schedule, now)
        job = Job(
            name=plan.name,
            owner=self.owner,
            schedule=plan.schedule,
            prompt=plan.prompt,
            created_at=now,
            last_instant=now,
            deliver=plan.deliver,
            paused=bool(taken and taken.paused),
        )
        await self.store.jobs.save(job)
        return await self.get(plan.name)

    async def forecast(self, schedule: str) -> Forecast:
        instants = cron.instants(schedule, self.clock.now_ms(), FORECAST)
        return Forecast(instants=instants, zone=cron.zone_at(instants[0]))

    async def run(self, name: str) -> Receipt:
        job, now = await self._owned(name), self.clock.now_ms()
        # An instant fires once.  A manual run takes the next free one: the clock may stand still or have been set back.
        instant = max(now, job.last_instant + 1)
        return await self.store.jobs.fire(name, instant, message(job, instant), new_turn_id(now), new_session_id(now), now)

    async def pause(self, name: str) -> JobView:
        await self.store.jobs.save(replace(await self._owned(name), paused=True))
        return await self.get(name)

    async def resume(self, name: str) -> JobView:
        await self.store.jobs.save(replace(await self._owned(name), paused=False))
        return await self.get(name)

    async def remove(self, name: str) -> None:
        await self._owned(name)
        await self.store.jobs.remove(name)


def _refuse_odd(plan: Plan) -> None:
    if not is_name(plan.name):
        raise Rejected(f"the name of a job has printable characters only, no slash, and {NAME_MAX} at most")
    if not plan.prompt.strip() or len(plan.prompt) > PROMPT_MAX:
        raise Rejected(f"the prompt of a job has some text, {PROMPT_MAX} characters at most")
