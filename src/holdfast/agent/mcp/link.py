"""The port: one live connection to an MCP server, in words that need no MCP package."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from holdfast.core.effects import Effect


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What a server says about one of its tools.  All of it is untrusted, and of any length."""

    name: str
    description: str
    schema: Mapping[str, object]
    effect: Effect


class Link(Protocol):
    """One connection, from when the server has answered until it is lost."""

    @property
    def doubted(self) -> asyncio.Event:
        """Set whenever the list of tools, or the connection itself, may no longer be as it was."""
        ...

    async def offers(self, limit: int) -> Sequence[Offer]:
        """Return the tools that the server has now, `limit` of them at most.  Raises `OSError` when it cannot say."""
        ...

    async def call(self, tool: str, args: Mapping[str, object], timeout_s: float) -> str:
        """Call a tool and return what a model should read.

        Raises `Unavailable` when the server certainly has not got the call, `Rejected` when it did not do it or says that
        it failed.  After a `ConnectionError` or a `TimeoutError`, nobody knows.
        """
        ...
