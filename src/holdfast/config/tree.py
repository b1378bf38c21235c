"""The tree: everything that an operator can choose, with what it is where they choose nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import time
from types import MappingProxyType
from typing import Literal

# By channel; conversations are kept until their user deletes them, except stored responses that nobody goes on with.
ONE_SHOT_DAYS: Mapping[str, int] = MappingProxyType({"webhook": 7, "cron": 30, "api": 7, "responses": 30, "delegate": 30})


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
class MemoryConfig:
    """Who remembers: "builtin", "http" or "openviking" at a `url`, the name of a plugin, or "none".  Times are seconds.

    A conversation is committed when it is over, or after `idle_minutes` without a message.  `model`, a `provider:model`,
    extracts what the builtin remembers; without one, the model that answers does.
    """

    provider: str = "builtin"
    url: str = ""
    api_key: str = ""
    api_key_env: str = ""
    model: str = ""
    recall_timeout: float = 2
    recall_limit: int = 8
    commit_timeout: float = 120
    idle_minutes: float = 30
    live_sessions: int = 1000


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
    memory: MemoryConfig = field(default_factory=MemoryConfig)
    tools: ToolsConfig = field(default_factory=ToolsConfig)
    mcp: Mapping[str, McpConfig] = field(default_factory=dict[str, McpConfig])
    channels: ChannelsConfig = field(default_factory=ChannelsConfig)
