"""Outgoing requests: which addresses they may reach, and a transport that connects to exactly the checked address."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import re
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Self
from urllib.parse import urlsplit

import httpx2

from holdfast.decompression import decompressed
from holdfast.errors import OutcomeUnknown, Rejected, Unavailable
from holdfast.resolver import ThreadedResolver

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
# Returns the addresses of a host as text; raises `OSError` if there are none.
Resolver = Callable[[str, int], Awaitable[Sequence[str]]]

REDIRECTS_MAX = 5
URL_MAX_CHARS = 8_192
BODY_MAX_BYTES = 5 * 1024 * 1024
TIMEOUT_S = 30.0
CONNECT_TIMEOUT_S = 10.0
# The status of a POST counts; its body is only read for this long.
POST_BODY_TIMEOUT_S = 5.0
CONNECTIONS_MAX = 50
# How long a connection is kept that may be used again.  Servers close idle ones after a minute or more, and a request that
# meets the close has an unknown outcome.
KEPT_S = 10.0
# Each request looks at all that are kept, whether they are still open.
KEPT_MAX = 10
# At most this many addresses of one host are tried.
ADDRESSES_MAX = 4
PRIVILEGED_PORT_MAX = 1_023
PORT_MAX = 65_535
WEB_PORTS = frozenset({80, 443})
# Line-based services could read parts of an HTTP request as commands.
OTHER_SERVICES = frozenset(
    {1433, 1521, 1723, 2049, 2375, 2379, 3306, 3389, 3659, 4045, 4190, 5060, 5061, 5432, 5900, 6000, 6379, 6566}
    | {*range(6665, 6670), 6697, 9042, 10080, 11211, 27017}
)
_REDIRECTS = frozenset({301, 302, 303, 307, 308})

_LOOPBACK = ipaddress.ip_address("127.0.0.1")
# Public-looking addresses of cloud metadata services.
_METADATA = frozenset({ipaddress.ip_address("168.63.129.16"), ipaddress.ip_address("192.0.0.192")})
_SHARED = ipaddress.ip_network("100.64.0.0/10")
_RELAY = ipaddress.ip_network("192.88.99.0/24")
_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")
_UNIQUE_LOCAL = ipaddress.ip_network("fc00::/7")
_CLOUD_LOCAL = ipaddress.ip_network("fd00:ec2::/32")
_NAT64 = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("64:ff9b:1::/48"))
_COMPATIBLE = ipaddress.ip_network("::/96")
_PRIVATE = tuple(map(ipaddress.ip_network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")))
# The spellings that a C library reads as an IPv4 address: decimal, octal and hexadecimal, with up to four parts.
_NUMERIC = re.compile(r"(0x[0-9a-f]*|[0-9]+)(\.(0x[0-9a-f]*|[0-9]+)){0,3}", re.IGNORECASE)

# No character that one URL parser decodes and another does not.
_NAME = re.compile(r"[a-z0-9._:-]{1,253}")


class AddressScope(StrEnum):
    """Where an address leads."""

    PUBLIC = "public"
    LOCAL = "local"
    FORBIDDEN = "forbidden"


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedResponse:
    """A response whose body has been read."""

    # The last address, after all redirects.
    url: str
    status: int
    reason: str
    headers: httpx2.Headers
    body: bytes
    # Whether the body is longer than the limit and was cut off.
    cut: bool = False

    @property
    def host(self) -> str:
        """The host, which is the part of the address that holds no secret."""
        return httpx2.URL(self.url).host


def scope_of(address: Address) -> AddressScope:
    """Return where an address leads; one that embeds another address leads to the embedded one."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = _inner(address)
        return _scope_of_v6(address) if inner is None else scope_of(inner)
    if address in _METADATA:
        return AddressScope.FORBIDDEN
    if address.is_loopback or address in _SHARED or any(address in network for network in _PRIVATE):
        return AddressScope.LOCAL
    if not address.is_global or address.is_multicast or address.is_reserved or address in _RELAY:
        return AddressScope.FORBIDDEN
    return AddressScope.PUBLIC


