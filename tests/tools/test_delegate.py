"""Tasks are handed to sessions of their own, and their answers come back: now, later, and after a restart."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from holdfast.agent.scripted import CallTool, Line, Pause, Say, ScriptedAgent
from holdfast.agent.toolbox import Toolbox
from holdfast.agent.tools.delegate import NAME, NOTE, delegate_tool, may_delegate
from holdfast.clock import SystemClock
from holdfast.config import Config, DelegateConfig, GatewayConfig, SessionsConfig
from holdfast.core.delegation import CHANNEL, LATER, depth
from holdfast.core.events import EntryKind
from holdfast.core.intake import Receipt
from holdfast.core.questions import About, Question
from holdfast.core.redaction import Redaction
from holdfast.core.sessions import Session, Source
from holdfast.core.turns import Cause, Mode, Turn, TurnState
from holdfast.engine.child_results import ChildResults
from holdfast.engine.inbox import Inbox
from holdfast.errors import Rejected, Unavailable
from holdfast.ports import Assignment, Stage
from holdfast.store.store import Store
from tests.engine.players import in_state, journal_of, text_of
from tests.engine.world import (
    FAST,
    Altered,
    LosingAnswer,
    Open,
    RecordingCarrier,
    answered,
    message,
    opened,
    running_engine,
    settled,
    until,
)
from tests.tools.contexts import Resting, call_context

CONFIG = DelegateConfig(depth_max=2, children_max=3)
BOTH = {"tasks": [{"goal": "count sheep"}, {"goal": "count goats", "context": "on the hill"}]}


def inbox(store: Any) -> Inbox:
    return Inbox(store, GatewayConfig(), SessionsConfig(), Redaction(), SystemClock())


@dataclass
class Helpers:
    """An agent whose conversations delegate, and whose helpers answer once they may.  `work` is what these were given."""

    store: Any
    args: Mapping[str, object]
    config: DelegateConfig = CONFIG
    may_end: asyncio.Event = field(default_factory=asyncio.Event)
    work: list[Assignment] = field(default_factory=list)

    def __post_init__(self) -> None:
        tool = delegate_tool(self.store, inbox(self.store).accept, self.config, look_s=0.05)
        toolbox = Toolbox([tool], fits={NAME: may_delegate(self.config)})
        self.delegating = ScriptedAgent(self._script, toolbox=toolbox)

    def _script(self, work: Assignment) -> Sequence[Line]:
        if "has ended" in work.message:
            return [Say(f"told: {work.message}")]
        return [CallTool(NAME, self.args, report=lambda call: f"{call.state.value}: {call.result}")]

    async def run(self, work: Assignment, stage: Stage) -> str:
        if work.session.channel != CHANNEL or "hand on" in work.message:
            return await self.delegating.run(work, stage)
        self.work.append(work)
        await self.may_end.wait()
        goal = work.message.splitlines()[0]
        if "fail" in work.message:
            raise Rejected("it broke")
        return f"found: {goal}"

    def let_go(self) -> Helpers:
        self.may_end.set()
        return self


def receipt_of(turn: Turn) -> Receipt:
    return Receipt(turn_id=turn.id, session_id=turn.session_id, state=turn.state, accepted_at=turn.accepted_at)


async def children(store: Store, parent: Turn | Receipt) -> list[tuple[Turn, Session]]:
    """Return the children of a turn by their number."""
    parent_id = parent.turn_id if isinstance(parent, Receipt) else parent.id
    found = [each for each in await store.sessions.list("local", limit=100) if each.channel == CHANNEL]
    pairs = [((await store.turns.list(each.id))[0], each) for each in found]
    return sorted((pair for pair in pairs if pair[0].parent_turn_id == parent_id), key=lambda pair: pair[1].key)


async def test_several_tasks_are_done_in_sessions_of_their_own_and_answered(open_it: Open) -> None:
    """A7: the children carry the parent's owner and source, are seen as sessions, and end by themselves."""
    source = Source(chat_id="42", chat_name="Garden", thread_id="7", user="ann")
    async with opened(open_it) as store:
        async with running_engine(store, Helpers(store, BOTH).let_go()) as engine:
            turn = await answered(engine, store, "go", source=source)
        text = await text_of(store, receipt_of(turn))
        (first, one), (second, two) = await children(store, turn)
        assert text == (
            f"ok: Task 1 (session {one.id}): count sheep\nfound: count sheep\n\n"
            f"Task 2 (session {two.id}): count goats\nfound: count goats"
        )
        for child, session in ((first, one), (second, two)):
            assert (child.state, child.mode, child.delivers_later) == (TurnState.COMPLETED, Mode.DETACHED, False)
            assert (session.source, session.end_reason, session.parent_id) == (source, "delegate_complete", turn.session_id)
            assert depth(session) == 1


