"""Drain: nothing new starts, what runs may finish, and what cannot is marked before it is cut off."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from holdfast.agent.scripted import Pause, Say, ScriptedAgent
from holdfast.config import Config, GatewayConfig
from holdfast.core import delivery
from holdfast.core.events import EntryKind
from holdfast.core.intake import Receipt
from holdfast.core.journal import Entry
from holdfast.core.transcript import Role, fold
from holdfast.core.turns import Cause, Mode, Turn, TurnState
from holdfast.engine.engine import Engine
from holdfast.engine.spool import Spool
from holdfast.errors import StoreDown
from holdfast.ids import NodeId
from holdfast.ports import Assignment, Stage
from holdfast.store.store import Store
from tests.claims import claim
from tests.engine.world import (
    TARGET,
    Altered,
    Hang,
    Open,
    RecordingCarrier,
    message,
    opened,
    running_engine,
    settled,
    until,
)

LONG_MS = 20_000
SHORT_MS = 50


class HeldAgent:
    """Holds the turns whose message it was told to hold.  `seen` is what the store said of each when it was cut off."""

    def __init__(self, store: Store, *held: str) -> None:
        self.messages: list[str] = []
        self.seen: dict[str, Turn] = {}
        self._store = store
        self._held = {text: Hang() for text in held}

    def release(self, text: str) -> None:
        self._held[text].release()

    async def run(self, work: Assignment, stage: Stage) -> str:
        text = work.message.rpartition("\n\n")[2]
        self.messages.append(work.message)
        await stage.say("working on it")
        try:
            if text in self._held:
                await self._held[text].wait()
        except asyncio.CancelledError:
            self.seen[text] = await self._store.turns.get(work.turn.id)
            raise
        return f"done: {text}"


async def accept(engine: Engine, text: str, **changes: Any) -> Receipt:
    """Send a message, in a conversation of its own unless told otherwise."""
    return await engine.inbox.accept(message(text, **{"conversation": f"chat:{text}", **changes}))


async def running(store: Store, *accepted: Receipt) -> None:
    """Return once these turns run and have shown something."""

    async def look() -> bool:
        entries = [await store.journal.read(each.session_id) for each in accepted]
        return all(EntryKind.TEXT in [entry.kind for entry in each] for each in entries)

    await until(look)


async def kinds(store: Store, accepted: Receipt) -> list[EntryKind]:
    return [entry.kind for entry in await store.journal.read(accepted.session_id)]


async def ran(store: Store, *accepted: Receipt) -> None:
    """Return once an engine has completed these turns."""
    turns = [await settled(store, each) for each in accepted]
    assert [turn.state for turn in turns] == [TurnState.COMPLETED] * len(accepted)


async def test_a_drain_in_time_interrupts_nothing_and_marks_nothing(open_it: Open) -> None:
    """R3."""
    async with opened(open_it) as store:
        agent = HeldAgent(store, "one", "two")
        async with running_engine(store, agent) as engine:
            receipts = [await accept(engine, "one"), await accept(engine, "two")]
            await running(store, *receipts)
            draining = asyncio.create_task(engine.drain(LONG_MS, Cause.RESTART_TIMEOUT))
            agent.release("one")
            await ran(store, receipts[0])
            assert not draining.done(), "it did not wait for the other one"
            agent.release("two")
            assert await draining == 0
        await ran(store, *receipts)
        assert agent.seen == {}
        for receipt in receipts:
            assert EntryKind.TURN_INTERRUPTED not in await kinds(store, receipt)
            assert (await store.sessions.get(receipt.session_id)).strikes == 0
            assert await store.sessions.resume_cause(receipt.session_id) is None


async def test_with_nothing_running_a_drain_is_over_at_once(open_it: Open) -> None:
    """R3: even without any time at all."""
    async with opened(open_it) as store, running_engine(store, HeldAgent(store)) as engine:
        await ran(store, await accept(engine, "one"))
        await until(lambda: engine.running == 0)
        assert await engine.drain(0) == 0


@pytest.mark.parametrize("cause", [Cause.RESTART_TIMEOUT, Cause.SHUTDOWN_TIMEOUT])
async def test_out_of_time_the_store_knows_of_the_interruption_before_the_agent_does(open_it: Open, cause: Cause) -> None:
    """R4: the agent itself looks, at the moment of its cancellation."""
    async with opened(open_it) as store:
        agent = HeldAgent(store, "slow")
        async with running_engine(store, agent) as engine:
            slow = await accept(engine, "slow")
            await running(store, slow)
            assert await engine.drain(SHORT_MS, cause) == 1
            await until(lambda: agent.seen)
        assert (agent.seen["slow"].state, agent.seen["slow"].cause) == (TurnState.INTERRUPTED, cause)
        assert (await kinds(store, slow))[-3:] == [EntryKind.TEXT, EntryKind.NOTE, EntryKind.TURN_INTERRUPTED], (
            "what it had shown stays"
        )
        assert await store.sessions.resume_cause(slow.session_id) == cause


async def test_what_finished_during_a_drain_that_ran_out_of_time_is_not_marked(open_it: Open) -> None:
    """R4: only turns still running at the deadline are."""
    async with opened(open_it) as store:
        agent = HeldAgent(store, "quick", "slow")
        async with running_engine(store, agent) as engine:
            quick, slow = await accept(engine, "quick"), await accept(engine, "slow")
            await running(store, quick, slow)
            draining = asyncio.create_task(engine.drain(LONG_MS))
            agent.release("quick")
            await ran(store, quick)
            assert not draining.done()
            # The second wish brings the deadline of the first forward.
            assert await engine.drain(0) == 1
            assert await draining == 0
            await until(lambda: agent.seen)
        assert list(agent.seen) == ["slow"]
        assert (await store.turns.get(slow.turn_id)).state is TurnState.INTERRUPTED
        assert EntryKind.TURN_INTERRUPTED not in await kinds(store, quick)
        assert (await store.sessions.get(quick.session_id)).strikes == 0


async def test_the_message_after_a_drain_continues_the_session_with_a_note(open_it: Open) -> None:
    """R5 R6: the same session, and the agent is told what cut the turn before off."""
    async with opened(open_it) as store:
        agent = HeldAgent(store, "slow")
        async with running_engine(store, agent) as engine:
            slow = await accept(engine, "slow")
            await running(store, slow)
            assert await engine.drain(SHORT_MS, Cause.RESTART_TIMEOUT) == 1
        async with running_engine(store, agent) as engine:
            following = await accept(engine, "go on", conversation="chat:slow")
            await ran(store, following)
        assert following.session_id == slow.session_id
        assert agent.messages[-1].startswith("[System note:")
        assert "gateway restart" in agent.messages[-1]
        assert agent.messages[-1].endswith("\n\ngo on")
        assert (await store.turns.get(slow.turn_id)).state is TurnState.INTERRUPTED
        assert await store.sessions.resume_cause(slow.session_id) is None


async def test_a_turn_that_no_message_will_follow_goes_on_after_the_drain_but_not_here(open_it: Open) -> None:
    """R10 R2: it is queued again at once, and a draining engine starts nothing."""
    async with opened(open_it) as store:
        agent = HeldAgent(store, "slow")
        async with running_engine(store, agent) as engine:
            slow = await accept(engine, "slow", mode=Mode.DETACHED, one_shot=True)
            await running(store, slow)
            assert await engine.drain(SHORT_MS, Cause.RESTART_TIMEOUT) == 1
            await until(lambda: engine.running == 0)
            turn = await store.turns.get(slow.turn_id)
            assert (turn.state, turn.node_id, turn.attempt) == (TurnState.QUEUED, None, 1)
        agent.release("slow")
        async with running_engine(store, agent):
            await ran(store, slow)
        assert (await store.turns.get(slow.turn_id)).attempt == 2


async def test_a_turn_that_was_claimed_but_not_started_is_not_marked(open_it: Open) -> None:
    """R4: nobody has seen anything of it, so it simply runs on the next engine."""
    reached, never = asyncio.Event(), Hang()

    async def start(*_: Any) -> tuple[Turn, list[Entry]]:
        reached.set()
        await never.wait()
        raise AssertionError("it was started after all")

    async with opened(open_it) as store:
        agent = HeldAgent(store)

        async def take(node_id: NodeId, limit: int, *_: Any, **__: Any) -> list[tuple[Turn, list[Entry]]]:
            return [(turn, []) for turn in await claim(store, node_id, limit)]

        slow = Altered(store, turns=Altered(store.turns, take=take, start=start))
        async with running_engine(slow, agent) as engine:
            receipt = await accept(engine, "hello")
            await reached.wait()
            assert [turn.id for turn in await store.turns.held(engine.node_id)] == [receipt.turn_id]
            assert await engine.drain(SHORT_MS, Cause.RESTART_TIMEOUT) == 0
            await until(lambda: engine.running == 0)
        turn = await store.turns.get(receipt.turn_id)
        assert (turn.state, turn.attempt, turn.cause) == (TurnState.QUEUED, 0, None)
        assert await kinds(store, receipt) == [EntryKind.TURN_ACCEPTED]
        assert (await store.sessions.get(receipt.session_id)).strikes == 0
        async with running_engine(store, agent):
            await ran(store, receipt)
        assert agent.messages == ["hello"], "without a note: nothing was cut off"


async def test_what_waits_stays_queued_and_what_comes_is_still_accepted_and_the_next_engine_runs_both(
    open_it: Open,
) -> None:
    """R2 A1: draining refuses no one."""
    async with opened(open_it) as store:
        agent = HeldAgent(store, "slow")
        async with running_engine(store, agent) as engine:
            slow = await accept(engine, "slow")
            await running(store, slow)
            behind = await accept(engine, "behind it", conversation="chat:slow")
            draining = asyncio.create_task(engine.drain(LONG_MS))
            await asyncio.sleep(0)
            during = await accept(engine, "during the drain")
            assert during.state is TurnState.QUEUED
            agent.release("slow")
            assert await draining == 0
            await until(lambda: engine.running == 0)
        await ran(store, slow)
        for receipt in (behind, during):
            turn = await store.turns.get(receipt.turn_id)
            # A claim that was on its way may have reached it, and has given it back then.
            assert (turn.state, turn.attempt, turn.node_id) == (TurnState.QUEUED, 0, None), "it was not started"
        assert agent.messages == ["slow"]
        async with running_engine(store, agent):
            await ran(store, behind, during)
        assert sorted(agent.messages[1:]) == ["behind it", "during the drain"]


@pytest.mark.parametrize("release", ["taken", "refused"])
async def test_a_claim_that_was_on_its_way_when_the_drain_began_is_given_back(open_it: Open, release: str) -> None:
    """R2 R4: and if the store refuses that for a moment, what runs is not harmed by it."""
    claimed, answer, refused = asyncio.Event(), Hang(), asyncio.Event()

    async with opened(open_it) as store:

        async def take(node_id: NodeId, limit: int, *_: Any, **__: Any) -> list[tuple[Turn, list[Entry]]]:
            found = await claim(store, node_id, limit)
            if agent.messages and found:
                claimed.set()
                await answer.wait()
            return [(turn, []) for turn in found]

        async def give_back(turn: Turn) -> None:
            if release == "refused" and not refused.is_set():
                refused.set()
                raise StoreDown("away for a moment")
            await store.turns.release(turn)

        agent = HeldAgent(store, "slow")
        slow_store = Altered(store, turns=Altered(store.turns, take=take, release=give_back))
        async with running_engine(slow_store, agent) as engine:
            slow = await accept(engine, "slow")
            await running(store, slow)
            late = await accept(engine, "late")
            await claimed.wait()
            draining = asyncio.create_task(engine.drain(LONG_MS))
            await asyncio.sleep(0)
            answer.release()

            async def holds_only_the_running_one() -> bool:
                return [turn.id for turn in await store.turns.held(engine.node_id)] == [slow.turn_id]

            await until(holds_only_the_running_one)
            assert refused.is_set() == (release == "refused")
            agent.release("slow")
            assert await draining == 0
        await ran(store, slow)
        turn = await store.turns.get(late.turn_id)
        assert (turn.state, turn.attempt, turn.node_id) == (TurnState.QUEUED, 0, None)
        assert (agent.messages, agent.seen) == (["slow"], {})


async def test_a_turn_that_started_as_the_drain_began_is_waited_for(open_it: Open) -> None:
    """R2 R4: where a claim starts its turn at once, the turn runs, and nobody leaves before it has ended."""
    taken, answer = asyncio.Event(), Hang()

    async with opened(open_it) as store:
        if not store.database.exclusive:
            pytest.skip("a claim leaves its turn queued here")

        async def take(*args: Any, **options: Any) -> list[tuple[Turn, list[Entry]]]:
            found = await store.turns.take(*args, **options)
            if found:
                taken.set()
                await answer.wait()
            return found

        agent = HeldAgent(store, "late")
        async with running_engine(Altered(store, turns=Altered(store.turns, take=take)), agent) as engine:
            late = await accept(engine, "late")
            await taken.wait()
            draining = asyncio.create_task(engine.drain(LONG_MS))
            await asyncio.sleep(0)
            answer.release()
            await until(lambda: engine.running == 1)
            assert not draining.done()
            agent.release("late")
            assert await draining == 0
        await ran(store, late)
        assert (await store.turns.get(late.turn_id)).attempt == 1


@pytest.mark.parametrize(
    ("cause", "words"),
    [(Cause.RESTART_TIMEOUT, ("restarting", "try to resume")), (Cause.SHUTDOWN_TIMEOUT, ("shutting down",))],
)
async def test_a_stop_tells_each_active_chat_once(open_it: Open, cause: Cause, words: tuple[str, ...]) -> None:
    """R1: those with a running turn, in the transcript and where they are, however often the drain is hastened."""
    async with opened(open_it) as store:
        agent, carrier = HeldAgent(store, "one", "two"), RecordingCarrier()
        async with running_engine(store, agent, carriers={"chat": carrier}) as engine:
            chat = await accept(engine, "one", reply_to=TARGET)
            page = await accept(engine, "two")
            idle = await accept(engine, "idle")
            await running(store, chat, page)
            await settled(store, idle)
            draining = asyncio.create_task(engine.drain(LONG_MS, cause))
            await until(lambda: carrier.sent)
            await engine.drain(0, cause)
            await draining
        for told, times in ((chat, 1), (page, 1), (idle, 0)):
            banners = [entry.data for entry in await store.journal.read(told.session_id) if entry.kind is EntryKind.NOTE]
            assert len(banners) == times
            assert all(word in str(data["text"]) for data in banners for word in words)
        assert len(carrier.sent) == 1
        assert all(word in carrier.sent[0].text for word in words)


async def test_what_is_on_its_way_to_a_chat_may_arrive_before_the_stop(open_it: Open) -> None:
    """D1: a stop that is not in a hurry leaves no delivery unknown."""
    async with opened(open_it) as store:
        slow = Hang()
        carrier = RecordingCarrier(slow)
        async with running_engine(store, HeldAgent(store), carriers={"chat": carrier}) as engine:
            accepted = await accept(engine, "one", reply_to=TARGET)
            await settled(store, accepted)
            await until(lambda: carrier.sent)
            draining = asyncio.create_task(engine.drain(LONG_MS))
            waited, _ = await asyncio.wait({draining}, timeout=0.1)
            assert not waited
            slow.release()
            assert await draining == 0
        assert [each.state for each in await store.deliveries.of_turn(accepted.turn_id)] == [
            delivery.DeliveryState.DELIVERED
        ]


async def test_a_drain_in_a_hurry_waits_for_no_delivery(open_it: Open) -> None:
    """R4: a second wish ends the patience of the first, whatever is still due."""
    async with opened(open_it) as store:
        slow = Hang()
        async with running_engine(store, HeldAgent(store), carriers={"chat": RecordingCarrier(slow)}) as engine:
            accepted = await accept(engine, "one", reply_to=TARGET)
            await settled(store, accepted)
            patient = asyncio.create_task(engine.drain(LONG_MS))
            await asyncio.wait({patient}, timeout=0.05)
            async with asyncio.timeout(5):
                await engine.drain(0)
                await patient


async def test_the_report_of_a_start_says_what_was_found(open_it: Open) -> None:
    """R8, R9: what continued, what rests, and what waits."""
    async with opened(open_it) as store:
        agent = HeldAgent(store, "chat", "hook")
        async with running_engine(store, agent) as engine:
            chat = await accept(engine, "chat")
            hook = await accept(engine, "hook", mode=Mode.DETACHED)
            await running(store, chat, hook)
            assert engine.report
            assert engine.report.swept.total == 0
        async with running_engine(store, HeldAgent(store)) as engine:
            report = engine.report
            assert report
            assert (report.swept.turns.rested, report.swept.turns.continued) == ((chat.turn_id,), (hook.turn_id,))
            # The one that goes on by itself may have been taken up already.
            assert (report.standing.queued in (0, 1), report.standing.resumable) == (True, 1)
            assert any(chat.turn_id in line for line in report.lines())
            await ran(store, hook)


async def test_turns_that_go_on_after_a_drain_say_every_word_once(open_it: Open, tmp_path: Path) -> None:
    """J1, R10: also what was said between the mark and the cut, which nobody has seen."""
    # So many that none of the turns is at its end before the last of them has begun.
    words = [f"{number} " for number in range(300)]
    agent = ScriptedAgent([line for word in words for line in (Say(word), Pause(2))])
    parts = {"config": Config(gateway=GatewayConfig(resume="auto")), "spool": Spool(tmp_path / "home")}
    async with opened(open_it) as store:
        async with running_engine(store, agent, **parts) as engine:
            receipts = [await accept(engine, str(number)) for number in range(12)]
            await running(store, *receipts)
            assert await engine.drain(10, Cause.RESTART_TIMEOUT) == len(receipts)
        async with running_engine(store, agent, **parts):
            await ran(store, *receipts)
        for receipt in receipts:
            items = fold(await store.journal.read(receipt.session_id))
            assert "".join(item.text for item in items if item.role is Role.ASSISTANT) == "".join(words)
