"""Connections made with the `mcp` package.  Importing it takes a second, so it is done in a thread and on demand."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import assert_never

import mcp_types
from mcp.client import Client
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError

from holdfast import __version__
from holdfast.agent.mcp import http
from holdfast.agent.mcp.connection import OfferedTool
from holdfast.agent.mcp.results import words
from holdfast.agent.mcp.stdio import StdioServer
from holdfast.clock import Clock
from holdfast.config import McpConfig
from holdfast.core.effects import Effect
from holdfast.errors import Rejected, Unavailable

PAGES_MAX = 50
# The pause before a lost subscription is renewed.
LISTEN_AGAIN_MS = 5_000
# Added to the timeout of a call, for a server that does not even read the request.
_WRITE_MARGIN_S = 2
_REASON_MAX_CHARS = 1_000
_RESULT: TypeAdapter[mcp_types.CallToolResult | mcp_types.InputRequiredResult] = TypeAdapter(
    mcp_types.CallToolResult | mcp_types.InputRequiredResult
)


@contextlib.asynccontextmanager
async def connected(
    name: str, config: McpConfig, environment: Mapping[str, str], clock: Clock
) -> AsyncGenerator[McpConnection]:
    """Connect to a server for as long as the context lasts.  Raises any error of the connection."""
    # The package logs session ids, and a traceback for every line that is not a message.
    logging.getLogger("mcp").setLevel(logging.CRITICAL)
    stale = asyncio.Event()
    server = StdioServer(name, config.command, {**environment, **config.env}, stale.set) if config.command else None
    transport = server.streams() if server else http.streams(config.url, config.headers, config.timeout)
    client = Client(
        transport,  # pyright: ignore[reportArgumentType] - Streams are a protocol there, and the package's own classes here.
        cache=None,
        read_timeout_seconds=config.timeout,
        message_handler=_ChangeListener(stale).hear,
        client_info=mcp_types.Implementation(name="holdfast", version=__version__),
    )
    try:
        async with client, asyncio.TaskGroup() as group:
            connection = McpConnection(client, server, stale)
            listener = group.create_task(connection.listen(clock))
            try:
                yield connection
            finally:
                listener.cancel()
    except Exception as error:
        if server and server.has_ended:
            raise ConnectionError(server.ending) from error
        raise


class _ChangeListener:
    """Handles notifications that the list of tools has changed."""

    def __init__(self, stale: asyncio.Event) -> None:
        self._stale = stale

    async def hear(self, message: mcp_types.ServerNotification | Exception) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification):
            self._stale.set()


class McpConnection:
    """A `ServerConnection` through the `mcp` package."""

    def __init__(self, client: Client, server: StdioServer | None, stale: asyncio.Event) -> None:
        self._client = client
        self._server = server
        self._stale = stale

    @property
    def stale(self) -> asyncio.Event:
        return self._stale

    async def list_tools(self, limit: int) -> Sequence[OfferedTool]:
        found: list[OfferedTool] = []
        cursor: str | None = None
        try:
            for _ in range(PAGES_MAX):
                page = await self._client.list_tools(cursor=cursor)
                found += map(_offer, page.tools)
                cursor = page.next_cursor
                if cursor is None or len(found) >= limit:
                    break
        except MCPError as error:
            raise ConnectionError(f"it does not list its tools: {_reason(error)}") from error
        except ValidationError as error:
            raise ConnectionError(f"its list of tools makes no sense: {_reason(error)}") from error
        return found[:limit]

    async def call(self, tool: str, args: Mapping[str, object], timeout_s: float) -> str:
        if self._server and self._server.has_ended:
            raise Unavailable(self._server.ending)
        params = mcp_types.CallToolRequestParams(name=tool, arguments=dict(args))
        try:
            async with asyncio.timeout(timeout_s + _WRITE_MARGIN_S):
                # Not `call_tool`: it would check the result against an untrusted schema, with patterns of any cost.
                result = await self._client.session.send_request(
                    mcp_types.CallToolRequest(params=params), _RESULT, request_read_timeout_seconds=timeout_s
                )
        except TimeoutError:
            self._stale.set()
            raise
        except MCPError as error:
            self._stale.set()
            raise _translated(error) from error
        except ValidationError as error:
            raise ConnectionError(f"its answer makes no sense: {_reason(error)}") from error
        return _read(result)

    async def listen(self, clock: Clock) -> None:
        """Subscribe to changes, on servers whose protocol requires it."""
        tools = self._client.server_capabilities.tools
        if self._client.protocol_version not in MODERN_PROTOCOL_VERSIONS or not (tools and tools.list_changed):
            return
        while True:
            with contextlib.suppress(SubscriptionLost, MCPError, TimeoutError):
                async with self._client.listen(tools_list_changed=True) as changes:
                    async for _ in changes:
                        self._stale.set()
            self._stale.set()
            await clock.sleep_ms(LISTEN_AGAIN_MS)


def _offer(tool: mcp_types.Tool) -> OfferedTool:
    hints = tool.annotations
    if hints and hints.read_only_hint:
        effect = Effect.PURE
    else:
        effect = Effect.KEYED if hints and hints.idempotent_hint else Effect.EFFECTFUL
    described = tool.description or tool.title or (hints.title if hints else None) or ""
    return OfferedTool(name=tool.name, description=described, schema=tool.input_schema, effect=effect)


def _translated(error: MCPError) -> Exception:
    """Translate an error of the protocol."""
    match error.code:
        case http.UNREACHABLE:
            return Unavailable(_reason(error))
        case mcp_types.REQUEST_TIMEOUT:
            return TimeoutError()
        case mcp_types.CONNECTION_CLOSED | mcp_types.PARSE_ERROR:
            return ConnectionError(_reason(error))
        case _:
            return Rejected(_reason(error))


def _read(result: mcp_types.CallToolResult | mcp_types.InputRequiredResult) -> str:
    match result:
        case mcp_types.CallToolResult(is_error=False):
            return words(result)
        case mcp_types.CallToolResult():
            raise Rejected(words(result))
        case mcp_types.InputRequiredResult():
            raise Rejected("it asks for further input before it does anything, which is not supported here")
        case _:
            assert_never(result)


def _reason(error: Exception) -> str:
    return str(error)[:_REASON_MAX_CHARS]
