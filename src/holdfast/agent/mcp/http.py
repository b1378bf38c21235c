"""An MCP server behind a URL: whatever goes wrong with one request is told to that request alone, bounded and in words."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from http import HTTPStatus

import httpx2
import mcp_types
from mcp.client.streamable_http import streamable_http_client

from holdfast.agent.mcp.pipe import MESSAGE_MAX_BYTES

CONNECT_MAX_S = 10
# The code of our own for a request that has never left.
UNREACHABLE = -32_050
_READ_MARGIN_S = 5
# A server in between answers so when it does not know what became of a request.
_UNKNOWN = frozenset({HTTPStatus.INTERNAL_SERVER_ERROR, HTTPStatus.BAD_GATEWAY, HTTPStatus.GATEWAY_TIMEOUT})


@contextlib.asynccontextmanager
async def streams(url: str, headers: Mapping[str, str], timeout_s: float) -> AsyncGenerator[tuple[object, object]]:
    """Reach a server for as long as the context lasts."""
    # Reading the certificates of the machine takes a while.
    trust = await asyncio.to_thread(ssl.create_default_context) if url.startswith("https:") else False
    transport = Plain(httpx2.AsyncHTTPTransport(verify=trust))
    timeout = httpx2.Timeout(CONNECT_MAX_S, read=timeout_s + _READ_MARGIN_S, write=timeout_s)
    # A compressed answer could be of any size.
    sent = {**headers, "accept-encoding": "identity"}
    async with (
        httpx2.AsyncClient(transport=transport, headers=sent, timeout=timeout) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=MESSAGE_MAX_BYTES) as both,
    ):
        yield both


class Plain(httpx2.AsyncBaseTransport):
    """Gives every failed request an answer that names the reason: the client would drop the whole connection for it."""

    def __init__(self, inner: httpx2.AsyncHTTPTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET":
            # The stream of notifications may be silent for as long as it likes.
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
            return _refusal(HTTPStatus.BAD_GATEWAY, mcp_types.CONNECTION_CLOSED, "it answers compressed, unasked")
        # Without a session, "not found" and its like are how an older server says that it does not know a method.
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
    """A body that ends in an error rather than never."""

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
