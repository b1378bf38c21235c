"""Configuration: one frozen tree, parsed once from TOML and the environment; an unknown key is an error with its line."""

from __future__ import annotations

import functools
import ipaddress
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import time
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Literal
from urllib.parse import unquote, urlsplit

from holdfast import configfile
from holdfast.errors import ConfigInvalid
from holdfast.passwords import is_usable

ENVIRONMENT = "HOLDFAST_"
PORT_MAX = 65_535
# What is shorter can be guessed, and would not be masked in the log.
KEY_LENGTH_MIN = 8
DIFFERENT_MIN = 4
# What signs deliveries can be tried out by whoever has seen one, as often as they like.
SIGNING_LENGTH_MIN = 16
SIGNING_PREFIX = "whsec_"
COMPACT_AT_MIN = 0.1
# By channel; conversations are kept until their user deletes them, except stored responses that nobody goes on with.
ONE_SHOT_DAYS: Mapping[str, int] = MappingProxyType({"webhook": 7, "cron": 30, "api": 7, "responses": 30, "delegate": 30})
# What a tool of a server, or a model of a provider, can be named after.
_OWN_NAME = re.compile(r"[a-zA-Z0-9_-]{1,32}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET_NAME = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD|AUTHORIZATION|COOKIE|CREDENTIALS?)$", re.IGNORECASE)
# Words that stand in examples, without what is between their letters.
_PLACEHOLDERS = frozenset(
    {"password", "password1", "password123", "passw0rd", "12345678", "123456789", "1234567890", "qwertyuiop", "abcdefgh",
     "apikey", "mykey", "mysecret", "secretkey", "supersecret", "insertkeyhere", "apikeyhere", "keyhere", "secrethere"}
)  # fmt: skip
_PLACEHOLDER = re.compile(r"change[-_ ]?(?:me|this)|replace[-_ ]?(?:me|this)|^your[-_ ]|placeholder|^<.*>$|…|\.\.\.")
_SECRET_VARIABLE = re.compile(r".+_(?:API_KEY|TOKEN|SECRET|PASSWORD)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """Where the gateway listens.  Without a key it answers this machine only; with one, under its own names only.

    `password` is for people at a browser, as text or as `holdfast keys password` prints it.
    """

    host: str = "127.0.0.1"
    port: int = 8420
    api_key: str = ""
    password: str = ""
    allowed_hosts: tuple[str, ...] = ()
    access_log: bool = False


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
    max_running: int = 256
    stall_timeout: float = 60


ResetChoice = Literal["none", "idle", "daily", "both"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionsConfig:
    """When a conversation gives way to a new one, and how long ended one-shot sessions are kept, in days by channel."""

    reset: ResetChoice = "none"
    reset_by_channel: Mapping[str, ResetChoice] = field(default_factory=dict[str, "ResetChoice"])
    idle_minutes: float = 1440
    daily_at: time = time(4)
    retention_days: Mapping[str, int] = field(default_factory=lambda: dict(ONE_SHOT_DAYS))


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
    """What the agent can do.

    It does all of it for the operator and for `trusted_owners`; others who have a key get what stays with their own data.
    """

    disabled: tuple[str, ...] = ()
    trusted_owners: tuple[str, ...] = ()
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


SchemeChoice = Literal["any", "standard", "github", "gitlab", "slack", "stripe", "hmac"]
BODY_LIMIT = 1_048_576


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteConfig:
    """A webhook route.  `prompt` is a template over the payload; `rate_limit` is deliveries per minute, with 0 any number.

    Only `events`, and what `filters` let through, start a turn.  With `deliver_only` the text of the template is sent as it
    is, without an agent.  `scheme` narrows which signatures are taken.
    """

    secret: str = ""
    secret_env: str = ""
    prompt: str = "{__raw__}"
    deliver: str = "log"
    deliver_only: bool = False
    events: tuple[str, ...] = ()
    filters: object = None
    enabled: bool = True
    rate_limit: int = 0
    body_limit: int = BODY_LIMIT
    scheme: SchemeChoice = "any"
    insecure_no_auth: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookConfig:
    """Routes by name: each is at /webhooks/NAME."""

    routes: Mapping[str, RouteConfig] = field(default_factory=dict[str, RouteConfig])


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlConfig:
    """Answers that are sent to `url:` targets.  Without a `secret`, one is made up; see `holdfast webhooks secret`."""

    secret: str = ""
    allow_hosts: tuple[str, ...] = ()
    timeout: float = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class GithubConfig:
    """Answers that are sent as comments to `github_comment:OWNER/REPOSITORY#NUMBER`."""

    token_env: str = "GITHUB_TOKEN"  # noqa: S105 - The name of a variable.
    base_url: str = "https://api.github.com"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelsConfig:
    """Ways in and out besides the command line and the API."""

    webhook: WebhookConfig = field(default_factory=WebhookConfig)
    url: UrlConfig = field(default_factory=UrlConfig)
    github: GithubConfig = field(default_factory=GithubConfig)


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
    channels: ChannelsConfig = field(default_factory=ChannelsConfig)


def home_folder(chosen: str | None, environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder that holds all state."""
    return Path(chosen or environment.get("HOLDFAST_HOME") or "~/.holdfast").expanduser()


Problems = Iterable[tuple[configfile.Where, str]]


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
    for path, problem in chain(_problems(config), further(config)):
        raise source.error(path, problem)
    for path in _held(config):
        if path not in variables and _is_public(file):
            raise source.error(path, f"is a secret that others can read; run: chmod 600 {file}")
    return config


def misplaced(
    file: Path, path: configfile.Where, problem: str, environment: Mapping[str, str] = os.environ
) -> ConfigInvalid:
    """Return the error that says where something stands that only turned out to be wrong later."""
    text, tree = configfile.read(file, required=False)
    variables = configfile.override(Config, tree, environment, ENVIRONMENT)
    return configfile.Source(file=file, text=text, variables=variables).error(path, problem)


def secrets(config: Config, environment: Mapping[str, str] = os.environ) -> frozenset[str]:
    """Return every secret that must be masked wherever it turns up: what is configured, and what the environment holds."""
    # Not every variable and header of a server is a secret: to mask "C.UTF-8" would help nobody.
    found = {value for path, value in _held(config).items() if not _is_of_server(path) or _SECRET_NAME.search(path[-1])}
    # What is behind the scheme of a header is told without it, and the password of an address as it is meant.
    found |= {value.partition(" ")[2] for value in found} | {unquote(value) for value in found}
    found |= {value.removeprefix(SIGNING_PREFIX) for value in found}
    found |= {value for name, value in environment.items() if _SECRET_VARIABLE.fullmatch(name)}
    found |= {environment.get(name, "") for name in _key_variables(config).values()}
    return frozenset(found - {""})


def _held(config: Config) -> Mapping[configfile.Where, str]:
    """Return the secrets that stand in a configuration, by their path."""
    held: dict[configfile.Where, str] = {
        ("server", "api_key"): config.server.api_key,
        ("server", "password"): config.server.password,
        ("store", "url"): _password(config.store.url),
        ("model", "api_key"): config.model.api_key,
        ("tools", "web_search", "api_key"): config.tools.web_search.api_key,
        ("channels", "url", "secret"): config.channels.url.secret,
    }
    held |= {("providers", name, "api_key"): each.api_key for name, each in config.providers.items()}
    held |= {("channels", "webhook", "routes", name, "secret"): each.secret for name, each in _routes(config)}
    held |= {path: _password(address) for path, address in _addresses(config).items()}
    for name, server in config.mcp.items():
        held |= {("mcp", name, "env", variable): value for variable, value in server.env.items()}
        held |= {("mcp", name, "headers", header): value for header, value in server.headers.items()}
    return {path: value for path, value in held.items() if value}


def _is_of_server(path: configfile.Where) -> bool:
    return path[0] == "mcp" and path[2] in ("env", "headers")


def _password(address: str) -> str:
    return urlsplit(address).password or ""


def _key_variables(config: Config) -> Mapping[configfile.Where, str]:
    """Return the variables that hold keys, by where they are named."""
    named: dict[configfile.Where, str] = {
        ("model", "api_key_env"): config.model.api_key_env,
        ("tools", "web_search", "api_key_env"): config.tools.web_search.api_key_env,
        ("channels", "github", "token_env"): config.channels.github.token_env,
    }
    named |= {("providers", name, "api_key_env"): each.api_key_env for name, each in config.providers.items()}
    named |= {("channels", "webhook", "routes", name, "secret_env"): each.secret_env for name, each in _routes(config)}
    return {path: variable for path, variable in named.items() if variable}


def _routes(config: Config) -> Iterable[tuple[str, RouteConfig]]:
    return config.channels.webhook.routes.items()


def _is_public(file: Path) -> bool:
    """Return whether other users of this machine can read a file, through every folder that leads to it."""
    path = file.resolve()
    return bool(path.stat().st_mode & stat.S_IROTH) and all(each.stat().st_mode & stat.S_IXOTH for each in path.parents)


def _problems(config: Config) -> Iterator[tuple[configfile.Where, str]]:
    """Yield what is well formed and still cannot be meant."""
    yield from ((("server", key), problem) for key, problem in wrong_with(config.server).items())
    try:
        # Only reading the port makes sure that it is one.
        _ = urlsplit(config.store.url).port
    except ValueError as error:
        yield ("store", "url"), f"is no address: {error}"
    if config.gateway.max_running < 1:
        yield ("gateway", "max_running"), "must be 1 or more, or no message would ever be answered"
    yield from _model_problems(config.model)
    yield from _agent_problems(config.agent, config.tools)
    yield from _named_problems(config)
    for name, route in _routes(config):
        for key, problem in wrong_with_route(route, config.server.host).items():
            yield ("channels", "webhook", "routes", name, key), problem
    if not config.channels.url.timeout:
        yield ("channels", "url", "timeout"), "must be more than 0, or nothing could ever be sent"
    for path, address in _addresses(config).items():
        if address and not _is_web_address(address):
            yield path, "must be an address that begins with http:// or https://"
    for path, variable in _key_variables(config).items():
        if not _VARIABLE.fullmatch(variable):
            # Whoever put the key itself here must not read it in a log.
            yield path, 'must be the name of an environment variable, like "OPENAI_API_KEY", not the key itself'


def _model_problems(model: ModelConfig) -> Iterator[tuple[configfile.Where, str]]:
    for key, name in (("name", model.name), *(("fallback", each) for each in model.fallback)):
        provider, _, rest = name.partition(":")
        if (name or key == "fallback") and not (provider.strip() and rest.strip()):
            yield ("model", key), f'{name!r} must be provider:model, like "openai:gpt-5"'
    if model.fallback and not model.name:
        yield ("model", "fallback"), "needs model.name, the model that is asked first"
    if not model.stall_timeout:
        yield ("model", "stall_timeout"), "must be more than 0, or no model could ever answer"


def _agent_problems(agent: AgentConfig, tools: ToolsConfig) -> Iterator[tuple[configfile.Where, str]]:
    if agent.steps_max < 1:
        yield ("agent", "steps_max"), "must be 1 or more, or the agent could do nothing"
    if not COMPACT_AT_MIN <= agent.compact_at <= 1:
        yield ("agent", "compact_at"), f"must be between {COMPACT_AT_MIN} and 1: it is a part of the model's context"
    for name, seconds in (("terminal", tools.terminal.timeout), ("fetch", tools.fetch.timeout)):
        if not seconds:
            yield ("tools", name, "timeout"), "must be more than 0"
    if not tools.terminal.approval_expires:
        yield ("tools", "terminal", "approval_expires"), "must be more than 0, or nobody could answer in time"


def _named_problems(config: Config) -> Iterator[tuple[configfile.Where, str]]:
    """Yield what is wrong with things that have names of their own."""
    for path in [("providers", name) for name in config.providers] + [("mcp", name) for name in config.mcp]:
        if not _OWN_NAME.fullmatch(path[-1]):
            yield path, "must be named with letters, digits, - and _ only, 32 at most"
    for name, server in config.mcp.items():
        if bool(server.command) == bool(server.url):
            yield ("mcp", name), "needs exactly one of command (a program to start) and url (a server to reach)"
        if not server.timeout:
            yield ("mcp", name, "timeout"), "must be more than 0"


def _addresses(config: Config) -> Mapping[configfile.Where, str]:
    return {
        ("model", "base_url"): config.model.base_url,
        ("tools", "web_search", "url"): config.tools.web_search.url,
        ("channels", "github", "base_url"): config.channels.github.base_url,
        **{("providers", name, "base_url"): each.base_url for name, each in config.providers.items()},
        **{("mcp", name, "url"): each.url for name, each in config.mcp.items()},
    }


def _is_web_address(address: str) -> bool:
    try:
        parts = urlsplit(address)
        # Only reading the port makes sure that it is one.
        _ = parts.port
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def wrong_with(server: ServerConfig) -> Mapping[str, str]:
    """Return what must not be about a server, by key."""
    problems: dict[str, str] = {}
    if server.port > PORT_MAX:
        problems["port"] = f"must be {PORT_MAX} or less"
    for key, secret in (("api_key", server.api_key), ("password", server.password)):
        if secret and (problem := weakness(secret)):
            problems[key] = problem
    if not is_usable(server.password):
        problems["password"] = "is not a hash that can be checked; make one with: holdfast keys password"  # noqa: S105 - No password.
    return problems


def weakness(secret: str) -> str:
    """Return why a secret is none; empty when it is one."""
    if len(secret) < KEY_LENGTH_MIN:
        return f"is too short to be a secret; it needs {KEY_LENGTH_MIN} characters or more"
    word = re.sub(r"[^a-z0-9]", "", secret.lower())
    if len(set(word)) < DIFFERENT_MIN or word in _PLACEHOLDERS or _PLACEHOLDER.search(secret.lower()):
        return "is a placeholder that anybody can guess; make up one of your own, as with: openssl rand -hex 24"
    return ""


def is_exposed(server: ServerConfig) -> bool:
    """Return whether others can reach a server of which the configuration asks nothing of them."""
    return not is_loopback(server.host) and not server.api_key and not server.password


def wrong_with_route(route: RouteConfig, host: str) -> Mapping[str, str]:
    """Return what must not be about a webhook route of a server that listens on `host`, by key."""
    problems: dict[str, str] = {}
    if route.secret and (problem := signing_weakness(route.secret)):
        problems["secret"] = problem
    if route.secret and route.secret_env:
        problems["secret_env"] = "names a second secret; leave one of them out"  # noqa: S105 - No secret.
    if route.secret or route.secret_env:
        if route.insecure_no_auth:
            problems["insecure_no_auth"] = "says that anybody may deliver, though there is a secret; leave one of them out"
    elif not route.insecure_no_auth:
        unsigned = "or take unsigned deliveries of this machine with insecure_no_auth = true"
        problems["secret"] = f"is missing; make up one, as with: openssl rand -hex 24; {unsigned}"
    elif not is_loopback(host):
        problems["insecure_no_auth"] = f"would let everybody in who reaches {host!r}; give the route a secret"
    return problems


def signing_weakness(secret: str) -> str:
    """Return why a secret that signs deliveries would protect nobody; empty where it is one."""
    told = secret.removeprefix(SIGNING_PREFIX)
    if problem := weakness(told):
        return problem
    if len(told) < SIGNING_LENGTH_MIN:
        return f"is too short to sign with; it needs {SIGNING_LENGTH_MIN} characters or more"
    return ""


@functools.lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    """Return whether a host can only be reached from this machine."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"