async def test_a_task_knows_what_it_was_told_and_no_more(open_it: Open) -> None:
    async with opened(open_it) as store:
        helpers = Helpers(store, {"goal": "count goats", "context": "on the hill"}).let_go()
        async with running_engine(store, helpers) as engine:
            await answered(engine, store, "a secret between us")
    (work,) = helpers.work
    assert "count goats" in work.message
    assert "on the hill" in work.message
    assert "secret" not in work.message
    assert [item for item in work.history if item.turn_id != work.turn.id] == []


async def test_a_failure_is_told_beside_the_answers(open_it: Open) -> None:
    async with opened(open_it) as store:
        args = {"tasks": [{"goal": "fail at this"}, {"goal": "count goats"}]}
        async with running_engine(store, Helpers(store, args).let_go()) as engine:
            turn = await answered(engine, store, "go")
            receipt = receipt_of(turn)
            text = await text_of(store, receipt)
        assert "fail at this\nIt failed: it broke" in text
        assert "found: count goats" in text


async def test_a_parent_that_waits_takes_no_place_from_its_children(open_it: Open) -> None:
    """With room for a single turn, a parent that kept its place would wait for ever."""
    async with opened(open_it) as store:
        config = Config(gateway=GatewayConfig(max_running=1))
        async with running_engine(store, Helpers(store, BOTH).let_go(), config=config) as engine:
            assert (await answered(engine, store, "go")).state is TurnState.COMPLETED


async def test_children_are_cancelled_with_their_parent(open_it: Open) -> None:
    async with opened(open_it) as store:
        helpers = Helpers(store, BOTH)
        async with running_engine(store, helpers) as engine:
            receipt = await engine.inbox.accept(message("go"))
            await until(lambda: len(helpers.work) == 2)
            await engine.cancel(receipt.turn_id)
            for child, _ in await children(store, receipt):
                assert (await settled_turn(store, child)).state is TurnState.CANCELLED


async def settled_turn(store: Store, turn: Turn) -> Turn:
    return await settled(store, receipt_of(turn))


@pytest.mark.parametrize("done", [False, True], ids=["while they work", "after they have ended"])
async def test_a_parent_that_was_cut_off_finds_the_same_children(open_it: Open, done: bool) -> None:
    """R10: the call is repeated under its own key, and what its children had done is not done again."""
    async with opened(open_it) as store:
        helpers = Helpers(store, BOTH)
        async with running_engine(store, helpers) as engine:
            receipt = await engine.inbox.accept(message("go", mode=Mode.DETACHED))
            await until(lambda: len(helpers.work) == 2)
        before = [session.id for _, session in await children(store, receipt)]
        if done:
            # A node on which the parent gets nowhere lets the children end.
            halting = Helpers(store, BOTH).let_go()
            halting.delegating = ScriptedAgent([Pause(3_600_000)])
            async with running_engine(store, halting):
                for child, _ in await children(store, receipt):
                    assert await settled_state(store, child) is TurnState.COMPLETED
        again = Helpers(store, BOTH).let_go()
        async with running_engine(store, again):
            assert (await settled(store, receipt)).state is TurnState.COMPLETED
        assert len(again.work) == (0 if done else 2)
        assert [session.id for _, session in await children(store, receipt)] == before
        assert (await text_of(store, receipt)).count("found: ") == 2


