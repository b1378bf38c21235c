"""The toolbox: decides which tools a turn is offered, and binds each call to its turn."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import msgspec

from holdfast.agent.models.port import ToolSpec
from holdfast.agent.privacy import private_reads
from holdfast.agent.tools.port import CallContext, Tool, ToolSource
from holdfast.core.effects import Effect
from holdfast.core.questions import Question
from holdfast.core.sessions import Session
from holdfast.core.trust import Trust, trust_in
from holdfast.errors import OutcomeUnknown, Rejected, Unavailable
from holdfast.ids import CallId
from holdfast.ports import Assignment, Stage, Use

log = logging.getLogger(__name__)

# A model reads a result again at every later step.
RESULT_MAX_CHARS = 50_000
# The timeout of every call, in addition to a tool's own.
CALL_MAX_S = 3_600.0
# Deeper arguments cannot be masked or stored.
ARGS_DEPTH_MAX = 50
# Built-in tools that only read and change data of the session's own owner.
PER_OWNER = frozenset({"ask_user", "memory", "session_search"})


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundTool:
    """A tool with the context of one call."""

    tool: Tool
    context: CallContext
    max_s: float = CALL_MAX_S

    @property
    def name(self) -> str:
        return self.tool.name

    @property
    def effect(self) -> Effect:
        return self.tool.effect

    async def run(self, args: Mapping[str, object], key: str) -> str:  # noqa: ARG002 - The context holds the same key.
        try:
            async with asyncio.timeout(self.max_s):
                return shortened(await self.tool.run(args, self.context))
        except TimeoutError:
            over = f"{self.name} did not end within {self.max_s:g} s"
            if self.effect is Effect.EFFECTFUL:
                raise OutcomeUnknown(f"{over}; it is not known what it has done by then") from None
            raise Unavailable(f"{over}; trying it again is safe") from None


class Toolbox:
    """The tools of this gateway."""

    def __init__(
        self,
        tools: Sequence[Tool] = (),
        sources: Sequence[ToolSource] = (),
        disabled: Sequence[str] = (),
        fits: Mapping[str, Callable[[Session], bool]] | None = None,
        trusted_owners: Container[str] = (),
    ) -> None:
        self._tools = tools
        self._sources = sources
        self._disabled = frozenset(disabled)
        # Tools by name that only some sessions are offered.
        self._fits = fits or {}
        self._trusted_owners = trusted_owners

    async def offered(self, work: Assignment) -> Mapping[str, Tool]:
        """Return the tools that a turn may use, by name.

        A turn of an unknown sender gets harmless ones only.  A tenant also gets those that only touch the tenant's own data:
        all others work with the operator's files, accounts and network.
        """
        found = [*self._tools]
        for source in self._sources:
            found += await source.tools()
        # The first tool of a name keeps it: another one must not get the trust in that name.
        named: dict[str, Tool] = {}
        for tool in found:
            named.setdefault(tool.name, tool)
        trust = trust_in(work.session, self._trusted_owners)
        return {
            name: tool
            for name, tool in named.items()
            if name not in self._disabled and _trusts(trust, tool) and self._suits(tool, work.session)
        }

    def _suits(self, tool: Tool, session: Session) -> bool:
        return tool.name not in self._fits or self._fits[tool.name](session)


def _trusts(trust: Trust, tool: Tool) -> bool:
    match trust:
        case Trust.STRANGER:
            return tool.harmless
        case Trust.TENANT:
            # The name is enough: no plugin or server can use the name of a built-in tool, even of a disabled one.
            return tool.harmless or tool.name in PER_OWNER
        case Trust.OPERATOR:
            return True


def specs(tools: Mapping[str, Tool]) -> list[ToolSpec]:
    """Return the specifications of tools for a model."""
    return [ToolSpec(name=each.name, description=each.description, schema=each.schema) for each in tools.values()]


async def prepare(
    tools: Mapping[str, Tool], name: str, args: Mapping[str, object] | str, call_id: CallId, work: Assignment, stage: Stage
) -> Use:
    """Bind one call to its turn, with the question that must be answered first.

    A call with a wrong name, wrong arguments or against the rules becomes a call that fails with the reason, so that the
    model reads it and the person sees it.
    """
    context = CallContext(
        session=work.session,
        turn=work.turn,
        call_id=call_id,
        rest=stage.rest,
        spend=stage.spend,
        note=stage.note,
        private=private_reads(work, tools, call_id),
    )
    parsed: Mapping[str, object] = {}
    question: Question | None = None
    try:
        tool, parsed = _named(tools, name), _parsed(args)
        question = await tool.question(parsed, context)
    except Rejected as error:
        return Use(tool=RefusedCall(name, str(error)), call_id=call_id, args=parsed)
    if question is not None:
        context = replace(context, approved=question.fingerprint)
    return Use(tool=BoundTool(tool=tool, context=context), call_id=call_id, args=parsed, question=question)


@dataclass(frozen=True, slots=True)
class RefusedCall:
    """A call that is not made."""

    name: str
    reason: str
    effect: Effect = Effect.PURE

    async def run(self, args: Mapping[str, object], key: str) -> str:  # noqa: ARG002 - The shape of a tool.
        raise Rejected(self.reason)


def _named(tools: Mapping[str, Tool], name: str) -> Tool:
    if name not in tools:
        raise Rejected(f"there is no tool {name!r}; there are {', '.join(sorted(tools)) or 'none'}")
    return tools[name]


def _parsed(args: Mapping[str, object] | str) -> Mapping[str, object]:
    try:
        parsed = msgspec.json.decode(args or "{}", type=dict[str, object]) if isinstance(args, str) else args
    except msgspec.DecodeError as error:
        raise Rejected(f"the arguments are no JSON object: {error}") from error
    except RecursionError:
        raise Rejected(_TOO_DEEP) from None
    if _is_deeper(parsed, ARGS_DEPTH_MAX):
        raise Rejected(_TOO_DEEP)
    return parsed


_TOO_DEEP = f"the arguments are nested deeper than {ARGS_DEPTH_MAX} levels; make them flatter"


def _is_deeper(value: object, levels: int) -> bool:
    layer: list[object] = [value]
    while layer and levels:
        layer = [inner for each in layer for inner in _contents(each)]
        levels -= 1
    return bool(layer)


def _contents(value: object) -> Iterable[object]:
    match value:
        case Mapping():
            return cast("Mapping[str, object]", value).values()
        case list():
            return cast("list[object]", value)
        case _:
            return ()


def shortened(text: str, chars_max: int = RESULT_MAX_CHARS) -> str:
    """Return a text, cut to its beginning and its end if it is too long."""
    if len(text) <= chars_max:
        return text
    half = chars_max // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"
