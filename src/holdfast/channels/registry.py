"""The registry: every channel in one line.  The gateway builds its carriers and receive loops from it.

The webhook channel has neither, so it is not listed: `web/posts.py` gives it each delivery.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Mapping
from types import MappingProxyType

from holdfast.channels.file import channel as file
from holdfast.channels.github import channel as github
from holdfast.channels.port import Channel, ChannelContext, Opener
from holdfast.channels.url import channel as url
from holdfast.ports import Carrier

# By the name that stands before the colon of a target.
OPENERS: Mapping[str, Opener] = MappingProxyType({
    file.NAME: file.opened,
    github.NAME: github.opened,
    url.NAME: url.opened,
})  # fmt: skip


@contextlib.asynccontextmanager
async def open_channels(context: ChannelContext) -> AsyncGenerator[Mapping[str, Channel]]:
    """Yield every channel by name, and close them when the context ends.  Raises `ConfigInvalid`."""
    async with contextlib.AsyncExitStack() as stack:
        yield {name: await stack.enter_async_context(opener(context)) for name, opener in OPENERS.items()}


def carriers_of(channels: Mapping[str, Channel]) -> Mapping[str, Carrier]:
    """Return the carrier of each channel that has one."""
    return {name: channel.carrier for name, channel in channels.items() if channel.carrier}
