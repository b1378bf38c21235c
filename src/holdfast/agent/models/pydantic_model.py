"""Models of other providers, through pydantic-ai and the `providers` extra: `pydantic:bedrock:…`, `pydantic:cohere:…`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError
from pydantic_ai import messages as said
from pydantic_ai.direct import model_request_stream
from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelAuthenticationError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    ModelRequestRejectedError,
    UnexpectedModelBehavior,
    UserError,
)
from pydantic_ai.models import Model as PydanticModel
from pydantic_ai.models import ModelRequestParameters, StreamedResponse, infer_model
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from holdfast.agent.models.call_ids import CallIds
from holdfast.agent.models.failures import SAID_MAX_CHARS
from holdfast.agent.models.port import (
    AssistantMessage,
    Called,
    Done,
    Event,
    Facts,
    ReasoningDelta,
    Request,
    StopReason,
    TextDelta,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from holdfast.agent.models.prices import priced
from holdfast.clock import Clock
from holdfast.egress import retry_after_s
from holdfast.errors import ConfigInvalid, ContextTooLong, ModelRejected, ModelUnavailable, ModelUnusable

_SEALED = "pydantic"
_REASONS: Mapping[str | None, StopReason] = {
    "length": StopReason.LENGTH,
    "content_filter": StopReason.REFUSAL,
    "tool_call": StopReason.CALLS,
}


def open_pydantic_ai(model: str, *, facts: Facts, setting: str, stall_timeout_s: float, clock: Clock) -> PydanticAIModel:
    """Return the model that pydantic-ai has under a name.  Raises `ConfigInvalid`."""
    try:
        inferred = infer_model(model)
    except (UserError, ImportError, ValueError) as error:
        raise ConfigInvalid(f"{setting}: pydantic:{model}: {error}") from error
    return PydanticAIModel(inferred, name=f"pydantic:{model}", facts=facts, stall_timeout_s=stall_timeout_s, clock=clock)


class PydanticAIModel:
    """One model, used through pydantic-ai's direct requests, which run no tools themselves."""

    def __init__(
        self,
        model: PydanticModel[Any],  # The type parameter is the vendor's client, which is not used here.
        *,
        name: str,
        facts: Facts,
        stall_timeout_s: float,
        clock: Clock,
    ) -> None:
        self._model = model
        self._name = name
        self._facts = facts
        self._stall_timeout_s = stall_timeout_s
        self._clock = clock

    @property
    def name(self) -> str:
        return self._name

    @property
    def facts(self) -> Facts:
        return self._facts

    async def stream(self, request: Request) -> AsyncGenerator[Event]:
        settings = ModelSettings(timeout=self._stall_timeout_s)
        if limit := request.output_tokens_max or self._facts.output_tokens_max:
            settings["max_tokens"] = limit
        tools = [
            ToolDefinition(name=each.name, description=each.description, parameters_json_schema=dict(each.schema))
            for each in request.tools
        ]
        parameters = ModelRequestParameters(function_tools=tools)
        try:
            async with model_request_stream(
                self._model, _messages(request), model_settings=settings, model_request_parameters=parameters
            ) as response:
                async for event in self._pieces(response):
                    yield event
                for event in self._end(response.get(), request):
                    yield event
        except TimeoutError as error:
            raise ModelUnavailable(f"{self._name}: sent nothing for {self._stall_timeout_s:g} s") from error
        except (ModelAPIError, UnexpectedModelBehavior, UserError) as error:
            raise self._failure(error) from error

    async def close(self) -> None:
        """Do nothing: pydantic-ai shares its connections between models."""

    async def _pieces(self, response: StreamedResponse) -> AsyncGenerator[Event]:
        events = aiter(response)
        while True:
            async with asyncio.timeout(self._stall_timeout_s):
                event = await anext(events, None)
            match event:
                case None:
                    return
                case said.PartStartEvent(part=said.TextPart(content=str(text))) if text:
                    yield TextDelta(text)
                case said.PartStartEvent(part=said.ThinkingPart(content=str(text))) if text:
                    yield ReasoningDelta(text)
                case said.PartDeltaEvent(delta=said.TextPartDelta(content_delta=str(text))) if text:
                    yield TextDelta(text)
                case said.PartDeltaEvent(delta=said.ThinkingPartDelta(content_delta=str(text))) if text:
                    yield ReasoningDelta(text)
                case _:
                    pass

    def _end(self, response: said.ModelResponse, request: Request) -> list[Event]:
        if response.state not in ("complete", "suspended"):
            raise ModelUnavailable(f"{self._name}: the answer was cut before its end")
        ids = CallIds(request)
        calls = [
            ToolCall(id=ids.unique(each.tool_call_id), name=each.tool_name, args=_written(each))
            for each in response.tool_calls
        ]
        usage = priced(
            self._name,
            self._facts,
            input_tokens=response.usage.input_tokens,
            output_tokens=response.usage.output_tokens,
            cached_tokens=response.usage.cache_read_tokens,
        )
        reason = _REASONS.get(response.finish_reason, StopReason.CALLS if calls else StopReason.END)
        # With changed ids, the sealed response would not match the calls.
        own = [each.tool_call_id for each in response.tool_calls] == [each.id for each in calls]
        sealed = _sealed(response) if calls and own else ()
        return [*[Called(each) for each in calls], Done(reason=reason, usage=usage, sealed=sealed)]

    def _failure(self, error: Exception) -> ModelRejected | ModelUnavailable:
        told = " ".join(str(error).split())[:SAID_MAX_CHARS]
        match error:
            case ModelContextWindowExceededError():
                return ContextTooLong(f"{self._name}: the conversation is too long for this model")
            case ModelAuthenticationError():
                # The message is left out because vendors repeat the key in it.
                return ModelUnusable(f"{self._name}: the key is refused; check the provider's variable in the environment")
            case ModelQuotaExceededError() | ModelNotFoundError() | UserError():
                return ModelUnusable(f"{self._name}: {told}")
            case ModelRequestRejectedError():
                return ModelRejected(f"{self._name}: {told}")
            case ModelHTTPError():
                wait_s = retry_after_s(error.headers or {}, self._clock.now_ms())
                return ModelUnavailable(f"{self._name}: {told}", wait_s)
            case _:
                return ModelUnavailable(f"{self._name}: {told}")