def _inner(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    if address.ipv4_mapped or address.sixtofour:
        return address.ipv4_mapped or address.sixtofour
    wraps = any(address in network for network in _NAT64) or (address in _COMPATIBLE and int(address) > 1)
    return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if wraps else None


def _scope_of_v6(address: ipaddress.IPv6Address) -> AddressScope:
    if address in _CLOUD_LOCAL or address.scope_id:
        return AddressScope.FORBIDDEN
    if address.is_loopback or address in _UNIQUE_LOCAL:
        return AddressScope.LOCAL
    # A Teredo address embeds two others; it is refused, as nothing needs it.
    ordinary = address in _GLOBAL_UNICAST and address.is_global and not address.is_reserved and address.teredo is None
    return AddressScope.PUBLIC if ordinary else AddressScope.FORBIDDEN


def literal(host: str) -> Address | None:
    """Return the address that a host name spells, in any spelling that a resolver accepts; None for a real name."""
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host)
    if _NUMERIC.fullmatch(host):
        with contextlib.suppress(OSError):
            return ipaddress.IPv4Address(socket.inet_aton(host))
    return None


def retry_after_s(headers: Mapping[str, str], now_ms: int) -> float | None:
    """Return how long a server asks clients to wait: in milliseconds, in seconds, or until a date."""
    try:
        if told := headers.get("retry-after-ms"):
            return max(0.0, float(told) / 1000)
        told = headers.get("retry-after", "")
        if re.fullmatch(r"\s*\d+(\.\d+)?\s*", told):
            return float(told)
        if not told:
            return None
        until: datetime = parsedate_to_datetime(told)
        return max(0.0, until.timestamp() - server_time_s(headers, now_ms))
    except ValueError:
        return None


def server_time_s(headers: Mapping[str, str], now_ms: int) -> float:
    """Return the time on a server's own clock, which its other dates refer to."""
    try:
        return parsedate_to_datetime(headers["date"]).timestamp()
    except (KeyError, ValueError):
        return now_ms / 1000


# Shared by all tools, because it bounds how many threads this process has for them.
system_resolver: Resolver = ThreadedResolver()


