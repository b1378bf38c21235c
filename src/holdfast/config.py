"""Configuration: one frozen tree, parsed once from TOML and the environment; an unknown key is an error with its line."""

from __future__ import annotations

import dataclasses
import difflib
import ipaddress
import os
import re
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import time
from pathlib import Path
from typing import Any, Literal, cast, get_args, get_origin, get_type_hints
from urllib.parse import urlsplit

from holdfast.errors import ConfigInvalid

ENVIRONMENT = "HOLDFAST_"
PORT_MAX = 65_535
# What is shorter can be guessed, and would not be masked in the log.
KEY_LENGTH_MIN = 8
# No time or amount is larger on purpose, and every one still fits where it is multiplied.
NUMBER_MAX = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """Where the gateway listens.  Without a key it answers this machine only; with one, under its own names only."""

    host: str = "127.0.0.1"
    port: int = 8420
    api_key: str = ""
    allowed_hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreConfig:
    """`url` is "sqlite", which lives in the home folder, or postgresql://user@host/database."""

    url: str = "sqlite"


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayConfig:
    """How turns are run.  Times are seconds; a loop that stands still for `stall_timeout` is restarted, with 0 never."""

    drain_timeout: float = 30
    resume: Literal["on_message", "auto"] = "on_message"
    on_crash: Literal["resume", "suspend"] = "resume"
    busy: Literal["queue", "interrupt", "steer", "reject"] = "queue"
    max_running: int = 64
    stall_timeout: float = 60