def _written(call: said.ToolCallPart) -> str:
    """Return the arguments as the model wrote them, even if they are not JSON."""
    return call.args if isinstance(call.args, str) else call.args_as_json_str()


def _sealed(response: said.ModelResponse) -> Sequence[Mapping[str, object]]:
    return ({_SEALED: said.ModelMessagesTypeAdapter.dump_python([response], mode="json")},)


def _messages(request: Request) -> list[said.ModelMessage]:
    """Return the conversation in pydantic-ai's types."""
    told: list[said.ModelMessage] = []
    parts: list[said.ModelRequestPart] = []
    tools = {call.id: call.name for each in request.messages if isinstance(each, AssistantMessage) for call in each.calls}
    for message in request.messages:
        match message:
            case UserMessage():
                parts.append(said.UserPromptPart(content=_content(message)))
            case ToolMessage():
                name = tools.get(message.call_id, "unknown")
                parts.append(said.ToolReturnPart(tool_name=name, content=message.text, tool_call_id=message.call_id))
            case AssistantMessage():
                if parts:
                    told.append(said.ModelRequest(parts=parts))
                    parts = []
                told.append(_response(message))
    told.append(said.ModelRequest(parts=parts, instructions=request.system or None))
    return told


def _content(message: UserMessage) -> str | list[said.UserContent]:
    if not message.images:
        return message.text
    return [message.text, *(said.BinaryContent(data=each.data, media_type=each.media_type) for each in message.images)]


def _response(message: AssistantMessage) -> said.ModelResponse:
    for each in message.sealed:
        if _SEALED in each:
            try:
                (kept,) = said.ModelMessagesTypeAdapter.validate_python(each[_SEALED])
            except (ValidationError, ValueError):
                break
            if isinstance(kept, said.ModelResponse):
                return kept
    text = [said.TextPart(content=message.text)] if message.text else []
    calls = [said.ToolCallPart(tool_name=each.name, args=each.args, tool_call_id=each.id) for each in message.calls]
    return said.ModelResponse(parts=[*text, *calls])
