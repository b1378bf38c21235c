"""The tree of settings: each with its type, its default and its description."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import time
from types import MappingProxyType
from typing import Annotated, Literal

from holdfast.configfile import BY_KIND

# By channel.  Conversations are kept until their user deletes them; stored responses that are not continued are not.
ONE_SHOT_DAYS: Mapping[str, int] = MappingProxyType(
    {"webhook": 7, "cron": 30, "api": 7, "responses": 30, "delegate": 30, "background": 30}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """Where the gateway listens, and who may use it.

    Without a key and a password, the gateway answers only programs of its own user on this machine.
    """

    host: Annotated[str, "The address to listen on.  Any address but loopback needs a key or a password."] = "127.0.0.1"
    port: Annotated[int, "The port to listen on."] = 8420
    api_key: Annotated[str, "One key for all programs, besides those that holdfast keys create makes."] = ""
    password: Annotated[str, "The hash of the password for browsers.  holdfast keys password prints it."] = ""
    allowed_hosts: Annotated[
        tuple[str, ...], "More host names that the gateway answers to, such as that of a reverse proxy."
    ] = ()
    guests: Annotated[
        Literal["refuse", "own"],
        "What programs of other users of this machine get without a key: nothing, or sessions of their own without tools "
        "that touch this machine.",
    ] = "refuse"
    access_log: Annotated[bool, "Whether each request is written to the log."] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreConfig:
    """Which database holds all state."""

    url: Annotated[str, "The database: sqlite in the home folder, or postgresql://user@host/database."] = "sqlite"


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayConfig:
    """How the gateway runs turns."""

    drain_timeout: Annotated[float, "How many seconds running turns get to finish when the gateway stops."] = 30
    resume: Annotated[
        Literal["on_message", "auto"], "Whether an interrupted turn continues with the next message, or automatically."
    ] = "on_message"
    on_crash: Annotated[Literal["resume", "suspend"], "Whether a session continues after a crash, or is suspended."] = (
        "resume"
    )
    busy: Annotated[
        Literal["queue", "interrupt", "steer", "reject"],
        "What happens to a message that arrives while a turn runs: it waits, replaces the turn, joins it, or is refused.",
    ] = "queue"
    max_running: Annotated[int, "How many turns run at the same time."] = 256
    stall_timeout: Annotated[
        float, "After how many seconds without progress of its event loop the gateway restarts; 0 means never."
    ] = 60


ResetChoice = Literal["none", "idle", "daily", "both"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionsConfig:
    """When a conversation is replaced by a new one, and how long ended one-shot sessions are kept."""

    reset: Annotated[
        ResetChoice, "When a conversation is replaced by a new one: never, after idle time, daily, or both."
    ] = "none"
    reset_by_channel: Annotated[Mapping[str, ResetChoice], "The same by channel name."] = field(
        default_factory=dict[str, "ResetChoice"]
    )
    idle_minutes: Annotated[float, "After how many minutes without a message a conversation counts as idle."] = 1440
    daily_at: Annotated[time, "The time of day at which a daily reset happens."] = time(4)
    retention_days: Annotated[Mapping[str, int], "How many days ended one-shot sessions are kept, by channel."] = field(
        default_factory=lambda: dict(ONE_SHOT_DAYS)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """Which model answers.

    `context_tokens`, `output_tokens_max` and the prices are only needed for a model that Holdfast does not know.
    """

    name: Annotated[str, "The model that answers, as provider:model.  If empty, the built-in demonstration answers."] = ""
    base_url: Annotated[str, "The URL of the provider's API.  If empty, the usual one of the provider."] = ""
    api_key: Annotated[str, "The API key of the provider."] = ""
    api_key_env: Annotated[str, "The environment variable that holds the API key of the provider."] = ""
    fallback: Annotated[tuple[str, ...], "Models to ask, in this order, if the first cannot answer."] = ()
    choices: Annotated[tuple[str, ...], "More models that people may choose for a conversation, as provider:model."] = ()
    context_tokens: Annotated[int, "How many tokens the model can read; 0 means what Holdfast knows about the model."] = 0
    output_tokens_max: Annotated[int, "How many tokens an answer may have; 0 means what Holdfast knows about the model."] = 0
    input_price: Annotated[
        float, "The price of a million input tokens in dollars; 0 means what Holdfast knows about the model."
    ] = 0
    output_price: Annotated[
        float, "The price of a million output tokens in dollars; 0 means what Holdfast knows about the model."
    ] = 0
    reasoning: Annotated[Literal["off", "low", "medium", "high"], "How much the model reasons before it answers."] = "off"
    stall_timeout: Annotated[float, "After how many seconds without data a request to the model is aborted."] = 120
    retries: Annotated[
        int, "How often a failed request to a model is repeated, before the next model is asked or the turn waits."
    ] = 3
    wait: Annotated[
        float,
        "How many seconds a turn waits for a model that is not available.  Requests with a waiting client do not wait.",
    ] = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderConfig:
    """A provider under a name that the operator chose, for `model.name` and `model.fallback`."""

    wire: Annotated[Literal["openai", "anthropic"], "The API format of the provider."] = "openai"
    base_url: Annotated[str, "The URL of its API."] = ""
    api_key: Annotated[str, "Its API key."] = ""
    api_key_env: Annotated[str, "The environment variable that holds its API key."] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """How the agent works.  Folders are relative to the home folder."""

    persona: Annotated[str, "How the agent presents itself: a text, or the name of a file in the home folder."] = ""
    workspace: Annotated[str, "The folder that the agent works in."] = "workspace"
    context_files: Annotated[tuple[str, ...], "Files in the workspace that the agent reads at every turn."] = ("AGENTS.md",)
    skills: Annotated[str, "The folder with skills.  Each folder in it with a SKILL.md is a skill."] = "skills"
    steps_max: Annotated[int, "How many model calls a turn may make before it ends."] = 50
    compact_at: Annotated[
        float, "How full the model's context may be, from 0.1 to 1, before older turns are summarised."
    ] = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetConfig:
    """How much may be used before the operator is asked."""

    turn_tokens: Annotated[int, "How many tokens one turn may use before it asks; 0 means no limit."] = 0
    session_tokens: Annotated[int, "How many tokens one session may use before it asks; 0 means no limit."] = 0
    day_tokens: Annotated[int, "How many tokens all turns of a day may use before they ask; 0 means no limit."] = 0
    turn_usd: Annotated[float, "How many dollars one turn may cost before it asks; 0 means no limit."] = 0
    session_usd: Annotated[float, "How many dollars one session may cost before it asks; 0 means no limit."] = 0
    day_usd: Annotated[float, "How many dollars all turns of a day may cost before they ask; 0 means no limit."] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryConfig:
    """What is remembered across conversations.

    A conversation is given to the provider when it is over, or after `idle_minutes` without a message.
    """

    provider: Annotated[str, "The memory provider: builtin, http, openviking, the name of a plugin, or none."] = "builtin"
    url: Annotated[str, "The URL of the memory provider."] = ""
    api_key: Annotated[str, "The API key of the memory provider."] = ""
    api_key_env: Annotated[str, "The environment variable that holds the API key of the memory provider."] = ""
    model: Annotated[str, "The model that extracts facts, as provider:model.  If empty, the model that answers."] = ""
    recall_timeout: Annotated[float, "How many seconds an answer may wait for memories."] = 2
    recall_limit: Annotated[int, "How many memories a turn is given at most."] = 8
    commit_timeout: Annotated[float, "After how many seconds a commit to the provider is aborted and retried."] = 120
    idle_minutes: Annotated[float, "After how many minutes without a message a conversation is committed."] = 30
    live_sessions: Annotated[int, "How many conversations are open for memory at the same time."] = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalConfig:
    """How commands run.  The settings after `approval_expires` configure the sandbox."""

    approval: Annotated[
        Literal["ask", "smart", "deny", "allow"],
        "What happens to a command that no sandbox confines, or that wants to reach a new host.",
    ] = "ask"
    sandbox: Annotated[Literal["auto", "on", "off"], "Whether commands run in a sandbox."] = "auto"
    deny: Annotated[
        tuple[str, ...], "Patterns of commands that are always refused.  Only a hint: a script can work around it."
    ] = ()
    hosts: Annotated[
        tuple[str, ...],
        "Hosts that commands and fetch may reach without asking: example.com, example.com:8080 or *.example.com.",
    ] = ()
    timeout: Annotated[float, "After how many seconds a command is killed."] = 120
    approval_expires: Annotated[float, "After how many seconds a question about a command expires."] = 86_400
    readable: Annotated[tuple[str, ...], "More folders and files that commands can read."] = ()
    writable: Annotated[tuple[str, ...], "More folders that commands can change."] = ()
    processes_max: Annotated[int, "How many processes and threads a command may have; 0 means no limit."] = 1024
    memory_max_mb: Annotated[int, "How many megabytes of memory each process of a command may use; 0 means no limit."] = 8192
    file_max_mb: Annotated[int, "How many megabytes a file written by a command may have; 0 means no limit."] = 16_384
    files_max: Annotated[int, "How many files each process of a command may have open; 0 means no limit."] = 8192
    cpu_max: Annotated[int, "How many seconds of CPU time each process of a command may use; 0 means no limit."] = 14_400


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchConfig:
    """How the agent fetches web pages."""

    allow_hosts: Annotated[
        tuple[str, ...], "Names of hosts on this machine or its network that the agent may fetch from."
    ] = ()
    timeout: Annotated[float, "After how many seconds a fetch is aborted."] = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSearchConfig:
    """Which search engine the agent uses."""

    provider: Annotated[
        str, "The search engine: searxng, brave or the name of a plugin.  If empty, there is no web search."
    ] = ""
    url: Annotated[str, "The URL of the search engine."] = ""
    api_key: Annotated[str, "The API key of the search engine."] = ""
    api_key_env: Annotated[str, "The environment variable that holds the API key of the search engine."] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegateConfig:
    """Limits for tasks that the agent delegates."""

    depth_max: Annotated[int, "How deep delegated tasks may be nested."] = 2
    children_max: Annotated[int, "How many delegated tasks of one turn may run at the same time."] = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsConfig:
    """What the agent can do.

    The operator and `trusted_owners` get all tools.  Other owners of keys get the tools that only use their own data.
    """

    disabled: Annotated[tuple[str, ...], "Names of tools that the agent does not get."] = ()
    trusted_owners: Annotated[tuple[str, ...], "Owners of keys whose turns may use the tools that touch this machine."] = ()
    terminal: TerminalConfig = field(default_factory=TerminalConfig)
    fetch: FetchConfig = field(default_factory=FetchConfig)
    web_search: WebSearchConfig = field(default_factory=WebSearchConfig)
    delegate: DelegateConfig = field(default_factory=DelegateConfig)


@dataclass(frozen=True, slots=True, kw_only=True)
class McpConfig:
    """One MCP server: a `command` to start, or a `url` to reach."""

    command: Annotated[tuple[str, ...], "The program to start, with its arguments."] = ()
    env: Annotated[Mapping[str, str], "Environment variables for the program."] = field(default_factory=dict[str, str])
    url: Annotated[str, "The URL of the server."] = ""
    headers: Annotated[Mapping[str, str], "Headers to send to the server."] = field(default_factory=dict[str, str])
    timeout: Annotated[float, "After how many seconds a call is aborted."] = 60
    approval: Annotated[Literal["ask", "allow"], "Whether a person is asked before a tool runs that is not read-only."] = (
        "ask"
    )
    sandbox: Annotated[bool, "Whether the program runs in a sandbox, with a folder of its own."] = True
    hosts: Annotated[tuple[str, ...], "Hosts that the program may reach from the sandbox."] = ()
    readable: Annotated[tuple[str, ...], "Folders and files that the program can read from the sandbox."] = ()
    writable: Annotated[tuple[str, ...], "Folders that the program can change from the sandbox."] = ()


SchemeChoice = Literal["any", "standard", "github", "gitlab", "slack", "stripe", "hmac"]
BODY_LIMIT = 1_048_576


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteConfig:
    """A webhook route.  A delivery starts a turn if `events` and `filters` let it pass."""

    secret: Annotated[str, "The secret that the sender signs deliveries with."] = ""
    secret_env: Annotated[str, "The environment variable that holds the secret."] = ""
    prompt: Annotated[str, "The template that turns a delivery into a prompt."] = "{__raw__}"
    deliver: Annotated[str, "Where the answer goes: log, or a target such as url:https://example.com/hook."] = "log"
    deliver_only: Annotated[bool, "Whether the filled template is the answer, without an agent."] = False
    events: Annotated[tuple[str, ...], "The event types that start a turn.  If empty, all do."] = ()
    filters: Annotated[object, "Conditions that a delivery must meet to start a turn."] = None
    enabled: Annotated[bool, "Whether the route accepts deliveries."] = True
    rate_limit: Annotated[int, "How many deliveries are accepted per minute; 0 means no limit."] = 0
    body_limit: Annotated[int, "The maximum size of a delivery in bytes."] = BODY_LIMIT
    scheme: Annotated[SchemeChoice, "Which kind of signature is accepted."] = "any"
    insecure_no_auth: Annotated[bool, "Whether deliveries from this machine need no signature."] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookConfig:
    """Routes by name.  Each receives deliveries at /webhooks/NAME."""

    routes: Mapping[str, RouteConfig] = field(default_factory=dict[str, RouteConfig])


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlConfig:
    """Answers to `url:` targets."""

    secret: Annotated[
        str, "The secret that signs answers to url: targets.  If empty, one is generated; holdfast webhooks secret shows it."
    ] = ""
    allow_hosts: Annotated[
        tuple[str, ...], "Names of hosts on this machine or its network that answers may be sent to."
    ] = ()
    timeout: Annotated[float, "After how many seconds a send is aborted."] = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class GithubConfig:
    """Answers to `github_comment:OWNER/REPOSITORY#NUMBER` targets."""

    token_env: Annotated[str, "The environment variable that holds the GitHub token."] = "GITHUB_TOKEN"  # noqa: S105 - The name of a variable.
    base_url: Annotated[str, "The URL of the GitHub API."] = "https://api.github.com"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatSettings:
    """An account of a chat platform.  Each platform adds its own settings."""

    kind: Annotated[str, "The platform of the account.  If empty, the name of the account is the platform."] = ""
    enabled: Annotated[bool, "Whether the account receives and sends."] = True
    allow: Annotated[tuple[str, ...], "The user ids of the operator.  Their chats belong to the operator."] = ()
    groups: Annotated[
        Literal["mention", "all", "off"], "Which messages in groups are answered: those that mention the bot, all, or none."
    ] = "mention"
    sessions: Annotated[
        Literal["chat", "person"], "Whether the people of a group share one session, or have one for each person."
    ] = "chat"
    stream: Annotated[
        Literal["status", "edit", "off"],
        "What a chat shows while the agent works: a line about it, the growing answer, or typing only.",
    ] = "status"
    home: Annotated[str, "The chat for notices, as <chat> or <chat>:<thread>.  If empty, there are no notices."] = ""

    def problems(self) -> Mapping[str, str]:
        """Return what is wrong with the settings that a platform has added, by key."""
        return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelsConfig:
    """The channels: where messages come from and answers go, besides the command line and the API.

    `accounts` are the other tables: each is an account of a chat platform, by its name.
    """

    webhook: WebhookConfig = field(default_factory=WebhookConfig)
    url: UrlConfig = field(default_factory=UrlConfig)
    github: GithubConfig = field(default_factory=GithubConfig)
    accounts: Mapping[str, ChatSettings] = field(default_factory=dict[str, ChatSettings], metadata=BY_KIND)


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsConfig:
    """How much of the gateway each owner of a key may use.  The operator has no limits, except `connections`."""

    running: Annotated[int, "How many turns of one owner run at the same time; 0 means no limit."] = 32
    queued: Annotated[int, "How many messages of one owner may wait; 0 means no limit."] = 200
    sessions: Annotated[int, "How many sessions one owner may have; 0 means no limit."] = 2_000
    bytes: Annotated[int, "How many bytes the messages of one owner may use; 0 means no limit."] = 268_435_456
    jobs: Annotated[int, "How many jobs one owner may have; 0 means no limit."] = 50
    connections: Annotated[
        int, "How many connections one address, or one user of this machine, may have open; 0 means no limit."
    ] = 1_500


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """All settings.  Each component receives only its own part."""

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
    limits: LimitsConfig = field(default_factory=LimitsConfig)