ResetChoice = Literal["none", "idle", "daily", "both"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionsConfig:
    """When a conversation gives way to a new one, and how long ended one-shot sessions are kept, in days by channel."""

    reset: ResetChoice = "none"
    reset_by_channel: Mapping[str, ResetChoice] = field(default_factory=dict[str, "ResetChoice"])
    idle_minutes: float = 1440
    daily_at: time = time(4)
    retention_days: Mapping[str, int] = field(default_factory=lambda: {"webhook": 7, "cron": 30, "api": 7})


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """Which model answers: `provider:model`.  Without one, the built-in demonstration does.  Times are seconds.

    `context_tokens` and the prices, in dollars per million tokens, are only needed for a model that Holdfast does not
    know; 0 is not known.  When the model cannot answer, those of `fallback` are asked in their order.
    """

    name: str = ""
    base_url: str = ""
    api_key: str = ""
    api_key_env: str = ""
    fallback: tuple[str, ...] = ()
    context_tokens: int = 0
    output_tokens_max: int = 0
    input_price: float = 0
    output_price: float = 0
    reasoning: Literal["off", "low", "medium", "high"] = "off"
    stall_timeout: float = 120
    retries: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderConfig:
    """A provider by a name of one's own, for `model.name` and `model.fallback`; `wire` is the format that it speaks."""

    wire: Literal["openai", "anthropic"] = "openai"
    base_url: str = ""
    api_key: str = ""
    api_key_env: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """How the agent works.  Folders are relative to the home folder; `compact_at` is a part of the model's context.

    `context_files` are looked for in the workspace; every folder below `skills` with a SKILL.md is a skill.
    """

    persona: str = ""
    workspace: str = "workspace"
    context_files: tuple[str, ...] = ("AGENTS.md",)
    skills: str = "skills"
    steps_max: int = 50
    compact_at: float = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetConfig:
    """How much may be used before a person is asked, in tokens and dollars: in one turn, in one session, in a day."""

    turn_tokens: int = 0
    session_tokens: int = 0
    day_tokens: int = 0
    turn_usd: float = 0
    session_usd: float = 0
    day_usd: float = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalConfig:
    """Commands.  `approval` is for those judged dangerous; `deny` are patterns that nothing allows.  Times are seconds."""

    approval: Literal["ask", "smart", "deny", "allow"] = "ask"
    sandbox: Literal["auto", "on", "off"] = "auto"
    deny: tuple[str, ...] = ()
    timeout: float = 120
    approval_expires: float = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchConfig:
    """Pages from the web.  Addresses of this machine or its network only under the names of `allow_hosts`."""

    allow_hosts: tuple[str, ...] = ()
    timeout: float = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSearchConfig:
    """Who searches the web: "searxng" at a `url`, "brave" with a key, the name of a plugin, or nobody."""

    provider: str = ""
    url: str = ""
    api_key: str = ""
    api_key_env: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegateConfig:
    """How deep tasks may be handed on, and how many may be at work for one turn."""

    depth_max: int = 2
    children_max: int = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsConfig:
    """What the agent can do."""

    disabled: tuple[str, ...] = ()
    terminal: TerminalConfig = field(default_factory=TerminalConfig)
    fetch: FetchConfig = field(default_factory=FetchConfig)
    web_search: WebSearchConfig = field(default_factory=WebSearchConfig)
    delegate: DelegateConfig = field(default_factory=DelegateConfig)


@dataclass(frozen=True, slots=True, kw_only=True)
class McpConfig:
    """One MCP server: a `command` to start, or a `url` to reach.  `approval` is for tools that are not read-only."""

    command: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    timeout: float = 60
    approval: Literal["ask", "allow"] = "ask"


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Everything an operator can choose.  Each component receives only its own node."""

    server: ServerConfig = field(default_factory=ServerConfig)
    store: StoreConfig = field(default_factory=StoreConfig)
    gateway: GatewayConfig = field(default_factory=GatewayConfig)
    sessions: SessionsConfig = field(default_factory=SessionsConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    providers: Mapping[str, ProviderConfig] = field(default_factory=dict[str, ProviderConfig])
    agent: AgentConfig = field(default_factory=AgentConfig)
    budget: BudgetConfig = field(default_factory=BudgetConfig)
    tools: ToolsConfig = field(default_factory=ToolsConfig)
    mcp: Mapping[str, McpConfig] = field(default_factory=dict[str, McpConfig])


def home_folder(chosen: str | None, environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder that holds all state."""
    return Path(chosen or environment.get("HOLDFAST_HOME") or "~/.holdfast").expanduser()


def load(file: Path, environment: Mapping[str, str] = os.environ, *, required: bool = False) -> Config:
    """Read a configuration file, if there is one, and what the environment overrides.  Raises `ConfigInvalid`."""
    text = _text(file, required=required)
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = match[1] if (match := re.search(r"line (\d+)", str(error))) else "1"
        raise ConfigInvalid(f"{file}:{line}: {error}") from error
    overridden: dict[tuple[str, ...], str] = {}
    for name, value in environment.items():
        section, divider, key = name.removeprefix(ENVIRONMENT).lower().partition("__")
        if name.startswith(ENVIRONMENT) and divider:
            # What is no table is refused below, at its own place.
            if isinstance(table := tree.setdefault(section, {}), dict):
                cast("dict[str, object]", table)[key] = _literal(value, _kind(section, key))
            overridden[section, key] = name
            if section not in text:
                overridden[section,] = name
    place = _Place(file=file, text=text, overridden=overridden)
    config: Config = _build(Config, tree, place)
    for key, problem in wrong_with(config.server).items():
        raise place.under("server").under(key).error(problem)
    if config.gateway.max_running < 1:
        raise place.under("gateway").under("max_running").error("must be 1 or more, or no message would ever be answered")
    try:
        # Only reading the port makes sure that it is one.
        _ = urlsplit(config.store.url).port
    except ValueError as error:
        raise place.under("store").under("url").error(f"is no address: {error}") from error
    for section, key in _secrets(config):
        if (section, key) not in overridden and _is_public(file):
            raise place.under(section).under(key).error(f"is a secret that others can read; run: chmod 600 {file}")
    return config


def _text(file: Path, *, required: bool) -> str:
    """Return what stands in a file; nothing, where there need not be one."""
    try:
        content = file.read_bytes()
    except OSError as error:
        if isinstance(error, FileNotFoundError | NotADirectoryError) and not required:
            return ""
        raise ConfigInvalid(f"{file}: {error.strerror}") from error
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigInvalid(f"{file}:{line}: is not UTF-8") from error


def _secrets(config: Config) -> list[tuple[str, str]]:
    """Return where a configuration holds a secret."""
    held = {("server", "api_key"): config.server.api_key, ("store", "url"): urlsplit(config.store.url).password}
    return [place for place, secret in held.items() if secret]


def _is_public(file: Path) -> bool:
    """Return whether other users of this machine can read a file, through every folder that leads to it."""
    path = file.resolve()
    return bool(path.stat().st_mode & stat.S_IROTH) and all(each.stat().st_mode & stat.S_IXOTH for each in path.parents)


def wrong_with(server: ServerConfig) -> Mapping[str, str]:
    """Return what must not be about a server, by key."""
    problems: dict[str, str] = {}
    if server.port > PORT_MAX:
        problems["port"] = f"must be {PORT_MAX} or less"
    if server.api_key and len(server.api_key) < KEY_LENGTH_MIN:
        problems["api_key"] = f"is too short to be a secret; it needs {KEY_LENGTH_MIN} characters or more"
    if not server.api_key and not is_loopback(server.host):
        problems["host"] = f"{server.host!r} can be reached by others; set server.api_key, or listen on 127.0.0.1"
    return problems


def is_loopback(host: str) -> bool:
    """Return whether a host can only be reached from this machine."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where in a file a value stands, for errors that can be acted on."""

    file: Path
    text: str
    overridden: Mapping[tuple[str, ...], str]
    path: tuple[str, ...] = ()

    def under(self, key: str) -> _Place:
        return dataclasses.replace(self, path=(*self.path, key))

    def error(self, problem: str) -> ConfigInvalid:
        variable = self.overridden.get(self.path)
        where = f"environment: {variable}" if variable else f"{self.file}:{self._line()}"
        return ConfigInvalid(f"{where}: {'.'.join(self.path)}: {problem}")

    def _line(self) -> int:
        section = next((i for i, line in enumerate(self.text.splitlines()) if line.strip() == f"[{self.path[0]}]"), 0)
        lines = self.text.splitlines()[section:]
        # What stands inside a table on one line is found by the name of that table.
        for name in reversed(self.path):
            key = re.compile(rf"^\s*\[?[\w.]*\b{re.escape(name)}\b")
            if (found := next((i for i, line in enumerate(lines) if key.match(line)), None)) is not None:
                return section + found + 1
        return section + 1


def _kind(section: str, key: str) -> object:
    """Return the type of a setting; None where there is no such setting."""
    table = get_type_hints(Config).get(section)
    return get_type_hints(table).get(key) if table else None


def _literal(value: str, kind: object) -> object:
    """Return what a variable says.  Text needs no quotes there, even where it looks like something else."""
    try:
        said = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return value
    return said if kind is not str or isinstance(said, str) else value


def _build(kind: type[Any], tree: object, place: _Place) -> Any:  # The type is the caller's own dataclass.
    if not isinstance(tree, dict):
        raise place.error("must be a table")
    hints = get_type_hints(kind)
    values: dict[str, object] = {}
    for key, value in cast("dict[str, object]", tree).items():
        here = place.under(key)
        if key not in hints:
            near = difflib.get_close_matches(key, hints, n=1)
            raise here.error("unknown key" + (f"; did you mean {near[0]}?" if near else f"; known are {', '.join(hints)}"))
        values[key] = _check(hints[key], value, here)
    return kind(**values)


def _check(kind: Any, value: object, place: _Place) -> object:  # A type from the dataclass itself.
    if dataclasses.is_dataclass(kind):
        return _build(cast("type[Any]", kind), value, place)
    if get_origin(kind) is Literal:
        if value not in get_args(kind):
            raise place.error(f"must be one of {', '.join(map(repr, get_args(kind)))}")
    elif kind in (int, float):
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= NUMBER_MAX:
            raise place.error(f"must be a number, not negative and {NUMBER_MAX} at most")
        if kind is int and value != int(value):
            raise place.error("must be a whole number")
        return kind(value)
    elif kind is str:
        if not isinstance(value, str):
            raise place.error("must be text in quotes")
    elif kind is time:
        return _time_of_day(value, place)
    elif get_origin(kind) is tuple:
        return _several(get_args(kind)[0], value, place)
    else:
        return _by_name(get_args(kind)[1], value, place)
    return value


def _time_of_day(value: object, place: _Place) -> time:
    if isinstance(value, time):
        return value
    try:
        return time.fromisoformat(value if isinstance(value, str) else "")
    except ValueError:
        raise place.error('must be a time of day, like "04:00"') from None


def _several(kind: Any, value: object, place: _Place) -> tuple[object, ...]:  # A type from the dataclass itself.
    if not isinstance(value, list):
        raise place.error('must be a list, like ["…"]')
    return tuple(_check(kind, each, place) for each in cast("list[object]", value))


def _by_name(kind: Any, value: object, place: _Place) -> Mapping[str, object]:  # A type from the dataclass itself.
    if not isinstance(value, dict):
        raise place.error("must be a table, like { webhook = … }")
    return {name: _check(kind, each, place.under(name)) for name, each in cast("dict[str, object]", value).items()}