async def operators_resolver(host: str, port: int) -> Sequence[str]:
    """Look up a host that the operator configured, separately from the hosts that models name."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(place[0]) for *_, place in found]


class Guard:
    """Decides where a request may go.  `allow_hosts` are names, with a port or for all ports, that may be local.

    `setting` is the setting where the operator names them, for error messages.  With `encrypted`, only they are reached
    without TLS.
    """

    def __init__(
        self,
        allow_hosts: Sequence[str] = (),
        resolver: Resolver = system_resolver,
        *,
        setting: str = "tools.fetch.allow_hosts",
        encrypted: bool = False,
    ) -> None:
        self._allowed = frozenset(_plain(each) for each in allow_hosts)
        self._resolver = resolver
        self._setting = setting
        self._encrypted = encrypted

    def check(self, url: str) -> None:
        """Refuse what can be refused without a DNS lookup.  Raises `Rejected`."""
        host, port = self._place(_parsed(url))
        local = host == "localhost" or host.endswith(".localhost")
        address = _LOOPBACK if local else literal(host)
        if address is not None:
            self._refuse_inner(host, port, [address])

    async def addresses(self, url: httpx2.URL) -> list[str]:
        """Return the addresses that a URL may be fetched from.  Raises `Rejected` or `Unavailable`."""
        host, port = self._place(url)
        found = await self._resolve(host, port)
        self._refuse_inner(host, port, found)
        return [str(each) for each in found[:ADDRESSES_MAX]]

    def _refuse_inner(self, host: str, port: int, addresses: Sequence[Address]) -> None:
        for each in addresses:
            led = scope_of(each)
            if led is AddressScope.FORBIDDEN or (led is AddressScope.LOCAL and not self._is_named(host, port)):
                hint = f"; the operator can allow it in {self._setting}" if led is AddressScope.LOCAL else ""
                raise Rejected(f"{host} is {each}, which is not on the public internet{hint}")

    def _is_named(self, host: str, port: int) -> bool:
        return not self._allowed.isdisjoint({host, f"{host}:{port}"})

    def _place(self, url: httpx2.URL) -> tuple[str, int]:
        if url.scheme not in ("http", "https"):
            raise Rejected(f"only http and https can be fetched, not {url.scheme or 'a URL without a scheme'}")
        if url.userinfo:
            raise Rejected("a URL must not hold a user name or a password")
        host = _plain(url.raw_host.decode("ascii"))
        if not _NAME.fullmatch(host):
            raise Rejected(f"the URL names no valid host: {host!r}")
        port = (443 if url.scheme == "https" else 80) if url.port is None else url.port
        if f"{host}:{port}" not in self._allowed and not _is_web(port):
            raise Rejected(f"port {port} is not a web port; use 80, 443 or an unprivileged one")
        if self._encrypted and url.scheme == "http" and not self._is_named(host, port):
            raise Rejected(f"the connection to {host} is not encrypted; use https, or name the host in {self._setting}")
        return host, port

    async def _resolve(self, host: str, port: int) -> list[Address]:
        if (address := literal(host)) is not None:
            return [address]
        try:
            found = [ipaddress.ip_address(each) for each in dict.fromkeys(await self._resolver(host, port))]
        except (OSError, UnicodeError, ValueError) as error:
            raise Unavailable(f"{host} has no address: {error}") from error
        if not found:
            raise Unavailable(f"{host} has no address")
        return found


def _is_web(port: int) -> bool:
    return port in WEB_PORTS or (PRIVILEGED_PORT_MAX < port <= PORT_MAX and port not in OTHER_SERVICES)


def _plain(host: str) -> str:
    """Return a host, with its port if it has one, in the form that is compared."""
    name, divider, port = host.strip().lower().rpartition(":")
    if divider and port.isdecimal() and (name.endswith("]") or ":" not in name):
        return f"{name.strip('[]').rstrip('.')}:{port}"
    return host.strip().lower().strip("[]").rstrip(".")


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Checks each request, and connects to the checked address under the requested host name."""

    def __init__(self, guard: Guard, connections_max: int = CONNECTIONS_MAX, *, only_host: str = "") -> None:
        self._guard = guard
        self._only_host = only_host
        # Connections are pooled by address, and a certificate that fits one name may not fit another: so they are kept only
        # where all requests go to one host.
        kept_max = KEPT_MAX if only_host else 0
        self._limits = httpx2.Limits(
            max_connections=connections_max, max_keepalive_connections=kept_max, keepalive_expiry=KEPT_S
        )
        self._transport: httpx2.AsyncHTTPTransport | None = None
        self._making = asyncio.Lock()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if self._only_host and request.url.host != self._only_host:
            raise Rejected(f"only {self._only_host} is asked here, not {request.url.host}")
        addresses = await self._guard.addresses(request.url)
        transport = await self._made()
        last = len(addresses) - 1
        for number, address in enumerate(addresses):
            try:
                return await transport.handle_async_request(_pinned(request, address))
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                # Nothing was sent yet, so the next address may be tried.
                if number == last:
                    raise
        raise AssertionError("a host has at least one address")

    async def aclose(self) -> None:
        if self._transport is not None:
            await self._transport.aclose()

    async def _made(self) -> httpx2.AsyncHTTPTransport:
        """Return the transport, made on first use because it reads all certificates."""
        async with self._making:
            if self._transport is None:
                self._transport = await asyncio.to_thread(httpx2.AsyncHTTPTransport, limits=self._limits)
            return self._transport


def _pinned(request: httpx2.Request, address: str) -> httpx2.Request:
    host = request.url.raw_host.decode("ascii").rstrip(".")
    # The certificate is checked against the host name, or against the address if the URL has no name.
    name = {} if literal(host.strip("[]")) else {"sni_hostname": host}
    return httpx2.Request(
        request.method,
        request.url.copy_with(host=address),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, **name},
    )


class _SendTrace:
    """Records whether sending of a request has begun."""

    def __init__(self) -> None:
        self.began = False

    async def __call__(self, event: str, _: object) -> None:
        self.began = self.began or event.endswith("send_request_headers.started")


