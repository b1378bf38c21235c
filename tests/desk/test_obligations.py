"""What waits, runs and is due, at the desk of this process over a real engine and store."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from holdfast.clock import Clock, SystemClock
from holdfast.core.effects import Effect
from holdfast.core.intake import Image
from holdfast.core.processes import Process, ProcessEvent
from holdfast.core.questions import APPROVAL_CHOICES, About, Question, fingerprint
from holdfast.core.turns import TurnState
from holdfast.desk.approvals import find
from holdfast.desk.lifecycle import Lifecycle
from holdfast.desk.local import LocalDesk
from holdfast.desk.plans import Opening, Plan
from holdfast.desk.reading import StoreReading
from holdfast.desk.views import AgentView, ApprovalView, SessionView
from holdfast.engine.engine import Engine
from holdfast.errors import IllegalMove, NotFound, Rejected
from holdfast.ids import CallId, ProcessId, SessionId, TurnId
from holdfast.ports import Assignment, Output, Stage, Use
from holdfast.store.store import Store
from holdfast.targets import Targets
from tests.engine.world import ManualClock, Open, RecordingCarrier, opened, running_engine, until

PNG = b"\x89PNG\r\n\x1a\n" + bytes(16)


class Shell:
    """A tool that only says what it would have done."""

    name = "terminal"
    effect = Effect.EFFECTFUL

    async def run(self, args: Mapping[str, object], key: str) -> str:
        return f"ran {args['command']}"


class Asking:
    """An agent that runs what it is told once it may; "ask …" is a question of its own."""

    async def run(self, work: Assignment, stage: Stage) -> str:
        said = work.message
        if said.startswith("ask "):
            return await stage.ask(Question(id="q", text=said[4:], choices=("north", "south")))
        if said == "/compress":
            return "compacted"
        question = Question(
            id="approve",
            text=f"May I run {said}?",
            about=About.APPROVAL,
            choices=APPROVAL_CHOICES,
            fingerprint=fingerprint(command=said),
            detail={"command": said},
        )
        use = Use(tool=Shell(), call_id=CallId("call_1"), args={"command": said}, question=question)
        (call,) = await stage.use_all([use])
        return f"{call.state}: {call.result}"


class Kept:
    """Background commands whose output is known, and which end at once when they are told to."""

    def __init__(self, store: Store) -> None:
        self.store = store

    async def output(self, process_id: ProcessId, after: int, limit: int, *, colours: bool = False) -> Output:
        text = "one\ntwo\nthree\n"[after : after + limit]
        return Output(text=text, begin=after, end=after + len(text))

    async def kill(self, process_id: ProcessId) -> Process:
        return await self.store.processes.end(process_id, ProcessEvent.EXIT, -9, 5)


def desk_of(store: Store, engine: Engine, owner: str = "local", clock: Clock | None = None) -> LocalDesk:
    clock = clock or SystemClock()
    life = Lifecycle(clock, home="", store="")
    view = AgentView(model="mine:small", tools=("terminal",), sandbox="none")
    return LocalDesk(
        store=store,
        engine=engine,
        lifecycle=life,
        clock=clock,
        owner=owner,
        control=Kept(store),
        describe=lambda: view,
        targets=Targets({"chat": RecordingCarrier()}),
    )


async def waiting(desk: LocalDesk, text: str, key: str = "chat") -> ApprovalView:
    """Send a message and return the question that its turn waits with."""
    session = await desk.open(Opening(key=key))
    turn_id = (await desk.send(session.id, text)).turn_id

    async def look() -> ApprovalView | None:
        return next((each for each in (await desk.approvals.list()).items if each.turn_id == turn_id), None)

    return await until(look)


async def said(desk: LocalDesk, turn_id: TurnId) -> str:
    async def look() -> bool:
        return (await desk.turn(turn_id)).state is TurnState.COMPLETED

    await until(look)
    entries = await desk.store.journal.read_turn(turn_id)
    return str(entries[-1].data["text"])


async def test_an_approval_is_listed_with_what_it_is_about_and_answered_by_its_short_id(open_it: Open) -> None:
    async with opened(open_it) as store, running_engine(store, Asking()) as engine:
        desk = desk_of(store, engine)
        asked = await waiting(desk, "rm -rf build")
        assert (asked.about, asked.text, asked.detail) == (
            About.APPROVAL,
            "May I run rm -rf build?",
            {"command": "rm -rf build"},
        )
        assert asked.choices == tuple(APPROVAL_CHOICES)
        assert len(asked.id) < 16
        other = await waiting(desk, "rm -rf dist", key="other")
        assert [each.id for each in (await desk.approvals.list()).items] == [asked.id, other.id]
        assert [each.id for each in (await desk.approvals.list(session_id=other.session_id)).items] == [other.id]
        for name in (asked.id, asked.id[:-1], asked.turn_id):
            assert await find(desk.approvals, name) == asked
        for nobody in ("", "trn_0", "zzzz"):
            with pytest.raises(NotFound):
                await find(desk.approvals, nobody)
        status = await desk.status()
        assert (status.questions, status.agent.model) == (2, "mine:small")
        await desk.answer(asked.turn_id, "once", asked.question_id)
        assert await said(desk, asked.turn_id) == "ok: ran rm -rf build"
        await desk.answer(other.turn_id, "deny", other.question_id)
        assert (await said(desk, other.turn_id)).startswith("error: Not run: denied")
        assert (await desk.approvals.list()).items == []


async def test_open_questions_come_in_pages(open_it: Open) -> None:
    async with opened(open_it) as store, running_engine(store, Asking()) as engine:
        desk = desk_of(store, engine)
        ids = [(await waiting(desk, f"rm {n}", key=f"chat {n}")).id for n in range(3)]
        first = await desk.approvals.list(limit=2)
        assert [each.id for each in first.items] == ids[:2]
        rest = await desk.approvals.list(limit=2, cursor=first.next_cursor)
        assert ([each.id for each in rest.items], rest.next_cursor) == (ids[2:], None)
        with pytest.raises(Rejected, match="no cursor"):
            await desk.approvals.list(cursor="never")


async def test_what_is_granted_is_listed_and_can_be_taken_back(open_it: Open) -> None:
    async with opened(open_it) as store, running_engine(store, Asking()) as engine:
        desk = desk_of(store, engine)
        asked = await waiting(desk, "make clean")
        await desk.answer(asked.turn_id, "always", asked.question_id)
        await said(desk, asked.turn_id)
        (grant,) = (await desk.approvals.grants()).items
        assert (grant.text, grant.session_id) == ("May I run make clean?", None)
        # Exactly this is not asked again, wherever it is wanted.
        session = await desk.open(Opening(key="elsewhere"))
        free = await desk.send(session.id, "make clean")
        assert await said(desk, free.turn_id) == "ok: ran make clean"
        with pytest.raises(NotFound):
            await desk_of(store, engine, owner="somebody").approvals.revoke(grant.id)
        with pytest.raises(NotFound):
            await desk.approvals.revoke("")
        assert (await desk.approvals.revoke(grant.id)).id == grant.id
        assert (await desk.approvals.grants()).items == []
        again = await waiting(desk, "make clean", key="once more")
        await desk.cancel(again.turn_id)


async def test_questions_of_others_are_not_there(open_it: Open) -> None:
    async with opened(open_it) as store, running_engine(store, Asking()) as engine:
        desk = desk_of(store, engine)
        asked = await waiting(desk, "ask which way")
        assert (asked.about, asked.choices) == (About.ANSWER, ("north", "south"))
        assert (await desk_of(store, engine, owner="somebody").approvals.list()).items == []
        # What can be read while no gateway runs is the same.
        assert (await StoreReading(store=store).approvals.list()).items == [asked]
        await desk.answer(asked.turn_id, "north")
        assert await said(desk, asked.turn_id) == "north"


async def started(store: Store, session: SessionView, n: int) -> ProcessId:
    process_id = ProcessId(f"prc_{n}")
    await store.processes.add(
        Process(
            id=process_id,
            session_id=session.id,
            turn_id=TurnId("trn_1"),
            owner="local",
            home="/home",
            command=f"sleep {n}",
            workdir="/work",
            started_at=n,
        )
    )
    return process_id


async def test_processes_are_listed_read_and_ended(open_it: Open) -> None:
    async with opened(open_it) as store, running_engine(store, Asking()) as engine:
        desk = desk_of(store, engine)
        session = await desk.open(Opening(key="chat"))
        ids = [await started(store, session, n) for n in range(1, 4)]
        first = await desk.processes.list(limit=2)
        assert [each.id for each in first.items] == [ids[2], ids[1]]
        rest = await desk.processes.list(limit=2, cursor=first.next_cursor)
        assert ([each.id for each in rest.items], rest.next_cursor) == ([ids[0]], None)
        assert (await desk.processes.list(session_id=SessionId("ses_other"))).items == []
        assert (await desk.status()).processes == 3
        output = await desk.processes.output(ids[0], 4, 4)
        assert (output.text, output.begin, output.end) == ("two\n", 4, 8)
        killed = await desk.processes.kill(ids[0])
        assert (killed.state, killed.exit_code) == ("exited", -9)
        assert [each.id for each in (await desk.processes.list(state=killed.state)).items] == [ids[0]]
        other = desk_of(store, engine, owner="somebody").processes
        for ask in (other.get(ids[1]), other.output(ids[1]), other.kill(ids[1]), desk.processes.get(ProcessId("prc_0"))):
            with pytest.raises(NotFound):
                await ask


async def test_a_job_is_added_changed_paused_run_and_removed(open_it: Open) -> None:
    async with opened(open_it) as store, running_engine(store, Asking()) as engine:
        desk = desk_of(store, engine)
        jobs = desk.jobs
        job = await jobs.save(Plan(name="tides", schedule="30 7 * * *", prompt="ask when", deliver="log"))
        assert job.next_at
        assert (job.schedule, job.paused, job.deliver) == ("30 7 * * *", False, "log")
        assert (await jobs.pause("tides")).next_at is None
        changed = await jobs.save(Plan(name="tides", schedule="0 8 * * *", prompt="ask when", deliver="chat:1"))
        # A change lets it rest as before.
        assert (changed.schedule, changed.paused, changed.deliver) == ("0 8 * * *", True, "chat:1")
        assert not (await jobs.resume("tides")).paused
        receipt = await jobs.run("tides")
        assert (await desk.session(receipt.session_id)).channel == "cron"
        (slot,) = (await jobs.get("tides")).slots
        assert slot.turn_id == receipt.turn_id
        assert [each.name for each in (await jobs.list()).items] == ["tides"]
        other = desk_of(store, engine, owner="somebody").jobs
        assert (await other.list()).items == []
        for ask in (other.get("tides"), other.run("tides"), other.remove("tides"), jobs.pause("none")):
            with pytest.raises(NotFound):
                await ask
        with pytest.raises(Rejected, match="taken"):
            await other.save(Plan(name="tides", schedule="* * * * *", prompt="mine"))
        await jobs.remove("tides")
        assert (await jobs.list()).items == []


async def test_a_job_runs_each_time_it_is_told_to_whatever_the_clock_says(open_it: Open) -> None:
    clock = ManualClock(SystemClock().now_ms())
    async with opened(open_it) as store, running_engine(store, Asking()) as engine:
        jobs = desk_of(store, engine, clock=clock).jobs
        await jobs.save(Plan(name="tides", schedule="30 7 * * *", prompt="ask when"))
        runs = [await jobs.run("tides"), await jobs.run("tides")]
        await clock.advance(-3_600_000)
        runs.append(await jobs.run("tides"))
        assert len({run.turn_id for run in runs}) == len((await jobs.get("tides")).slots) == 3


@pytest.mark.parametrize(
    ("plan", "problem"),
    [
        (Plan(name="a", schedule="often", prompt="p"), "is not a schedule"),
        (Plan(name="a", schedule="61 * * * *", prompt="p"), "is not a schedule"),
        (Plan(name="", schedule="* * * * *", prompt="p"), "name of a job"),
        (Plan(name="a\nb", schedule="* * * * *", prompt="p"), "name of a job"),
        (Plan(name="a", schedule="* * * * *", prompt=" "), "prompt of a job"),
        (Plan(name="a", schedule="* * * * *", prompt="p", deliver="nowhere:1"), "'nowhere:1'; targets are chat:<address>"),
        (Plan(name="a", schedule="* * * * *", prompt="p", deliver="chat:nobody"), "'chat:nobody' is nobody: use a number"),
    ],
)
async def test_a_job_that_cannot_be_is_refused(open_it: Open, plan: Plan, problem: str) -> None:
    async with opened(open_it) as store, running_engine(store, Asking()) as engine:
        with pytest.raises(Rejected, match=problem):
            await desk_of(store, engine).jobs.save(plan)


async def test_memories_are_added_found_and_forgotten(open_it: Open) -> None:
    async with opened(open_it) as store, running_engine(store, Asking()) as engine:
        memories = desk_of(store, engine).memories
        added = await memories.add("  likes the sea  ")
        assert added.text == "likes the sea"
        assert [each.id for each in (await memories.search("sea")).items] == [added.id]
        assert [each.id for each in (await memories.list()).items] == [added.id]
        other = desk_of(store, engine, owner="somebody").memories
        assert (await other.list()).items == []
        with pytest.raises(NotFound):
            await other.remove(added.id)
        await memories.remove(added.id)
        assert (await memories.list()).items == []
        for nothing, reason in (("  ", "some text"), ("x" * 3_000, "at most 1,000"), ("\x1b[2J", "control character")):
            with pytest.raises(Rejected, match=reason):
                await memories.add(nothing)


async def test_pictures_reach_the_turn_within_bounds(open_it: Open) -> None:
    async with opened(open_it) as store, running_engine(store, Asking()) as engine:
        desk = desk_of(store, engine)
        session = await desk.open(Opening(key="chat"))
        picture = Image(media_type="image/png", data=PNG)
        receipt = await desk.send(session.id, "ask what it shows", images=[picture])
        assert await store.turns.images(receipt.turn_id) == [picture]
        for images, problem in (
            ([picture] * 5, "4 images at most"),
            ([Image(media_type="image/png", data=PNG + bytes(5 * 1024 * 1024))], "is the most"),
            ([Image(media_type="image/jpeg", data=PNG)], "not the image/jpeg it is said to be, but image/png"),
            ([Image(media_type="image/svg+xml", data=b"<svg/>")], "is not one of"),
            ([Image(media_type="image/gif", data=b"")], "but no image"),
        ):
            with pytest.raises(Rejected, match=problem):
                await desk.send(session.id, "look", images=images)


async def test_compacting_is_a_turn_of_an_open_session(open_it: Open) -> None:
    async with opened(open_it) as store, running_engine(store, Asking()) as engine:
        desk = desk_of(store, engine)
        session = await desk.open(Opening(key="chat"))
        receipt = await desk.compact(session.id)
        assert await said(desk, receipt.turn_id) == "compacted"
        await desk.end(session.id)
        with pytest.raises(IllegalMove, match="is ended: it cannot be compacted"):
            await desk.compact(session.id)
