"""Memory, asked in this process: what is remembered, what is owed, and to whom, over a real engine and store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from holdfast.app.services import ServiceParts, offline_services
from holdfast.clock import SystemClock
from holdfast.core.facts import Memory, MemoryKind, Recollection
from holdfast.core.redaction import Redaction
from holdfast.core.segments import Debt, Segment, SegmentState, SpokenMessage
from holdfast.core.sessions import Session
from holdfast.engine.engine import Engine
from holdfast.errors import IllegalMove, NotFound, Rejected, Unavailable
from holdfast.ids import MemoryId, SegmentId, SessionId, new_memory_id
from holdfast.memory.bindings import MemoryBindings
from holdfast.operations.caller import Caller
from holdfast.operations.forgetting import Forgetting
from holdfast.operations.lifecycle import Lifecycle
from holdfast.operations.memories import Edit, Remembered
from holdfast.operations.replay import Replaying
from holdfast.operations.segments import FAILED
from holdfast.operations.services import Services
from holdfast.ports import Assignment, Stage
from holdfast.store.store import Store
from tests.engine.world import Hang, Open, RecordingMemory, answered, opened, running_engine
from tests.operations.asking import paid

HERE = "memory:main"


class Echo:
    """An agent that says what it hears, and holds nothing."""

    async def run(self, work: Assignment, stage: Stage) -> str:
        return work.message

    async def release(self, session_id: SessionId) -> None:
        """Nothing to let go of."""


class Elsewhere(RecordingMemory):
    """A provider that keeps what it is given where we cannot see it."""

    def __init__(self, *answers: object, owner: str = HERE, ill: BaseException | Hang | None = None) -> None:
        super().__init__(*answers, owner=owner)
        self.kept = {"m1": "likes tea", "m2": "likes the sea"}
        self.forgot: list[tuple[str, str | None, SessionId | None]] = []
        self._ill = ill

    async def recall(self, session: Session, query: str, limit: int) -> Sequence[Recollection]:
        await self._suffer()
        return [Recollection(text=text, id=id_) for id_, text in self.kept.items() if query in text][:limit]

    async def forget(self, person: str, *, memory_id: str | None = None, session_id: SessionId | None = None) -> int:
        await self._suffer()
        self.forgot.append((person, memory_id, session_id))
        if session_id:
            return 2
        return int(self.kept.pop(memory_id or "", None) is not None)

    async def check(self) -> str:
        await self._suffer()
        return "recalls in 1 ms"

    async def _suffer(self) -> None:
        if isinstance(self._ill, Hang):
            await self._ill.wait()
        elif self._ill:
            raise self._ill


def services_of(store: Store, engine: Engine, owner: str = "local") -> Services:
    clock = SystemClock()
    life = Lifecycle(clock, home="", store="")
    parts = ServiceParts(store=store, engine=engine, lifecycle=life, clock=clock)
    return parts.services(Caller(owner=owner))


async def talked(engine: Engine, store: Store, *texts: str, **changes: str) -> SessionId:
    """Say something in a conversation, and return its session."""
    for text in texts or ("hello",):
        turn = await answered(engine, store, text, **changes)
    return turn.session_id


async def test_what_is_owed_is_counted_shown_and_paid(open_it: Open) -> None:
    """M4 M6: committing pays what is owed and answers True; with nothing new it answers False and calls nobody."""
    provider = Elsewhere(Unavailable("away"))
    bindings = MemoryBindings(provider)
    async with opened(open_it) as store, running_engine(store, Echo(), memory=bindings) as engine:
        memories = services_of(store, engine).memories
        session_id = await talked(engine, store, "one", "two")
        status = await memories.status()
        assert (status.counts.open, status.counts.owed, status.owing) == (1, 0, [])
        assert status.provider
        assert (status.provider.owner, status.provider.healthy, status.provider.detail) == (HERE, True, "recalls in 1 ms")
        assert not await paid(memories, session_id)
        status = await memories.status()
        assert (status.counts.owed, status.counts.failed, status.owing_sessions) == (1, 1, 1)
        (owing,) = status.owing
        assert (owing.session_id, owing.key, owing.segments) == (session_id, "chat:1", 1)
        assert (owing.next.state, owing.next.attempt, owing.next.error) == (SegmentState.SEALED, 1, "away")
        assert owing.next.next_try_at
        assert await paid(memories, session_id)
        assert not await paid(memories, session_id)
        assert len(provider.given) == 2
        (receipt,) = (await memories.segments(session_id=session_id)).items
        assert (receipt.state, receipt.generations, receipt.attempt) == (SegmentState.COMMITTED, (1, 2), 2)
        assert (receipt.receipt, receipt.error, receipt.next_try_at) == ("4 messages read", None, None)
        assert receipt.settled_at
        assert receipt.turns == [turn.id for turn in await store.turns.list(session_id)]
        status = await memories.status()
        assert (status.counts.committed, status.counts.owed, status.owing) == (1, 0, [])


async def test_no_session_owes_nothing_and_one_that_is_not_there_is_said_so(open_it: Open) -> None:
    """M12: an empty id is a safe no-op."""
    async with opened(open_it) as store, running_engine(store, Echo(), memory=MemoryBindings(Elsewhere())) as engine:
        memories = services_of(store, engine).memories
        assert not await paid(memories, SessionId(""))
        for ask in (paid(memories, SessionId("ses_none")), memories.segments(session_id=SessionId("ses_none"))):
            with pytest.raises(NotFound):
                await ask


async def test_segments_come_in_pages_and_by_how_they_stand(open_it: Open) -> None:
    async with opened(open_it) as store, running_engine(store, Echo(), memory=MemoryBindings(Elsewhere())) as engine:
        memories = services_of(store, engine).memories
        sessions = [await talked(engine, store, conversation=f"chat:{n}") for n in range(3)]
        await paid(memories, sessions[1])
        first = await memories.segments(limit=2)
        rest = await memories.segments(limit=2, cursor=first.next_cursor)
        assert [each.session_id for each in (*first.items, *rest.items)] == sessions[::-1]
        assert rest.next_cursor is None
        assert [each.session_id for each in (await memories.segments(state=SegmentState.COMMITTED)).items] == [sessions[1]]
        assert [each.session_id for each in (await memories.segments(unpaid=True)).items] == [sessions[2], sessions[0]]
        assert (await memories.segments(unpaid=True, state=SegmentState.COMMITTED)).items == []
        with pytest.raises(Rejected, match="no cursor"):
            await memories.segments(cursor="never")


async def test_what_is_owed_to_nobody_here_is_parked_until_a_person_waives_it(open_it: Open) -> None:
    """M3: nobody else is given it; waived, it lets later segments go on."""
    gone, here = Elsewhere(owner="elephant:zoo"), Elsewhere()
    async with opened(open_it) as store:
        async with running_engine(store, Echo(), memory=MemoryBindings(gone)) as engine:
            session_id = await talked(engine, store, "to the elephant")
        async with running_engine(store, Echo(), memory=MemoryBindings(here)) as engine:
            memories = services_of(store, engine).memories
            await talked(engine, store, "to whoever is here")
            assert not await paid(memories, session_id)
            status = await memories.status()
            assert (status.counts.parked, status.counts.owed, status.counts.failed) == (1, 1, 0)
            (owing,) = status.owing
            assert (owing.next.parked, owing.next.owner, owing.next.next_try_at) == (True, "elephant:zoo", None)
            assert owing.segments == 2
            assert (await memories.tally()).debt.parked == 1
            waived = await memories.waive(owing.next.id)
            assert (waived.state, waived.parked) == (SegmentState.WAIVED, False)
            with pytest.raises(IllegalMove):
                await memories.waive(waived.id)
            assert await paid(memories, session_id) or not (await memories.segments(unpaid=True)).items
            assert (gone.given, here.taken_of(session_id)) == ([], ["to whoever is here"] * 2)
            with pytest.raises(NotFound):
                await memories.waive(SegmentId("seg_none"))


async def test_what_is_anothers_is_not_there_and_where_memory_is_kept_is_the_operators_to_know(open_it: Open) -> None:
    """SECURITY 14"""
    provider = Elsewhere(Unavailable("http://10.0.0.1 is away"), owner="http:http://10.0.0.1")
    async with opened(open_it) as store, running_engine(store, Echo(), memory=MemoryBindings(provider)) as engine:
        mine, hers = services_of(store, engine).memories, services_of(store, engine, owner="alice").memories
        session_id = await talked(engine, store, owner="alice")
        assert not await paid(hers, session_id)
        (segment,) = (await hers.segments()).items
        assert (segment.owner, segment.error) == ("http", FAILED)
        status = await hers.status()
        assert status.provider
        assert (status.provider.owner, status.provider.healthy, status.provider.detail) == ("http", True, "")
        assert (await mine.segments()).items == []
        assert (await mine.status()).counts.owed == 0
        for ask in (paid(mine, session_id), mine.forget(Forgetting(session_id=session_id))):
            with pytest.raises(NotFound):
                await ask
        with pytest.raises(NotFound):
            await services_of(store, engine, owner="bob").memories.waive(segment.id)
        # Whom debts can be paid to is the operator's to say.
        assert (await mine.waive(segment.id)).state is SegmentState.WAIVED


async def test_a_provider_that_is_ill_is_shown_so_and_keeps_nothing_from_being_seen(open_it: Open) -> None:
    provider = Elsewhere(ill=Unavailable("it has a cold"))
    async with opened(open_it) as store, running_engine(store, Echo(), memory=MemoryBindings(provider)) as engine:
        memories = services_of(store, engine).memories
        await memories.add(Remembered(text="likes the sea"))
        session_id = await talked(engine, store)
        status = await memories.status()
        assert status.provider
        assert (status.provider.healthy, status.provider.detail, status.counts.facts) == (False, "it has a cold", 1)
        recalled = await memories.recall("sea")
        assert (recalled.provider, recalled.items, recalled.problem) == (HERE, (), "it has a cold")
        forgotten = await memories.forget(Forgetting(session_id=session_id))
        assert (forgotten.forgotten, forgotten.problems) == (0, ["it has a cold"])
        with pytest.raises(NotFound, match="it has a cold"):
            await memories.remove(MemoryId("m1"))


async def test_nobody_who_looks_waits_for_a_provider_that_hangs(open_it: Open) -> None:
    provider = Elsewhere(ill=Hang())
    async with opened(open_it) as store, running_engine(store, Echo(), memory=MemoryBindings(provider)) as engine:
        session_id = await talked(engine, store)
        memories = replace(services_of(store, engine).memories, provider_timeout_s=0.01)
        status, late = await memories.status(), "the provider did not answer within 0.01 seconds"
        assert status.provider
        assert (status.provider.healthy, status.provider.detail, status.counts.open) == (False, late, 1)
        assert (await memories.recall("sea")).problem == late
        assert (await memories.forget(Forgetting(session_id=session_id))).problems == [late]
        # Not even once for each of many.
        forgotten = await memories.forget(Forgetting(ids=("m1", "m2", "m3")))
        assert (forgotten.problems, forgotten.missing) == ([late], ["m1", "m2", "m3"])


async def test_what_a_provider_elsewhere_recalls_is_found_and_forgotten_there(open_it: Open) -> None:
    provider = Elsewhere()
    async with opened(open_it) as store, running_engine(store, Echo(), memory=MemoryBindings(provider)) as engine:
        memories = services_of(store, engine).memories
        # There is no conversation yet that it could recall for.
        assert (await memories.recall("sea")).items == ()
        session_id = await talked(engine, store)
        recalled = await memories.recall("sea")
        assert [(each.id, each.text) for each in recalled.items] == [("m2", "likes the sea")]
        assert (await memories.recall("  ")).items == ()
        own = await memories.add(Remembered(text="has a boat"))
        forgotten = await memories.forget(Forgetting(ids=(own.id, "m2", "m2", "m9")))
        assert (forgotten.forgotten, forgotten.elsewhere, forgotten.missing) == (1, 1, ["m9"])
        assert provider.kept == {"m1": "likes tea"}
        await memories.remove(MemoryId("m1"))
        assert provider.kept == {}
        await paid(memories, session_id)
        await talked(engine, store, "more")
        forgotten = await memories.forget(Forgetting(session_id=session_id))
        assert (forgotten.elsewhere, forgotten.owed) == (2, 1)
        assert provider.forgot[-1] == ("local", None, session_id)


async def test_what_is_recalled_elsewhere_is_bounded_legible_and_without_secrets(open_it: Open) -> None:
    provider = Elsewhere()
    provider.kept = {f"m{n}": f"sea {n} \x1b[2J\u202eopen-sesame-42 " + "x" * 5_000 for n in range(100)}
    async with opened(open_it) as store, running_engine(store, Echo(), memory=MemoryBindings(provider)) as engine:
        await talked(engine, store)
        memories = replace(services_of(store, engine).memories, redaction=Redaction(["open-sesame-42"]))
        told = [each.text for each in (await memories.recall("sea")).items]
        assert told[0].startswith("sea 0 [2J[redacted] xxx")
        assert sum(map(len, told)) < 7_000


async def test_all_that_came_from_a_session_is_forgotten_and_everything_at_once(open_it: Open) -> None:
    async with opened(open_it) as store, running_engine(store, Echo(), memory=None) as engine:
        memories = services_of(store, engine).memories
        turn = await answered(engine, store)
        kept = await memories.add(Remembered(text="has a boat"))
        told = Memory(id=new_memory_id(1), owner="local", text="likes the sea", created_at=1, updated_at=1, turn_id=turn.id)
        await store.memories.add(told)
        await store.memories.add(replace(told, id=new_memory_id(2), owner="alice"))
        forgotten = await memories.forget(Forgetting(session_id=turn.session_id))
        assert (forgotten.forgotten, forgotten.elsewhere, forgotten.problems) == (1, 0, [])
        assert [each.id for each in (await memories.list()).items] == [kept.id]
        assert (await memories.forget(Forgetting(everything=True))).forgotten == 1
        assert (await memories.list()).items == []
        assert len(await store.memories.list("alice")) == 1
        for nothing in ({}, {"ids": ("a",), "everything": True}, {"ids": ("a\0",)}, {"ids": ("a",) * 501}):
            with pytest.raises(Rejected):
                Forgetting(**nothing)


async def test_a_memory_is_changed_and_never_into_a_secret(open_it: Open) -> None:
    async with opened(open_it) as store, running_engine(store, Echo()) as engine:
        memories = services_of(store, engine).memories
        added = await memories.add(Remembered(text="likes  the\nsea"))
        changed = await memories.change(added.id, Remembered(text="likes the hills"))
        assert (changed.id, changed.text) == (added.id, "likes the hills")
        for nothing in (" ", "x" * 1_001, "the password is hunter2hunter2"):
            with pytest.raises(Rejected):
                await memories.change(added.id, Remembered(text=nothing))
            with pytest.raises(Rejected):
                await memories.add(Remembered(text=nothing))
        with pytest.raises(NotFound):
            await services_of(store, engine, owner="alice").memories.change(added.id, Remembered(text="mine"))
        profile = Memory(
            id=new_memory_id(1), owner="local", text="A sailor.", created_at=1, updated_at=1, kind=MemoryKind.PROFILE
        )
        await store.memories.add(profile)
        assert len((await memories.change(profile.id, Remembered(text="A sailor. " * 200))).text) > 1_000
        status = await memories.status()
        assert (status.counts.facts, status.counts.profile, status.provider) == (1, True, None)


async def test_what_is_remembered_is_edited_as_markdown_and_what_came_meanwhile_stays(open_it: Open) -> None:
    async with opened(open_it) as store, running_engine(store, Echo()) as engine:
        memories = services_of(store, engine).memories
        sea, boat = await memories.add(Remembered(text="likes the sea")), await memories.add(Remembered(text="has a boat"))
        base = (await memories.document()).markdown
        assert (await offline_services(store).memories.document()).markdown == base
        later = await memories.add(Remembered(text="said meanwhile"))
        markdown = base.replace("likes the sea", "likes the hills").replace(
            f"- has a boat <!-- {boat.id} -->", "- has a car"
        )
        edited = await memories.edit(Edit(base=base, markdown=markdown))
        assert (edited.added, edited.changed, edited.removed) == (1, 1, 1)
        texts = {each.text: each.id for each in (await memories.list()).items}
        assert texts.keys() == {"likes the hills", "has a car", "said meanwhile"}
        assert (texts["likes the hills"], texts["said meanwhile"]) == (sea.id, later.id)
        assert edited.markdown == (await memories.document()).markdown
        unchanged = await memories.edit(Edit(base=edited.markdown, markdown=edited.markdown))
        assert (unchanged.added, unchanged.changed, unchanged.removed) == (0, 0, 0)
        for bad in ("", edited.markdown + "\n- the password is hunter2hunter2\n"):
            with pytest.raises(Rejected):
                await memories.edit(Edit(base=edited.markdown, markdown=bad))
        assert (await memories.document()).markdown == edited.markdown


def told(provider: RecordingMemory) -> list[tuple[SessionId, list[str]]]:
    return [(segment.session_id, [message.text for message in said]) for segment, said in provider.taken]


async def test_what_was_committed_is_replayed_into_another_provider_once(open_it: Open) -> None:
    """M3: only what is paid or waived, and no debt is touched by it."""
    old, new = RecordingMemory(owner="http:http://old"), RecordingMemory(None, Rejected("too long"), owner="http:http://new")
    bindings = MemoryBindings(old, {"http:http://new": new}.get)
    async with opened(open_it) as store, running_engine(store, Echo(), memory=bindings) as engine:
        services = services_of(store, engine)
        memories = services.memories
        sessions = [await talked(engine, store, f"number {n}", conversation=f"chat:{n}") for n in range(5)]
        for session_id in sessions[:4]:
            assert await paid(memories, session_id)
        hers = await talked(engine, store, owner="alice")
        await paid(services_of(store, engine, owner="alice").memories, hers)
        plan = Replaying(provider="http", url="http://NEW/", limit=2)
        counted = await memories.replay(replace(plan, limit=0))
        assert (counted.provider, counted.replayed, counted.left) == ("http:http://new", 0, 4)
        first = await memories.replay(plan)
        assert (first.replayed, first.failed, first.left) == (1, 1, 3)
        (failure,) = first.failures
        assert (failure.session_id, failure.error) == (sessions[1], "too long")
        second = await memories.replay(replace(plan, skip=(failure.segment_id,)))
        assert (second.replayed, second.failed, second.left) == (2, 0, 1)
        # Asked again, what failed is tried again, and nothing else.
        third = await memories.replay(plan)
        assert (third.replayed, third.left) == (1, 0)
        assert (await memories.replay(plan)).replayed == 0
        order = [sessions[0], sessions[2], sessions[3], sessions[1]]
        assert told(new) == [(each, [f"number {sessions.index(each)}"] * 2) for each in order]
        # The debt that was not paid is still that of its owner.
        (owed,) = (await memories.segments(unpaid=True)).items
        assert (owed.session_id, owed.owner) == (sessions[4], "http:http://old")
        # The operator may do the same for somebody else.
        assert (await memories.replay(replace(plan, person="alice"))).replayed == 1
        assert new.taken[-1][0].session_id == hers
        # Whoever was given it first has it already.
        assert (await memories.replay(Replaying(provider="http"))).left == 0


async def test_a_replay_into_nobody_or_of_nonsense_is_refused(open_it: Open) -> None:
    bindings = MemoryBindings(RecordingMemory(owner="http:http://old"))
    async with opened(open_it) as store, running_engine(store, Echo(), memory=bindings) as engine:
        memories = services_of(store, engine).memories
        for provider, url, problem in (
            ("http", "http://new", "no memory provider 'http'"),
            ("elephant", "", "no memory provider 'elephant'"),
            ("", "", "no memory provider ''"),
            ("http", "ftp://new", "begins with http://"),
            ("http", "http://new:port", "begins with http://"),
        ):
            with pytest.raises(Rejected, match=problem):
                await memories.replay(Replaying(provider=provider, url=url))
        with pytest.raises(Rejected, match="limit"):
            Replaying(provider="http", limit=101)
        with pytest.raises(Rejected, match="skipped"):
            Replaying(provider="http", skip=(SegmentId("seg"),) * 1_001)


class Odd(RecordingMemory):
    """Takes what it is given, and answers with no receipt."""

    async def commit(self, session: Session, segment: Segment, messages: Sequence[SpokenMessage]) -> str:
        await super().commit(session, segment, messages)
        return None  # type: ignore[return-value]  # A plugin may answer with anything.


async def test_whatever_a_plugin_does_with_what_is_replayed_the_gateway_goes_on(open_it: Open) -> None:
    """M6: an exit is a failure like any other, and whoever says nothing has taken it."""
    odd = Odd(SystemExit("I leave"), owner="odd")
    async with (
        opened(open_it) as store,
        running_engine(store, Echo(), memory=MemoryBindings(RecordingMemory(), {"odd": odd}.get)) as engine,
    ):
        memories = services_of(store, engine).memories
        for n in range(2):
            assert await paid(memories, await talked(engine, store, conversation=f"chat:{n}"))
        found = await memories.replay(Replaying(provider="odd"))
        assert (found.replayed, [each.error for each in found.failures]) == (1, ["I leave"])
        assert (await memories.replay(Replaying(provider="odd"))).left == 0


async def test_a_provider_that_exits_when_it_is_looked_at_is_only_ill(open_it: Open) -> None:
    async with (
        opened(open_it) as store,
        running_engine(store, Echo(), memory=MemoryBindings(Elsewhere(ill=SystemExit("I leave")))) as engine,
    ):
        memories = services_of(store, engine).memories
        provider = (await memories.status()).provider
        assert provider
        assert (provider.healthy, provider.detail) == (False, "I leave")


async def test_a_provider_that_takes_nothing_is_not_tried_for_ever(open_it: Open) -> None:
    failing = RecordingMemory(*[Unavailable("down")] * 20, owner="new")
    bindings = MemoryBindings(RecordingMemory(), {"new": failing}.get)
    async with opened(open_it) as store, running_engine(store, Echo(), memory=bindings) as engine:
        memories = services_of(store, engine).memories
        for n in range(8):
            assert await paid(memories, await talked(engine, store, conversation=f"chat:{n}"))
        found = await memories.replay(Replaying(provider="new"))
        assert (found.replayed, found.failed, found.left, len(failing.given)) == (0, 5, 8, 5)


async def test_nothing_runs_that_could_be_asked_and_yet_the_ledger_is_read(open_it: Open) -> None:
    """What can be read while no gateway runs."""
    async with opened(open_it) as store:
        async with running_engine(store, Echo(), memory=MemoryBindings(Elsewhere(Unavailable("away")))) as engine:
            session_id = await talked(engine, store)
            await paid(services_of(store, engine).memories, session_id)
        reading = offline_services(store).memories
        status = await reading.status()
        assert (status.provider, status.counts.owed, status.counts.parked) == (None, 1, 0)
        assert [each.error for each in (await reading.segments(session_id=session_id)).items] == ["away"]
        assert (await reading.recall("anything")).provider == ""
        with pytest.raises(NotFound):
            await offline_services(store, caller=Caller(owner="alice")).memories.segments(session_id=session_id)


async def test_whoever_watches_the_gateway_gets_counts_of_everybody(open_it: Open) -> None:
    async with opened(open_it) as store, running_engine(store, Echo(), memory=MemoryBindings(RecordingMemory())) as engine:
        memories = services_of(store, engine).memories
        await memories.add(Remembered(text="likes the sea"))
        await paid(memories, await talked(engine, store))
        await talked(engine, store, owner="alice")
        tally = await memories.tally()
        assert (tally.settled, tally.debt) == ({SegmentState.COMMITTED: 1, SegmentState.WAIVED: 0}, Debt(unpaid=1, open=1))
        assert (tally.unpaid, tally.facts) == ({HERE: 1}, 1)
