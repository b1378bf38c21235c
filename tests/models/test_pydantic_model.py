"""Other providers through pydantic-ai, with its own model for tests in their place."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic_ai import exceptions
from pydantic_ai import messages as said
from pydantic_ai.models import Model as PydanticModel
from pydantic_ai.models.function import AgentInfo, DeltaThinkingPart, DeltaToolCall, FunctionModel
from pydantic_ai.models.test import TestModel

from holdfast.agent.models.catalog import open_model
from holdfast.agent.models.port import (
    AssistantMessage,
    Called,
    Done,
    ReasoningDelta,
    StopReason,
    TextDelta,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from holdfast.agent.models.pydantic_model import PydanticAIModel
from holdfast.clock import SystemClock
from holdfast.config import ModelConfig
from holdfast.core.intake import Image
from holdfast.errors import ContextTooLong, HoldfastError, ModelRejected, ModelUnavailable, ModelUnusable
from tests.models.scenes import FACTS, KEY, TOOL, heard, request, text_of


def foreign(model: PydanticModel, *, stall_timeout_s: float = 5) -> PydanticAIModel:
    return PydanticAIModel(model, name="pydantic:f", facts=FACTS, stall_timeout_s=stall_timeout_s, clock=SystemClock())


async def test_text_reasoning_calls_and_usage_come_through() -> None:
    """Streamed in pieces, calls as a whole, and the end with what it cost."""

    async def answer(_: list[said.ModelMessage], info: AgentInfo) -> AsyncIterator[object]:
        assert [tool.name for tool in info.function_tools] == ["look"]
        yield {0: DeltaThinkingPart(content="hm")}
        yield "I "
        yield "look"
        yield {1: DeltaToolCall(name="look", json_args='{"at":', tool_call_id="1")}
        yield {1: DeltaToolCall(json_args=' "x"}')}
        yield {2: DeltaToolCall(name="look", json_args="{}", tool_call_id="2")}

    *events, done = await heard(foreign(FunctionModel(stream_function=answer)), request("look twice", tools=[TOOL]))
    assert events[0] == ReasoningDelta("hm")
    assert text_of(events) == "I look"
    assert events[-2:] == [
        Called(ToolCall(id="1", name="look", args='{"at": "x"}')),
        Called(ToolCall(id="2", name="look", args="{}")),
    ]
    assert isinstance(done, Done)
    assert done.reason is StopReason.CALLS
    assert done.usage.model == "pydantic:f"
    assert done.usage.output_tokens > 0
    assert done.usage.cost_micros > 0
    assert done.sealed


async def test_a_conversation_is_told_in_its_words() -> None:
    """System, pictures, calls with their results, and what was sealed, word by word."""
    seen: list[list[said.ModelMessage]] = []

    async def answer(messages: list[said.ModelMessage], _: AgentInfo) -> AsyncIterator[object]:
        seen.append(messages)
        if len(seen) == 1:
            yield {0: DeltaThinkingPart(content="hm", signature="signed")}
            yield {1: DeltaToolCall(name="look", json_args="{}", tool_call_id="1")}
        else:
            yield "done"

    model = foreign(FunctionModel(stream_function=answer))
    picture = UserMessage(text="look", images=(Image(media_type="image/png", data=b"png"),))
    *_, done = await heard(model, request(picture, tools=[TOOL], system="Be brief."))
    assert isinstance(done, Done)
    step = AssistantMessage(calls=(ToolCall(id="1", name="look", args="{}"),), sealed=done.sealed)
    result = ToolMessage(call_id="1", text="one")
    assert text_of(await heard(model, request(picture, step, result, tools=[TOOL], system="Be brief."))) == "done"
    first, response, last = seen[1]
    prompt = first.parts[0]
    assert isinstance(prompt, said.UserPromptPart)
    assert prompt.content[0] == "look"
    assert isinstance(response, said.ModelResponse)
    assert isinstance(response.parts[0], said.ThinkingPart)
    assert response.parts[0].signature == "signed"
    assert isinstance(last, said.ModelRequest)
    assert last.instructions == "Be brief."
    assert isinstance(last.parts[0], said.ToolReturnPart)
    assert (last.parts[0].tool_name, last.parts[0].content) == ("look", "one")


async def test_its_own_test_model_calls_every_tool() -> None:
    """The double that pydantic-ai ships: it calls what it is offered, then says so."""
    *events, done = await heard(foreign(TestModel()), request("hi", tools=[TOOL]))
    assert [event.call.name for event in events if isinstance(event, Called)] == ["look"]
    assert isinstance(done, Done)


@pytest.mark.parametrize(
    ("category", "status", "kind"),
    [
        (exceptions.ModelAuthenticationError, 401, ModelUnusable),
        (exceptions.ModelNotFoundError, 404, ModelUnusable),
        (exceptions.ModelQuotaExceededError, 429, ModelUnusable),
        (exceptions.ModelContextWindowExceededError, 400, ContextTooLong),
        (exceptions.ModelRequestRejectedError, 400, ModelRejected),
        (exceptions.ModelRateLimitError, 429, ModelUnavailable),
        (exceptions.ModelServerError, 500, ModelUnavailable),
    ],
)
async def test_its_failures_have_our_names(category: type[Any], status: int, kind: type[HoldfastError]) -> None:
    """Translated at once, with the wait the server asked for."""

    async def answer(_: list[said.ModelMessage], __: AgentInfo) -> AsyncIterator[object]:
        body = {"error": f"no such key: {KEY}" if status == 401 else "it failed"}
        headers = {"retry-after": "9"}
        raise exceptions.ModelHTTPError.for_category(
            category, status_code=status, model_name="f", body=body, headers=headers
        )
        yield ""

    with pytest.raises(kind) as raised:
        await heard(foreign(FunctionModel(stream_function=answer)), "hi")
    assert KEY not in str(raised.value)
    assert type(raised.value) is kind
    if isinstance(raised.value, ModelUnavailable):
        assert raised.value.retry_after_s == 9


async def test_a_stall_ends() -> None:
    """Nothing hangs."""

    async def answer(_: list[said.ModelMessage], __: AgentInfo) -> AsyncIterator[object]:
        yield "half"
        await asyncio.Event().wait()

    events = foreign(FunctionModel(stream_function=answer), stall_timeout_s=0.1).stream(request("hi"))
    assert await anext(events) == TextDelta("half")
    with pytest.raises(ModelUnavailable, match="sent nothing"):
        await anext(events)


async def test_a_model_is_opened_by_its_foreign_name() -> None:
    """`pydantic:` and the name that pydantic-ai knows."""
    model = open_model(ModelConfig(name="pydantic:test"), {}, {})
    assert model.name == "pydantic:test"
    assert text_of(await heard(model, "hi"))
