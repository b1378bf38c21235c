"""A message leaves through the outbox: once, to a target that there is, and to a stranger's only when a person allows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from holdfast.agent.scripted import CallTool, Say, ScriptedAgent
from holdfast.agent.toolbox import Toolbox
from holdfast.agent.tools.port import CallContext
from holdfast.agent.tools.send_message import PARTS_MAX, send_message_tool
from holdfast.clock import SystemClock
from holdfast.core.questions import About
from holdfast.core.redaction import MASK, Redaction
from holdfast.core.turns import Mode, TurnState
from holdfast.errors import Rejected
from holdfast.ids import CallId, SessionId
from holdfast.ports import Assignment, Stage
from holdfast.store.store import Store
from tests.engine.players import in_state
from tests.engine.world import Open, RecordingCarrier, answered, message, opened, running_engine, settled, until
from tests.tools.contexts import call_context

SECRET = "open-sesame-42"


def tool(store: Store, carriers: Mapping[str, RecordingCarrier]) -> Any:
    return send_message_tool(store.deliveries, store.sessions.find, carriers, Redaction([SECRET]), SystemClock())


def sending(store: Store, carriers: Mapping[str, RecordingCarrier], **args: object) -> ScriptedAgent:
    toolbox = Toolbox([tool(store, carriers)])
    return ScriptedAgent(
        [CallTool("send_message", args, report=lambda call: f"{call.state}: {call.result}"), Say(".")], toolbox=toolbox
    )


@dataclass
class Twice:
    """An agent that makes one call twice, as after a cut."""

    tool: Any
    args: Mapping[str, object]
    results: list[str] = field(default_factory=list)

    async def run(self, work: Assignment, stage: Stage) -> str:
        here = CallContext(session=work.session, turn=work.turn, call_id=CallId("call_1"), rest=stage.rest)
        self.results += [await self.tool.run(self.args, here) for _ in range(2)]
        return "done"

    async def release(self, session_id: SessionId) -> None: ...


async def test_a_message_goes_to_this_conversation_before_the_answer(open_it: Open) -> None:
    """A7: where the conversation is, is readable to the tool."""
    async with opened(open_it) as store:
        carriers = {"chat": RecordingCarrier()}
        async with running_engine(store, sending(store, carriers, text="one|two"), carriers=carriers) as engine:
            turn = await answered(engine, store, reply_to="chat:1")
            await until(lambda: len(carriers["chat"].sent) == 3)
        texts = [each.text for each in carriers["chat"].sent]
        assert texts.index("one") < texts.index("two")
        assert {each.target for each in carriers["chat"].sent} == {"chat:1"}
        assert "In the outbox for chat:1 in 2 parts" in next(text for text in texts if text.startswith("ok"))
        assert turn.state is TurnState.COMPLETED


async def test_a_repeated_call_sends_nothing_twice(open_it: Open) -> None:
    """R10: the ids come from the call, so the outbox knows it."""
    async with opened(open_it) as store:
        carriers = {"chat": RecordingCarrier()}
        agent = Twice(tool(store, carriers), {"text": "one|two"})
        async with running_engine(store, agent, carriers=carriers) as engine:
            turn = await answered(engine, store, reply_to="chat:1")
            await until(lambda: len(carriers["chat"].sent) == 3)
            assert len(await store.deliveries.of_turn(turn.id)) == 3
        assert len(agent.results) == 2
        assert len(set(agent.results)) == 1


@pytest.mark.parametrize(("answer", "texts"), [("once", ["hello", "ok"]), ("deny", ["error"])])
async def test_another_target_needs_a_persons_word(open_it: Open, answer: str, texts: list[str]) -> None:
    async with opened(open_it) as store:
        carriers = {"chat": RecordingCarrier()}
        agent = sending(store, carriers, text="hello", target="chat:99")
        async with running_engine(store, agent, carriers=carriers) as engine:
            receipt = await engine.inbox.accept(message(reply_to="chat:1"))
            await in_state(store, receipt, TurnState.WAITING)
            assert carriers["chat"].sent == []
            (asked,) = await store.questions.open("local")
            assert (asked.question.about, asked.question.detail["target"]) == (About.APPROVAL, "chat:99")
            assert "hello" in asked.question.text
            await engine.answer(receipt.turn_id, asked.question.id, answer)
            await settled(store, receipt)
            await until(lambda: len(carriers["chat"].sent) == len(texts))
        sent = sorted(carriers["chat"].sent, key=lambda each: each.target, reverse=True)
        assert [each.text.partition(":")[0] for each in sent] == texts
        assert {each.target for each in sent} <= {"chat:1", "chat:99"}


async def test_what_is_always_allowed_is_not_asked_again(open_it: Open) -> None:
    async with opened(open_it) as store:
        carriers = {"chat": RecordingCarrier()}
        agent = sending(store, carriers, text="hello", target="chat:99")
        async with running_engine(store, agent, carriers=carriers) as engine:
            receipt = await engine.inbox.accept(message())
            await in_state(store, receipt, TurnState.WAITING)
            (asked,) = await store.questions.open("local")
            await engine.answer(receipt.turn_id, asked.question.id, "always")
            await settled(store, receipt)
            assert (await answered(engine, store, conversation="another")).state is TurnState.COMPLETED
            await until(lambda: len(carriers["chat"].sent) == 2)


@pytest.mark.parametrize(
    ("args", "carriers", "refusal"),
    [
        ({"text": "x", "target": "pigeon:1"}, ["chat"], r"nothing can be sent to 'pigeon:1'; targets are chat:<address>"),
        ({"text": "x", "target": "chat"}, ["chat", "mail"], r"targets are chat:<address>, mail:<address>"),
        ({"text": "x", "target": "chat:"}, ["chat"], "nothing can be sent"),
        ({"text": "x"}, ["chat"], "this conversation has no address"),
        ({"text": "x", "target": "chat:1"}, [], "no channel that carries messages"),
        ({"text": ""}, ["chat"], "send_message: "),
    ],
)
async def test_a_refusal_names_what_there_is(open_it: Open, args: dict[str, str], carriers: list[str], refusal: str) -> None:
    async with opened(open_it) as store:
        offered = tool(store, {name: RecordingCarrier() for name in carriers})
        for act in (offered.question, offered.run):
            with pytest.raises(Rejected, match=refusal):
                await act(args, call_context())


async def test_where_nobody_can_be_asked_no_other_target_is_used(open_it: Open) -> None:
    async with opened(open_it) as store:
        with pytest.raises(Rejected, match="nobody can be asked"):
            await tool(store, {"chat": RecordingCarrier()}).question(
                {"text": "x", "target": "chat:99"}, call_context(mode=Mode.SYNCHRONOUS)
            )


async def test_a_text_that_would_be_a_flood_is_refused(open_it: Open) -> None:
    async with opened(open_it) as store:
        with pytest.raises(Rejected, match="shorten it"):
            await tool(store, {"chat": RecordingCarrier()}).run({"text": "a|" * PARTS_MAX}, call_context(reply_to="chat:1"))


async def test_a_secret_leaves_masked(open_it: Open) -> None:
    """K1: what must not be in a transcript must not be sent either."""
    async with opened(open_it) as store:
        carriers = {"chat": RecordingCarrier()}
        agent = sending(store, carriers, text=f"the word is {SECRET}")
        async with running_engine(store, agent, carriers=carriers, redaction=Redaction([SECRET])) as engine:
            await answered(engine, store, reply_to="chat:1")
            await until(lambda: len(carriers["chat"].sent) == 2)
        assert f"the word is {MASK}" in [each.text for each in carriers["chat"].sent]
        assert not any(SECRET in each.text for each in carriers["chat"].sent)
