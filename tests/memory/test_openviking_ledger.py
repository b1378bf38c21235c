"""Memory in OpenViking behind a whole engine and its ledger: debts are paid there once, at a boundary, after a crash too."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from holdfast.agent.scripted import Line, Say, ScriptedAgent
from holdfast.clock import SystemClock
from holdfast.core.redaction import Redaction
from holdfast.core.segments import Segment, SegmentState
from holdfast.ids import SessionId
from holdfast.memory.address import Address
from holdfast.memory.openviking.provider import OpenVikingProvider
from holdfast.ports import Assignment
from holdfast.store.store import Store
from tests.channels.receiver import Reply
from tests.engine.world import Open, answered, opened, running_engine, until
from tests.memory.vikings import OpenViking, an_openviking


def _script(work: Assignment) -> list[Line]:
    return [Say(f"re: {work.message}")]


AGENT = ScriptedAgent(_script)
LONG = ["running"] * 10_000


@asynccontextmanager
async def bound(server: OpenViking) -> AsyncIterator[OpenVikingProvider]:
    address = Address(url=server.url)
    provider = OpenVikingProvider(address, timeout_s=20, redaction=Redaction(), clock=SystemClock())
    try:
        yield provider
    finally:
        await provider.close()


def name_of(segment: Segment) -> str:
    return f"holdfast-{segment.session_id}-{segment.id}"


def extracted(server: OpenViking, segment: Segment) -> list[str]:
    """Return what was extracted from for a segment, in order."""
    kept = server.kept(name_of(segment))
    return [message["parts"][0]["text"] for archive in kept.archives for message in archive]


async def owed(store: Store, session_id: SessionId, *states: SegmentState) -> list[Segment]:
    found = await store.segments.of_session(session_id)
    assert [each.state for each in found] == [*states]
    return found


def quick(server: OpenViking) -> None:
    """Have extractions end by the time that anybody looks, also those that have begun."""
    server.stages = ["running", "completed"]
    for task in server.tasks:
        task.stages = [*server.stages]


async def test_turns_are_mirrored_as_they_complete_and_extracted_at_the_boundary_only(open_it: Open) -> None:
    """M1 M4: completing commits nothing, one commit takes all, and another has nothing to do."""
    async with an_openviking() as server, bound(server) as provider, opened(open_it) as store:
        quick(server)
        async with running_engine(store, AGENT, memory=provider) as engine:
            first = await answered(engine, store, "I keep bees.")
            await answered(engine, store, "My bicycle is red.")
            (debt,) = await owed(store, first.session_id, SegmentState.OPEN)
            said = ["I keep bees.", "re: I keep bees.", "My bicycle is red.", "re: My bicycle is red."]
            await until(lambda: len(server.sessions) == 1 and len(server.kept(name_of(debt)).messages) == len(said))
            assert server.asked("POST .*/commit$") == [], "completing a turn committed it"
            assert await engine.commit(first.session_id) is True
            assert await engine.commit(first.session_id) is False
        (paid,) = await owed(store, first.session_id, SegmentState.COMMITTED)
        assert (paid.owner, paid.receipt) == (f"openviking:{server.url}", "2 memories extracted")
        assert extracted(server, paid) == said
        assert server.extractions == {name_of(paid): 1}
        assert len(server.asked("POST .*/commit$")) == 1


async def test_a_turn_that_completes_during_a_commit_is_told_in_the_next(open_it: Open) -> None:
    """M5 M7: neither blocked nor erased, and never part of what is being extracted from."""
    async with an_openviking() as server, bound(server) as provider, opened(open_it) as store:
        server.stages = LONG
        async with running_engine(store, AGENT, memory=provider) as engine:
            first = await answered(engine, store, "I keep bees.")
            commit = asyncio.create_task(engine.commit(first.session_id))
            await until(lambda: server.tasks)
            await answered(engine, store, "My bicycle is red.")
            await owed(store, first.session_id, SegmentState.COMMITTING, SegmentState.OPEN)
            assert await engine.commit(first.session_id, wait=False) is False
            quick(server)
            assert await commit is True
            (_, newer) = await owed(store, first.session_id, SegmentState.COMMITTED, SegmentState.SEALED)
            assert await engine.commit(first.session_id) is True
        one, two = await owed(store, first.session_id, SegmentState.COMMITTED, SegmentState.COMMITTED)
        assert two.id == newer.id
        assert extracted(server, one) == ["I keep bees.", "re: I keep bees."]
        assert extracted(server, two) == ["My bicycle is red.", "re: My bicycle is red."]
        assert server.extractions == {name_of(one): 1, name_of(two): 1}


async def test_a_commit_that_fails_is_false_and_the_next_boundary_pays_it_after_a_restart(open_it: Open) -> None:
    """M6: the debt and its owner stay."""
    async with an_openviking() as server, bound(server) as provider, opened(open_it) as store:
        quick(server)
        async with running_engine(store, AGENT, memory=provider) as engine:
            turn = await answered(engine, store, "I keep bees.")
            server.down = Reply("503 Service Unavailable")
            assert await engine.commit(turn.session_id) is False
            (debt,) = await owed(store, turn.session_id, SegmentState.SEALED)
            assert debt.owner == provider.owner
            assert "503" in str(debt.error)
        server.down = None
        async with running_engine(store, AGENT, memory=provider) as another:
            assert await another.commit(turn.session_id) is True
        (paid,) = await owed(store, turn.session_id, SegmentState.COMMITTED)
        assert (paid.id, paid.error) == (debt.id, None)
        assert server.extractions == {name_of(paid): 1}


async def test_an_engine_that_dies_while_openviking_extracts_extracts_nothing_twice(open_it: Open) -> None:
    """M6 P1: the next engine finds what was begun, and only looks how it ended."""
    async with an_openviking() as server, bound(server) as provider, opened(open_it) as store:
        server.stages = LONG
        async with running_engine(store, AGENT, memory=provider) as engine:
            turn = await answered(engine, store, "I keep bees.", one_shot=True)
            await until(lambda: server.tasks)
        quick(server)
        async with running_engine(store, AGENT, memory=provider):
            (debt,) = await until(lambda: _committed(store, turn.session_id))
        assert len(server.asked("POST .*/commit$")) == 1
        assert server.extractions == {name_of(debt): 1}
        assert extracted(server, debt) == ["I keep bees.", "re: I keep bees."]


async def _committed(store: Store, session_id: SessionId) -> list[Segment]:
    return [each for each in await store.segments.of_session(session_id) if each.state is SegmentState.COMMITTED]
