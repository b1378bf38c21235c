"""Who is asked before a tool of a server runs, and about what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from holdfast.agent.mcp.tool import APPROVAL_EXPIRES_MS, ARGS_MAX_CHARS, McpTool
from holdfast.clock import SystemClock
from holdfast.core.effects import Effect
from holdfast.core.questions import APPROVAL_CHOICES, About
from holdfast.core.turns import Mode
from holdfast.errors import Rejected
from tests.mcp.scenes import call_context


class ToolCaller:
    async def call(self, tool: str, args: Mapping[str, object], effect: Effect) -> str:
        return f"{tool} {dict(args)} {effect}"


class StillClock(SystemClock):
    def now_ms(self) -> int:
        return 1_000


TOOL = McpTool(
    name="files__remove",
    description="",
    schema={"type": "object"},
    effect=Effect.EFFECTFUL,
    server="files",
    tool="remove",
    asks=True,
    caller=ToolCaller(),
    clock=StillClock(),
)


async def test_an_approval_is_bound_to_server_tool_and_arguments() -> None:
    """Security 9: another argument, another tool or another server is another question, and each expires."""
    question = await TOOL.question({"path": "a"}, call_context())
    assert question is not None
    assert question.about is About.APPROVAL
    assert question.choices == APPROVAL_CHOICES
    assert question.id == f"approve:c:{question.fingerprint[:16]}"
    assert question.expires_at == 1_000 + APPROVAL_EXPIRES_MS
    assert question.detail == {"server": "files", "tool": "remove", "arguments": {"path": "a"}}
    same = await TOOL.question({"path": "a"}, call_context())
    others = [
        await TOOL.question({"path": "b"}, call_context()),
        await replace(TOOL, tool="rename").question({"path": "a"}, call_context()),
        await replace(TOOL, server="other").question({"path": "a"}, call_context()),
    ]
    assert same == question
    assert len({question.fingerprint, *(each.fingerprint for each in others if each)}) == 4


@pytest.mark.parametrize("tool", [replace(TOOL, asks=False), replace(TOOL, effect=Effect.PURE)])
async def test_nobody_is_asked_about_what_is_allowed_or_only_reads(tool: McpTool) -> None:
    assert await tool.question({"path": "a"}, call_context(Mode.SYNCHRONOUS)) is None


async def test_where_nobody_can_be_asked_nothing_is_done() -> None:
    """Security 9: an approval fails closed when nobody can answer."""
    with pytest.raises(Rejected, match="who cannot be asked in this conversation; do without it"):
        await TOOL.question({"path": "a"}, call_context(Mode.SYNCHRONOUS))
    with pytest.raises(Rejected, match="who cannot be asked"):
        await replace(TOOL, effect=Effect.KEYED).question({}, call_context(Mode.SYNCHRONOUS))


async def test_arguments_that_nobody_could_read_are_refused() -> None:
    with pytest.raises(Rejected, match="is the most"):
        await TOOL.question({"text": "x" * ARGS_MAX_CHARS}, call_context())


async def test_a_call_goes_to_the_server_under_its_own_name() -> None:
    assert await TOOL.run({"path": "a"}, call_context()) == "remove {'path': 'a'} effectful"
