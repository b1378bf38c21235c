"""The `schedule` tool: jobs that run by themselves, repeatedly or once, each time in a session of their own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal

import msgspec

from holdfast import cron
from holdfast.agent.tools.port import CallContext, StructTool
from holdfast.agent.tools.targets import APPROVAL_EXPIRES_MS, FindSession, check_owner, own_target
from holdfast.clock import Clock
from holdfast.core.effects import Effect
from holdfast.core.questions import ONCE_CHOICES, About, Question, fingerprint
from holdfast.core.redaction import Redaction
from holdfast.core.schedule import LOG, NAME_MAX, Job, is_name
from holdfast.core.turns import Mode
from holdfast.errors import Rejected
from holdfast.ports import Carrier
from holdfast.store.jobs import JobStore
from holdfast.targets import Targets

NAME = "schedule"
PROMPT_MAX_CHARS = 20_000
JOBS_MAX = 50
# A one-time job stays listed this long after it was due.
KEPT_MS = 24 * 3_600_000
HERE = "here"
NOWHERE = frozenset({"none", LOG})
UNSUPPORTED = (
    "It is not delivered: nothing can reach this conversation after its answer. The results are kept in sessions of the "
    "channel cron; name a target in deliver to have them sent."
)
_UNITS_MS = {"minute": 60_000, "hour": 3_600_000, "day": 86_400_000, "week": 604_800_000}
_IN = re.compile(r"in (\d{1,5}) (minute|hour|day|week)s?", re.IGNORECASE)


class ScheduleArgs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    action: Annotated[Literal["add", "list", "remove"], msgspec.Meta(description="What to do; add also changes a job.")]
    name: Annotated[str, msgspec.Meta(description="The name of the job.", max_length=NAME_MAX)] = ""
    schedule: Annotated[
        str,
        msgspec.Meta(
            description=(
                'When: five cron fields in local time ("30 7 * * 1-5"), or once: "in 20 minutes", "2031-05-04T09:30".'
            ),
            max_length=100,
        ),
    ] = ""
    prompt: Annotated[
        str,
        msgspec.Meta(
            description="What to do then, in full: the job knows nothing of this conversation.", max_length=PROMPT_MAX_CHARS
        ),
    ] = ""
    deliver: Annotated[
        str,
        msgspec.Meta(description='Where the result goes: "here", "none", or a target as channel:address.', max_length=500),
    ] = HERE


def schedule_tool(
    jobs: JobStore, find: FindSession, carriers: Mapping[str, Carrier], redaction: Redaction, clock: Clock
) -> StructTool[ScheduleArgs]:
    """Return the tool for the caller's jobs."""
    calendar = _Calendar(jobs, find, Targets(carriers), redaction, clock)
    return StructTool(
        name=NAME,
        description="Have something done later by itself, again and again or once; list and remove what is planned.",
        args=ScheduleArgs,
        effect=Effect.KEYED,
        action=calendar.run,
        asks=calendar.ask,
        reads_private=lambda args: args.action == "list",
    )


