"""Tools in the hands of one call."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from holdfast.agent.toolbox import BoundTool
from holdfast.agent.tools.port import Site, StructTool
from holdfast.core.effects import Effect
from holdfast.errors import HoldfastError, OutcomeUnknown, Unavailable
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
