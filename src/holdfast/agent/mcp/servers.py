"""The MCP servers of this gateway: a task per server keeps it connected."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from holdfast.agent.mcp.confinement import Confined, Confinement
from holdfast.agent.mcp.connection import OfferedTool, ServerConnection
from holdfast.agent.mcp.naming import SERVER_NAME, SERVER_NAME_MAX_CHARS, tool_names
from holdfast.agent.mcp.schemas import ANYTHING, sanitised
from holdfast.agent.mcp.tool import McpTool
from holdfast.agent.tools.port import Tool
from holdfast.clock import Clock
from holdfast.config import McpConfig
from holdfast.core.effects import Effect
from holdfast.errors import ConfigInvalid, OutcomeUnknown, Rejected, Unavailable

if TYPE_CHECKING:
    # Importing it takes a second.
    from holdfast.agent.mcp import client

log = logging.getLogger(__name__)

TOOLS_MAX = 128
CALLS_MAX = 64
DESCRIPTION_MAX_CHARS = 2_000
# A server may have to be downloaded before it answers for the first time.
CONNECT_MIN_S = 30
WAIT_FIRST_MS = 500
WAIT_MAX_MS = 60_000
# After a connection that lasted this long, the backoff starts over.
HEALTHY_MS = 60_000
# The pause between two refreshes of a list of tools.
REFRESH_PAUSE_MS = 500
# A server behind a URL may vanish unnoticed, so its list is refreshed this often.
LOOK_MS = 60_000
_REASON_MAX_CHARS = 1_000
_MISSING = "to use MCP servers, run in the folder of the source: pip install '.[mcp]'"


class McpServers:
    """A source of tools.  `environment` is the environment of the servers, already without secrets."""

    def __init__(
        self,
        config: Mapping[str, McpConfig],
        clock: Clock,
        environment: Mapping[str, str],
        connect_min_s: float = CONNECT_MIN_S,
        *,
        confinement: Confinement | None = None,
    ) -> None:
        for name, node in config.items():
            if problem := wrong_with(name, node):
                raise ConfigInvalid(f"mcp.{name}: {problem}")
        self._servers = [
            _Server(name, node, clock, environment, connect_min_s, confinement) for name, node in config.items()
        ]

    async def run(self) -> None:
        """Keep every server connected until cancelled."""
        async with asyncio.TaskGroup() as group:
            for server in self._servers:
                group.create_task(server.run(), name=f"mcp:{server.name}")

    async def tools(self) -> Sequence[Tool]:
        """Return the tools of all connected servers."""
        return [tool for server in self._servers for tool in server.tools]

    @property
    def status(self) -> Mapping[str, str]:
        """The status of each server, in words."""
        return {server.name: server.status for server in self._servers}


def wrong_with(name: str, config: McpConfig) -> str | None:
    """Return the first problem of a server's configuration."""
    if not SERVER_NAME.fullmatch(name) or len(name) > SERVER_NAME_MAX_CHARS:
        return (
            f"a name is 1 to {SERVER_NAME_MAX_CHARS} letters, digits, - and single _, with no _ at its beginning or end, "
            "because it begins the name of each tool"
        )
    if bool(config.command) == bool(config.url):
        return "needs either a command to start or a url to reach, and not both"
    if config.command and (not config.command[0] or any("\0" in part for part in config.command)):
        return "command must begin with a program, and have no NUL in it"
    if any(not key or "=" in key or "\0" in key + value for key, value in config.env.items()):
        return "env must have names without =, and no NUL"
    if config.url and (problem := _wrong_with_url(config.url)):
        return problem
    if any(not key.isascii() or "\n" in key + value or "\r" in key + value for key, value in config.headers.items()):
        return "headers must be of one line each"
    if config.command and config.headers:
        return "headers are only for a url"
    if config.url and config.env:
        return "env is only for a command"
    return None if config.timeout > 0 else "timeout must be more than 0"


