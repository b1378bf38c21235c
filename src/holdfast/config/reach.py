"""Reach: the folders that the agent and its commands can change.  Files that control the agent must not be in them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from holdfast.config.tree import Config
from holdfast.errors import ConfigInvalid


def changeable(config: Config, home: Path) -> dict[str, Path]:
    """Return these folders with links resolved, by the setting that names each."""
    folders = {"agent.workspace": home / config.agent.workspace}
    folders |= {f"tools.terminal.writable: {name}": Path(name).expanduser() for name in config.tools.terminal.writable}
    return {setting: folder.resolve() for setting, folder in folders.items()}


def keep_apart(what: str, paths: Iterable[Path], config: Config, home: Path) -> None:
    """Refuse a configuration that lets the agent change files that the gateway itself obeys.  Raises `ConfigInvalid`."""
    own = home.resolve()
    for path in paths:
        # A link and the file that it points to can each be replaced.
        places = {path.absolute(), path.parent.resolve() / path.name, path.resolve()}
        for setting, folder in changeable(config, home).items():
            # Commands cannot see the home folder, even if it is inside a folder that they can change.
            hidden = own if own.is_relative_to(folder) else None
            if any(each.is_relative_to(folder) and not (hidden and each.is_relative_to(hidden)) for each in places):
                raise ConfigInvalid(
                    f"{setting}: holds {what} ({path}), which the agent could change; keep that elsewhere, or choose "
                    "another folder"
                )
