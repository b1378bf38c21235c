"""Problems: settings that have the right type but cannot work."""

from __future__ import annotations

import functools
import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from urllib.parse import urlsplit

from holdfast import configfile
from holdfast.config.secrecy import addresses, key_variables, signing_weakness, weakness
from holdfast.config.tree import AgentConfig, Config, MemoryConfig, ModelConfig, RouteConfig, ServerConfig, ToolsConfig
from holdfast.passwords import is_usable

Problems = Iterable[tuple[configfile.Where, str]]

PORT_MAX = 65_535
COMPACT_AT_MIN = 0.1
# Memory providers that are reached at a URL.
BY_ADDRESS = frozenset({"http", "openviking"})
RECALL_MAX_S = 2
RECALL_LIMIT_MAX = 100
# Names of MCP servers and providers become parts of the names of tools and models.
_OWN_NAME = re.compile(r"[a-zA-Z0-9_-]{1,32}")
# A host name or an IP address (IPv6 also without brackets), with an optional port.
_HOST = re.compile(r"[^\s/:@*\[\]]+(?::\d+)?|\[[0-9a-fA-F:.]+\](?::\d+)?|[0-9a-fA-F:.]*::?[0-9a-fA-F:.]*")
_REACHED = re.compile(r"(\*\.)?[^\s/:@*\[\]]+(?::\d+)?|\[[0-9a-fA-F:.]+\](?::\d+)?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def problems(config: Config) -> Problems:
    """Yield each problem with the path of its setting."""
    yield from ((("server", key), problem) for key, problem in wrong_with(config.server).items())
    try:
        # The port is only checked when it is read.
        _ = urlsplit(config.store.url).port
    except ValueError as error:
        yield ("store", "url"), f"is not a valid URL: {error}"
    if config.gateway.max_running < 1:
        yield ("gateway", "max_running"), "must be 1 or more, or no message would ever be answered"
    yield from _model_problems(config.model)
    yield from _memory_problems(config.memory)
    yield from _agent_problems(config.agent, config.tools)
    yield from _named_problems(config)
    for name, route in config.channels.webhook.routes.items():
        for key, problem in wrong_with_route(route, config.server.host).items():
            yield ("channels", "webhook", "routes", name, key), problem
    yield from _account_problems(config)
    if not config.channels.url.timeout:
        yield ("channels", "url", "timeout"), "must be more than 0, or nothing could ever be sent"
    for path, address in addresses(config).items():
        if address and not _is_web_address(address):
            yield path, "must be an address that begins with http:// or https://"
    for path, names in _hosts(config).items():
        for name in names:
            if not _HOST.fullmatch(name):
                yield path, f'{name!r} must be a name or an address alone, with an optional port, like "agent.example.org"'
    yield from _sandbox_problems(config)
    for path, variable in key_variables(config).items():
        if not _VARIABLE.fullmatch(variable):
            # The value may be the key itself, so the message must not show it.
            yield path, 'must be the name of an environment variable, like "OPENAI_API_KEY", not the key itself'


def _account_problems(config: Config) -> Iterator[tuple[configfile.Where, str]]:
    for name, account in config.channels.accounts.items():
        if not _OWN_NAME.fullmatch(name):
            yield ("channels", name), "must be named with letters, digits, - and _ only, 32 at most"
        if "*" in account.allow:
            yield ("channels", name, "allow"), "would make everybody the operator; name user ids, others get a pairing code"
        yield from ((("channels", name, key), problem) for key, problem in account.problems().items())


def _hosts(config: Config) -> Mapping[configfile.Where, Sequence[str]]:
    return {
        ("server", "allowed_hosts"): config.server.allowed_hosts,
        ("tools", "fetch", "allow_hosts"): config.tools.fetch.allow_hosts,
        ("channels", "url", "allow_hosts"): config.channels.url.allow_hosts,
    }


def _sandbox_problems(config: Config) -> Iterator[tuple[configfile.Where, str]]:
    for path, names in _reached(config).items():
        for name in names:
            if not _REACHED.fullmatch(name):
                yield path, f'{name!r} must be a host alone, with an optional port, like "pypi.org" or "*.example.org:8443"'
    for path, names in _places(config).items():
        for name in names:
            if not name.startswith(("/", "~/")):
                yield path, f"{name!r} must be an absolute path, which begins with / or ~/"


def _reached(config: Config) -> Mapping[configfile.Where, Sequence[str]]:
    servers = {("mcp", name, "hosts"): server.hosts for name, server in config.mcp.items()}
    return {("tools", "terminal", "hosts"): config.tools.terminal.hosts, **servers}


def _places(config: Config) -> Mapping[configfile.Where, Sequence[str]]:
    terminal = config.tools.terminal
    found: dict[configfile.Where, Sequence[str]] = {
        ("tools", "terminal", "readable"): terminal.readable,
        ("tools", "terminal", "writable"): terminal.writable,
    }
    for name, server in config.mcp.items():
        found |= {("mcp", name, "readable"): server.readable, ("mcp", name, "writable"): server.writable}
    return found


def _model_problems(model: ModelConfig) -> Iterator[tuple[configfile.Where, str]]:
    more = [("fallback", each) for each in model.fallback] + [("choices", each) for each in model.choices]
    for key, name in (("name", model.name), *more):
        provider, _, rest = name.partition(":")
        if (name or key != "name") and not (provider.strip() and rest.strip()):
            yield ("model", key), f'{name!r} must be provider:model, like "openai:gpt-5"'
    for key in ("fallback", "choices"):
        if getattr(model, key) and not model.name:
            yield ("model", key), "needs model.name, the model that is asked first"
    if not model.stall_timeout:
        yield ("model", "stall_timeout"), "must be more than 0, or no model could ever answer"


def _memory_problems(memory: MemoryConfig) -> Iterator[tuple[configfile.Where, str]]:
    if not memory.provider.strip():
        yield ("memory", "provider"), 'is empty; "none" remembers nothing'
    if memory.provider in BY_ADDRESS and not memory.url:
        yield ("memory", "provider"), f"needs memory.url, the address at which {memory.provider} answers"
    yield from _memory_address_problems(memory)
    if memory.model and not all(part.strip() for part in memory.model.partition(":")):
        yield ("memory", "model"), f'{memory.model!r} must be provider:model, like "openai:gpt-5-mini"'
    if memory.recall_timeout > RECALL_MAX_S:
        yield ("memory", "recall_timeout"), f"must be {RECALL_MAX_S} or less: every answer may have to wait for it"
    if memory.recall_limit > RECALL_LIMIT_MAX:
        yield ("memory", "recall_limit"), f"must be {RECALL_LIMIT_MAX} or less: the model reads all of it at every turn"
    positive = {
        "recall_timeout": memory.recall_timeout,
        "commit_timeout": memory.commit_timeout,
        "idle_minutes": memory.idle_minutes,
        "live_sessions": memory.live_sessions,
    }
    yield from ((("memory", key), "must be more than 0") for key, number in positive.items() if not number)


def _memory_address_problems(memory: MemoryConfig) -> Iterator[tuple[configfile.Where, str]]:
    if not _is_web_address(memory.url):
        # `problems` reports an invalid URL itself.
        return
    parts = urlsplit(memory.url)
    if parts.query or parts.fragment:
        # The URL is part of the binding, which is public.
        yield ("memory", "url"), "must end before ? and #; a key belongs in memory.api_key_env"
    if (parts.username or parts.password) and (memory.api_key or memory.api_key_env):
        yield ("memory", "url"), "names a user although memory.api_key or memory.api_key_env is set; remove one of them"


def _agent_problems(agent: AgentConfig, tools: ToolsConfig) -> Iterator[tuple[configfile.Where, str]]:
    if agent.steps_max < 1:
        yield ("agent", "steps_max"), "must be 1 or more, or the agent could do nothing"
    if not COMPACT_AT_MIN <= agent.compact_at <= 1:
        yield ("agent", "compact_at"), f"must be between {COMPACT_AT_MIN} and 1: it is a part of the model's context"
    for name, seconds in (("terminal", tools.terminal.timeout), ("fetch", tools.fetch.timeout)):
        if not seconds:
            yield ("tools", name, "timeout"), "must be more than 0"
    if not tools.terminal.approval_expires:
        yield ("tools", "terminal", "approval_expires"), "must be more than 0, or no question could be answered in time"


def _named_problems(config: Config) -> Iterator[tuple[configfile.Where, str]]:
    """Yield what is wrong with providers and MCP servers, which the operator names."""
    for path in [("providers", name) for name in config.providers] + [("mcp", name) for name in config.mcp]:
        if not _OWN_NAME.fullmatch(path[-1]):
            yield path, "must be named with letters, digits, - and _ only, 32 at most"
    for name, server in config.mcp.items():
        if bool(server.command) == bool(server.url):
            yield ("mcp", name), "needs exactly one of command (a program to start) and url (a server to reach)"
        if not server.timeout:
            yield ("mcp", name, "timeout"), "must be more than 0"


def _is_web_address(address: str) -> bool:
    try:
        parts = urlsplit(address)
        # The port is only checked when it is read.
        _ = parts.port
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def wrong_with(server: ServerConfig) -> Mapping[str, str]:
    """Return what is wrong with the settings of the server, by key."""
    problems: dict[str, str] = {}
    if server.port > PORT_MAX:
        problems["port"] = f"must be {PORT_MAX} or less"
    if server.api_key and (problem := weakness(server.api_key)):
        problems["api_key"] = problem
    if server.password and not is_usable(server.password):
        problems["password"] = "must be a hash, not the password itself; make one with: holdfast keys password"  # noqa: S105 - No password.
    return problems


def wrong_with_route(route: RouteConfig, host: str) -> Mapping[str, str]:
    """Return what is wrong with a webhook route of a server that listens on `host`, by key."""
    problems: dict[str, str] = {}
    if route.secret and (problem := signing_weakness(route.secret)):
        problems["secret"] = problem
    if route.secret and route.secret_env:
        problems["secret_env"] = "names a second secret; remove one of them"  # noqa: S105 - No secret.
    if route.secret or route.secret_env:
        if route.insecure_no_auth:
            problems["insecure_no_auth"] = "accepts unsigned deliveries although there is a secret; remove one of them"
    elif not route.insecure_no_auth:
        unsigned = "or accept unsigned deliveries from this machine with insecure_no_auth = true"
        problems["secret"] = f"is missing; generate one, for example with: openssl rand -hex 24; {unsigned}"
    elif not is_loopback(host):
        problems["insecure_no_auth"] = (
            f"would accept deliveries from everyone who can reach {host!r}; give the route a secret"
        )
    return problems


def is_exposed(server: ServerConfig) -> bool:
    """Return whether a server that is not on loopback has neither a key nor a password."""
    return not is_loopback(server.host) and not server.api_key and not server.password


# Small, because a client chooses the host name and its length.
@functools.lru_cache(maxsize=32)
def is_loopback(host: str) -> bool:
    """Return whether a host can only be reached from this machine."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"