class Egress:
    """Sends requests that are bounded in time, redirects and size."""

    def __init__(self, guard: Guard, timeout_s: float = TIMEOUT_S, *, only_host: str = "") -> None:
        self._guard = guard
        self._transport = GuardedTransport(guard, only_host=only_host)
        self._timeout_s = timeout_s

    @classmethod
    def to(cls, url: str, timeout_s: float = TIMEOUT_S, *, keeps: bool = False) -> Self:
        """Return an egress to the server that the operator configured, which may be on this machine.

        With `keeps`, connections are used again, and no other host is reached: redirects to one are refused.
        """
        place = urlsplit(url)
        host = f"[{place.hostname}]" if place.hostname and ":" in place.hostname else place.hostname
        port = place.port or (443 if place.scheme == "https" else 80)
        only_host = httpx2.URL(url).host if keeps else ""
        return cls(Guard([f"{host}:{port}"], operators_resolver), timeout_s, only_host=only_host)

    def check(self, url: str) -> None:
        """Refuse a URL that could never be reached.  Raises `Rejected`."""
        self._guard.check(url)

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        bytes_max: int = BODY_MAX_BYTES,
        redirects_max: int = REDIRECTS_MAX,
        same_host: bool = False,
        timeout_s: float | None = None,
    ) -> FetchedResponse:
        """Send a request and return the response.  Raises `Rejected` if it is not allowed, `Unavailable` if it fails.

        `headers` are sent to the first host only, because they may hold a key.  With `same_host`, a redirect to another host
        is refused.
        """
        timeout_s = timeout_s or self._timeout_s
        try:
            async with asyncio.timeout(timeout_s):
                return await self._follow(method, _parsed(url), dict(headers or {}), bytes_max, redirects_max, same_host)
        except TimeoutError:
            raise Unavailable(f"{url} did not answer within {timeout_s:g} s") from None
        except httpx2.TimeoutException as error:
            raise Unavailable(f"{url} did not answer in time") from error
        except (httpx2.TransportError, httpx2.DecodingError) as error:
            raise Unavailable(f"{url} cannot be read: {error or type(error).__name__}") from error

    async def post(
        self,
        url: str,
        body: bytes,
        *,
        headers: Mapping[str, str] | None = None,
        bytes_max: int = BODY_MAX_BYTES,
        timeout_s: float | None = None,
        body_timeout_s: float = POST_BODY_TIMEOUT_S,
    ) -> FetchedResponse:
        """Send a body once, without following redirects, and return the response.

        Raises `Rejected` if it is not allowed, `Unavailable` if the request certainly was not sent, and `OutcomeUnknown` if
        it was sent and got no response.  Errors name the host only: the address may hold a secret.  The body of the response
        is read for `body_timeout_s` at most.
        """
        timeout_s = timeout_s or self._timeout_s
        place, trace = _parsed(url), _SendTrace()
        async with contextlib.AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(timeout_s):
                    sent = self._send("POST", place, headers or {}, body, trace, timeout_s)
                    response = await stack.enter_async_context(sent)
            except (TimeoutError, httpx2.TransportError) as error:
                if trace.began:
                    raise OutcomeUnknown(f"{place.host} was sent it and did not answer ({_reason(error)})") from error
                raise Unavailable(f"{place.host} cannot be reached: {_reason(error)}") from error
            return await _post_response(response, place, bytes_max, min(body_timeout_s, timeout_s))

    async def close(self) -> None:
        await self._transport.aclose()

    async def _follow(
        self,
        method: str,
        url: httpx2.URL,
        headers: dict[str, str],
        bytes_max: int,
        redirects_max: int,
        same_host: bool,
    ) -> FetchedResponse:
        first = (url.scheme, url.host, url.port)
        for _ in range(redirects_max + 1):
            own = headers if (url.scheme, url.host, url.port) == first else {}
            async with self._send(method, url, own) as response:
                where = response.headers.get("location")
                if response.status_code not in _REDIRECTS or not where:
                    return await _response(response, url, bytes_max)
            before, url = url, _next(url, where)
            if same_host and _host(url) != _host(before):
                raise Rejected(f"{before} redirects to another host; request it by itself: {url}")
        raise Rejected(f"{url} redirects more than {redirects_max} times")

    @contextlib.asynccontextmanager
    async def _send(
        self,
        method: str,
        url: httpx2.URL,
        headers: Mapping[str, str],
        body: bytes | None = None,
        trace: _SendTrace | None = None,
        timeout_s: float | None = None,
    ) -> AsyncGenerator[httpx2.Response]:
        timeout_s = timeout_s or self._timeout_s
        timeout = httpx2.Timeout(timeout_s, connect=min(CONNECT_TIMEOUT_S, timeout_s))
        request = httpx2.Request(
            method,
            url,
            headers={"User-Agent": "Holdfast", "Accept": "*/*", "Accept-Encoding": "gzip, deflate", **headers},
            content=body,
            extensions={"timeout": timeout.as_dict(), **({"trace": trace} if trace else {})},
        )
        response = await self._transport.handle_async_request(request)
        response.request = request
        try:
            yield response
        finally:
            await response.aclose()


