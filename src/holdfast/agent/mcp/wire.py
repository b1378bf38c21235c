"""A connection made with the `mcp` package.  Importing it takes a second: it is done in a thread, and only when needed."""

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
from holdfast.agent.mcp.link import Offer
from holdfast.agent.mcp.pipe import Pipe
from holdfast.agent.mcp.results import words
from holdfast.clock import Clock
from holdfast.config import McpConfig
from holdfast.core.effects import Effect
from holdfast.errors import Rejected, Unavailable

PAGES_MAX = 50
# How long a subscription that was lost is left alone.
LISTEN_AGAIN_MS = 5_000
# Beyond the time for the answer: for a server that does not even take the question.
_WRITE_MARGIN_S = 2
_REASON_MAX_CHARS = 1_000
_RESULT: TypeAdapter[mcp_types.CallToolResult | mcp_types.InputRequiredResult] = TypeAdapter(
    mcp_types.CallToolResult | mcp_types.InputRequiredResult
)


@contextlib.asynccontextmanager
async def connected(name: str, config: McpConfig, environment: Mapping[str, str], clock: Clock) -> AsyncGenerator[WireLink]:
    """Connect to a server for as long as the context lasts.  Raises whatever goes wrong."""
    # It logs the ids of sessions, and every line that is no message with its traceback.
    logging.getLogger("mcp").setLevel(logging.CRITICAL)
    doubted = asyncio.Event()
    pipe = Pipe(name, config.command, {**environment, **config.env}, doubted.set) if config.command else None
    transport = pipe.streams() if pipe else http.streams(config.url, config.headers, config.timeout)
    client = Client(
        transport,  # pyright: ignore[reportArgumentType] - Streams are a protocol there, and the package's own classes here.
        cache=None,
        read_timeout_seconds=config.timeout,
        message_handler=_Ear(doubted).hear,
        client_info=mcp_types.Implementation(name="holdfast", version=__version__),
    )
    try:
        async with client, asyncio.TaskGroup() as group:
            link = WireLink(client, pipe, doubted)
            listener = group.create_task(link.listen(clock))
            try:
                yield link
            finally:
                listener.cancel()
    except Exception as error:
        if pipe and pipe.has_ended:
            raise ConnectionError(pipe.fate) from error
        raise


class _Ear:
    """Hears of lists that have changed."""

    def __init__(self, doubted: asyncio.Event) -> None:
        self._doubted = doubted

    async def hear(self, message: mcp_types.ServerNotification | Exception) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification):
            self._doubted.set()


class WireLink:
    """A `Link`."""

    def __init__(self, client: Client, pipe: Pipe | None, doubted: asyncio.Event) -> None:
        self._client = client
        self._pipe = pipe
        self._doubted = doubted

    @property
    def doubted(self) -> asyncio.Event:
        return self._doubted

    async def offers(self, limit: int) -> Sequence[Offer]:
        found: list[Offer] = []
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
        if self._pipe and self._pipe.has_ended:
            raise Unavailable(self._pipe.fate)
        params = mcp_types.CallToolRequestParams(name=tool, arguments=dict(args))
        try:
            async with asyncio.timeout(timeout_s + _WRITE_MARGIN_S):
                # Not `call_tool`: it would check the result against a stranger's schema, with patterns of any cost.
                result = await self._client.session.send_request(
                    mcp_types.CallToolRequest(params=params), _RESULT, request_read_timeout_seconds=timeout_s
                )
        except TimeoutError:
            self._doubted.set()
            raise
        except MCPError as error:
            self._doubted.set()
            raise _translated(error) from error
        except ValidationError as error:
            raise ConnectionError(f"its answer makes no sense: {_reason(error)}") from error
        return _read(result)

    async def listen(self, clock: Clock) -> None:
        """Hear of changes where they have to be asked for."""
        tools = self._client.server_capabilities.tools
        if self._client.protocol_version not in MODERN_PROTOCOL_VERSIONS or not (tools and tools.list_changed):
            return
        while True:
            with contextlib.suppress(SubscriptionLost, MCPError, TimeoutError):
                async with self._client.listen(tools_list_changed=True) as changes:
                    async for _ in changes:
                        self._doubted.set()
            self._doubted.set()
            await clock.sleep_ms(LISTEN_AGAIN_MS)


def _offer(tool: mcp_types.Tool) -> Offer:
    hints = tool.annotations
    if hints and hints.read_only_hint:
        effect = Effect.PURE
    else:
        effect = Effect.KEYED if hints and hints.idempotent_hint else Effect.EFFECTFUL
    described = tool.description or tool.title or (hints.title if hints else None) or ""
    return Offer(name=tool.name, description=described, schema=tool.input_schema, effect=effect)


def _translated(error: MCPError) -> Exception:
    """Return what an error of the protocol says about the call."""
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
