"""The registry: every channel is in it, and does what it declares."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import channels
from holdfast.channels.chat.kinds import BUILT_IN
from holdfast.channels.port import ChannelContext, MessageSize, Unit
from holdfast.channels.registry import OPENERS, open_channels
from holdfast.channels.webhook.signatures import new_secret
from holdfast.clock import SystemClock
from holdfast.config import ChannelsConfig

TEXTS = ["", "short", "line\n" * 30_000, "x" * 200_000, "😀" * 100_000]


def context(home: Path) -> ChannelContext:
    return ChannelContext(
        config=ChannelsConfig(), home=home, environment={}, clock=SystemClock(), signing_secret=new_secret()
    )


def test_every_channel_that_can_be_opened_is_registered() -> None:
    modules = Path(*channels.__path__).glob("*/channel.py")
    folders = {path.parent.name for path in modules if "async def opened(" in path.read_text("utf-8")}
    assert folders == {opener.__module__.split(".")[-2] for opener in OPENERS.values()} | set(BUILT_IN)


async def test_a_channel_has_a_carrier_exactly_if_it_delivers_later(tmp_path: Path) -> None:
    async with open_channels(context(tmp_path)) as found:
        assert {name: each.carrier is not None for name, each in found.items()} == {
            name: each.capabilities.delivers_later for name, each in found.items()
        }


@pytest.mark.parametrize("text", TEXTS, ids=["nothing", "short", "lines", "one line", "emoji"])
async def test_a_carrier_splits_a_text_into_parts_that_fit_and_loses_nothing(text: str, tmp_path: Path) -> None:
    async with open_channels(context(tmp_path)) as found:
        for each in found.values():
            if each.carrier is None:
                continue
            parts = each.carrier.split(text)
            assert "".join(parts) == text
            assert each.capabilities.message_size is None or all(map(each.capabilities.message_size.fits, parts))


@pytest.mark.parametrize(("unit", "length"), [(Unit.CHARACTERS, 2), (Unit.UTF16, 4), (Unit.BYTES, 8)])
def test_the_size_of_a_message_is_counted_in_its_own_unit(unit: Unit, length: int) -> None:
    assert MessageSize(most=length, unit=unit).fits("😀😀")
    assert not MessageSize(most=length - 1, unit=unit).fits("😀😀")
