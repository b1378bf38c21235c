"""Jobs are planned by the agent: its owner's only, at times that there are, with results that say where they go."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.agent.tools.schedule import JOBS_MAX, UNSUPPORTED, schedule_tool
from holdfast.core.questions import ONCE_CHOICES, About
from holdfast.core.redaction import MASK, Redaction
from holdfast.core.schedule import Job
from holdfast.core.turns import Mode
from holdfast.cron import next_instant
from holdfast.engine.scheduler import Scheduler
from holdfast.errors import Rejected
from holdfast.store.store import Store
from tests.engine.world import FAST, Open, RecordingCarrier, opened
from tests.tools.contexts import START, call_context

SECRET = "open-sesame-42"
DAY = 86_400_000


class Clock:
    """A clock that stands where it was put."""

    def __init__(self, now_ms: int = START) -> None:
        self.now = now_ms

    def now_ms(self) -> int:
        return self.now

    def monotonic_ms(self) -> int:
        return self.now

    async def sleep_ms(self, duration_ms: float) -> None:
        raise AssertionError("nobody sleeps here")


def tool(store: Store, clock: Clock | None = None) -> Any:
    return schedule_tool(
        store.jobs, store.sessions.find, {"chat": RecordingCarrier()}, Redaction([SECRET]), clock or Clock()
    )


def add(name: str = "report", schedule: str = "30 7 * * 1-5", **more: str) -> dict[str, str]:
    return {"action": "add", "name": name, "schedule": schedule, "prompt": "Report.", **more}


async def test_a_job_is_added_listed_and_removed(open_it: Open) -> None:
    async with opened(open_it) as store:
        here = call_context(reply_to="chat:1")
        assert (await tool(store).run(add(), here)).startswith("Planned: 'report' (30 7 * * 1-5; next ")
        (job,) = await store.jobs.list()
        assert (job.owner, job.deliver, job.last_instant, job.paused) == ("local", "chat:1", START, False)
        assert "to chat:1): Report." in await tool(store).run({"action": "list"}, here)
        assert (await tool(store).run(add(prompt="More."), here)).startswith("Changed: ")
        assert [job.prompt for job in await store.jobs.list()] == ["More."]
        assert "does not run any more" in await tool(store).run({"action": "remove", "name": "report"}, here)
        assert await tool(store).run({"action": "list"}, here) == "Nothing is planned."


@pytest.mark.parametrize(
    ("schedule", "instant"),
    [
        ("in 20 minutes", START + 20 * 60_000),
        ("In  1 hour", START + 3_600_000),
        ("in 2 weeks", START + 14 * DAY),
        ("2031-05-04T09:30Z", 1_935_653_400_000),
    ],
)
async def test_what_is_wanted_once_is_due_once(open_it: Open, schedule: str, instant: int) -> None:
    async with opened(open_it) as store:
        for _ in range(2):
            # A repeated call means the same moment.
            await tool(store).run(add(schedule=schedule), call_context(started_at=START, reply_to="chat:1"))
        (job,) = await store.jobs.list()
        assert next_instant(job.schedule, START) == instant
        assert "not due any more" in await tool(store, Clock(instant)).run({"action": "list"}, call_context())


async def test_a_reminder_that_fired_before_its_call_was_repeated_stays_as_it_is(open_it: Open) -> None:
    """R10: what was planned by the first attempt may be over when the second one asks for it."""
    async with opened(open_it) as store:
        here = call_context(started_at=START, reply_to="chat:1")
        await tool(store).run(add(schedule="in 1 minute"), here)
        late = Clock(START + DAY // 2)
        await Scheduler(store, FAST, late).fire_due()
        assert "not due any more" in await tool(store, late).run(add(schedule="in 1 minute"), here)
        await Scheduler(store, FAST, late).fire_due()
        assert len(await store.jobs.slots("report")) == 1


@pytest.mark.parametrize(
    "args",
    [
        add(name=" "),
        add(name="a\nb"),
        add(name="a/b"),
        add(prompt=" "),
        add(schedule=""),
        add(schedule="* * * * * *"),
        add(schedule="in 0 fortnights"),
        add(schedule="2001-01-01T00:00"),
        add(schedule="0 0 30 2 *"),
        add(deliver="pigeon:1"),
        {"action": "remove", "name": "nothing"},
        {"action": "explode"},
        {},
    ],
)
async def test_what_cannot_be_planned_is_refused_and_nothing_is_kept(open_it: Open, args: dict[str, str]) -> None:
    async with opened(open_it) as store:
        with pytest.raises(Rejected):
            await tool(store).run(args, call_context())
        assert await store.jobs.list() == []


@pytest.mark.parametrize("facts", [{"delivers_later": False, "reply_to": "chat:1"}, {"reply_to": None}])
async def test_a_promise_that_cannot_be_kept_is_not_made(open_it: Open, facts: dict[str, Any]) -> None:
    """A1, A2, A3: the job is planned, nothing is promised, and the note says what to do instead."""
    async with opened(open_it) as store:
        assert UNSUPPORTED in await tool(store).run(add(), call_context(**facts))
        assert [job.deliver for job in await store.jobs.list()] == [None]
        assert UNSUPPORTED not in await tool(store).run(add(deliver="none"), call_context(**facts))


async def test_a_job_needs_a_persons_word_whatever_it_does(open_it: Open) -> None:
    """SECURITY 90: it acts when nobody looks; the person sees all of it, and approves exactly that, once."""
    async with opened(open_it) as store:
        here = call_context(reply_to="chat:1")
        asked = {}
        for args in (add(), add(deliver="chat:99"), add(deliver="none"), add(prompt="Other."), add(schedule="in 1 hour")):
            question = await tool(store).question(args, here)
            assert (question.about, question.choices) == (About.APPROVAL, ONCE_CHOICES)
            assert args["prompt"] in question.text
            assert args["schedule"] in question.text
            asked[question.fingerprint] = question.text
        assert len(asked) == 5
        assert "go to chat:99" in [*asked.values()][1]
        assert await tool(store).question({"action": "list"}, here) is None
        with pytest.raises(Rejected, match="nobody can be asked"):
            await tool(store).question(add(), call_context(mode=Mode.SYNCHRONOUS))
        with pytest.raises(Rejected, match="targets are chat"):
            await tool(store).question(add(deliver="pigeon:1"), here)


async def test_jobs_of_others_are_neither_seen_nor_touched(open_it: Open) -> None:
    async with opened(open_it) as store:
        theirs = Job(name="report", owner="ann", schedule="* * * * *", prompt="P", created_at=START, last_instant=START)
        await store.jobs.save(theirs)
        assert await tool(store).run({"action": "list"}, call_context()) == "Nothing is planned."
        for args in (add(), {"action": "remove", "name": "report"}):
            with pytest.raises(Rejected):
                await tool(store).run(args, call_context())
        assert await store.jobs.list() == [theirs]


async def test_there_is_room_for_so_many_and_what_is_over_makes_room(open_it: Open) -> None:
    async with opened(open_it) as store:
        for number in range(JOBS_MAX - 1):
            await tool(store).run(add(f"job {number}"), call_context())
        await tool(store).run(add("reminder", "in 1 minute"), call_context(started_at=START))
        with pytest.raises(Rejected, match="remove one first"):
            await tool(store).run(add("one more"), call_context())
        later = Clock(START + 2 * DAY)
        for each in await store.jobs.list():
            if each.name == "reminder":
                await store.jobs.miss("reminder", START + 60_000)
        await tool(store, later).run(add("one more"), call_context())
        assert "reminder" not in [job.name for job in await store.jobs.list()]


async def test_a_secret_is_not_planned(open_it: Open) -> None:
    """K1"""
    async with opened(open_it) as store:
        await tool(store).run(add(prompt=f"say {SECRET}"), call_context())
        assert [job.prompt for job in await store.jobs.list()] == [f"say {MASK}"]
