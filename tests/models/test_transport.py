"""HTTP/1.1 as servers really speak it, byte by byte."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine

import httpx2
import pytest
import uvloop

from holdfast.agent.models import transport
from holdfast.agent.models.client import ModelClient
from holdfast.agent.models.failures import ModelEndpoint
from holdfast.agent.models.openai import OpenAI
from holdfast.agent.models.port import Model
from holdfast.errors import ModelUnavailable
from tests.models.scenes import FACTS, heard, scene, text_of

SAID = b'data: {"choices": [{"delta": {"content": "hello"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
LENGTH = b"Content-Length: %d\r\n\r\n" % len(SAID)
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


class Server:
    """Answers each request with the next of these replies; one that is None closes the connection unheard."""

    def __init__(self, *replies: bytes | None, closes: bool = False) -> None:
        self._replies = iter(replies)
        self._closes = closes
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def connections(self) -> int:
        return len(self._tasks)

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tasks.append(asyncio.create_task(self._serve(reader, writer)))

    async def left(self) -> None:
        """Return when every client has closed its connection."""
        await asyncio.wait(self._tasks)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        stops = (asyncio.IncompleteReadError, ConnectionError, StopIteration, asyncio.CancelledError)
        with contextlib.suppress(*stops):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
                await reader.readexactly(int(length.partition(b":")[2]))
                if (reply := next(self._replies)) is None:
                    break
                writer.write(reply)
                await writer.drain()
                if self._closes:
                    break
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


@contextlib.asynccontextmanager
async def talking_to(server: Server) -> AsyncIterator[Model]:
    client = ModelClient()
    async with await asyncio.start_server(server.accept, "127.0.0.1", 0) as listening:
        url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1/chat/completions"
        endpoint = ModelEndpoint(name="here:m", url=url, headers={}, stall_timeout_s=5)
        try:
            yield OpenAI(client=client, endpoint=endpoint, model="m", facts=FACTS)
        finally:
            await client.close()
            await server.close()


async def said(*replies: bytes | None, closes: bool = False, times: int = 1) -> tuple[list[str], int]:
    """Return what is heard from a server that answers so, and how many connections it took."""
    server = Server(*replies, closes=closes)
    async with talking_to(server) as model:
        return [text_of(await heard(model, "hi")) for _ in range(times)], server.connections


async def test_a_body_of_known_length() -> None:
    """And the connection is used again."""
    assert await said(HEAD + LENGTH + SAID, HEAD + LENGTH + SAID, times=2) == (["hello", "hello"], 1)


async def test_a_body_in_chunks_of_any_size() -> None:
    """With an extension and a trailer, which mean nothing to us."""
    pieces = b"".join(chunk(SAID[at : at + 7]) for at in range(0, len(SAID), 7))
    reply = HEAD + CHUNKED + b"1;name=value\r\n:\r\n" + chunk(b"\n\n") + pieces + b"0\r\nX-Sum: 1\r\n\r\n"
    assert await said(reply, reply, times=2) == (["hello", "hello"], 1)


async def test_a_body_that_ends_with_the_connection() -> None:
    """The oldest way, which some small servers have kept."""
    reply = HEAD + b"\r\n" + SAID
    assert await said(reply, reply, closes=True, times=2) == (["hello", "hello"], 2)


async def test_a_server_that_closes_politely_is_asked_on_a_new_connection() -> None:
    """`HttpConnection: close` is heeded."""
    reply = HEAD + b"HttpConnection: close\r\n" + LENGTH + SAID
    assert await said(reply, reply, closes=True, times=2) == (["hello", "hello"], 2)


async def test_a_kept_connection_that_was_closed_meanwhile_costs_nothing() -> None:
    """The server hangs up as we write: nothing was heard, so it is said again on a new connection."""
    assert await said(HEAD + LENGTH + SAID, None, HEAD + LENGTH + SAID, times=2) == (["hello", "hello"], 2)


async def test_connections_that_are_not_used_any_more_are_closed() -> None:
    """After a rush there are as many as were busy at once, and nothing may come that would look at them."""
    server = Server(*[HEAD + LENGTH + SAID] * 3)
    async with await asyncio.start_server(server.accept, "127.0.0.1", 0) as listener:
        port = listener.sockets[0].getsockname()[1]
        plain = transport.Transport(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), idle_max_s=0.05)
        async with httpx2.AsyncClient(transport=plain) as web, asyncio.timeout(10):
            await asyncio.gather(*(web.post(f"http://127.0.0.1:{port}/", content=b"{}") for _ in range(3)))
            await server.left()


async def test_a_new_connection_that_is_closed_unheard_is_a_failure() -> None:
    """It is not tried without end."""
    with pytest.raises(ModelUnavailable, match="cut"):
        await said(None, HEAD + LENGTH + SAID)


async def test_what_comes_before_an_answer_is_passed_over() -> None:
    """Early hints and leave to continue are no answers."""
    early = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n"
    assert await said(early + HEAD + LENGTH + SAID) == (["hello"], 1)


async def test_a_goodbye_on_an_idle_connection_is_not_an_answer() -> None:
    """A server that gives up on an idle client says so, and nobody mistakes it for the next answer."""
    goodbye = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"
    assert await said(HEAD + LENGTH + SAID + goodbye, HEAD + LENGTH + SAID, times=2) == (["hello", "hello"], 2)


@pytest.mark.parametrize(
    "reply",
    [
        HEAD + b"Content-Length: 1000\r\n\r\n" + SAID[:50],
        HEAD + CHUNKED + chunk(SAID[:50]),
        HEAD + CHUNKED + b"nonsense\r\n",
        b"this is no HTTP at all\r\n\r\n",
    ],
)
async def test_an_answer_that_is_none_is_a_failure(reply: bytes) -> None:
    """Short of its length, cut between chunks, no chunk, no HTTP."""
    with pytest.raises(ModelUnavailable):
        await said(reply, closes=True)


async def test_a_header_without_end_is_bounded() -> None:
    """It is given up for its length, not when its sender falls silent."""
    with pytest.raises(ModelUnavailable, match="cut"):
        await said(b"HTTP/1.1 200 OK\r\nX-Long: " + b"a" * (2 * transport.HEAD_MAX_BYTES))


async def test_an_answer_that_ends_well_but_not_with_its_end_is_cut() -> None:
    """J1: proxies end what they lost as if it were whole; only the vendor's own word counts."""
    begun = SAID.partition(b', "finish_reason"')[0] + b"}]}\n\n"
    with pytest.raises(ModelUnavailable, match="cut before its end"):
        await said(HEAD + CHUNKED + chunk(begun) + b"0\r\n\r\n")