class _Calendar:
    """The jobs of the caller."""

    def __init__(self, jobs: JobStore, find: FindSession, targets: Targets, redaction: Redaction, clock: Clock) -> None:
        self._jobs = jobs
        self._find = find
        self._targets = targets
        self._redaction = redaction
        self._clock = clock

    async def ask(self, args: ScheduleArgs, context: CallContext) -> Question | None:
        """Ask about every new job, because it acts later and unattended."""
        if args.action != "add":
            return None
        deliver = own_target(context) if args.deliver == HERE else None if args.deliver in NOWHERE else args.deliver
        if deliver is not None and deliver != own_target(context):
            await check_owner(context, deliver, self._targets.find(deliver), self._find)
        if context.turn.mode is Mode.SYNCHRONOUS:
            raise Rejected("a job needs a person's approval, and nobody can be asked here; say in your answer what to plan")
        bound = fingerprint(tool=NAME, name=args.name, schedule=args.schedule, prompt=args.prompt, deliver=args.deliver)
        goes = f"Its results go to {deliver}." if deliver else "Its results are kept, and go nowhere."
        return Question(
            id=f"approve:{context.call_id}:{bound[:16]}",
            text=f"May I plan the job {args.name!r}, {args.schedule}? It runs by itself. {goes}\n\n{_indented(args.prompt)}",
            about=About.APPROVAL,
            choices=ONCE_CHOICES,
            fingerprint=bound,
            expires_at=self._clock.now_ms() + APPROVAL_EXPIRES_MS,
            detail={"job": args.name, "schedule": args.schedule, "prompt": args.prompt, "deliver": deliver or ""},
        )

    async def run(self, args: ScheduleArgs, context: CallContext) -> str:
        match args.action:
            case "list":
                return await self._list(context)
            case "remove":
                return await self._remove(args, context)
            case "add":
                return await self._add(args, context)

    async def _list(self, context: CallContext) -> str:
        found = await self._owned(context)
        return "\n".join(self._shown(job) for job in found) or "Nothing is planned."

    async def _remove(self, args: ScheduleArgs, context: CallContext) -> str:
        if not any(job.name == args.name for job in await self._owned(context)):
            raise Rejected(f"there is no job {args.name!r}; list them to see what there is")
        await self._jobs.remove(args.name)
        return f"Removed {args.name!r}; it does not run any more."

    async def _add(self, args: ScheduleArgs, context: CallContext) -> str:
        name = args.name.strip()
        if not is_name(name):
            raise Rejected("a job needs a name of printable characters, without a slash")
        if not args.prompt.strip():
            raise Rejected("a job needs a prompt: what is to be done then")
        now = self._clock.now_ms()
        schedule = self._planned(args.schedule, context)
        before = await self._place_for(name, context)
        if before is None or before.schedule != schedule:
            # Raises for an invalid or past schedule.
            cron.next_instant(schedule, now)
        deliver, note = self._deliver(args, context)
        job = Job(
            name=name,
            owner=context.session.owner,
            schedule=schedule,
            prompt=self._redaction.text(args.prompt),
            created_at=now,
            last_instant=now,
            deliver=deliver,
        )
        await self._jobs.save(job)
        return "\n".join(filter(None, (f"{'Changed' if before else 'Planned'}: {self._shown(job)}", note)))

    async def _place_for(self, name: str, context: CallContext) -> Job | None:
        """Return the existing job of a name.  Past one-time jobs are removed to make room."""
        for job in await self._jobs.list():
            if job.name == name and job.owner != context.session.owner:
                raise Rejected(f"the name {name!r} is taken; choose another")
        owned = await self._owned(context)
        for job in owned:
            if job.name != name and self._is_over(job):
                await self._jobs.remove(job.name)
                owned = [each for each in owned if each is not job]
        if len(owned) >= JOBS_MAX and all(job.name != name for job in owned):
            raise Rejected(f"{JOBS_MAX} jobs are planned already; remove one first")
        return next((job for job in owned if job.name == name), None)

    def _is_over(self, job: Job) -> bool:
        over = cron.is_once(job.schedule) and cron.upcoming(job.schedule, job.last_instant) is None
        return over and self._clock.now_ms() - job.last_instant > KEPT_MS

    async def _owned(self, context: CallContext) -> list[Job]:
        return [job for job in await self._jobs.list() if job.owner == context.session.owner]

    def _planned(self, schedule: str, context: CallContext) -> str:
        wish = " ".join(schedule.split())
        if match := _IN.fullmatch(wish):
            # Relative to the start of the turn, so that a repeated call means the same moment.
            began = context.turn.started_at or self._clock.now_ms()
            return cron.once(began + int(match[1]) * _UNITS_MS[match[2].lower()])
        if re.match(r"\d{4}-\d\d-\d\d", wish):
            return cron.once(cron.moment_of(wish))
        return wish

    def _deliver(self, args: ScheduleArgs, context: CallContext) -> tuple[str | None, str]:
        """Return the target of the results, and a note about it."""
        if args.deliver in NOWHERE:
            return None, ""
        if args.deliver != HERE:
            self._targets.find(args.deliver)
            return args.deliver, ""
        own = own_target(context)
        if not context.delivers_later or own is None:
            return None, UNSUPPORTED
        return own, ""

    def _shown(self, job: Job) -> str:
        due = None if job.paused else cron.upcoming(job.schedule, max(job.last_instant, self._clock.now_ms()))
        when = "paused" if job.paused else f"next {_local(due)}" if due else "not due any more"
        where = f", to {job.deliver}" if job.deliver else ""
        return f"{job.name!r} ({job.schedule}; {when}{where}): {job.prompt[:200]}"


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


def _local(instant: int) -> str:
    return datetime.fromtimestamp(instant / 1000, cron.local_zone()).isoformat(timespec="minutes")
