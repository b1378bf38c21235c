"""Anthropic messages."""

from __future__ import annotations

import base64
import re
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from holdfast.agent.models import failures
from holdfast.agent.models.call_ids import CallIds
from holdfast.agent.models.failures import Fault, ModelEndpoint
from holdfast.agent.models.http_model import HttpModel
from holdfast.agent.models.port import (
    AssistantMessage,
    Called,
    Done,
    Event,
    Facts,
    Message,
    ReasoningDelta,
    Request,
    StopReason,
    TextDelta,
    ToolCall,
    ToolMessage,
    ToolSpec,
    UserMessage,
)
from holdfast.agent.models.prices import priced
from holdfast.agent.models.providers import ResolvedProvider

VERSION = "2023-06-01"
# The format requires a limit; every model accepts this one.
OUTPUT_TOKENS = 8_192
OUTPUT_TOKENS_USUAL = 32_000
# The reasoning budgets of models that take a budget rather than an effort.
THINKING_TOKENS: Mapping[str, int] = {"low": 2_048, "medium": 8_192, "high": 24_576}
_TAKES_BUDGET = re.compile(r"claude-(3|(opus|sonnet|haiku)-4(-[0-5])?($|-20|@|-latest))")
_CACHED = {"type": "ephemeral"}
_SEALED = frozenset({"thinking", "redacted_thinking"})

_REASONS: Mapping[str, StopReason] = {
    "end_turn": StopReason.END,
    "stop_sequence": StopReason.END,
    "pause_turn": StopReason.END,
    "tool_use": StopReason.CALLS,
    "max_tokens": StopReason.LENGTH,
    "model_context_window_exceeded": StopReason.LENGTH,
    "refusal": StopReason.REFUSAL,
}

Block = dict[str, object]


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None


class _Start(msgspec.Struct):
    usage: _Usage | None = None


class _Block(msgspec.Struct):
    type: str = ""
    id: str = ""
    name: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    data: str = ""
    input: dict[str, object] | None = None


class _Delta(msgspec.Struct):
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | None = None
    stop_reason: str | None = None


class _Event(msgspec.Struct):
    type: str
    index: int = 0
    message: _Start | None = None
    content_block: _Block | None = None
    delta: _Delta | None = None
    usage: _Usage | None = None
    error: Fault | None = None


_events = msgspec.json.Decoder(_Event)


class Anthropic(HttpModel):
    """One model behind messages."""

    @staticmethod
    def path_and_headers(resolved: ResolvedProvider) -> tuple[str, Mapping[str, str]]:
        # Base URLs of compatible servers come with and without the version.
        path = "/messages" if resolved.base_url.endswith("/v1") else "/v1/messages"
        return path, {"anthropic-version": VERSION} | ({"x-api-key": resolved.key} if resolved.key else {})

    @property
    def _limit(self) -> int:
        # The limit is subtracted from the context window, so the default is lower than the maximum.
        usual = min(self._facts.output_tokens_max or OUTPUT_TOKENS, OUTPUT_TOKENS_USUAL)
        return self._output_tokens_max or usual

    def stream(self, request: Request) -> AsyncGenerator[Event]:
        return self._client.converse(self._endpoint, self._body(request), EventReader(self._endpoint, self._facts, request))

    def _body(self, request: Request) -> bytes:
        body: dict[str, object] = {
            "model": self._model,
            "max_tokens": request.output_tokens_max or self._limit,
            "messages": _messages(request.messages, images=self._facts.images),
            "stream": True,
        }
        if request.system:
            body["system"] = [{"type": "text", "text": request.system, "cache_control": _CACHED}]
        if request.tools:
            body["tools"] = _tools(request.tools)
        return msgspec.json.encode(body | self._thinking(request))

    def _thinking(self, request: Request) -> dict[str, object]:
        if self._reasoning == "off":
            return {}
        if not _TAKES_BUDGET.match(self._model):
            return {"thinking": {"type": "adaptive"}, "output_config": {"effort": self._reasoning}}
        if not _may_reason(request.messages):
            return {}
        budget = THINKING_TOKENS[self._reasoning]
        # Reasoning counts towards the limit, so the budget is added to leave room for the answer.
        answer = request.output_tokens_max or self._limit
        limit = max(answer, min(answer + budget, self._facts.output_tokens_max or answer + budget))
        if limit <= budget:
            return {}
        return {"thinking": {"type": "enabled", "budget_tokens": budget}, "max_tokens": limit}


def _may_reason(messages: Sequence[Message]) -> bool:
    """Return whether reasoning may be enabled: not after calls whose own reasoning is missing or another vendor's."""
    last = next((each for each in reversed(messages) if not isinstance(each, ToolMessage)), None)
    if not isinstance(last, AssistantMessage) or not last.calls:
        return True
    return any(each.get("type") in _SEALED for each in last.sealed)


def _tools(tools: Sequence[ToolSpec]) -> list[Block]:
    told: list[Block] = [{"name": each.name, "description": each.description, "input_schema": each.schema} for each in tools]
    told[-1]["cache_control"] = _CACHED
    return told


