"""Turns at work: batches, tools, questions, failures, cancels, and what a restart makes of each."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import pytest

from holdfast.agent.scripted import Ask, Fail, FunctionTool, Line, Say, ScriptedAgent, UseTool
from holdfast.config import Config, GatewayConfig
from holdfast.core import effects
from holdfast.core.effects import Effect
from holdfast.core.events import EntryKind
from holdfast.core.intake import Receipt
from holdfast.core.journal import Entry
from holdfast.core.sessions import SessionState
from holdfast.core.transcript import Role, fold
from holdfast.core.turns import Mode, TurnState
from holdfast.engine.batching import PAUSE_BATCHES
from holdfast.engine.tuning import Tuning
from holdfast.errors import StoreDown
from holdfast.ids import CallId, SessionId, TurnId, new_session_id, new_turn_id
from holdfast.ports import Assignment, Stage
from holdfast.store.store import Store
from tests.engine.world import (
    FAST,
    Altered,
    Hang,
    LosingAnswer,
    ManualClock,
    Open,
    answered,
    message,
    opened,
    running_engine,
    settled,
    until,
)


async def texts(store: Store, receipt: Receipt) -> list[str]:
    found = await store.journal.read(receipt.session_id)
    return [str(entry.data["text"]) for entry in found if entry.kind is EntryKind.TEXT]


async def kinds(store: Store, receipt: Receipt) -> list[EntryKind]:
    return [entry.kind for entry in await store.journal.read(receipt.session_id)]


class Stepwise:
    """Says the next word whenever it is told to."""

    def __init__(self) -> None:
        self.words: asyncio.Queue[str] = asyncio.Queue()
        self.cancelled = asyncio.Event()

    async def run(self, work: Assignment, stage: Stage) -> str:
        said = ""
        try:
            while word := await self.words.get():
                await stage.say(word)
                said += word
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return said


async def test_the_first_words_are_written_at_once_and_later_ones_together(open_it: Open) -> None:
    """The first entry costs no wait; what follows within a batch is one entry."""
    agent, clock = Stepwise(), ManualClock()
    async with opened(open_it) as store, running_engine(store, agent, clock=clock, tuning=Tuning(batch_ms=20)) as engine:
        receipt = await engine.inbox.accept(message())

        async def told(*expected: str) -> None:
            async def look() -> bool:
                return await texts(store, receipt) == list(expected)

            await until(look)

        agent.words.put_nowait("one ")
        await told("one ")
        for word in ("two ", "three "):
            agent.words.put_nowait(word)
        await until(lambda: agent.words.empty() and clock.naps.count(20) == 1)
        assert await texts(store, receipt) == ["one "]
        await clock.advance(20)
        await told("one ", "two three ")
        await clock.advance(PAUSE_BATCHES * 20)
        agent.words.put_nowait("four ")
        await told("one ", "two three ", "four ")
        assert clock.naps.count(20) == 1, "after a pause nobody waits"
        agent.words.put_nowait("")
        await settled(store, receipt)


async def test_a_cancel_stops_the_agent_within_a_second_and_keeps_what_was_shown(open_it: Open) -> None:
    """J9: cancel is explicit, and the partial text stays."""
    agent = Stepwise()
    async with opened(open_it) as store, running_engine(store, agent) as engine:
        receipt = await engine.inbox.accept(message())
        agent.words.put_nowait("partial")
        await until(lambda: _has_text(store, receipt))
        await engine.cancel(receipt.turn_id)
        async with asyncio.timeout(1):
            await agent.cancelled.wait()
        turn = await store.turns.get(receipt.turn_id)
        assert (turn.state, turn.cause) == (TurnState.CANCELLED, "user")
        items = fold(await store.journal.read(receipt.session_id))
        assert [(item.role, item.kind) for item in items][-2:] == [(Role.ASSISTANT, None), (Role.MARKER, "cancelled")]
        assert items[-2].text == "partial"


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
async def test_a_cancel_reaches_a_turn_on_another_node(open_it: Open) -> None:
    """J9: cancel works from anywhere."""
    agent = Stepwise()
    async with opened(open_it) as here, opened(open_it) as there, running_engine(here, agent) as working:
        receipt = await working.inbox.accept(message())
        await until(lambda: _started(here, receipt))
        async with running_engine(there, ScriptedAgent([])) as other:
            await other.cancel(receipt.turn_id)
            async with asyncio.timeout(1):
                await agent.cancelled.wait()


async def _has_text(store: Store, receipt: Receipt) -> bool:
    return bool(await texts(store, receipt))


async def _started(store: Store, receipt: Receipt) -> bool:
    return (await store.turns.get(receipt.turn_id)).state is TurnState.RUNNING


class Roster:
    """Counts who runs at the same time, and in which order they began."""

    def __init__(self, wanted: int = 0) -> None:
        self.order: list[str] = []
        self.most = 0
        self._now = 0
        self._wanted = wanted
        self._together = asyncio.Event()

    async def run(self, work: Assignment, stage: Stage) -> str:
        self.order.append(work.message)
        self._now += 1
        self.most = max(self.most, self._now)
        if self.most >= self._wanted:
            self._together.set()
        # Nobody leaves before so many have been here at once.
        await self._together.wait()
        self._now -= 1
        return "done"


async def test_turns_of_a_session_run_in_acceptance_order_and_sessions_side_by_side(open_it: Open) -> None:
    """T1 T2: one at a time in each conversation, however many there are."""
    agent = Roster(wanted=3)
    async with opened(open_it) as store, running_engine(store, agent) as engine:
        chats = [f"chat:{n}" for n in range(6)]
        receipts = [await engine.inbox.accept(message(f"{chat} {n}", conversation=chat)) for n in range(5) for chat in chats]
        for receipt in receipts:
            assert (await settled(store, receipt)).state is TurnState.COMPLETED
        assert agent.most >= 3
        for chat in chats:
            assert [each for each in agent.order if each.startswith(chat)] == [f"{chat} {n}" for n in range(5)]


async def test_no_more_turns_run_at_once_than_allowed(open_it: Open) -> None:
    agent = Roster(wanted=3)
    async with (
        opened(open_it) as store,
        running_engine(store, agent, config=Config(gateway=GatewayConfig(max_running=3))) as engine,
    ):
        receipts = [await engine.inbox.accept(message(conversation=f"chat:{n}")) for n in range(20)]
        for receipt in receipts:
            await settled(store, receipt)
        assert agent.most == 3


async def test_a_question_waits_through_a_restart_and_its_answer_goes_on(open_it: Open) -> None:
    """A parked turn belongs to no node; the answer queues it again for any."""
    agent = ScriptedAgent([Say("May I? "), Ask("May I?"), Say(" Thank you.")])
    async with opened(open_it) as store:
        async with running_engine(store, agent) as engine:
            receipt = await engine.inbox.accept(message())
            await until(lambda: _waiting(store, receipt))
            await until(lambda: engine.running == 0)
        async with running_engine(store, agent) as engine:
            await engine.answer(receipt.turn_id, "question_1", "yes")
            assert (await settled(store, receipt)).state is TurnState.COMPLETED
        assert "".join(await texts(store, receipt)) == "May I?  Thank you."
        assert (await store.journal.read(receipt.session_id))[-1].data["text"] == "May I? yes Thank you."


async def _waiting(store: Store, receipt: Receipt) -> bool:
    return (await store.turns.get(receipt.turn_id)).state is TurnState.WAITING


class Tool:
    """A tool that may hang, and remembers the key of every run."""

    name = "tool"

    def __init__(self, effect: Effect, hang: Hang | None = None) -> None:
        self.effect = effect
        self.keys: list[str] = []
        self._hang = hang

    async def run(self, args: Mapping[str, object], key: str) -> str:
        self.keys.append(key)
        if self._hang and len(self.keys) == 1:
            await self._hang.wait()
        return "result"


@pytest.mark.parametrize(
    ("effect", "runs", "outcome"),
    [(Effect.PURE, 2, "ok"), (Effect.KEYED, 2, "ok"), (Effect.EFFECTFUL, 1, "unknown")],
)
async def test_a_tool_cut_off_by_a_restart_is_decided_by_its_effect(
    open_it: Open, effect: Effect, runs: int, outcome: str
) -> None:
    """X1 R10: run again, run again with the same key, or shown as unknown and never run again."""
    tool = Tool(effect, Hang())
    agent = ScriptedAgent([Say("a"), UseTool(tool), Say("b")])
    async with opened(open_it) as store:
        async with running_engine(store, agent) as engine:
            receipt = await engine.inbox.accept(message(mode=Mode.DETACHED))
            await until(lambda: bool(tool.keys))
        async with running_engine(store, agent) as engine:
            assert (await settled(store, receipt)).state is TurnState.COMPLETED
        assert len(tool.keys) == runs
        assert len(set(tool.keys)) == 1
        (call,) = await store.journal.calls(receipt.turn_id)
        assert call.state == outcome
        assert "".join(await texts(store, receipt)) == "ab"
        cards = [item for item in fold(await store.journal.read(receipt.session_id)) if item.role is Role.TOOL]
        assert [card.outcome for card in cards][-1] == outcome


async def test_a_tool_that_had_finished_is_never_run_again(open_it: Open) -> None:
    """R10 X1: the next attempt gets the recorded result."""
    tool, agent = Tool(Effect.EFFECTFUL), Stepwise()

    class ToolThenWords:
        async def run(self, work: Assignment, stage: Stage) -> str:
            call = await stage.use(tool, CallId("call"), {})
            assert (call.state, call.result) == (effects.CallState.OK, "result")
            return await agent.run(work, stage)

    async with opened(open_it) as store:
        async with running_engine(store, ToolThenWords()) as engine:
            receipt = await engine.inbox.accept(message(mode=Mode.DETACHED))
            await until(lambda: _has(store, receipt, EntryKind.TOOL_FINISHED))
        agent.words.put_nowait("")
        async with running_engine(store, ToolThenWords()) as engine:
            assert (await settled(store, receipt)).state is TurnState.COMPLETED
        assert len(tool.keys) == 1


async def _has(store: Store, receipt: Receipt, kind: EntryKind) -> bool:
    return kind in await kinds(store, receipt)


async def test_a_tool_that_raises_fails_its_call_and_not_the_turn(open_it: Open) -> None:
    def crash(args: Mapping[str, object], key: str) -> str:
        raise ValueError("a bug in a plugin")

    agent = ScriptedAgent([UseTool(FunctionTool("broken", Effect.PURE, crash)), Say("went on")])
    async with opened(open_it) as store, running_engine(store, agent) as engine:
        turn = await answered(engine, store)
        assert turn.state is TurnState.COMPLETED
        (call,) = await store.journal.calls(turn.id)
        assert call.state is effects.CallState.ERROR


async def test_an_agent_that_gives_up_fails_the_turn_with_its_words(open_it: Open) -> None:
    """A1: a failure is an outcome that the user can see."""
    async with (
        opened(open_it) as store,
        running_engine(store, ScriptedAgent([Say("half"), Fail("no such model")])) as engine,
    ):
        turn = await answered(engine, store)
        assert (turn.state, turn.error) == (TurnState.FAILED, "no such model")
        items = fold(await store.journal.read(turn.session_id))
        assert [item.text for item in items] == ["hello", "half", "Failed: no such model"]


class Buggy:
    """Crashes so many times, then works.  `messages` is what it was given each time."""

    def __init__(self, crashes: int) -> None:
        self.messages: list[str] = []
        self._crashes = crashes

    async def run(self, work: Assignment, stage: Stage) -> str:
        self.messages.append(work.message)
        await stage.say(f"try {len(self.messages)} ")
        if len(self.messages) <= self._crashes:
            raise KeyError("a bug")
        return "done"


async def test_a_detached_turn_goes_on_after_a_crash_of_its_agent(open_it: Open) -> None:
    """R10: no next message will follow, so it continues by itself, with one note and what it had shown kept."""
    agent = Buggy(2)
    async with opened(open_it) as store, running_engine(store, agent) as engine:
        turn = await answered(engine, store, mode=Mode.DETACHED)
        assert (turn.state, turn.attempt) == (TurnState.COMPLETED, 3)
        assert (await store.sessions.get(turn.session_id)).strikes == 0
    assert agent.messages[0] == "hello"
    for resumed in agent.messages[1:]:
        assert resumed.startswith("[System note:")
        assert resumed.count("[System note:") == 1
        assert resumed.endswith("hello")


@pytest.mark.parametrize(("one_shot", "left"), [(True, SessionState.ENDED), (False, SessionState.SUSPENDED)])
async def test_three_crashes_in_a_row_give_a_turn_up(open_it: Open, one_shot: bool, left: SessionState) -> None:
    """S2 R8: the session is suspended, or ended where it was for this turn only (S1)."""
    agent = Buggy(99)
    async with opened(open_it) as store, running_engine(store, agent) as engine:
        receipt = await engine.inbox.accept(message(mode=Mode.DETACHED, one_shot=one_shot, channel="webhook"))
        await until(lambda: _is(store, receipt, left))
        assert len(agent.messages) == 3
        assert (await store.turns.get(receipt.turn_id)).state is TurnState.INTERRUPTED


async def _is(store: Store, receipt: Receipt, state: SessionState) -> bool:
    return (await store.sessions.get(receipt.session_id)).state is state


async def test_a_conversation_rests_until_the_next_message_which_gets_one_note(open_it: Open) -> None:
    """R5 R6: same session, exactly one note, the user's text whole; after a completed turn there is none."""
    agent = Buggy(1)
    async with opened(open_it) as store, running_engine(store, agent) as engine:
        first = await answered(engine, store, "first")
        assert first.state is TurnState.INTERRUPTED
        assert await store.sessions.resume_cause(first.session_id) == "crash"
        second = await answered(engine, store, "second")
        third = await answered(engine, store, "third")
        assert first.session_id == second.session_id == third.session_id
        assert await store.sessions.resume_cause(first.session_id) is None
    assert agent.messages[1].startswith("[System note:")
    assert agent.messages[1].count("[System note:") == 1
    assert "gateway interruption" in agent.messages[1]
    assert agent.messages[1].endswith("\n\nsecond")
    assert agent.messages[2] == "third"