async def test_an_error_that_is_never_told_to_its_end_is_an_error() -> None:
    """The status says enough."""
    with pytest.raises(ModelUnavailable, match="HTTP 500"):
        await said(b"HTTP/1.1 500 Broken\r\nContent-Length: 1000\r\n\r\n{")


@pytest.mark.parametrize(
    "scenario",
    [
        test_a_body_of_known_length,
        test_a_body_in_chunks_of_any_size,
        test_a_body_that_ends_with_the_connection,
        test_a_kept_connection_that_was_closed_meanwhile_costs_nothing,
        test_what_comes_before_an_answer_is_passed_over,
        test_a_goodbye_on_an_idle_connection_is_not_an_answer,
    ],
)
def test_the_loop_of_a_gateway_behaves_the_same(scenario: Callable[[], Coroutine[None, None, None]]) -> None:
    """A gateway runs on another event loop than these tests."""
    uvloop.run(scenario())


async def test_a_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a proxy the client's own transport does the work, with the same result."""
    async with scene() as here:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{here.server.port}")
        client = ModelClient()
        endpoint = ModelEndpoint(name="far:m", url="http://far.invalid/v1/chat/completions", headers={})
        model = OpenAI(client=client, endpoint=endpoint, model="m", facts=FACTS)
        assert text_of(await heard(model, "nonce 9")) == "nonce 9"
        assert here.server.requests[0].path == endpoint.url
        await client.close()