def _parsed(url: str) -> httpx2.URL:
    if len(url) > URL_MAX_CHARS:
        raise Rejected(f"a URL may have {URL_MAX_CHARS} characters at most")
    try:
        return httpx2.URL(url.strip())
    except (httpx2.InvalidURL, UnicodeError) as error:
        raise Rejected(f"{url!r} is not a URL: {error}") from error


def host_of(url: str) -> str:
    """Return the host of a URL, with its port if it names one.  Raises `Rejected` if it is not a URL."""
    return _host(_parsed(url))


def _host(url: httpx2.URL) -> str:
    name = url.raw_host.decode("ascii").lower()
    shown = f"[{name}]" if ":" in name and not name.startswith("[") else name
    return shown if url.port is None else f"{shown}:{url.port}"


def _next(url: httpx2.URL, where: str) -> httpx2.URL:
    try:
        found = url.join(_parsed(where))
    except (httpx2.InvalidURL, UnicodeError) as error:
        raise Rejected(f"{url} redirects to {where!r}, which is not a URL: {error}") from error
    if url.scheme == "https" and found.scheme == "http":
        raise Rejected(f"{url} redirects to {found}, which is not encrypted; fetch that by itself")
    return found


def _reason(error: Exception) -> str:
    return "no answer in time" if isinstance(error, TimeoutError | httpx2.TimeoutException) else str(error) or "cut off"


async def _post_response(response: httpx2.Response, url: httpx2.URL, bytes_max: int, timeout_s: float) -> FetchedResponse:
    """Read as much of the body as arrives in time; a missing part is no error, because the status is what counts."""
    body, cut = bytearray(), True
    with contextlib.suppress(TimeoutError, httpx2.TransportError, httpx2.DecodingError):
        async with asyncio.timeout(timeout_s):
            async for piece in response.aiter_raw():
                body += piece[: bytes_max - len(body) + 1]
                if len(body) > bytes_max:
                    break
            else:
                cut = False
    return _of(response, url, bytes(body[:bytes_max]), cut)


async def _response(response: httpx2.Response, url: httpx2.URL, bytes_max: int) -> FetchedResponse:
    if "," in response.headers.get("content-encoding", ""):
        # Each layer multiplies the size of the one inside it.
        raise Rejected(f"{url} is compressed more than once")
    body, cut = bytearray(), False
    # Decompressed in small pieces, so that a decompression bomb is noticed in time.
    async with contextlib.aclosing(decompressed(response)) as pieces:
        async for piece in pieces:
            body += piece[: bytes_max - len(body) + 1]
            if cut := len(body) > bytes_max:
                del body[bytes_max:]
                break
    return _of(response, url, bytes(body), cut)


def _of(response: httpx2.Response, url: httpx2.URL, body: bytes, cut: bool) -> FetchedResponse:
    return FetchedResponse(
        url=str(url),
        status=response.status_code,
        reason=response.reason_phrase,
        headers=response.headers,
        body=body,
        cut=cut,
    )
