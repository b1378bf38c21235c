"""Chat completions: requests as they are parsed, and a turn as whole answers or as chunks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from holdfast.channels.openai import forms
from holdfast.channels.openai.content import Part, Said, TurnInput, Unfit, asked, only, read
from holdfast.core.events import ApprovalAsked, Reasoning
from holdfast.core.intake import Prior, Speaker
from holdfast.core.journal import Entry
from holdfast.core.progress import Progress
from holdfast.core.usage import Usage
from holdfast.ids import TurnId

MESSAGES_MAX = 2_000
DONE = b"data: [DONE]\n\n"
_NO_TOOLS = "leave tool_choice out or say auto or none: the gateway uses its own tools, and gives no calls back"
_SPEAKERS: Mapping[str, Speaker] = {
    "system": Speaker.SYSTEM,
    "developer": Speaker.SYSTEM,
    "user": Speaker.USER,
    "assistant": Speaker.ASSISTANT,
    # What a tool of the client's has found is news from the client's side.
    "tool": Speaker.USER,
    "function": Speaker.USER,
}
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    name: str
    arguments: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatToolCall:
    """A call that the client says its assistant has made."""

    id: str = ""
    function: Function | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMessage:
    """One message of the conversation that the client keeps."""

    role: str
    content: str | tuple[Part, ...] | None = None
    tool_calls: tuple[ChatToolCall, ...] | None = None
    tool_call_id: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions:
    include_usage: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """The fields of a request that are read.  Sampling is the operator's choice, so fields about it are ignored."""

    model: str
    messages: tuple[ChatMessage, ...]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: int | None = None
    tool_choice: str | Mapping[str, object] | None = None
    response_format: Mapping[str, object] | None = None
    metadata: Mapping[str, str] | None = None

    @property
    def wants_usage(self) -> bool:
        return bool(self.stream_options and self.stream_options.include_usage)


def wanted(request: ChatRequest, *, alone: bool) -> TurnInput:
    """Return what a turn is to answer; `alone` leaves out what was said before.  Raises `Unfit`."""
    if not request.messages:
        raise Unfit("messages is empty", "send at least one message with the role user")
    if len(request.messages) > MESSAGES_MAX:
        hint = "send fewer, or let the gateway keep the conversation with X-Session-Key"
        raise Unfit(f"{len(request.messages)} messages are more than {MESSAGES_MAX}", hint)
    if request.n not in (None, 1):
        raise Unfit(f"n is {request.n}: there is one answer to a message", "leave n out, and ask again for another")
    if request.tool_choice not in (None, "auto", "none"):
        raise Unfit("no tool of the client's can be called from here", _NO_TOOLS)
    found = asked([_said(message, number) for number, message in enumerate(request.messages)])
    if alone:
        return only(found)
    form = forms.instruction(request.response_format)
    prior = (*found.prior, Prior(speaker=Speaker.SYSTEM, text=form)) if form else found.prior
    return TurnInput(text=found.text, images=found.images, prior=prior)


def _said(message: ChatMessage, number: int) -> Said:
    where = f"messages[{number}]"
    if (speaker := _SPEAKERS.get(message.role)) is None:
        raise Unfit(f"{where}: there is no role {message.role[:40]!r}", f"use one of: {', '.join(_SPEAKERS)}")
    text, images = read(message.content, where)
    if message.role in ("tool", "function"):
        text = result_text(message.tool_call_id or message.name or "", text)
    calls = [
        call_text(call.function.name, call.function.arguments, call.id) for call in message.tool_calls or () if call.function
    ]
    return Said(speaker=speaker, text="\n".join(part for part in (text, *calls) if part), images=images)


def call_text(name: str, arguments: str, call_id: str) -> str:
    """Return a call of the client's tools as the model reads it."""
    return f"[Called the client's tool {name} with {arguments or '{}'}, as {call_id}]"


def result_text(call_id: str, result: str) -> str:
    """Return what came of a call of the client's tools as the model reads it."""
    return f"[Result of the client's tool call {call_id}: {result}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptDetails:
    cached_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatUsage:
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptDetails

    @classmethod
    def of(cls, used: Usage) -> ChatUsage:
        return cls(
            prompt_tokens=used.input_tokens,
            completion_tokens=used.output_tokens,
            total_tokens=used.tokens,
            prompt_tokens_details=PromptDetails(cached_tokens=used.cached_tokens),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    role: Literal["assistant"] = "assistant"
    content: str
    refusal: None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    index: int = 0
    message: Reply
    logprobs: None = None
    finish_reason: Literal["stop"] = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """A whole answer."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: Sequence[Choice]
    usage: ChatUsage


def completion_id(turn_id: TurnId) -> str:
    return f"chatcmpl-{turn_id}"


def completion(turn_id: TurnId, model: str, accepted_at: int, progress: Progress) -> Completion:
    """Return what a turn has said as one answer."""
    return Completion(
        id=completion_id(turn_id),
        created=accepted_at // 1000,
        model=model,
        choices=[Choice(message=Reply(content=progress.text))],
        usage=ChatUsage.of(progress.usage),
    )


class Chunks:
    """A turn as a stream of chunks, one for each entry that says something."""

    def __init__(self, turn_id: TurnId, model: str, accepted_at: int, *, usage: bool) -> None:
        # All chunks of an answer begin alike, so that is written once.
        self._head = (
            b'data: {"id":%b,"object":"chat.completion.chunk","created":%d,"model":%b,"choices":['
            % (_encode(completion_id(turn_id)), accepted_at // 1000, _encode(model))
        )  # fmt: skip
        self._usage = usage
        self.progress = Progress()

    def opening(self) -> bytes:
        return self._chunk(b'{"role":"assistant","content":""}', b"null")

    def take(self, entry: Entry) -> bytes:
        """Go on by one entry; returns what the client is sent, which for many is nothing."""
        said = self.progress.take(entry)
        if said:
            return self._chunk(b'{"content":%b}' % _encode(said), b"null")
        match entry.event:
            case Reasoning(text=text):
                return self._chunk(b'{"reasoning_content":%b}' % _encode(text), b"null")
            case ApprovalAsked(text=text):
                # A comment, which clients skip and people see who look at the stream.
                return b": waiting for a person to answer: %b\n\n" % " ".join(text.split()).encode()
            case _:
                return b""

    def closing(self) -> bytes:
        """Return the end of an answer that has come to one."""
        used = b""
        if self._usage:
            used = b'%b],"usage":%b}\n\n' % (self._head, _encode(ChatUsage.of(self.progress.usage)))
        return self._chunk(b"{}", b'"stop"') + used + DONE

    def failure(self, code: str, message: str, hint: str, turn_id: TurnId) -> bytes:
        """Return the end of an answer that failed, which clients raise."""
        # Clients show people the message alone.
        told = f"{message}; {hint}"
        error = {"code": code, "message": told, "hint": hint, "type": "server_error", "turn_id": turn_id}
        return b"data: %b\n\n" % _encode({"error": error}) + DONE

    def _chunk(self, delta: bytes, reason: bytes) -> bytes:
        end = b'],"usage":null}\n\n' if self._usage else b"]}\n\n"
        return b'%b{"index":0,"delta":%b,"logprobs":null,"finish_reason":%b}%b' % (self._head, delta, reason, end)
