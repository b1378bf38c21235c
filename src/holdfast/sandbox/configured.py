"""The profiles that the configuration describes: one for the terminal, and one for each MCP server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from holdfast.config import McpConfig, TerminalConfig
from holdfast.sandbox.profile import MEGABYTE, Limits, Profile, profile


def terminal_profile(config: TerminalConfig, workspace: Path, home: Path, *, user_home: Path | None = None) -> Profile:
    """Return the profile of terminal commands.  Of `home`, the gateway's folder, they see the workspace at most."""
    return profile(
        workspace,
        hidden=[home],
        readable=_folders(config.readable),
        writable=_folders(config.writable),
        user_home=user_home,
        limits=Limits(
            processes=config.processes_max,
            memory=config.memory_max_mb * MEGABYTE,
            file=config.file_max_mb * MEGABYTE,
            files=config.files_max,
            cpu=config.cpu_max,
        ),
    )


def server_profile(config: McpConfig, state: Path, home: Path, environment: Mapping[str, str]) -> Profile:
    """Return the profile of an MCP server: its own folder, the paths in its settings, and the files of its command."""
    named = [Path(word) for word in config.command if Path(word).is_absolute()]
    return profile(
        state,
        hidden=[home],
        readable=[*_folders(config.readable), *named],
        writable=_folders(config.writable),
        environment=environment,
        # It runs as long as the gateway does.
        limits=Limits(cpu=0),
    )


def _folders(names: Sequence[str]) -> list[Path]:
    return [Path(name).expanduser() for name in names]