async def test_with_resume_auto_a_conversation_goes_on_by_itself(open_it: Open) -> None:
    """R10: the operator's choice."""
    agent = Buggy(1)
    async with (
        opened(open_it) as store,
        running_engine(store, agent, config=Config(gateway=GatewayConfig(resume="auto"))) as engine,
    ):
        assert (await answered(engine, store)).state is TurnState.COMPLETED


async def test_a_turn_whose_claim_was_answered_into_the_void_runs_all_the_same(open_it: Open) -> None:
    """A1: the claim took effect and nobody heard of it; the turn is given back and claimed again."""
    async with opened(open_it) as store:
        take = LosingAnswer(store.turns.take)
        receipt = await store.intake.accept(message(), *_ids(), 1)
        shaky = Altered(store, turns=Altered(store.turns, take=take))
        async with running_engine(shaky, ScriptedAgent([Say("here")]), tuning=replace(FAST, beat_ms=20)):
            turn = await settled(store, receipt)
        assert (turn.state, turn.attempt) == (TurnState.COMPLETED, 1)
        assert take.calls > 1


def _ids() -> tuple[TurnId, SessionId]:

    return new_turn_id(1), new_session_id(1)


@pytest.mark.parametrize("call", ["start", "finish"])
async def test_an_answer_of_the_store_that_was_lost_is_asked_for_again(open_it: Open, call: str) -> None:
    """A1 T3: repeating a write whose answer was lost does nothing twice."""
    async with opened(open_it) as store:
        if call == "start" and store.database.exclusive:
            pytest.skip("turns start with their claim here")
        part = "turns" if call == "start" else "settlement"
        losing = LosingAnswer(getattr(getattr(store, part), call))
        shaky = Altered(store, **{part: Altered(getattr(store, part), **{call: losing})})
        async with running_engine(shaky, ScriptedAgent([Say("here")])) as engine:
            turn = await answered(engine, store)
            await until(lambda: losing.calls == 2)
        assert (turn.state, turn.attempt) == (TurnState.COMPLETED, 1)
        found = await store.journal.read(turn.session_id)
        assert [entry.kind for entry in found] == [
            EntryKind.TURN_ACCEPTED,
            EntryKind.TURN_STARTED,
            EntryKind.TEXT,
            EntryKind.TURN_COMPLETED,
        ]


