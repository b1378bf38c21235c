"""One tool of an MCP server, as the agent sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import msgspec

from holdfast.agent.tools.port import CallContext
from holdfast.clock import Clock
from holdfast.core.effects import Effect
from holdfast.core.questions import APPROVAL_CHOICES, About, Question, fingerprint
from holdfast.core.turns import Mode
from holdfast.errors import Rejected

APPROVAL_EXPIRES_MS = 24 * 60 * 60 * 1000
# A person has to read all of the arguments before they approve.
ARGS_MAX_CHARS = 100_000
_FINGERPRINT_CHARS = 16


class ToolCaller(Protocol):
    """Calls tools of a server."""

    async def call(self, tool: str, args: Mapping[str, object], effect: Effect) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class McpTool:
    """A `Tool`.  `tool` is its server's name for it."""

    name: str
    description: str
    schema: Mapping[str, object]
    effect: Effect
    server: str
    tool: str
    asks: bool
    caller: ToolCaller
    clock: Clock
    # It is not known what a server does with untrusted input.
    harmless: bool = False

    async def question(self, args: Mapping[str, object], context: CallContext) -> Question | None:
        if len(shown := msgspec.json.encode(args)) > ARGS_MAX_CHARS:
            raise Rejected(f"the arguments of {self.name} are {len(shown)} bytes of JSON; {ARGS_MAX_CHARS} is the most")
        if not self.asks or self.effect is Effect.PURE:
            return None
        if context.turn.mode is Mode.SYNCHRONOUS:
            raise Rejected(
                f"{self.name} needs the approval of a person, who cannot be asked in this conversation; do without it, "
                f'or tell the operator to set approval = "allow" for the MCP server {self.server}'
            )
        bound = fingerprint(server=self.server, tool=self.tool, arguments=args)
        return Question(
            id=f"approve:{context.call_id}:{bound[:_FINGERPRINT_CHARS]}",
            text=f"May the tool {self.tool} of the MCP server {self.server} be run?",
            about=About.APPROVAL,
            choices=APPROVAL_CHOICES,
            fingerprint=bound,
            expires_at=self.clock.now_ms() + APPROVAL_EXPIRES_MS,
            detail={"server": self.server, "tool": self.tool, "arguments": args},
        )

    async def run(self, args: Mapping[str, object], context: CallContext) -> str:  # noqa: ARG002 - The shape of a tool.
        return await self.caller.call(self.tool, args, self.effect)