async def test_a_drain_interrupts_the_parent_and_cancels_no_child(open_it: Open) -> None:
    """R4, R10: a stop of the gateway is nobody's wish to give the tasks up."""
    async with opened(open_it) as store:
        helpers = Helpers(store, BOTH)
        async with running_engine(store, helpers) as engine:
            receipt = await engine.inbox.accept(message("go", mode=Mode.DETACHED))
            await until(lambda: len(helpers.work) == 2)
            await engine.drain(0, Cause.RESTART_TIMEOUT)
            assert [child.state for child, _ in await children(store, receipt)] == [TurnState.QUEUED, TurnState.QUEUED]
        async with running_engine(store, Helpers(store, BOTH).let_go()):
            assert (await settled(store, receipt)).state is TurnState.COMPLETED


async def test_in_the_background_the_result_arrives_as_a_new_turn(open_it: Open) -> None:
    """A6: handles at once, and each end comes home once, where the conversation is."""
    async with opened(open_it) as store:
        carrier = RecordingCarrier()
        helpers = Helpers(store, {**BOTH, "background": True})
        async with running_engine(store, helpers, carriers={"chat": carrier}) as engine:
            turn = await answered(engine, store, "go", reply_to="chat:1")
            (handles,) = await until(lambda: carrier.texts(turn))
            assert "At work in the background" in handles
            for child, session in await children(store, turn):
                assert session.key.startswith(LATER)
                assert f"turn {child.id} in session {session.id}" in handles
            helpers.let_go()
            home = await until(lambda: came_home(store, turn, 2))
            assert [await settled_state(store, each) for each in home] == [TurnState.COMPLETED] * 2
            await until(lambda: len(carrier.sent) == 3)
        assert [each.mode for each in home] == [Mode.DETACHED] * 2
        told = sorted(each.text for each in carrier.sent[1:])
        assert "found: count goats" in told[0]
        assert "found: count sheep" in told[1]
        assert {each.target for each in carrier.sent} == {"chat:1"}


async def came_home(store: Store, turn: Turn, count: int) -> list[Turn] | None:
    later = [each for each in await store.turns.list(turn.session_id) if each.ordinal > turn.ordinal]
    return later if len(later) >= count else None


async def settled_state(store: Store, turn: Turn) -> TurnState:
    return (await settled_turn(store, turn)).state


async def test_where_nothing_can_arrive_later_it_is_done_now_with_a_note(open_it: Open) -> None:
    """A6: a turn that cannot deliver later gets its results in the same response."""
    async with opened(open_it) as store:
        helpers = Helpers(store, {"goal": "count sheep", "background": True}).let_go()
        async with running_engine(store, helpers) as engine:
            turn = await answered(engine, store, "go", mode=Mode.SYNCHRONOUS, delivers_later=False, channel="api")
            receipt = receipt_of(turn)
            text = await text_of(store, receipt)
            assert len(await children(store, turn)) == 1
            assert await store.turns.unreported(0, 10) == []
        assert NOTE in text
        assert "found: count sheep" in text
        assert await came_home(store, turn, 1) is None


async def test_the_capability_is_the_turns_and_not_the_sessions(open_it: Open) -> None:
    """A2: the same conversation, continued where it can deliver, has its results later again."""
    async with opened(open_it) as store:
        helpers = Helpers(store, {"goal": "count sheep", "background": True}).let_go()
        async with running_engine(store, helpers) as engine:
            first = await answered(engine, store, "go", mode=Mode.SYNCHRONOUS, delivers_later=False)
            second = await answered(engine, store, "go")
            assert first.session_id == second.session_id
            await until(lambda: came_home(store, second, 1))


@pytest.mark.parametrize("cut", [False, True], ids=["not begun", "cut off after it was accepted"])
async def test_an_end_that_was_not_told_before_a_crash_is_told_after_it_and_once(open_it: Open, cut: bool) -> None:
    """A6, A3: whatever was cut off, looking again brings home what has not come home, and nothing twice."""
    async with opened(open_it) as store:
        helpers = Helpers(store, {**BOTH, "background": True})
        async with running_engine(store, helpers) as engine:
            turn = await answered(engine, store, "go")
            await until(lambda: len(helpers.work) == 2)
        # A node that brings no results home by itself lets the children end.
        deaf = Altered(store, turns=Altered(store.turns, unreported=_nothing))
        async with running_engine(deaf, helpers.let_go()):
            for child, _ in await children(store, turn):
                assert await settled_state(store, child) is TurnState.COMPLETED
        assert await came_home(store, turn, 1) is None
        accept = LosingAnswer(inbox(store).accept) if cut else inbox(store).accept
        for _ in range(3):
            with contextlib.suppress(Unavailable):
                await ChildResults(store, accept, FAST, SystemClock()).report()
        assert len(await came_home(store, turn, 2) or []) == 2
        assert await store.turns.unreported(0, 10) == []