def _wrong_with_url(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        return f"url is not an address: {error}"
    return None if parts.scheme in {"http", "https"} and parts.hostname else "url must begin with http:// or https://"


class _Server:
    """One server, and its connection if there is one."""

    def __init__(
        self,
        name: str,
        config: McpConfig,
        clock: Clock,
        environment: Mapping[str, str],
        connect_min_s: float,
        confinement: Confinement | None,
    ) -> None:
        self.name = name
        self.tools: Sequence[McpTool] = ()
        self._config = config
        self._clock = clock
        self._environment = environment
        self._confinement = confinement
        self._remark = ""
        self._connect_s = max(config.timeout, connect_min_s)
        self._connection: ServerConnection | None = None
        self._calls = 0
        self._absence = "it has not been reached yet"

    @property
    def status(self) -> str:
        return f"connected, {len(self.tools)} tools" if self._connection else f"not connected: {self._absence}"

    async def run(self) -> None:
        """Stay connected; reconnect with a growing backoff."""
        wait_ms, told = WAIT_FIRST_MS, ""
        while True:
            began = self._clock.monotonic_ms()
            self._absence = await self._live() + self._remark
            if _is_stopped():
                # A connection error during cancellation may hide the cancellation.
                raise asyncio.CancelledError
            if self._clock.monotonic_ms() - began >= HEALTHY_MS:
                wait_ms = WAIT_FIRST_MS
            # The same problem is logged as a warning once.
            level = logging.DEBUG if told == self._absence else logging.WARNING
            log.log(level, "MCP server %s is not connected: %s; trying again in %s ms", self.name, self._absence, wait_ms)
            told = self._absence
            await self._clock.sleep_ms(wait_ms)
            wait_ms = min(wait_ms * 2, WAIT_MAX_MS)

    async def _live(self) -> str:
        """Connect, and return why the connection has ended."""
        try:
            mcp_client = cast("client", await asyncio.to_thread(importlib.import_module, "holdfast.agent.mcp.client"))
            async with asyncio.timeout(self._connect_s) as deadline:
                async with (
                    self._confined() as how,
                    mcp_client.connected(self.name, how.config, how.environment, self._clock) as connection,
                ):
                    self._take_tools(await connection.list_tools(TOOLS_MAX))
                    self._connection = connection
                    try:
                        deadline.reschedule(None)
                        log.info("MCP server %s is connected and has %s tools", self.name, len(self.tools))
                        await self._follow(connection)
                    except BaseException as error:
                        # Cleared before the connection is closed, which may take a while.
                        self._connection, self.tools, self._absence = None, (), _reason(error)
                        raise
        except TimeoutError:
            return f"it did not answer within {self._connect_s:g} s"
        except ImportError as error:
            return f"{error}; {_MISSING}"
        except asyncio.CancelledError:
            if _is_stopped():
                raise
            return "the connection was cut"
        except Exception as error:  # The edge to another program: none of its errors may end the task.
            return _reason(error)
        return "the connection has ended"

    @contextlib.asynccontextmanager
    async def _confined(self) -> AsyncGenerator[Confined]:
        """Yield how the server is started, and keep the hint about its sandbox."""
        if self._confinement is None:
            yield Confined(config=self._config, environment=self._environment)
            return
        async with self._confinement.around(self.name, self._config, self._environment) as how:
            try:
                yield how
            finally:
                self._remark = how.remark(self.name)

    async def _follow(self, connection: ServerConnection) -> None:
        """Refresh the list of tools whenever it may have changed.  Raises `ConnectionError` if that fails."""
        while True:
            await self._wait_until_stale(connection)
            connection.stale.clear()
            try:
                async with asyncio.timeout(self._config.timeout):
                    self._take_tools(await connection.list_tools(TOOLS_MAX))
            except TimeoutError:
                # A server may handle one request at a time; its running calls have their own timeout.
                if not self._calls:
                    raise ConnectionError(f"it did not answer within {self._config.timeout:g} s") from None
                connection.stale.set()
            await self._clock.sleep_ms(REFRESH_PAUSE_MS)

    async def _wait_until_stale(self, connection: ServerConnection) -> None:
        if self._config.command:
            await connection.stale.wait()
            return
        while not connection.stale.is_set():
            look = asyncio.ensure_future(self._clock.sleep_ms(LOOK_MS))
            heard = asyncio.ensure_future(connection.stale.wait())
            try:
                await asyncio.wait((look, heard), return_when=asyncio.FIRST_COMPLETED)
            finally:
                look.cancel()
                heard.cancel()
            if not self._calls:
                return

    def _take_tools(self, offered: Sequence[OfferedTool]) -> None:
        if len(offered) >= TOOLS_MAX > len(self.tools):
            log.warning("MCP server %s has %s tools or more; only so many are used", self.name, TOOLS_MAX)
        by_name = {each.name: each for each in offered if each.name.strip()}
        names = tool_names(self.name, list(by_name))
        self.tools = [self._tool(names[each.name], each) for each in by_name.values()]

    def _tool(self, name: str, offer: OfferedTool) -> McpTool:
        schema = sanitised(offer.schema)
        said = "".join(each if each.isprintable() or each == "\n" else " " for each in offer.description)
        return McpTool(
            name=name,
            description=f"(MCP server {self.name}) {said[:DESCRIPTION_MAX_CHARS].strip()}"
            + ("" if schema else "\nIts arguments are not described in a way that can be passed on."),
            schema=ANYTHING if schema is None else schema,
            effect=offer.effect,
            server=self.name,
            tool=offer.name,
            asks=self._config.approval == "ask",
            caller=self,
            clock=self._clock,
        )

    async def call(self, tool: str, args: Mapping[str, object], effect: Effect) -> str:
        """Call a tool.  The error says so if the outcome is unknown."""
        if (connection := self._connection) is None:
            raise Unavailable(f"the MCP server {self.name} is not connected: {self._absence}. Nothing was done; try later")
        if self._calls >= CALLS_MAX:
            raise Unavailable(
                f"the MCP server {self.name} has {CALLS_MAX} calls to answer already. Nothing was done; try later"
            )
        self._calls += 1
        try:
            return await connection.call(tool, args, self._config.timeout)
        except TimeoutError:
            raise self._unclear(tool, effect, f"did not answer within {self._config.timeout:g} s") from None
        except ConnectionError as error:
            raise self._unclear(tool, effect, f"was lost in the middle of the call ({_reason(error)})") from error
        except Unavailable as error:
            raise Unavailable(
                f"the MCP server {self.name} is not connected: {error}. Nothing was done; try later"
            ) from error
        except Rejected as error:
            raise Rejected(f"the MCP server {self.name} says that {tool} failed: {error}") from error
        finally:
            self._calls -= 1

    def _unclear(self, tool: str, effect: Effect, what: str) -> Unavailable | OutcomeUnknown:
        said = f"the MCP server {self.name} {what}"
        match effect:
            case Effect.PURE | Effect.KEYED:
                return Unavailable(f"{said}. Calling {tool} again with the same arguments is safe")
            case Effect.EFFECTFUL:
                return OutcomeUnknown(
                    f"{said}. The outcome of {tool} is unknown: it may have been done. "
                    "Find out before doing it again, and tell the person"
                )


def _is_stopped() -> bool:
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def _reason(error: BaseException) -> str:
    """Return the text of an error; of a group, that of the first."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return (str(error) or type(error).__name__)[:_REASON_MAX_CHARS]