def _messages(messages: Sequence[Message], *, images: bool) -> list[Block]:
    """Return messages in the required form: alternating roles, the user first, no empty text."""
    told: list[tuple[str, list[Block]]] = []
    for message in messages:
        role = "assistant" if isinstance(message, AssistantMessage) else "user"
        if not (blocks := list(_blocks(message, images=images))):
            continue
        if not told and role == "assistant":
            told.append(("user", [_text("(The beginning of this conversation is not shown.)")]))
        if told and told[-1][0] == role:
            told[-1][1].extend(blocks)
        else:
            told.append((role, blocks))
    if told and told[-1][1][-1]["type"] not in _SEALED:
        told[-1][1][-1]["cache_control"] = _CACHED
    return [{"role": role, "content": blocks} for role, blocks in told]


def _blocks(message: Message, *, images: bool) -> Iterator[Block]:
    match message:
        case UserMessage():
            for image in message.images:
                yield _image(image.media_type, image.data) if images else _text("[An image that this model cannot see.]")
            if message.text.strip():
                yield _text(message.text)
        case AssistantMessage():
            yield from (dict(each) for each in message.sealed if each.get("type") in _SEALED)
            if message.text.strip():
                yield _text(message.text)
            for call in message.calls:
                yield {"type": "tool_use", "id": _id(call.id), "name": call.name, "input": _object(call.args)}
        case ToolMessage():
            yield {"type": "tool_result", "tool_use_id": _id(message.call_id), "content": message.text or "(nothing)"}


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _image(media_type: str, data: bytes) -> Block:
    source = {"type": "base64", "media_type": media_type, "data": base64.b64encode(data).decode()}
    return {"type": "image", "source": source}


def _id(call_id: str) -> str:
    """Return an id that this vendor accepts."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", call_id)


def _object(args: str) -> object:
    """Return the arguments of a call.  A call whose arguments are not an object was refused, as its result says."""
    try:
        return msgspec.json.decode(args or "{}", type=dict[str, object])
    except (msgspec.DecodeError, RecursionError):
        return {}


@dataclass(slots=True)
class _Open:
    """A block whose pieces are still arriving."""

    block: _Block
    pieces: list[str] = field(default_factory=list[str])
    signature: str = ""


class EventReader:
    """Reads the events of one answer."""

    def __init__(self, endpoint: ModelEndpoint, facts: Facts, request: Request) -> None:
        self._endpoint = endpoint
        self._facts = facts
        self._ids = CallIds(request)
        self._open: dict[int, _Open] = {}
        self._reason: StopReason | None = None
        self._used = _Usage()
        self._sealed: list[Mapping[str, object]] = []
        self.complete = False
        self.pieces = 0

    def take(self, data: bytes) -> Sequence[Event]:
        event = _events.decode(data)
        if event.type == "ping":
            return ()
        self.pieces += 1
        match event.type:
            case "content_block_delta" if event.delta is not None:
                return self._piece(event.index, event.delta)
            case "content_block_start" if event.content_block is not None:
                return self._begin(event.index, event.content_block)
            case "content_block_stop":
                return self._close(event.index)
            case "message_start" if event.message is not None:
                self._count(event.message.usage)
            case "message_delta":
                self._count(event.usage)
                if event.delta is not None and event.delta.stop_reason:
                    self._reason = _REASONS.get(event.delta.stop_reason, StopReason.END)
            case "message_stop":
                self.complete = True
                self._reason = self._reason or StopReason.END
            case "error":
                raise failures.of_event(self._endpoint, event.error or Fault())
            case _:
                pass
        return ()

    def end(self) -> Done | None:
        if self._reason is None:
            return None
        read, written = self._used.cache_read_input_tokens or 0, self._used.cache_creation_input_tokens or 0
        usage = priced(
            self._endpoint.name,
            self._facts,
            input_tokens=(self._used.input_tokens or 0) + read + written,
            output_tokens=self._used.output_tokens or 0,
            cached_tokens=read,
            written_tokens=written,
        )
        return Done(reason=self._reason, usage=usage, sealed=tuple(self._sealed))

    def _begin(self, index: int, block: _Block) -> Sequence[Event]:
        begun = self._open[index] = _Open(block, signature=block.signature)
        if block.type == "text" and block.text:
            return (TextDelta(block.text),)
        if block.type == "thinking" and block.thinking:
            begun.pieces.append(block.thinking)
            return (ReasoningDelta(block.thinking),)
        return ()

    def _piece(self, index: int, delta: _Delta) -> Sequence[Event]:
        if delta.text:
            return (TextDelta(delta.text),)
        if (begun := self._open.get(index)) is None:
            return ()
        if delta.thinking:
            begun.pieces.append(delta.thinking)
            return (ReasoningDelta(delta.thinking),)
        if delta.partial_json:
            begun.pieces.append(delta.partial_json)
        if delta.signature:
            begun.signature += delta.signature
        return ()

    def _close(self, index: int) -> Sequence[Event]:
        if (ended := self._open.pop(index, None)) is None:
            return ()
        block, whole = ended.block, "".join(ended.pieces)
        match block.type:
            case "tool_use":
                args = whole or msgspec.json.encode(block.input or {}).decode()
                return (Called(ToolCall(id=self._ids.unique(block.id), name=block.name, args=args)),)
            case "thinking":
                self._sealed.append({"type": "thinking", "thinking": whole, "signature": ended.signature})
            case "redacted_thinking":
                self._sealed.append({"type": "redacted_thinking", "data": block.data})
            case _:
                pass
        return ()

    def _count(self, told: _Usage | None) -> None:
        """Keep the latest of each number: the last ones are totals, but not every server repeats all of them."""
        if told is not None:
            known = {name: number for name, number in msgspec.structs.asdict(told).items() if number is not None}
            self._used = msgspec.structs.replace(self._used, **known)
