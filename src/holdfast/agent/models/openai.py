"""OpenAI-compatible chat completions, the format of most vendors and all local servers."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast
from urllib.parse import urlsplit

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
    UserMessage,
)
from holdfast.agent.models.prices import priced
from holdfast.agent.models.providers import ResolvedProvider
from holdfast.core.usage import Usage
from holdfast.errors import ModelUnavailable

# Reasoning that its vendor wants back unchanged, under its own key: in the message, or in each call.
_SEALED = ("reasoning_content", "reasoning_details")
_SEALED_CALLS = "extra_content"
IMAGE_LEFT_OUT = "[An image was sent here, which this model cannot see.]"

# The names that vendors use, including old ones.
_REASONS: Mapping[str, StopReason] = {
    "stop": StopReason.END,
    "eos": StopReason.END,
    "end_turn": StopReason.END,
    "stop_sequence": StopReason.END,
    "tool_calls": StopReason.CALLS,
    "function_call": StopReason.CALLS,
    "tool_use": StopReason.CALLS,
    "length": StopReason.LENGTH,
    "max_tokens": StopReason.LENGTH,
    "model_length": StopReason.LENGTH,
    "content_filter": StopReason.REFUSAL,
    "refusal": StopReason.REFUSAL,
}
# These mean that the vendor failed, not that the answer is complete.
_BROKEN = frozenset({"error", "insufficient_system_resource", "network_error"})


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorRules:
    """What one vendor accepts.  `call_id_chars` is the required length of a call id; 0 is any."""

    limit_key: str = "max_tokens"
    usage_option: bool = True
    call_id_chars: int = 0


def vendor_rules(url: str) -> VendorRules:
    """Return the rules of the vendor at an address."""
    host = urlsplit(url).hostname or ""
    if host.endswith(("openai.com", "openai.azure.com")):
        return VendorRules(limit_key="max_completion_tokens")
    if host.endswith("mistral.ai"):
        return VendorRules(usage_option=False, call_id_chars=9)
    return VendorRules()


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | dict[str, object] | None = None


class _Piece(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None
    extra_content: dict[str, object] | None = None


class _Part(msgspec.Struct):
    text: str | None = None
    thinking: str | list[_Part] | None = None


class _Delta(msgspec.Struct):
    content: str | list[_Part] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[dict[str, object]] | None = None
    refusal: str | None = None
    tool_calls: list[_Piece] | None = None
    function_call: _Function | None = None


class _Choice(msgspec.Struct):
    delta: _Delta | None = None
    message: _Delta | None = None
    finish_reason: str | None = None


class _Details(msgspec.Struct):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None
    prompt_cache_hit_tokens: int | None = None
    cost: float | None = None


class _Groq(msgspec.Struct):
    usage: _Usage | None = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    x_groq: _Groq | None = None
    error: Fault | str | None = None


_chunks = msgspec.json.Decoder(_Chunk)


class OpenAI(HttpModel):
    """One model behind chat completions."""

    @staticmethod
    def path_and_headers(resolved: ResolvedProvider) -> tuple[str, Mapping[str, str]]:
        return "/chat/completions", {"authorization": f"Bearer {resolved.key}"} if resolved.key else {}

    @cached_property
    def _rules(self) -> VendorRules:
        return vendor_rules(self._endpoint.url)

    def stream(self, request: Request) -> AsyncGenerator[Event]:
        return self._client.converse(self._endpoint, self._body(request), ChunkReader(self._endpoint, self._facts, request))

    def _body(self, request: Request) -> bytes:
        body: dict[str, object] = {"model": self._model, "messages": self._messages(request), "stream": True}
        if self._rules.usage_option:
            body["stream_options"] = {"include_usage": True}
        # Without a configured limit none is sent, because vendors subtract it from the context window.
        if limit := request.output_tokens_max or self._output_tokens_max:
            body[self._rules.limit_key] = limit
        if self._reasoning != "off":
            body["reasoning_effort"] = self._reasoning
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "function": {"name": tool.name, "description": tool.description, "parameters": tool.schema},
                }
                for tool in request.tools
            ]
        return msgspec.json.encode(body)

    def _messages(self, request: Request) -> list[object]:
        system = [{"role": "system", "content": request.system}] if request.system else []
        return [*system, *map(self._message, request.messages)]

    def _message(self, message: Message) -> object:
        match message:
            case UserMessage():
                return {"role": "user", "content": self._content(message)}
            case AssistantMessage():
                sealed = {key: value for each in message.sealed for key, value in each.items() if key in _SEALED}
                calls = {"tool_calls": self._calls(message)} if message.calls else {}
                return {"role": "assistant", "content": message.text or (None if calls else ""), **calls, **sealed}
            case ToolMessage():
                return {"role": "tool", "tool_call_id": self._call_id(message.call_id), "content": message.text}

    def _content(self, message: UserMessage) -> object:
        if not message.images:
            return message.text
        if not self._facts.images:
            return "\n".join([message.text, *[IMAGE_LEFT_OUT] * len(message.images)])
        text = [{"type": "text", "text": message.text}] if message.text else []
        images = [
            {
                "type": "image_url",
                "image_url": {"url": f"data:{each.media_type};base64,{base64.b64encode(each.data).decode()}"},
            }
            for each in message.images
        ]
        return [*text, *images]

    def _calls(self, message: AssistantMessage) -> list[object]:
        extras: dict[str, object] = {}
        for each in message.sealed:
            if isinstance(kept := each.get(_SEALED_CALLS), dict):
                extras |= cast("dict[str, object]", kept)
        return [
            {
                "id": self._call_id(call.id),
                "type": "function",
                "function": {"name": call.name, "arguments": call.args or "{}"},
                **({_SEALED_CALLS: extras[call.id]} if call.id in extras else {}),
            }
            for call in message.calls
        ]

    def _call_id(self, call_id: str) -> str:
        length = self._rules.call_id_chars
        if not length or re.fullmatch(f"[a-zA-Z0-9]{{{length}}}", call_id):
            return call_id
        return hashlib.sha256(call_id.encode()).hexdigest()[:length]


@dataclass(slots=True)
class _Call:
    """A tool call whose pieces are still arriving."""

    id: str = ""
    name: str = ""
    args: str = ""
    extra: dict[str, object] | None = None

    def is_another(self, piece: _Piece) -> bool:
        """Return whether a piece with the same index begins a new call: some vendors give all calls the index 0."""
        if piece.id and self.id:
            return piece.id != self.id
        named = piece.function is not None and bool(piece.function.name)
        return named and bool(self.name) and not piece.id and not self.id and _is_object(self.args)

    def add(self, piece: _Piece) -> None:
        self.id = self.id or piece.id or ""
        self.extra = self.extra or piece.extra_content
        if piece.function is None:
            return
        # Some vendors repeat the name in every piece.
        self.name = self.name or piece.function.name or ""
        match piece.function.arguments:
            case str(text):
                self.args += text
            case None:
                pass
            case whole:
                self.args += msgspec.json.encode(whole).decode()


class ChunkReader:
    """Reads the chunks of one answer."""

    def __init__(self, endpoint: ModelEndpoint, facts: Facts, request: Request) -> None:
        self._endpoint = endpoint
        self._facts = facts
        self._ids = CallIds(request)
        self._calls: list[_Call] = []
        self._at: dict[int, _Call] = {}
        self._called = 0
        self._reason: StopReason | None = None
        self._usage: _Usage | None = None
        self._reasoning: list[str] = []
        self._details: list[dict[str, object]] = []
        self.complete = False
        self.pieces = 0

    def take(self, data: bytes) -> Sequence[Event]:
        if data == b"[DONE]":
            self.complete = True
            self._reason = self._reason or StopReason.END
            return self._finished_calls()
        return self._taken(_chunks.decode(data))

    def take_object(self, chunk: Mapping[str, object]) -> Sequence[Event]:
        """Read a chunk that is already decoded.  Raises `msgspec.ValidationError` if it is malformed."""
        return self._taken(msgspec.convert(chunk, _Chunk))

    def _taken(self, chunk: _Chunk) -> Sequence[Event]:
        self.pieces += 1
        if chunk.error is not None:
            raise failures.of_event(self._endpoint, chunk.error)
        self._usage = chunk.usage or (chunk.x_groq.usage if chunk.x_groq else None) or self._usage
        if not chunk.choices:
            return ()
        choice = chunk.choices[0]
        delta = choice.delta or choice.message
        events: list[Event] = self._read(delta) if delta is not None else []
        if choice.finish_reason:
            self._finish(choice.finish_reason)
            events += self._finished_calls()
        return events

    def end(self) -> Done | None:
        if self._reason is None:
            return None
        reason = StopReason.CALLS if self._calls and self._reason is StopReason.END else self._reason
        return Done(reason=reason, usage=self._used(), sealed=self._sealed())

    def _read(self, delta: _Delta) -> list[Event]:
        events: list[Event] = []
        if delta.reasoning_content:
            self._reasoning.append(delta.reasoning_content)
        if thought := delta.reasoning_content or delta.reasoning:
            events.append(ReasoningDelta(thought))
        if delta.reasoning_details:
            self._details += delta.reasoning_details
        if isinstance(delta.content, str):
            if delta.content:
                events.append(TextDelta(delta.content))
        elif delta.content is not None:
            events += _parts(delta.content)
        if delta.refusal:
            self._reason = StopReason.REFUSAL
            events.append(TextDelta(delta.refusal))
        for piece in delta.tool_calls or ():
            self._add(piece)
        if delta.function_call is not None:
            self._add(_Piece(index=0, function=delta.function_call))
        return events

    def _add(self, piece: _Piece) -> None:
        index = piece.index if piece.index is not None else self._guessed(piece)
        call = self._at.get(index)
        if call is None or call.is_another(piece):
            call = self._at[index] = _Call()
            self._calls.append(call)
        call.add(piece)

    def _guessed(self, piece: _Piece) -> int:
        """Return the index of a piece without one: a new index if it begins a call, else the last."""
        begins = bool(piece.id) or (piece.function is not None and bool(piece.function.name))
        return len(self._at) if begins else max(0, len(self._at) - 1)

    def _finish(self, reason: str) -> None:
        if reason in _BROKEN:
            raise ModelUnavailable(f"{self._endpoint.name}: the vendor gave up on this answer ({reason})")
        if self._reason is not StopReason.REFUSAL:
            self._reason = _REASONS.get(reason.lower(), StopReason.END)

    def _finished_calls(self) -> list[Event]:
        # Some vendors send a finish reason after each of several calls.
        finished, self._called = self._calls[self._called :], len(self._calls)
        for call in finished:
            call.id = self._ids.unique(call.id)
        return [Called(ToolCall(id=call.id, name=call.name, args=call.args)) for call in finished]

    def _used(self) -> Usage:
        told = self._usage or _Usage()
        cached = (
            told.prompt_cache_hit_tokens or (told.prompt_tokens_details and told.prompt_tokens_details.cached_tokens) or 0
        )
        used = priced(
            self._endpoint.name,
            self._facts,
            input_tokens=told.prompt_tokens or 0,
            output_tokens=told.completion_tokens or 0,
            cached_tokens=cached,
        )
        if told.cost and not used.cost_micros:
            return replace(used, cost_micros=round(told.cost * 1_000_000))
        return used

    def _sealed(self) -> Sequence[Mapping[str, object]]:
        sealed: list[Mapping[str, object]] = []
        if self._details:
            sealed.append({"reasoning_details": self._details})
        elif self._reasoning and self._calls:
            sealed.append({"reasoning_content": "".join(self._reasoning)})
        if extras := {call.id: call.extra for call in self._calls if call.extra}:
            sealed.append({_SEALED_CALLS: extras})
        return sealed


def _parts(parts: Sequence[_Part]) -> Iterator[Event]:
    for part in parts:
        if isinstance(part.thinking, str):
            yield ReasoningDelta(part.thinking)
        for inner in part.thinking if isinstance(part.thinking, list) else ():
            if inner.text:
                yield ReasoningDelta(inner.text)
        if part.text:
            yield TextDelta(part.text)


def _is_object(text: str) -> bool:
    try:
        return isinstance(msgspec.json.decode(text), dict)
    except (msgspec.DecodeError, RecursionError):
        return False
