"""The model port: requests and events in terms that belong to no vendor."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from holdfast.core.intake import Image
from holdfast.core.usage import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class UserMessage:
    """What a person said, with attached images."""

    text: str
    images: Sequence[Image] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A tool call of a model.  `args` is what it wrote, which should be JSON and may not be."""

    id: str
    name: str
    args: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantMessage:
    """What a model said in one step.  `sealed` is data that its vendor wants back unchanged, such as signed reasoning."""

    text: str = ""
    calls: Sequence[ToolCall] = ()
    sealed: Sequence[Mapping[str, object]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolMessage:
    """The result of a tool call."""

    call_id: str
    text: str


Message = UserMessage | AssistantMessage | ToolMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """What a model is told about a tool; `schema` is the JSON schema of its arguments."""

    name: str
    description: str
    schema: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The request for one step."""

    messages: Sequence[Message]
    system: str = ""
    tools: Sequence[ToolSpec] = ()
    output_tokens_max: int | None = None
    # How many answers to this request in a row have broken off.
    breaks: int = 0


class StopReason(StrEnum):
    END = "end"
    CALLS = "calls"
    LENGTH = "length"
    REFUSAL = "refusal"


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A piece of reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class Called:
    """A complete tool call."""

    call: ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The end of a step.  A stream without it was cut off."""

    reason: StopReason
    usage: Usage = field(default_factory=Usage)
    sealed: Sequence[Mapping[str, object]] = ()


Event = TextDelta | ReasoningDelta | Called | Done


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known about a model.  Prices are dollars per million tokens; 0 means unknown."""

    context_tokens: int
    output_tokens_max: int = 0
    input_price: float = 0
    output_price: float = 0
    cached_price: float = 0
    images: bool = True


class Model(Protocol):
    """A language model."""

    @property
    def name(self) -> str:
        """Provider and model, as in the configuration: `openai:gpt-5`."""
        ...

    @property
    def facts(self) -> Facts: ...

    def stream(self, request: Request) -> AsyncGenerator[Event]:
        """Yield the events of an answer as they arrive, with `Done` at the end.

        Raises `ModelUnavailable` if the same request may succeed later, also if the stream ends without `Done`;
        `ContextTooLong` if the request does not fit; `ModelRejected` if it will never succeed.
        """
        ...

    async def close(self) -> None: ...
