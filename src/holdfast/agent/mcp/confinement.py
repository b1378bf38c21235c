"""The sandbox of an MCP server that the gateway starts: its own folder, and the hosts in its settings."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from holdfast.config import McpConfig
from holdfast.sandbox import Sandbox, server_profile
from holdfast.sandbox.proxy import HostRules, Network, NetworkAccess

# Below the home of the gateway: the state of servers, by their names.
FOLDER = "mcp"


@dataclass(frozen=True, slots=True, kw_only=True)
class Confined:
    """How a server is started.  `access` is its network access; None if it runs without a sandbox."""

    config: McpConfig
    environment: Mapping[str, str]
    access: NetworkAccess | None = None

    def remark(self, name: str) -> str:
        """Return a hint about the sandbox for a server that does not work in it; empty without a sandbox."""
        if self.access is None:
            return ""
        if self.access.refused:
            return f"; it tried to reach {', '.join(sorted(self.access.refused))}, which mcp.{name}.hosts does not name"
        return (
            f"; it runs in a sandbox, where it sees its own folder and what mcp.{name}.readable, writable and hosts name; "
            f"mcp.{name}.sandbox = false runs it without"
        )


class Confinement:
    """Puts each server into a sandbox of its own, if this machine has one that confines."""

    def __init__(self, sandbox: Sandbox, network: Network, home: Path) -> None:
        self._sandbox = sandbox
        self._network = network
        self._home = home

    @contextlib.asynccontextmanager
    async def around(self, name: str, config: McpConfig, environment: Mapping[str, str]) -> AsyncGenerator[Confined]:
        """Yield how a server is started.  Its network access closes with the context."""
        if not (config.sandbox and config.command and self._sandbox.confines):
            yield Confined(config=config, environment=environment)
            return
        state = self._home / FOLDER / name
        await asyncio.to_thread(state.mkdir, mode=0o700, parents=True, exist_ok=True)
        profile = await asyncio.to_thread(server_profile, config, state, self._home, environment)
        async with self._network.opened(HostRules.of(config.hosts)) as access:
            command, variables = self._sandbox.for_profile(profile).wrap(config.command, profile.workspace, access)
            yield Confined(
                config=replace(config, command=tuple(command)),
                environment={**environment, "HOME": str(profile.workspace), **variables},
                access=access,
            )