async def _nothing(*_: object) -> list[Turn]:
    return []


async def test_two_nodes_bring_one_end_home_once(open_it: Open) -> None:
    """A3: on a shared database the key decides."""
    async with opened(open_it) as store:
        helpers = Helpers(store, {**BOTH, "background": True}).let_go()
        deaf = Altered(store, turns=Altered(store.turns, unreported=_nothing))
        async with running_engine(deaf, helpers) as engine:
            turn = await answered(engine, store, "go")
            for child, _ in await children(store, turn):
                await settled_turn(store, child)
        nodes = [ChildResults(store, inbox(store).accept, FAST, SystemClock()) for _ in range(4)]
        await asyncio.gather(*(each.report() for each in nodes))
        assert len(await store.turns.list(turn.session_id)) == 3


async def test_what_was_cancelled_with_whoever_wanted_it_is_not_told(open_it: Open) -> None:
    async with opened(open_it) as store:
        background = {"goal": "count sheep", "background": True}
        helpers = Helpers(store, background)
        helpers.delegating = ScriptedAgent(
            [CallTool(NAME, background), CallTool(NAME, {"goal": "wait here"})], toolbox=_toolbox(helpers)
        )
        async with running_engine(store, helpers) as engine:
            receipt = await engine.inbox.accept(message("go"))
            await until(lambda: len(helpers.work) == 2)
            await engine.cancel(receipt.turn_id)
            for child, _ in await children(store, receipt):
                assert await settled_state(store, child) is TurnState.CANCELLED
        assert await store.turns.unreported(0, 10) == []


def _toolbox(helpers: Helpers) -> Toolbox:
    return Toolbox([delegate_tool(helpers.store, inbox(helpers.store).accept, helpers.config, look_s=0.05)])


async def test_a_child_that_somebody_cancelled_alone_is_told(open_it: Open) -> None:
    async with opened(open_it) as store:
        helpers = Helpers(store, {"goal": "count sheep", "background": True})
        async with running_engine(store, helpers) as engine:
            turn = await answered(engine, store, "go")
            ((child, _),) = await children(store, turn)
            await in_state(
                store,
                receipt_of(child),
                TurnState.RUNNING,
            )
            await engine.cancel(child.id)
            (home,) = await until(lambda: came_home(store, turn, 1))
            assert "It was cancelled: user" in await store.turns.asked(home.id)


async def test_the_end_of_a_task_whose_conversation_was_deleted_comes_home_to_nobody(open_it: Open) -> None:
    async with opened(open_it) as store:
        helpers = Helpers(store, {"goal": "count sheep", "background": True})
        async with running_engine(store, helpers) as engine:
            turn = await answered(engine, store, "go")
            ((child, _),) = await children(store, turn)
            # Deleted earlier, the conversation would take the task with it before anybody began it.
            await until(lambda: len(helpers.work) == 1)
            # As of now: what ended long ago is pruned.
            await store.sessions.delete(turn.session_id, SystemClock().now_ms())
            helpers.let_go()
            assert await settled_state(store, child) is TurnState.CANCELLED
        assert await store.turns.unreported(0, 10) == []


async def test_tasks_are_handed_on_so_far_and_no_further(open_it: Open) -> None:
    """Beyond the depth the tool is not even offered."""
    async with opened(open_it) as store:
        config = DelegateConfig(depth_max=2, children_max=3)
        helpers = Helpers(store, {"goal": "hand on"}, config)
        async with running_engine(store, helpers) as engine:
            turn = await answered(engine, store, "hand on")
            found = [each for each in await store.sessions.list("local", limit=100) if each.channel == CHANNEL]
        assert sorted(depth(each) for each in found) == [1, 2]
        receipt = receipt_of(turn)
        assert f"there is no tool '{NAME}'" in await text_of(store, receipt)


