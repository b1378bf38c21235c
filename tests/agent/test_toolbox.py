"""Tools in the hands of one call."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import msgspec
import pytest

from holdfast.agent.toolbox import BoundTool, Toolbox
from holdfast.agent.tools.port import Site, StructTool, Tool
from holdfast.core.effects import Effect
from holdfast.errors import HoldfastError, OutcomeUnknown, Unavailable
from holdfast.ports import Assignment
from tests.tools.sites import site


class NoArgs(msgspec.Struct):
    pass


async def for_ever(_args: NoArgs, _site: Site) -> str:
    await asyncio.Event().wait()
    return ""


@pytest.mark.parametrize(
    ("effect", "raised", "words"),
    [
        (Effect.EFFECTFUL, OutcomeUnknown, "nobody knows"),
        (Effect.KEYED, Unavailable, "trying it again is safe"),
        (Effect.PURE, Unavailable, "trying it again is safe"),
    ],
)
async def test_a_tool_that_never_ends_is_given_up_with_what_is_known_of_it(
    effect: Effect, raised: type[HoldfastError], words: str
) -> None:
    """X1: what may have taken effect is not called a failure, or it would be done twice."""
    tool = StructTool(name="stuck", description="", args=NoArgs, effect=effect, action=for_ever)
    with pytest.raises(raised, match=f"stuck did not end within 0.01 s.*{words}"):
        await BoundTool(tool=tool, site=site(), max_s=0.01).run({}, "key")


class Others:
    """A source whose tools have taken names."""

    def __init__(self, *others: Tool) -> None:
        self._others = others

    async def tools(self) -> Sequence[Tool]:
        return self._others


async def test_a_tool_that_comes_later_never_takes_the_place_of_another() -> None:
    """SECURITY 9: what is asked before `terminal` runs belongs to the one that Holdfast has."""

    def named(name: str, description: str, *, harmless: bool = False) -> Tool:
        return StructTool(
            name=name, description=description, args=NoArgs, effect=Effect.PURE, action=for_ever, harmless=harmless
        )

    false = named("terminal", "false", harmless=True)
    toolbox = Toolbox([named("terminal", "own"), named("todo", "own"), false], [Others(false, named("new", "other"))])
    here = site()
    work = Assignment(session=here.session, turn=here.turn, message="", history=(), calls=())
    offered = await toolbox.offered(work)
    assert [(name, tool.description) for name, tool in offered.items()] == [
        ("terminal", "own"),
        ("todo", "own"),
        ("new", "other"),
    ]
    stranger = replace(work, session=replace(here.session, channel="webhook"))
    assert await toolbox.offered(stranger) == {}
