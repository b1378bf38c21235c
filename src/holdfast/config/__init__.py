"""Configuration: one frozen tree, parsed once from TOML and the environment; an unknown key is an error with its line."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from holdfast import configfile
from holdfast.config.problems import Problems, is_exposed, is_loopback, problems, wrong_with, wrong_with_route
from holdfast.config.reach import keep_apart
from holdfast.config.secrecy import (
    SIGNING_PREFIX,
    held,
    is_of_account,
    is_secret,
    secrets,
    shown,
    signing_weakness,
    weakness,
)
from holdfast.config.tree import (
    BODY_LIMIT,
    ONE_SHOT_DAYS,
    AgentConfig,
    BudgetConfig,
    ChannelsConfig,
    ChatSettings,
    Config,
    DelegateConfig,
    FetchConfig,
    GatewayConfig,
    GithubConfig,
    LimitsConfig,
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
from holdfast.configfile import NO_KINDS, Kinds
from holdfast.errors import ConfigInvalid

__all__ = [
    "BODY_LIMIT",
    "ONE_SHOT_DAYS",
    "SIGNING_PREFIX",
    "AgentConfig",
    "BudgetConfig",
    "ChannelsConfig",
    "ChatSettings",
    "Config",
    "ConfigDraft",
    "DelegateConfig",
    "FetchConfig",
    "GatewayConfig",
    "GithubConfig",
    "Kinds",
    "LimitsConfig",
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
    "decided",
    "draft",
    "home_folder",
    "is_exposed",
    "is_loopback",
    "is_of_account",
    "is_secret",
    "keep_apart",
    "load",
    "misplaced",
    "placed",
    "secrets",
    "shown",
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
    """Return the configuration file."""
    return Path(chosen) if chosen else home / "holdfast.toml"


def _nothing(_config: Config) -> Problems:
    return ()


def load(
    file: Path,
    environment: Mapping[str, str] = os.environ,
    *,
    required: bool = False,
    further: Callable[[Config], Problems] = _nothing,
    kinds: Kinds = NO_KINDS,
) -> Config:
    """Read a configuration file, if there is one, and what the environment overrides.  Raises `ConfigInvalid`.

    `further` checks the parts that only other packages understand, and `kinds` has the platforms of chat accounts.
    """
    text, tree = configfile.read(file, required=required)
    config, source = _checked(text, tree, file, environment, further, kinds)
    for path in held(config):
        if path not in source.variables and _is_public(file):
            raise source.error(path, f"is a secret that others can read; run: chmod 600 {file}")
    return config


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigDraft:
    """The configuration that a text would give.  `written` is the text as parsed, without variables and defaults."""

    config: Config
    written: configfile.Table
    variables: Mapping[configfile.Where, str]

    def is_written(self, path: configfile.Where) -> bool:
        """Return whether the text has a setting."""
        here: object = self.written
        for key in path:
            if not isinstance(here, dict) or key not in here:
                return False
            here = here[key]  # pyright: ignore[reportUnknownVariableType] - TOML holds any type.
        return True

    def variable(self, path: configfile.Where) -> str | None:
        """Return the environment variable that overrides a setting, or a part of it."""
        return next((name for each, name in self.variables.items() if each[: len(path)] == path), None)

    @property
    def holds_secrets(self) -> bool:
        """Whether the text, not the environment, holds a secret."""
        return any(path not in self.variables for path in held(self.config))


def draft(
    text: str,
    environment: Mapping[str, str] = os.environ,
    further: Callable[[Config], Problems] = _nothing,
    kinds: Kinds = NO_KINDS,
) -> ConfigDraft:
    """Read a text as a configuration file.  Raises `ConfigInvalid`, which names the setting but no line."""
    config, source = _checked(text, configfile.parsed(text), None, environment, further, kinds)
    return ConfigDraft(config=config, written=configfile.parsed(text), variables=source.variables)


def decided(text: str, environment: Mapping[str, str] = os.environ) -> Mapping[configfile.Where, str]:
    """Return the variable that overrides each setting, even if the text has other errors."""
    return configfile.override(Config, configfile.parsed(text), environment, ENVIRONMENT)


def _checked(
    text: str,
    tree: configfile.Table,
    file: Path | None,
    environment: Mapping[str, str],
    further: Callable[[Config], Problems],
    kinds: Kinds,
) -> tuple[Config, configfile.ConfigSource]:
    variables = configfile.override(Config, tree, environment, ENVIRONMENT, kinds)
    source = configfile.ConfigSource(file=file, text=text, variables=variables, kinds=kinds)
    config: Config = configfile.build(Config, tree, source)
    for path, problem in chain(problems(config), further(config)):
        raise source.error(path, problem)
    return config, source


def misplaced(
    file: Path, path: configfile.Where, problem: str, environment: Mapping[str, str] = os.environ
) -> ConfigInvalid:
    """Return the error for a setting that turned out to be wrong after loading, with its file and line."""
    return _source(file, environment).error(path, problem)


def placed(file: Path, error: ConfigInvalid, environment: Mapping[str, str] = os.environ) -> ConfigInvalid:
    """Return an error that begins with a setting with the file and line of that setting, if it is in the file."""
    return _source(file, environment).placed(error)


def _source(file: Path, environment: Mapping[str, str]) -> configfile.ConfigSource:
    text, tree = configfile.read(file, required=False)
    variables = configfile.override(Config, tree, environment, ENVIRONMENT)
    return configfile.ConfigSource(file=file, text=text, variables=variables)


def _is_public(file: Path) -> bool:
    """Return whether other users of this machine can read a file, which includes reaching it through its folders."""
    path = file.resolve()
    return bool(path.stat().st_mode & stat.S_IROTH) and all(each.stat().st_mode & stat.S_IXOTH for each in path.parents)
