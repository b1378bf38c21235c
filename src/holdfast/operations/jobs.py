"""Jobs: prompts that run by themselves at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

from holdfast import cron
from holdfast.clock import Clock
from holdfast.core.intake import Receipt
from holdfast.core.keys import ADMIN, LOCAL
from holdfast.core.schedule import LOG, NAME_MAX, Fired, Job, is_name, message
from holdfast.errors import NotFound, Rejected
from holdfast.ids import new_session_id, new_turn_id
from holdfast.operations import pages
from holdfast.operations.caller import Caller
from holdfast.operations.operation import Query, operation
from holdfast.operations.pages import Cursor, Limit, Page, Removed
from holdfast.operations.projection import project

if TYPE_CHECKING:
    # A command that asks a running gateway does not import these.
    from holdfast.store.store import Store
    from holdfast.targets import Targets

SHOWN_SLOTS = 20
FORECAST = 5
PROMPT_MAX = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A job to be added, or changed where there is one of that name.  `deliver` is where its answers go."""

    name: str
    schedule: str
    prompt: str
    deliver: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """A scheduled prompt, when it is due next, and what became of the last times, the newest first."""

    name: str
    schedule: str
    prompt: str
    deliver: str | None
    paused: bool
    created_at: int
    next_at: int | None
    slots: Sequence[Fired] = ()

    @classmethod
    def of(cls, job: Job, slots: Sequence[Fired] = ()) -> JobView:
        next_at = None if job.paused else cron.upcoming(job.schedule, job.last_instant)
        return project(cls, job, next_at=next_at, slots=slots)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """When a schedule is due next, and what the time is called that its hours are meant in."""

    instants: Sequence[int]
    zone: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs:
    """The jobs of the caller."""

    store: Store
    caller: Caller
    clock: Clock
    targets: Targets

    @operation("GET /api/jobs", "List jobs", offline=True)
    async def list(self, *, cursor: Cursor = None, limit: Limit = 50) -> Page[JobView]:
        after, limit = pages.position(cursor), pages.size(limit)
        found = await self.store.jobs.of_owner(self.caller.owner, after[1] if after else "", limit)
        more = pages.after((0, found[-1].name)) if len(found) == limit else None
        return Page(items=[JobView.of(job) for job in found], next_cursor=more)

    @operation("POST /api/jobs", "Add a job, or change it", status=201)
    async def save(self, plan: Plan) -> JobView:
        """Add a job, or change the one of its name.  Raises `Rejected` for a schedule that cannot be read."""
        self._check(plan)
        taken = await self.store.jobs.find(plan.name)
        if taken and taken.owner != self.caller.owner:
            raise Rejected(f"the name {plan.name!r} is taken; choose another")
        now = self.clock.now_ms()
        # Raises `Rejected` for a schedule that cannot be read.
        cron.next_instant(plan.schedule, now)
        job = Job(
            name=plan.name,
            owner=self.caller.owner,
            schedule=plan.schedule,
            prompt=plan.prompt,
            created_at=now,
            last_instant=now,
            deliver=plan.deliver,
            paused=bool(taken and taken.paused),
        )
        await self.store.jobs.save(job)
        return await self.get(plan.name)

    @operation("GET /api/schedule", "Say when a schedule is due")
    async def forecast(
        self, schedule: Annotated[str, Query("When it is due: a cron expression, or at and a moment.")]
    ) -> Forecast:
        instants = cron.instants(schedule, self.clock.now_ms(), FORECAST)
        return Forecast(instants=instants, zone=cron.zone_at(instants[0]))

    @operation("GET /api/jobs/{id}", "Show a job and its last runs", offline=True)
    async def get(self, name: str) -> JobView:
        return JobView.of(await self._owned(name), await self.store.jobs.slots(name, SHOWN_SLOTS))

    @operation("DELETE /api/jobs/{id}", "Remove a job")
    async def remove(self, name: str) -> Removed:
        await self._owned(name)
        await self.store.jobs.remove(name)
        return Removed()

    @operation("POST /api/jobs/{id}/run", "Run a job now", status=202)
    async def run(self, name: str) -> Receipt:
        """Let a job fall due now, also while it is paused."""
        job, now = await self._owned(name), self.clock.now_ms()
        # An instant fires once.  A manual run takes the next free one: the clock may stand still or have been set back.
        instant = max(now, job.last_instant + 1)
        return await self.store.jobs.fire(name, instant, message(job, instant), new_turn_id(now), new_session_id(now), now)

    @operation("POST /api/jobs/{id}/pause", "Pause a job")
    async def pause(self, name: str) -> JobView:
        await self.store.jobs.save(replace(await self._owned(name), paused=True))
        return await self.get(name)

    @operation("POST /api/jobs/{id}/resume", "Let a job go on")
    async def resume(self, name: str) -> JobView:
        await self.store.jobs.save(replace(await self._owned(name), paused=False))
        return await self.get(name)

    async def _owned(self, name: str) -> Job:
        job = await self.store.jobs.find(name)
        if job is None or job.owner != self.caller.owner:
            raise NotFound(f"there is no job {name!r}")
        return job

    def _check(self, plan: Plan) -> None:
        if not is_name(plan.name):
            raise Rejected(f"the name of a job has printable characters only, no slash, and {NAME_MAX} at most")
        if not plan.prompt.strip() or len(plan.prompt) > PROMPT_MAX:
            raise Rejected(f"the prompt of a job has some text, {PROMPT_MAX} characters at most")
        if plan.deliver not in (None, LOG):
            if self.caller.owner != LOCAL:
                # It would be sent in the operator's name, to wherever the operator can send.
                raise Rejected(f"only the operator's jobs are delivered; leave deliver out, or say {LOG!r}")
            # The agent has to ask before it sends elsewhere, and a command of its own must not get around that.
            self.caller.demand(ADMIN)
            self.targets.find(plan.deliver)
