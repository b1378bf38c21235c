"""The settings of channels that only their folders understand: webhook routes, and accounts of chat platforms."""

from __future__ import annotations

from itertools import chain

from holdfast.channels.chat import kinds
from holdfast.channels.chat.kinds import KINDS
from holdfast.channels.webhook import route
from holdfast.config import Config, Problems

__all__ = ["KINDS", "misconfigured"]


def misconfigured(config: Config) -> Problems:
    """Yield what is wrong with the channels of a configuration, and the path of each setting."""
    return chain(route.misconfigured(config), kinds.misconfigured(config))