async def test_an_append_while_the_store_is_away_is_repeated_until_it_is_back(open_it: Open) -> None:
    """J1: nothing is shown before the store has it, and nothing is dropped."""
    async with opened(open_it) as store:
        refusals = iter([StoreDown("away"), StoreDown("still away")])

        async def append(*args: object, **kwargs: object) -> object:
            for refusal in refusals:
                raise refusal
            return await store.journal.append(*args, **kwargs)

        shaky = Altered(store, journal=Altered(store.journal, append=append))
        lines: list[Line] = [Say("one "), UseTool(Tool(Effect.PURE)), Say("two")]
        async with running_engine(shaky, ScriptedAgent(lines)) as engine:
            turn = await answered(engine, store)
        assert turn.state is TurnState.COMPLETED
        assert _said(await store.journal.read(turn.session_id)) == "one two"


def _said(entries: list[Entry]) -> str:
    return "".join(str(entry.data["text"]) for entry in entries if entry.kind is EntryKind.TEXT)


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
async def test_two_nodes_share_the_work_and_answer_everything_once(open_it: Open) -> None:
    """A1 T4: each turn runs on one node only."""
    here_agent, there_agent = Roster(wanted=2), Roster(wanted=2)
    few = Config(gateway=GatewayConfig(max_running=4))
    async with opened(open_it) as here, opened(open_it) as there:
        async with (
            running_engine(here, here_agent, config=few) as engine,
            running_engine(there, there_agent, config=few),
        ):
            receipts = [await engine.inbox.accept(message(f"m{n}", conversation=f"chat:{n}")) for n in range(60)]
            for receipt in receipts:
                assert (await settled(here, receipt)).attempt == 1
        assert sorted(here_agent.order + there_agent.order) == sorted(f"m{n}" for n in range(60))
        assert there_agent.order


async def test_nothing_is_left_in_memory_when_the_work_is_done(open_it: Open) -> None:
    async with opened(open_it) as store, running_engine(store, ScriptedAgent([Say("x")])) as engine:
        for n in range(20):
            await answered(engine, store, conversation=f"chat:{n}")
        await until(lambda: engine.running == 0)
        assert engine._dispatcher._sessions == set()
        assert engine.feed._followers == {}


async def test_an_agent_that_only_returns_its_answer_still_has_it_in_the_transcript(open_it: Open) -> None:
    """J1: what a user reads is a fold of the journal, so the answer must be in it."""

    class Silent:
        async def run(self, work: Assignment, stage: Stage) -> str:
            return "all at once"

    async with opened(open_it) as store, running_engine(store, Silent()) as engine:
        turn = await answered(engine, store)
        assert [item.text for item in fold(await store.journal.read(turn.session_id))] == ["hello", "all at once"]
