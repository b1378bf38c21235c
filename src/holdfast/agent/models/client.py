"""The HTTP client of model servers: sends a request and yields events, with every failure translated and bounded."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import ssl
import urllib.request
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Sequence
from typing import Protocol

import httpx2
import msgspec

from holdfast.agent.models import failures
from holdfast.agent.models.failures import ModelEndpoint
from holdfast.agent.models.port import Done, Event, ReasoningDelta, TextDelta
from holdfast.agent.models.sse import Splitter
from holdfast.agent.models.transport import Transport
from holdfast.clock import Clock, SystemClock
from holdfast.decompression import decompressed
from holdfast.errors import ModelUnavailable, ModelUnusable

log = logging.getLogger(__name__)

CONNECT_TIMEOUT_S = 10.0
# Limits of one event and of one answer, far above what a model writes.
EVENT_MAX_BYTES = 8 << 20
ANSWER_MAX_BYTES = 64 << 20
# The body of an error response is read up to this size and for this long; the status alone says most.
ERROR_MAX_BYTES = 64 << 10
ERROR_MAX_S = 1.0
# At most this many malformed events are skipped in one answer.
GARBAGE_MAX = 5
# An answer may consist of keep-alives alone for this many stall timeouts.
SILENCE_MAX_STALLS = 5
# How long to wait for the end of a finished response, so that its connection can be reused.
DRAIN_MAX_S = 0.02
_OK = 200
_LIMITS = httpx2.Limits(max_connections=1_000, keepalive_expiry=60.0)
# A gateway uses few addresses, and each of them at every step.
_parsed = functools.lru_cache(maxsize=64)(httpx2.URL)


class Reader(Protocol):
    """Reads the events of one answer in one wire format."""

    @property
    def pieces(self) -> int:
        """How many events had content; keep-alives do not count."""
        ...

    @property
    def complete(self) -> bool:
        """Whether the server has said that nothing more will come."""
        ...

    def take(self, data: bytes) -> Sequence[Event]:
        """Read the data of one event.  Raises `msgspec.DecodeError` if it is malformed."""
        ...

    def end(self) -> Done | None:
        """Return how the answer ended; None if it is incomplete."""
        ...


class ModelClient:
    """The HTTP client that all models share.  It and its TLS context are made on first use."""

    def __init__(self, clock: Clock | None = None, verify: ssl.SSLContext | None = None) -> None:
        self._clock = clock or SystemClock()
        self._verify = verify
        self._proxied = bool(urllib.request.getproxies().keys() - {"no"})
        self._plain: httpx2.AsyncClient | None = None
        self._secure: asyncio.Task[httpx2.AsyncClient] | None = None

    async def converse(self, endpoint: ModelEndpoint, body: bytes, reader: Reader) -> AsyncGenerator[Event]:
        """Send one request and yield what the reader makes of the answer."""
        client = await self._client(endpoint)
        stall_s = endpoint.stall_timeout_s
        request = client.build_request(
            "POST",
            _address(endpoint),
            headers=endpoint.headers,
            content=body,
            timeout=httpx2.Timeout(stall_s, connect=min(CONNECT_TIMEOUT_S, stall_s)),
        )
        with _named(endpoint):
            response = await client.send(request, stream=True)
            async with contextlib.aclosing(response):
                await self._check(endpoint, response)
                async with contextlib.aclosing(self._events(endpoint, response, reader)) as events:
                    async for event in events:
                        yield event

    async def fetch(self, endpoint: ModelEndpoint, bytes_max: int) -> bytes:
        """GET a whole resource that is not a model's answer.  No redirect is followed, because the request holds a key."""
        client = await self._client(endpoint)
        request = client.build_request(
            "GET", _address(endpoint), headers=endpoint.headers, timeout=httpx2.Timeout(endpoint.stall_timeout_s)
        )
        with _named(endpoint):
            response = await client.send(request, stream=True)
            async with contextlib.aclosing(response):
                await self._check(endpoint, response)
                body = bytearray()
                async with contextlib.aclosing(decompressed(response)) as chunks:
                    async for chunk in chunks:
                        body += chunk
                        if len(body) > bytes_max:
                            raise ModelUnavailable(f"{endpoint.name}: the answer is larger than {bytes_max >> 10} kB")
                return bytes(body)

    async def close(self) -> None:
        plain, secure, self._plain, self._secure = self._plain, self._secure, None, None
        if plain is not None:
            await plain.aclose()
        if secure is not None:
            await (await secure).aclose()

    async def _client(self, endpoint: ModelEndpoint) -> httpx2.AsyncClient:
        if endpoint.url.startswith("https:") or self._proxied:
            if self._secure is None:
                # Reading the system's certificates takes too long for the event loop.
                self._secure = asyncio.create_task(self._secure_client())
            return await asyncio.shield(self._secure)
        if self._plain is None:
            self._plain = httpx2.AsyncClient(transport=Transport(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)))
        return self._plain

    async def _secure_client(self) -> httpx2.AsyncClient:
        context = self._verify or await asyncio.to_thread(httpx2.create_ssl_context)
        if self._proxied:
            return httpx2.AsyncClient(verify=context, limits=_LIMITS)
        return httpx2.AsyncClient(transport=Transport(context))

    async def _check(self, endpoint: ModelEndpoint, response: httpx2.Response) -> None:
        if response.status_code != _OK:
            body = await _beginning(response)
            raise failures.of_status(endpoint, response.status_code, response.headers, body, self._clock.now_ms())
        if response.headers.get("content-type", "").startswith("text/html"):
            raise _web_page(endpoint)

    async def _events(self, endpoint: ModelEndpoint, response: httpx2.Response, reader: Reader) -> AsyncGenerator[Event]:
        whole = response.headers.get("content-type", "").startswith("application/json")
        decoder = _Decoder(endpoint, reader, self._clock, whole=whole)
        chunks = decompressed(response) if "content-encoding" in response.headers else response.aiter_raw()
        async with contextlib.aclosing(chunks):
            try:
                async for chunk in chunks:
                    for event in decoder.feed(chunk):
                        yield event
                    if reader.complete:
                        await _drain(chunks)
                        break
            except httpx2.TransportError:
                # After a complete answer, a connection error does not matter.
                if reader.end() is None:
                    raise
        for event in decoder.flush():
            yield event
        if (done := reader.end()) is None:
            raise ModelUnavailable(f"{endpoint.name}: the answer was cut before its end")
        yield done


