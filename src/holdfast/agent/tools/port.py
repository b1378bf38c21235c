"""The port of tools: what a tool is, and what it knows about the turn that calls it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import cache
from typing import Generic, Protocol, TypeVar, cast

import msgspec

from holdfast.core.effects import Effect
from holdfast.core.questions import Question
from holdfast.core.sessions import Session
from holdfast.core.turns import Turn
from holdfast.core.usage import Usage
from holdfast.errors import Rejected
from holdfast.ids import CallId

Args = TypeVar("Args", bound=msgspec.Struct)
Spend = Callable[[Usage], Awaitable[None]]
# The names of tools that every vendor accepts.
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


async def for_nothing(_used: Usage) -> None:
    """Do not record usage."""


async def to_nobody(_text: str) -> None:
    """Drop a note."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """The context of one tool call."""

    session: Session
    turn: Turn
    call_id: CallId
    # A tool that waits for others does so inside this context, and another turn may run meanwhile.
    rest: Callable[[], AbstractAsyncContextManager[None]]
    # Records the usage of a tool that asks a model.
    spend: Spend = for_nothing
    # Tells the person something while the turn runs.
    note: Callable[[str], Awaitable[None]] = to_nobody
    # The private data that the turn has read, in words.
    private: Sequence[str] = ()
    # The fingerprint that a person has approved; empty if no approval was needed.
    approved: str = ""

    @property
    def key(self) -> str:
        """An idempotency key: the same each time the call is repeated."""
        return f"{self.turn.id}:{self.call_id}"

    @property
    def delivers_later(self) -> bool:
        """Whether anything can still reach the person after this turn's answer."""
        return self.turn.delivers_later


class Tool(Protocol):
    """A tool of an agent."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def schema(self) -> Mapping[str, object]:
        """The JSON schema of its arguments."""
        ...

    @property
    def effect(self) -> Effect: ...
    @property
    def harmless(self) -> bool:
        """Whether a turn of an unknown sender may use it: no private data, no network access, no lasting effect."""
        ...

    async def question(self, args: Mapping[str, object], context: CallContext) -> Question | None:
        """Return what a person must answer before the call; None if it may run.  Raises `Rejected` if it never may."""
        ...

    async def run(self, args: Mapping[str, object], context: CallContext) -> str:
        """Run the call and return text for the model.  The text of a `HoldfastError` is that of a failed call."""
        ...


class ToolSource(Protocol):
    """A source of tools that come and go, such as an MCP server."""

    async def tools(self) -> Sequence[Tool]:
        """Return the current tools, without a long wait."""
        ...


async def nothing_to_ask(_args: object, _context: CallContext) -> Question | None:
    """Return no question: the tool may always run."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class StructTool(Generic[Args]):
    """A tool whose arguments are a struct, from which the schema is derived and against which arguments are checked."""

    name: str
    description: str
    args: type[Args]
    effect: Effect
    action: Callable[[Args, CallContext], Awaitable[str]]
    asks: Callable[[Args, CallContext], Awaitable[Question | None]] = nothing_to_ask
    harmless: bool = False
    # Whether its result may be private: from outside the workspace, from memory, or from another session.
    reads_private: bool | Callable[[Args], bool] = True

    @property
    def schema(self) -> Mapping[str, object]:
        return schema_of(self.args)

    async def question(self, args: Mapping[str, object], context: CallContext) -> Question | None:
        return await self.asks(self._parse(args), context)

    async def run(self, args: Mapping[str, object], context: CallContext) -> str:
        return await self.action(self._parse(args), context)

    def is_private(self, args: Mapping[str, object]) -> bool:
        """Return whether the result of a call may be private.  It may if the arguments are invalid."""
        if isinstance(self.reads_private, bool):
            return self.reads_private
        try:
            return self.reads_private(self._parse(args))
        except Rejected:
            return True

    def _parse(self, args: Mapping[str, object]) -> Args:
        try:
            return msgspec.convert(args, self.args)
        except msgspec.ValidationError as error:
            raise Rejected(f"{self.name}: {error}") from error


@cache
def schema_of(args: type[msgspec.Struct]) -> Mapping[str, object]:
    """Return the JSON schema of a struct, with references expanded: not every vendor follows them."""
    (schema,), components = msgspec.json.schema_components([args])
    whole = cast("dict[str, object]", _inline(schema, components))
    return {**whole, "additionalProperties": False}


def _inline(value: object, components: Mapping[str, object]) -> object:
    if isinstance(value, list):
        return [_inline(each, components) for each in cast("list[object]", value)]
    if not isinstance(value, dict):
        return value
    node = cast("dict[str, object]", value)
    if isinstance(reference := node.get("$ref"), str):
        return _inline(components[reference.rpartition("/")[2]], components)
    return {key: _inline(each, components) for key, each in node.items() if key != "title"}