async def test_too_many_tasks_are_refused_and_none_is_begun(open_it: Open) -> None:
    async with opened(open_it) as store:
        helpers = Helpers(store, {"tasks": [{"goal": f"task {number}"} for number in range(4)]}).let_go()
        async with running_engine(store, helpers) as engine:
            turn = await answered(engine, store, "go")
            receipt = receipt_of(turn)
            assert "4 tasks are too many: 3 at once are allowed" in await text_of(store, receipt)
        assert helpers.work == []


async def test_calls_side_by_side_share_the_limit(open_it: Open) -> None:
    async with opened(open_it) as store:
        helpers = Helpers(store, {})
        two = {"tasks": [{"goal": "a"}, {"goal": "b"}], "background": True}
        helpers.delegating = ScriptedAgent(
            [CallTool(NAME, two), CallTool(NAME, two, report=lambda call: str(call.result))], toolbox=_toolbox(helpers)
        )
        async with running_engine(store, helpers) as engine:
            turn = await answered(engine, store, "go")
            receipt = receipt_of(turn)
            assert "and 2 are at work for you already" in await text_of(store, receipt)
            assert len(await children(store, turn)) == 2


async def test_time_that_is_up_is_told_with_what_is_known(open_it: Open) -> None:
    async with opened(open_it) as store:
        async with running_engine(store, Helpers(store, {})) as engine:
            parent = await engine.inbox.accept(message("count nothing", channel=CHANNEL, conversation="delegate:now:1:x:1"))
            turn = await in_state(store, parent, TurnState.RUNNING)
            resting = Resting()
            here = call_context({"id": turn.session_id}, rest=resting, id=turn.id, session_id=turn.session_id)
            tool = delegate_tool(store, inbox(store).accept, CONFIG, look_s=0.01, wait_max_s=0.1)
            text = await tool.run({"goal": "count sheep"}, here)
        assert "after 0.1 s; look at its session later" in text
        assert (resting.times, resting.now) == (1, 0)


@pytest.mark.parametrize(
    "args",
    [{}, {"goal": " "}, {"goal": "a", "tasks": [{"goal": "b"}]}, {"tasks": []}, {"tasks": [{"goal": ""}]}, {"goal": 1}],
)
async def test_arguments_that_make_no_task_are_refused(open_it: Open, args: dict[str, Any]) -> None:
    async with opened(open_it) as store:
        with pytest.raises(Rejected):
            await delegate_tool(store, inbox(store).accept, CONFIG).run(args, call_context())


def test_a_session_of_any_other_channel_is_at_no_depth() -> None:
    assert depth(call_context({"channel": "telegram", "key": "delegate:now:9:x"}).session) == 0
    assert depth(call_context({"channel": CHANNEL, "key": "delegate:later:2:trn:call:1"}).session) == 2
    assert depth(call_context({"channel": CHANNEL, "key": "odd"}).session) == 1


async def test_what_a_helper_waits_for_is_said_once_where_somebody_reads(open_it: Open) -> None:
    """A6: nobody reads along in the session of a helper, so a question there would wait unseen."""
    question = Question(id="q", text="May I sell the sheep?", about=About.APPROVAL, choices=("once", "deny"))

    class Asking(Helpers):
        async def run(self, work: Assignment, stage: Stage) -> str:
            if work.session.channel == CHANNEL:
                return await stage.ask(question)
            return await super().run(work, stage)

    async with opened(open_it) as store:
        async with running_engine(store, Asking(store, {"goal": "count sheep"})) as engine:
            receipt = await engine.inbox.accept(message("go"))

            async def notes() -> list[str]:
                entries = await journal_of(store, receipt.session_id)
                return [str(entry.data["text"]) for entry in entries if entry.kind is EntryKind.NOTE]

            (note,) = await until(notes)
            ((child, session),) = await children(store, receipt)
            assert session.id in note
            assert question.text in note
            await engine.answer(child.id, "q", "once")
            turn = await settled(store, receipt)
        assert (turn.state, await notes()) == (TurnState.COMPLETED, [note])
        assert (await text_of(store, receipt)).endswith("once")