def _address(endpoint: ModelEndpoint) -> httpx2.URL:
    try:
        return _parsed(endpoint.url)
    except (httpx2.InvalidURL, UnicodeError) as error:
        raise ModelUnusable(f"{endpoint.name}: {endpoint.url_setting} is not a valid address") from error


@contextlib.contextmanager
def _named(endpoint: ModelEndpoint) -> Generator[None]:
    """Translate transport errors."""
    try:
        yield
    except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
        raise failures.of_transport(endpoint, error) from error
    except httpx2.TimeoutException as error:
        raise ModelUnavailable(f"{endpoint.name}: sent nothing for {endpoint.stall_timeout_s:g} s") from error
    except (httpx2.TransportError, httpx2.DecodingError) as error:
        raise ModelUnavailable(f"{endpoint.name}: the connection was cut before the answer ended") from error


class _Decoder:
    """Splits the chunks of a response into events, within bounds."""

    def __init__(self, endpoint: ModelEndpoint, reader: Reader, clock: Clock, *, whole: bool) -> None:
        self._endpoint = endpoint
        self._reader = reader
        self._clock = clock
        self._splitter = Splitter()
        # A server that does not stream sends one JSON document.
        self._whole: list[bytes] | None = [] if whole else None
        self._size = 0
        self._garbage = 0
        self._pieces = 0
        self._heard_ms = clock.monotonic_ms()

    def feed(self, chunk: bytes) -> Sequence[Event]:
        """Return the events that a chunk completes."""
        if not self._size and chunk.lstrip()[:1] == b"<":
            raise _web_page(self._endpoint)
        self._size += len(chunk)
        if self._size > ANSWER_MAX_BYTES:
            raise ModelUnavailable(f"{self._endpoint.name}: the answer is larger than {ANSWER_MAX_BYTES >> 20} MB")
        if self._whole is not None:
            self._whole.append(chunk)
            return ()
        data = self._splitter.feed(chunk)
        if self._splitter.held_bytes > EVENT_MAX_BYTES:
            raise ModelUnavailable(f"{self._endpoint.name}: sent a line without end")
        events = self._read(data)
        self._notice_silence()
        return events

    def flush(self) -> Sequence[Event]:
        """Return the events of the last bytes."""
        return self._read(self._splitter.flush() if self._whole is None else [b"".join(self._whole)])

    def _notice_silence(self) -> None:
        now_ms = self._clock.monotonic_ms()
        if self._reader.pieces != self._pieces:
            self._pieces, self._heard_ms = self._reader.pieces, now_ms
        silent_s = (now_ms - self._heard_ms) / 1000
        if silent_s > self._endpoint.stall_timeout_s * SILENCE_MAX_STALLS:
            raise ModelUnavailable(f"{self._endpoint.name}: sent nothing but keep-alives for {silent_s:.0f} s")

    def _read(self, data: Sequence[bytes]) -> Sequence[Event]:
        events: list[Event] = []
        for each in data:
            try:
                events += self._reader.take(each)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                self._garbage += 1
                if self._garbage > GARBAGE_MAX:
                    raise ModelUnavailable(f"{self._endpoint.name}: sends malformed events") from error
                log.warning("%s: skipped a malformed event: %s", self._endpoint.name, error)
        return merged(events) if len(events) > 1 else events


def merged(events: Sequence[Event]) -> Sequence[Event]:
    """Return events with adjacent pieces of text joined."""
    joined: list[Event] = []
    for event in events:
        last = joined[-1] if joined else None
        if isinstance(event, TextDelta) and isinstance(last, TextDelta):
            joined[-1] = TextDelta(last.text + event.text)
        elif isinstance(event, ReasoningDelta) and isinstance(last, ReasoningDelta):
            joined[-1] = ReasoningDelta(last.text + event.text)
        else:
            joined.append(event)
    return joined


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    with contextlib.suppress(TimeoutError, httpx2.TransportError):
        async with asyncio.timeout(DRAIN_MAX_S):
            async for _ in chunks:
                pass


async def _beginning(response: httpx2.Response) -> bytes:
    """Return the beginning of a body, up to the size limit of error bodies."""
    body = b""
    with contextlib.suppress(TimeoutError, httpx2.TransportError, httpx2.DecodingError):
        async with asyncio.timeout(ERROR_MAX_S), contextlib.aclosing(decompressed(response)) as chunks:
            async for chunk in chunks:
                body += chunk
                if len(body) > ERROR_MAX_BYTES:
                    break
    return body[:ERROR_MAX_BYTES]


def _web_page(endpoint: ModelEndpoint) -> ModelUnusable:
    return ModelUnusable(f"{endpoint.name}: {endpoint.place} answers with a web page; check {endpoint.url_setting}")
