"""Tools in the hands of one call."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import msgspec
import pytest

from holdfast.agent.toolbox import PER_OWNER, BoundTool, Toolbox
from holdfast.agent.tools.port import CallContext, StructTool, Tool
from holdfast.core.effects import Effect
from holdfast.errors import HoldfastError, OutcomeUnknown, Unavailable
from holdfast.ports import Assignment
from tests.tools.contexts import call_context


class NoArgs(msgspec.Struct):
    pass


async def for_ever(_args: NoArgs, _context: CallContext) -> str:
    await asyncio.Event().wait()
    return ""


@pytest.mark.parametrize(
    ("effect", "raised", "words"),
    [
        (Effect.EFFECTFUL, OutcomeUnknown, "it is not known"),
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
        await BoundTool(tool=tool, context=call_context(), max_s=0.01).run({}, "key")


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
    here = call_context()
    work = Assignment(session=here.session, turn=here.turn, message="", history=(), calls=())
    offered = await toolbox.offered(work)
    assert [(name, tool.description) for name, tool in offered.items()] == [
        ("terminal", "own"),
        ("todo", "own"),
        ("new", "other"),
    ]
    stranger = replace(work, session=replace(here.session, channel="webhook"))
    assert await toolbox.offered(stranger) == {}


def tools_of_all_kinds() -> list[Tool]:
    def named(name: str, *, harmless: bool = False) -> Tool:
        return StructTool(
            name=name, description="", args=NoArgs, effect=Effect.PURE, action=for_ever, harmless=harmless
        )  # fmt: skip

    private = [
        "terminal",
        "process",
        "read_file",
        "fetch",
        "web_search",
        "send_message",
        "send_file",
        "schedule",
        "delegate_task",
        "skill",
    ]
    return [named("todo", harmless=True), *map(named, (*sorted(PER_OWNER), *private, "server__anything"))]


@pytest.mark.parametrize(
    ("owner", "channel", "offered"),
    [
        ("local", "web", None),
        ("trusted", "api", None),
        ("alice", "api", {"todo", *PER_OWNER}),
        ("alice", "cron", {"todo", *PER_OWNER}),
        ("alice", "delegate", {"todo", *PER_OWNER}),
        ("Local", "web", {"todo", *PER_OWNER}),
        ("", "web", {"todo", *PER_OWNER}),
        # A signature authenticates the sender, never the content: whoever's it is.
        ("local", "webhook", {"todo"}),
        ("trusted", "webhook", {"todo"}),
        ("alice", "webhook", {"todo"}),
    ],
)
async def test_others_than_the_operator_get_what_stays_with_their_own_data(
    owner: str, channel: str, offered: set[str] | None
) -> None:
    """SECURITY 8, 14: the operator's files, accounts and network are not for whoever has a key."""
    tools = tools_of_all_kinds()
    where = call_context()
    session = replace(where.session, owner=owner, channel=channel)
    work = Assignment(session=session, turn=where.turn, message="", history=(), calls=())
    found = await Toolbox(tools, trusted_owners=["trusted"]).offered(work)
    assert set(found) == ({tool.name for tool in tools} if offered is None else offered)
