"""What memory is owed is counted once: whoever is asked, on whichever store, says the same of every kind of debt."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

from holdfast.app import doctor
from holdfast.app.build import Builder
from holdfast.app.doctor import Patient
from holdfast.clock import SystemClock
from holdfast.config import Config
from holdfast.core.redaction import Redaction
from holdfast.core.segments import Debt, SegmentEvent, SegmentState
from holdfast.engine.engine import Engine, Parts
from holdfast.ids import SessionId
from holdfast.memory.bindings import MemoryBindings
from holdfast.operations.segments import SegmentView, in_words
from holdfast.operations.services import Services
from tests.conformance.scenes import OWNER, Scene
from tests.engine.world import Open
from tests.operations.test_memories import Echo, Elsewhere, services_of

GONE = "elephant:zoo"
NOTHING = Debt()

Make = Callable[[Scene], Awaitable[object]]


async def spoken(scene: Scene, key: str, *providers: str, sealed: bool = False, **changes: str | bool) -> SessionId:
    """Complete a turn for each provider in turn, and perhaps close the conversation off."""
    for provider in providers or (OWNER,):
        turn = await scene.finish(await scene.running(conversation=key, **changes), memory_owner=provider)
    if sealed:
        await scene.store.segments.seal(turn.session_id, scene.now)
    return turn.session_id


async def settled(scene: Scene, key: str, event: SegmentEvent, provider: str = OWNER) -> None:
    (segment,) = await scene.store.segments.of_session(await spoken(scene, key, provider, sealed=True))
    await scene.commit(segment, event)


async def under_way(scene: Scene) -> None:
    assert await scene.store.segments.claim_one(scene.node, await spoken(scene, "committing", sealed=True), OWNER)


async def cut_off(scene: Scene) -> None:
    """Leave a commit to a node that died; what came of it nobody knows, so it failed."""
    assert await scene.store.segments.claim_one(scene.node, await spoken(scene, "cut", sealed=True), OWNER)
    await scene.store.nodes.leave(scene.node)
    scene.node = await scene.joined()
    await scene.sweep()


async def waived(scene: Scene) -> None:
    (segment,) = await scene.store.segments.of_session(await spoken(scene, "waived", GONE, sealed=True))
    await scene.store.segments.waive(segment.id, scene.now)


KINDS: dict[str, tuple[Make, Debt]] = {
    "a conversation that goes on": (lambda s: spoken(s, "open", OWNER, OWNER), Debt(unpaid=1, open=1)),
    "one that goes on, for a provider that is gone": (lambda s: spoken(s, "still", GONE), Debt(unpaid=1, open=1)),
    "one that is over": (lambda s: spoken(s, "over", sealed=True), Debt(unpaid=1, owed=1)),
    "a run of a job, whose session has ended": (
        lambda s: spoken(s, "cron", channel="cron", one_shot=True),
        Debt(unpaid=1, owed=1),
    ),
    "a commit that failed": (lambda s: settled(s, "failed", SegmentEvent.FAIL), Debt(unpaid=1, owed=1, failed=1)),
    "a commit that was cut off": (cut_off, Debt(unpaid=1, owed=1, failed=1)),
    "one for a provider that is gone": (lambda s: spoken(s, "gone", GONE, sealed=True), Debt(unpaid=1, parked=1)),
    "one that failed before its provider was gone": (
        lambda s: settled(s, "both", SegmentEvent.FAIL, GONE),
        Debt(unpaid=1, parked=1),
    ),
    "one behind another for a provider that is gone": (
        lambda s: spoken(s, "behind", GONE, OWNER, sealed=True),
        Debt(unpaid=2, owed=1, parked=1),
    ),
    "a commit under way": (under_way, Debt(unpaid=1, committing=1)),
    "one that was paid": (lambda s: settled(s, "paid", SegmentEvent.SUCCEED), NOTHING),
    "one that was given up": (waived, NOTHING),
}


def plus(one: Debt, other: Debt) -> Debt:
    return Debt(**{name: getattr(one, name) + getattr(other, name) for name in Debt.__slots__})


def services_with(scene: Scene, bindings: MemoryBindings, owner: str = "local") -> Services:
    """Return the services over an engine that has not started: it pays nothing, so that what is counted stays as it is."""
    return services_of(scene.store, Engine(Parts(store=scene.store, agent=Echo(), memory=bindings)), owner)


async def told_by_doctor(scene: Scene, bindings: MemoryBindings) -> Debt:
    """Add up what the doctor says of each provider."""
    patient = Patient(
        builder=Builder(config=Config(), home=Path(), redaction=Redaction(), clock=SystemClock()),
        file=Path(),
        store=scene.store,
        bindings=bindings,
    )
    names = {
        "waiting": "owed",
        "of them failed": "failed",
        "on hold": "parked",
        "in progress": "open",
        "being learned": "committing",
    }
    found = NOTHING
    for finding in [each async for each in doctor.memory(patient) if each.name == "debts"]:
        told = {
            names[what.strip()]: int(number)
            for number, what in re.findall(r"(\d+) (\w[\w ]*)", finding.found.partition(": ")[2])
        }
        found = plus(found, Debt(**told, unpaid=sum(number for kind, number in told.items() if kind != "failed")))
    return found


def counted(views: list[SegmentView]) -> Debt:
    """Count receipts one by one, as whoever reads the list would."""
    closed = [each for each in views if each.state is SegmentState.SEALED]
    owed = [each for each in closed if not each.parked]
    return Debt(
        unpaid=len(views),
        open=sum(each.state is SegmentState.OPEN for each in views),
        owed=len(owed),
        failed=sum(each.attempt > 0 for each in owed),
        parked=len(closed) - len(owed),
        committing=sum(each.state is SegmentState.COMMITTING for each in views),
    )


async def everywhere(scene: Scene, bindings: MemoryBindings) -> list[Debt]:
    """Return the debt of everyone as each of those says who count it, and see that each adds up."""
    services = services_with(scene, bindings)
    status, memory, tally = (
        await services.gateway.status(),
        (await services.memories.status()).everyone,
        await services.memories.tally(),
    )
    assert status.memory
    assert memory
    assert status.obligations
    assert status.obligations.segments == status.memory.unpaid == sum(tally.unpaid.values())
    for each in (status.memory, memory, tally.debt):
        assert each.unpaid == each.open + each.owed + each.parked + each.committing
        assert each.failed <= each.owed
    return [status.memory, memory, tally.debt, await told_by_doctor(scene, bindings)]


async def of_person(scene: Scene, bindings: MemoryBindings, owner: str) -> list[Debt]:
    """Return what one person has yet to pay as their status says, and as their receipts do."""
    memories = services_with(scene, bindings, owner).memories
    counts = (await memories.status()).counts
    receipts = [*(await memories.segments(unpaid=True)).items]
    return [Debt(**{name: getattr(counts, name) for name in Debt.__slots__}), counted(receipts)]


async def test_a_debt_of_each_kind_is_the_same_whoever_is_asked(open_it: Open, store_url: str) -> None:
    """SECURITY 14: a person sees their own, and the operator what everyone owes."""
    scene, bindings = Scene(open_it, store_url), MemoryBindings(Elsewhere())

    async def play() -> None:
        mine = NOTHING
        for kind, (make, debt) in KINDS.items():
            await make(scene)
            mine = plus(mine, debt)
            assert await everywhere(scene, bindings) == [mine] * 4, kind
            assert await of_person(scene, bindings, "local") == [mine] * 2, kind
        hers = Debt(unpaid=3, open=1, owed=1, parked=1)
        for key, provider, sealed in (("a", OWNER, False), ("b", OWNER, True), ("c", GONE, True)):
            await spoken(scene, key, provider, sealed=sealed, owner="alice")
        assert await everywhere(scene, bindings) == [plus(mine, hers)] * 4
        assert await of_person(scene, bindings, "local") == [mine] * 2
        assert await of_person(scene, bindings, "alice") == [hers] * 2
        assert (await services_with(scene, bindings, "alice").memories.status()).everyone is None
        assert (await services_with(scene, bindings, "alice").gateway.status()).memory is None

    await scene.play(play)


async def test_without_a_provider_what_is_owed_to_an_earlier_one_is_owed_still(open_it: Open, store_url: str) -> None:
    """M3: memory.provider is "none"; the earlier one can be opened, or it cannot."""
    scene = Scene(open_it, store_url)

    async def play() -> None:
        await spoken(scene, "over", sealed=True)
        there = MemoryBindings(None, {OWNER: Elsewhere()}.get)
        assert await everywhere(scene, there) == [Debt(unpaid=1, owed=1)] * 4
        assert await everywhere(scene, MemoryBindings(None)) == [Debt(unpaid=1, parked=1)] * 4

    await scene.play(play)


async def test_however_many_owe_all_of_them_are_counted_and_those_that_waited_longest_are_shown(
    open_it: Open, store_url: str
) -> None:
    scene, bindings = Scene(open_it, store_url), MemoryBindings(Elsewhere())

    async def play() -> None:
        oldest = await spoken(scene, "oldest", GONE, OWNER, sealed=True)
        for number in range(60):
            scene.now += 1
            await spoken(scene, f"later:{number}", sealed=number > 0)
        status = await services_with(scene, bindings).memories.status()
        assert (status.owing_sessions, len(status.owing)) == (60, 50)
        assert (status.owing[0].session_id, status.owing[0].segments, status.owing[0].next.parked) == (oldest, 2, True)
        assert [each.key for each in status.owing[1:3]] == ["later:1", "later:2"]

    await scene.play(play)


def test_a_debt_in_words_says_what_each_part_of_it_waits_for() -> None:
    assert in_words(NOTHING) == "0 waiting"
    assert in_words(Debt(unpaid=525, open=525)) == "0 waiting, 525 in progress"
    every = Debt(unpaid=10, open=4, owed=3, failed=2, parked=2, committing=1)
    assert in_words(every) == "3 waiting (2 of them failed), 2 on hold, 4 in progress, 1 being learned"
    assert in_words(replace(every, failed=0)) == "3 waiting, 2 on hold, 4 in progress, 1 being learned"
