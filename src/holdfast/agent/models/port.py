"""The port: what the loop asks of a model, in words that belong to no vendor."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from holdfast.core.intake import Image
from holdfast.core.usage import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class UserMessage:
    """What a person said, with the pictures they showed."""

    text: str
    images: Sequence[Image] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A tool call that a model asked for.  `args` is the JSON it wrote, which may be none."""

    id: str
    name: str
    args: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantMessage:
    """What a model said in one step.  `sealed` is what its vendor wants back word by word, such as signed reasoning."""

    text: str = ""
    calls: Sequence[ToolCall] = ()
    sealed: Sequence[Mapping[str, object]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolMessage:
    """What became of a tool call."""

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
    """One step: everything the model is to know."""

    messages: Sequence[Message]
    system: str = ""
    tools: Sequence[ToolSpec] = ()
    output_tokens_max: int | None = None
    # How often in a row an answer to this began and broke off.
    breaks: int = 0


class StopReason(StrEnum):
    END = "end"
    CALLS = "calls"
    LENGTH = "length"
    REFUSAL = "refusal"


@dataclass(frozen=True, slots=True)
class Said:
    """A piece of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Thought:
    """A piece of reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class Called:
    """A whole tool call, once its last piece has arrived."""

    call: ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The end of a step; without it, the stream was cut."""

    reason: StopReason
    usage: Usage = field(default_factory=Usage)
    sealed: Sequence[Mapping[str, object]] = ()


Event = Said | Thought | Called | Done


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known about a model.  Prices are dollars per million tokens; 0 where none is known."""

    context_tokens: int
    output_tokens_max: int = 0
    input_price: float = 0
    output_price: float = 0
    cached_price: float = 0
    images: bool = True


class Model(Protocol):
    """Something that answers, step by step."""

    @property
    def name(self) -> str:
        """Provider and model, as in the configuration: `openai:gpt-5`."""
        ...

    @property
    def facts(self) -> Facts: ...

    def stream(self, request: Request) -> AsyncGenerator[Event]:
        """Yield what the model says as it comes, `Done` at the end.

        Raises `ModelUnavailable` where the same request may succeed later, also when the stream ends without `Done`;
        `ContextTooLong` where it does not fit; `ModelRejected` where it never will.
        """
        ...

    async def close(self) -> None: ...
