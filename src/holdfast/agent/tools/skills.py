"""The `skill` tool: reads a skill."""

from __future__ import annotations

import asyncio
from typing import Annotated

import msgspec

from holdfast.agent.skills import Skills
from holdfast.agent.tools.port import CallContext, StructTool
from holdfast.core.effects import Effect


class SkillArgs(msgspec.Struct, forbid_unknown_fields=True):
    """Which skill."""

    name: Annotated[str, msgspec.Meta(description="The name of the skill, as it is listed.", min_length=1, max_length=200)]
    file: Annotated[str | None, msgspec.Meta(description="A file beside it, to be read instead.")] = None


def skill_tool(skills: Skills) -> StructTool[SkillArgs]:
    """Return the tool."""

    async def read(args: SkillArgs, _context: CallContext) -> str:
        return await asyncio.to_thread(skills.read, args.name, args.file)

    return StructTool(
        name="skill",
        description="Read a skill: instructions of this gateway's operator for a kind of task, with the files beside it.",
        args=SkillArgs,
        effect=Effect.PURE,
        action=read,
    )
