"""The tree: everything that an operator can choose, with what it means, and what it is where they choose nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import time
from types import MappingProxyType
from typing import Annotated, Literal

# By channel; conversations are kept until their user deletes them, except stored responses that nobody goes on with.
ONE_SHOT_DAYS: Mapping[str, int] = MappingProxyType({"webhook": 7, "cron": 30, "api": 7, "responses": 30, "delegate": 30})


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """Where the gateway listens.  Without a key it answers its own user of this machine; with one, under its own names.

    `password` is for people at a browser, as `holdfast keys password` prints it.
    """

    host: Annotated[str, "The address to listen on; others than loopback need a key or a password."] = "127.0.0.1"
    port: Annotated[int, "The port to listen on."] = 8420
    api_key: Annotated[str, "A key that programs may show instead of one that was made for them."] = ""
    password: Annotated[str, "The hash of the password of people at a browser, as holdfast keys password prints it."] = ""
    allowed_hosts: Annotated[
        tuple[str, ...], "Further names that the gateway answers to, as that of a proxy before it."
    ] = ()
    guests: Annotated[
        Literal["refuse", "own"],
        "What programs of other users of this machine get without a key: nothing, or sessions of their own and no tool that "
        "touches it.",
    ] = "refuse"
    access_log: Annotated[bool, "Whether every request is a line in the log."] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreConfig:
    """`url` is "sqlite", which lives in the home folder, or postgresql://user@host/database."""

    url: Annotated[str, "Where everything is kept: sqlite in the home folder, or postgresql://user@host/database."] = (
        "sqlite"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayConfig:
    """How turns are run.  Times are seconds; a loop that stands still for `stall_timeout` is restarted, with 0 never."""

    drain_timeout: Annotated[float, "How many seconds running turns have to finish when the gateway stops."] = 30
    resume: Annotated[
        Literal["on_message", "auto"], "Whether a turn that was cut off goes on with the next message, or by itself."
    ] = "on_message"
    on_crash: Annotated[Literal["resume", "suspend"], "Whether a session goes on after a crash, or is suspended."] = "resume"
    busy: Annotated[
        Literal["queue", "interrupt", "steer", "reject"],
        "What becomes of a message that comes while a turn runs: wait, take its place, join it, or be refused.",
    ] = "queue"
    max_running: Annotated[int, "How many turns run at once."] = 256
    stall_timeout: Annotated[float, "After how many seconds of standing still the gateway restarts itself; 0 is never."] = 60


ResetChoice = Literal["none", "idle", "daily", "both"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionsConfig:
    """When a conversation gives way to a new one, and how long ended one-shot sessions are kept, in days by channel."""

    reset: Annotated[ResetChoice, "When a conversation gives way to a new one."] = "none"
    reset_by_channel: Annotated[Mapping[str, ResetChoice], "The same for single channels, by their name."] = field(
        default_factory=dict[str, "ResetChoice"]
    )
    idle_minutes: Annotated[float, "After how many minutes without a message a conversation is idle."] = 1440
    daily_at: Annotated[time, "At which time of day conversations give way, where they do so daily."] = time(4)
    retention_days: Annotated[Mapping[str, int], "How many days ended one-shot sessions are kept, by channel."] = field(
        default_factory=lambda: dict(ONE_SHOT_DAYS)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """Which model answers: `provider:model`.  Without one, the built-in demonstration does.  Times are seconds.

    `context_tokens` and the prices, in dollars per million tokens, are only needed for a model that Holdfast does not
    know; 0 is not known.  When the model cannot answer, those of `fallback` are asked in their order.
    """

    name: Annotated[str, "The model that answers, as provider:model; the built-in demonstration where it is empty."] = ""
    base_url: Annotated[str, "The address of the provider's API; its usual one where it is empty."] = ""
    api_key: Annotated[str, "The key that the provider asks for."] = ""
    api_key_env: Annotated[str, "The environment variable that holds the provider's key."] = ""
    fallback: Annotated[tuple[str, ...], "Models to ask, in this order, when the first cannot answer."] = ()
    context_tokens: Annotated[int, "How many tokens the model can read; 0 is what Holdfast knows of it."] = 0
    output_tokens_max: Annotated[int, "How many tokens an answer may have; 0 is what Holdfast knows of the model."] = 0
    input_price: Annotated[float, "What a million tokens read cost in dollars; 0 is what Holdfast knows of the model."] = 0
    output_price: Annotated[
        float, "What a million tokens written cost in dollars; 0 is what Holdfast knows of the model."
    ] = 0
    reasoning: Annotated[Literal["off", "low", "medium", "high"], "How much the model reasons before it answers."] = "off"
    stall_timeout: Annotated[float, "After how many seconds of silence a model is given up."] = 120
    retries: Annotated[
        int, "How often a model is asked again that failed, before the next one is asked or the turn waits."
    ] = 3
    wait: Annotated[
        float, "How many seconds a turn waits for a model that cannot answer, except for requests that a client waits for."
    ] = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderConfig:
    """A provider by a name of one's own, for `model.name` and `model.fallback`; `wire` is the format that it speaks."""

    wire: Annotated[Literal["openai", "anthropic"], "The format that the provider speaks."] = "openai"
    base_url: Annotated[str, "The address of its API."] = ""
    api_key: Annotated[str, "The key that it asks for."] = ""
    api_key_env: Annotated[str, "The environment variable that holds its key."] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """How the agent works.  Folders are relative to the home folder; `compact_at` is a part of the model's context.

    `context_files` are looked for in the workspace; every folder below `skills` with a SKILL.md is a skill.
    """

    persona: Annotated[str, "Who the agent is: a text, or the name of a file in the home folder."] = ""
    workspace: Annotated[str, "The folder that the agent works in."] = "workspace"
    context_files: Annotated[tuple[str, ...], "Files of the workspace that the agent always reads."] = ("AGENTS.md",)
    skills: Annotated[str, "The folder with the agent's skills."] = "skills"
    steps_max: Annotated[int, "How many steps a turn may take before it ends and says so."] = 50
    compact_at: Annotated[float, "How full the model's context may be, from 0.1 to 1, before older turns are summed up."] = (
        0.8
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetConfig:
    """How much may be used before a person is asked, in tokens and dollars: in one turn, in one session, in a day."""

    turn_tokens: Annotated[int, "How many tokens a turn may use before a person is asked; 0 is any number."] = 0
    session_tokens: Annotated[int, "How many tokens a session may use before a person is asked; 0 is any number."] = 0
    day_tokens: Annotated[int, "How many tokens may be used in a day before a person is asked; 0 is any number."] = 0
    turn_usd: Annotated[float, "How many dollars a turn may cost before a person is asked; 0 is any number."] = 0
    session_usd: Annotated[float, "How many dollars a session may cost before a person is asked; 0 is any number."] = 0
    day_usd: Annotated[float, "How many dollars a day may cost before a person is asked; 0 is any number."] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryConfig:
    """Who remembers: "builtin", "http" or "openviking" at a `url`, the name of a plugin, or "none".  Times are seconds.

    A conversation is committed when it is over, or after `idle_minutes` without a message.  `model`, a `provider:model`,
    extracts what the builtin remembers; without one, the model that answers does.
    """

    provider: Annotated[str, "Who remembers: builtin, http, openviking, the name of a plugin, or none."] = "builtin"
    url: Annotated[str, "Where the provider of memory answers."] = ""
    api_key: Annotated[str, "The key that the provider of memory asks for."] = ""
    api_key_env: Annotated[str, "The environment variable that holds the key of the provider of memory."] = ""
    model: Annotated[
        str, "The model that extracts what is remembered, as provider:model; the one that answers where it is empty."
    ] = ""
    recall_timeout: Annotated[float, "How many seconds an answer may wait for what is remembered."] = 2
    recall_limit: Annotated[int, "How many memories a turn is told at most."] = 8
    commit_timeout: Annotated[float, "After how many seconds remembering a conversation is given up and tried again."] = 120
    idle_minutes: Annotated[float, "After how many minutes without a message a conversation is remembered."] = 30
    live_sessions: Annotated[int, "How many conversations are kept open for memory at once."] = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalConfig:
    """Commands.  `approval` is for those that no sandbox confines, and for new hosts.  Times are seconds.

    `deny` are patterns that nothing allows: a hint, since a command can be spelt in many ways.  The settings behind
    `approval_expires` are about the sandbox; a limit of 0 is none.
    """

    approval: Annotated[
        Literal["ask", "smart", "deny", "allow"],
        "What happens to commands that no sandbox confines, and to those that want to reach a new host.",
    ] = "ask"
    sandbox: Annotated[Literal["auto", "on", "off"], "Whether commands run in a sandbox."] = "auto"
    deny: Annotated[tuple[str, ...], "Patterns of commands that nothing allows; a hint, which a script can go around."] = ()
    hosts: Annotated[
        tuple[str, ...], "Hosts that commands and fetch may always reach: example.com, example.com:8080 or *.example.com."
    ] = ()
    timeout: Annotated[float, "After how many seconds a command is ended."] = 120
    approval_expires: Annotated[float, "After how many seconds a question about a command has expired."] = 86_400
    readable: Annotated[tuple[str, ...], "Further folders and files that commands can read."] = ()
    writable: Annotated[tuple[str, ...], "Further folders that commands can change."] = ()
    processes_max: Annotated[int, "How many processes and threads a command may have at once; 0 is any number."] = 1024
    memory_max_mb: Annotated[int, "How many megabytes of memory a process of a command may use; 0 is any number."] = 8192
    file_max_mb: Annotated[int, "How many megabytes a file that a command writes may have; 0 is any number."] = 16_384
    files_max: Annotated[int, "How many files a process of a command may have open; 0 is any number."] = 8192
    cpu_max: Annotated[int, "How many seconds of CPU time a process of a command may use; 0 is any number."] = 14_400


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchConfig:
    """Pages from the web.  Addresses of this machine or its network only under the names of `allow_hosts`."""

    allow_hosts: Annotated[tuple[str, ...], "Hosts of this machine or its network that the agent may fetch from."] = ()
    timeout: Annotated[float, "After how many seconds fetching a page is given up."] = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSearchConfig:
    """Who searches the web: "searxng" at a `url`, "brave" with a key, the name of a plugin, or nobody."""

    provider: Annotated[str, "Who searches the web: searxng, brave, the name of a plugin, or nobody."] = ""
    url: Annotated[str, "Where the search engine answers."] = ""
    api_key: Annotated[str, "The key that the search engine asks for."] = ""
    api_key_env: Annotated[str, "The environment variable that holds the key of the search engine."] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegateConfig:
    """How deep tasks may be handed on, and how many may be at work for one turn."""

    depth_max: Annotated[int, "How deep tasks may be handed on."] = 2
    children_max: Annotated[int, "How many tasks of one turn may be at work at once."] = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsConfig:
    """What the agent can do.

    It does all of it for the operator and for `trusted_owners`; others who have a key get what stays with their own data.
    """

    disabled: Annotated[tuple[str, ...], "Tools that the agent does not have."] = ()
    trusted_owners: Annotated[tuple[str, ...], "Others who have a key, and may use the tools that touch this machine."] = ()
    terminal: TerminalConfig = field(default_factory=TerminalConfig)
    fetch: FetchConfig = field(default_factory=FetchConfig)
    web_search: WebSearchConfig = field(default_factory=WebSearchConfig)
    delegate: DelegateConfig = field(default_factory=DelegateConfig)


@dataclass(frozen=True, slots=True, kw_only=True)
class McpConfig:
    """One MCP server: a `command` to start, or a `url` to reach.  `approval` is for tools that are not read-only."""

    command: Annotated[tuple[str, ...], "The program to start, with its arguments."] = ()
    env: Annotated[Mapping[str, str], "Variables that the program is given."] = field(default_factory=dict[str, str])
    url: Annotated[str, "The server to reach."] = ""
    headers: Annotated[Mapping[str, str], "Headers that the server is sent."] = field(default_factory=dict[str, str])
    timeout: Annotated[float, "After how many seconds a call is given up."] = 60
    approval: Annotated[Literal["ask", "allow"], "Whether somebody is asked before tools that are not read-only run."] = (
        "ask"
    )
    sandbox: Annotated[bool, "Whether the program runs in a sandbox, with a folder of its own."] = True
    hosts: Annotated[tuple[str, ...], "Hosts that the program may reach from its sandbox."] = ()
    readable: Annotated[tuple[str, ...], "Folders and files that the program can read from its sandbox."] = ()
    writable: Annotated[tuple[str, ...], "Folders that the program can change from its sandbox."] = ()


SchemeChoice = Literal["any", "standard", "github", "gitlab", "slack", "stripe", "hmac"]
BODY_LIMIT = 1_048_576


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteConfig:
    """A webhook route.  `prompt` is a template over the payload; `rate_limit` is deliveries per minute, with 0 any number.

    Only `events`, and what `filters` let through, start a turn.  With `deliver_only` the text of the template is sent as it
    is, without an agent.  `scheme` narrows which signatures are taken.
    """

    secret: Annotated[str, "What deliveries are signed with."] = ""
    secret_env: Annotated[str, "The environment variable that holds that secret."] = ""
    prompt: Annotated[str, "The template that makes a prompt of a delivery."] = "{__raw__}"
    deliver: Annotated[str, "Where the answer goes."] = "log"
    deliver_only: Annotated[bool, "Whether the text of the template is sent as it is, without an agent."] = False
    events: Annotated[tuple[str, ...], "The events that start a turn; all where none is named."] = ()
    filters: Annotated[object, "What a delivery must be like to start a turn."] = None
    enabled: Annotated[bool, "Whether deliveries are taken."] = True
    rate_limit: Annotated[int, "How many deliveries are taken per minute; 0 is any number."] = 0
    body_limit: Annotated[int, "How many bytes a delivery may have."] = BODY_LIMIT
    scheme: Annotated[SchemeChoice, "Which signatures are taken."] = "any"
    insecure_no_auth: Annotated[bool, "Whether deliveries of this machine need no signature."] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookConfig:
    """Routes by name: each is at /webhooks/NAME."""

    routes: Mapping[str, RouteConfig] = field(default_factory=dict[str, RouteConfig])


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlConfig:
    """Answers that are sent to `url:` targets.  Without a `secret`, one is made up; see `holdfast webhooks secret`."""

    secret: Annotated[str, "What answers to url: targets are signed with; one is made up where it is empty."] = ""
    allow_hosts: Annotated[tuple[str, ...], "Hosts of this machine or its network that answers may be sent to."] = ()
    timeout: Annotated[float, "After how many seconds sending an answer is given up."] = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class GithubConfig:
    """Answers that are sent as comments to `github_comment:OWNER/REPOSITORY#NUMBER`."""

    token_env: Annotated[str, "The environment variable that holds the token for comments on GitHub."] = "GITHUB_TOKEN"  # noqa: S105 - The name of a variable.
    base_url: Annotated[str, "The address of GitHub's API."] = "https://api.github.com"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelsConfig:
    """Ways in and out besides the command line and the API."""

    webhook: WebhookConfig = field(default_factory=WebhookConfig)
    url: UrlConfig = field(default_factory=UrlConfig)
    github: GithubConfig = field(default_factory=GithubConfig)


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsConfig:
    """How much of the gateway others may use: each owner of keys but the operator, and each address.  0 is any number."""

    running: Annotated[int, "How many turns of one owner run at once, except the operator's; 0 is any number."] = 32
    queued: Annotated[int, "How many messages of one owner may wait, except the operator's; 0 is any number."] = 200
    sessions: Annotated[int, "How many sessions one owner may have, except the operator; 0 is any number."] = 2_000
    bytes: Annotated[int, "How many bytes the messages of one owner may take, except the operator's; 0 is any number."] = (
        268_435_456
    )
    jobs: Annotated[int, "How many jobs one owner may have, except the operator; 0 is any number."] = 50
    connections: Annotated[
        int, "How many connections one address, or one user of this machine, may have open at once; 0 is any number."
    ] = 1_500


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
    limits: LimitsConfig = field(default_factory=LimitsConfig)
