"""The port: what a tool is, and what it may know about the turn that it works for."""

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
# What every vendor's wire format takes as the name of a tool.
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


async def for_nothing(_used: Usage) -> None:
    """What is spent where nobody keeps account."""


async def to_nobody(_text: str) -> None:
    """What is told where nobody reads along."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where a call is made: the session with its channel, chat, thread and user, the turn, and the call itself.

    `key` is the same each time one call is repeated.  A tool that only waits for others does so inside `rest()`;
    one that asks a model tells `spend` what it used.  `note` tells the person something meanwhile.  `private` says what the
    turn has read that is nobody else's business.  `approved` is the fingerprint that a person's word is bound to, where one
    was needed.
    """

    session: Session
    turn: Turn
    call_id: CallId
    rest: Callable[[], AbstractAsyncContextManager[None]]
    spend: Spend = for_nothing
    note: Callable[[str], Awaitable[None]] = to_nobody
    private: Sequence[str] = ()
    approved: str = ""

    @property
    def key(self) -> str:
        return f"{self.turn.id}:{self.call_id}"

    @property
    def delivers_later(self) -> bool:
        """Whether anything can still reach the person after this turn's answer."""
        return self.turn.delivers_later


class Tool(Protocol):
    """Something an agent can do."""

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
        """Whether a turn may use it whose words came from a stranger: no private data, no way out, no lasting effect."""
        ...

    async def question(self, args: Mapping[str, object], site: Site) -> Question | None:
        """Return what a person must answer before this may run; None when it may.  Raises `Rejected` when it never may."""
        ...

    async def run(self, args: Mapping[str, object], site: Site) -> str:
        """Do it and return what the model should read.  A `HoldfastError` is a failed call, and its text is read instead."""
        ...


class ToolSource(Protocol):
    """Tools that come and go, such as those of a server."""

    async def tools(self) -> Sequence[Tool]:
        """Return what is there now, without waiting long for it."""
        ...


async def nothing_to_ask(_args: object, _site: Site) -> Question | None:
    """The question of a tool that may always run."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class StructTool(Generic[Args]):
    """A tool whose arguments are a struct: the schema is made of it, and what does not fit is refused with the reason."""

    name: str
    description: str
    args: type[Args]
    effect: Effect
    action: Callable[[Args, Site], Awaitable[str]]
    asks: Callable[[Args, Site], Awaitable[Question | None]] = nothing_to_ask
    harmless: bool = False
    # Whether what it returns may be private: from outside of the workspace, from memory, from another session.
    reads_private: bool | Callable[[Args], bool] = True

    @property
    def schema(self) -> Mapping[str, object]:
        return schema_of(self.args)

    async def question(self, args: Mapping[str, object], site: Site) -> Question | None:
        return await self.asks(self._parse(args), site)

    async def run(self, args: Mapping[str, object], site: Site) -> str:
        return await self.action(self._parse(args), site)

    def is_private(self, args: Mapping[str, object]) -> bool:
        """Return whether what a call returned may be private; what is not understood is."""
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
    """Return the JSON schema of a struct, with nothing that refers elsewhere: not every vendor follows references."""
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
