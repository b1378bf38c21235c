"""The HTTP transport of MCP servers: an error of one request fails that request alone, and every body is bounded."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from http import HTTPStatus

import httpx2
import mcp_types
from mcp.client.streamable_http import streamable_http_client

from holdfast.agent.mcp.stdio import MESSAGE_MAX_BYTES

CONNECT_MAX_S = 10
# Our own error code for a request that was never sent.
UNREACHABLE = -32_050
_READ_MARGIN_S = 5
# With these, a proxy says that the outcome of the request is unknown.
_UNKNOWN = frozenset({HTTPStatus.INTERNAL_SERVER_ERROR, HTTPStatus.BAD_GATEWAY, HTTPStatus.GATEWAY_TIMEOUT})


@contextlib.asynccontextmanager
async def streams(url: str, headers: Mapping[str, str], timeout_s: float) -> AsyncGenerator[tuple[object, object]]:
    """Open the streams to a server for as long as the context lasts."""
    # Reading the system's certificates takes too long for the event loop.
    trust = await asyncio.to_thread(ssl.create_default_context) if url.startswith("https:") else False
    transport = ErrorTransport(httpx2.AsyncHTTPTransport(verify=trust))
    timeout = httpx2.Timeout(CONNECT_MAX_S, read=timeout_s + _READ_MARGIN_S, write=timeout_s)
    # A compressed response could have any size.
    sent = {**headers, "accept-encoding": "identity"}
    async with (
        httpx2.AsyncClient(transport=transport, headers=sent, timeout=timeout) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=MESSAGE_MAX_BYTES) as both,
    ):
        yield both


class ErrorTransport(httpx2.AsyncBaseTransport):
    """Answers a failed request with a JSON-RPC error: the client would drop the whole connection for an exception."""

    def __init__(self, inner: httpx2.AsyncHTTPTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET":
            # The stream of notifications may be silent for any time.
            request.extensions = {**request.extensions, "timeout": {**request.extensions["timeout"], "read": None}}
        try:
            response = await self._inner.handle_async_request(request)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
            return _refusal(HTTPStatus.SERVICE_UNAVAILABLE, UNREACHABLE, f"cannot be reached: {_named(error)}")
        except httpx2.TransportError as error:
            return _refusal(HTTPStatus.BAD_GATEWAY, mcp_types.CONNECTION_CLOSED, _named(error))
        return await self._bounded(response)

    async def _bounded(self, response: httpx2.Response) -> httpx2.Response:
        kind = response.headers.get("content-type", "").lower()
        if "content-encoding" in response.headers:
            await response.aclose()
            return _refusal(
                HTTPStatus.BAD_GATEWAY, mcp_types.CONNECTION_CLOSED, "it answers compressed, which was not requested"
            )
        # Without a session, an older server answers an unknown method with "not found" or the like.
        if response.status_code >= HTTPStatus.BAD_REQUEST and not kind.startswith("application/json"):
            if response.status_code == HTTPStatus.NOT_FOUND:
                return response
            await response.aclose()
            code = mcp_types.CONNECTION_CLOSED if response.status_code in _UNKNOWN else mcp_types.INVALID_REQUEST
            return _refusal(response.status_code, code, f"it answers with HTTP status {response.status_code}")
        if kind.startswith("application/json") and isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _Bounded(response.stream)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Bounded(httpx2.AsyncByteStream):
    """A body that raises an error when it exceeds the size limit."""

    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._inner:
            size += len(chunk)
            if size > MESSAGE_MAX_BYTES:
                raise httpx2.StreamError(f"it sent a message of more than {MESSAGE_MAX_BYTES} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


def _refusal(status: int, code: int, message: str) -> httpx2.Response:
    return httpx2.Response(status, json={"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}})


def _named(error: httpx2.TransportError) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
