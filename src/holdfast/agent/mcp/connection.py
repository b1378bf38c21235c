"""The port of a connection to an MCP server, which does not need the MCP package."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from holdfast.core.effects import Effect


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedTool:
    """A tool as its server describes it.  All fields are untrusted and of any length."""

    name: str
    description: str
    schema: Mapping[str, object]
    effect: Effect


class ServerConnection(Protocol):
    """One established connection."""

    @property
    def stale(self) -> asyncio.Event:
        """Set whenever the list of tools or the connection itself may have changed."""
        ...

    async def list_tools(self, limit: int) -> Sequence[OfferedTool]:
        """Return up to `limit` tools of the server.  Raises `OSError` if it does not list them."""
        ...

    async def call(self, tool: str, args: Mapping[str, object], timeout_s: float) -> str:
        """Call a tool and return its result as text for the model.

        Raises `Unavailable` if the server certainly has not received the call, `Rejected` if it has refused it or reports a
        failure.  After a `ConnectionError` or a `TimeoutError`, the outcome is unknown.
        """
        ...
