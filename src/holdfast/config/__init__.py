"""Configuration: one frozen tree, parsed once from TOML and the environment; an unknown key is an error with its line."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from itertools import chain
from pathlib import Path

from holdfast import configfile
from holdfast.config.problems import Problems, is_exposed, is_loopback, problems, wrong_with, wrong_with_route
from holdfast.config.secrecy import SIGNING_PREFIX, held, secrets, signing_weakness, weakness
from holdfast.config.tree import (
    BODY_LIMIT,
    ONE_SHOT_DAYS,
    AgentConfig,
    BudgetConfig,
    ChannelsConfig,
    Config,
    DelegateConfig,
    FetchConfig,
    GatewayConfig,
    GithubConfig,
    McpConfig,
    MemoryConfig,
    ModelConfig,
    ProviderConfig,
    RouteConfig,
    SchemeChoice,
    ServerConfig,
    SessionsConfig,
    StoreConfig,
    TerminalConfig,
    ToolsConfig,
    UrlConfig,
    WebhookConfig,
    WebSearchConfig,
)
from holdfast.errors import ConfigInvalid

__all__ = [
    "BODY_LIMIT",
    "ONE_SHOT_DAYS",
    "SIGNING_PREFIX",
    "AgentConfig",
    "BudgetConfig",
    "ChannelsConfig",
    "Config",
    "DelegateConfig",
    "FetchConfig",
    "GatewayConfig",
    "GithubConfig",
    "McpConfig",
    "MemoryConfig",
    "ModelConfig",
    "Problems",
    "ProviderConfig",
    "RouteConfig",
    "SchemeChoice",
    "ServerConfig",
    "SessionsConfig",
    "StoreConfig",
    "TerminalConfig",
    "ToolsConfig",
    "UrlConfig",
    "WebSearchConfig",
    "WebhookConfig",
    "config_file",
    "home_folder",
    "is_exposed",
    "is_loopback",
    "load",
    "misplaced",
    "placed",
    "secrets",
    "signing_weakness",
    "weakness",
    "wrong_with",
    "wrong_with_route",
]

ENVIRONMENT = "HOLDFAST_"


def home_folder(chosen: str | None, environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder that holds all state."""
    return Path(chosen or environment.get("HOLDFAST_HOME") or "~/.holdfast").expanduser()


def config_file(home: Path, chosen: str | None = None) -> Path:
    """Return the file that holds what an operator chose."""
    return Path(chosen) if chosen else home / "holdfast.toml"


def _nothing(_config: Config) -> Problems:
    return ()


def load(
    file: Path,
    environment: Mapping[str, str] = os.environ,
    *,
    required: bool = False,
    further: Callable[[Config], Problems] = _nothing,
) -> Config:
    """Read a configuration file, if there is one, and what the environment overrides.  Raises `ConfigInvalid`.

    `further` says what is wrong with parts of it that only others understand.
    """
    text, tree = configfile.read(file, required=required)
    variables = configfile.override(Config, tree, environment, ENVIRONMENT)
    source = configfile.Source(file=file, text=text, variables=variables)
    config: Config = configfile.build(Config, tree, source)
    for path, problem in chain(problems(config), further(config)):
        raise source.error(path, problem)
    for path in held(config):
        if path not in variables and _is_public(file):
            raise source.error(path, f"is a secret that others can read; run: chmod 600 {file}")
    return config


def misplaced(
    file: Path, path: configfile.Where, problem: str, environment: Mapping[str, str] = os.environ
) -> ConfigInvalid:
    """Return the error that says where something stands that only turned out to be wrong later."""
    return _source(file, environment).error(path, problem)


def placed(file: Path, error: ConfigInvalid, environment: Mapping[str, str] = os.environ) -> ConfigInvalid:
    """Return an error that begins with a setting together with where that stands, if it stands anywhere."""
    return _source(file, environment).placed(error)


def _source(file: Path, environment: Mapping[str, str]) -> configfile.Source:
    text, tree = configfile.read(file, required=False)
    variables = configfile.override(Config, tree, environment, ENVIRONMENT)
    return configfile.Source(file=file, text=text, variables=variables)


def _is_public(file: Path) -> bool:
    """Return whether other users of this machine can read a file, through every folder that leads to it."""
    path = file.resolve()
    return bool(path.stat().st_mode & stat.S_IROTH) and all(each.stat().st_mode & stat.S_IXOTH for each in path.parents)
