"""The way out: which addresses a request may reach, and a transport that connects to exactly the one that was checked."""

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

from holdfast.errors import OutcomeUnknown, Rejected, Unavailable
from holdfast.lookups import LookUps
from holdfast.unpacking import unpacked

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
# Returns the addresses of a host as text; raises `OSError` when there is none.
Resolver = Callable[[str, int], Awaitable[Sequence[str]]]

REDIRECTS_MAX = 5
URL_MAX_CHARS = 8_192
BODY_MAX_BYTES = 5 * 1024 * 1024
TIMEOUT_S = 30.0
CONNECT_TIMEOUT_S = 10.0
# Once the status is there, what else is said about it is only nice to have.
REMARK_TIMEOUT_S = 5.0
CONNECTIONS_MAX = 50
# A name with more addresses is not worth more attempts.
ADDRESSES_MAX = 4
PRIVILEGED_PORT_MAX = 1_023
PORT_MAX = 65_535
WEB_PORTS = frozenset({80, 443})
# Services that read lines would take parts of an HTTP request for commands of their own.
OTHER_SERVICES = frozenset(
    {1433, 1521, 1723, 2049, 2375, 2379, 3306, 3389, 3659, 4045, 4190, 5060, 5061, 5432, 5900, 6000, 6379, 6566}
    | {*range(6665, 6670), 6697, 9042, 10080, 11211, 27017}
)
_REDIRECTS = frozenset({301, 302, 303, 307, 308})

_LOOPBACK = ipaddress.ip_address("127.0.0.1")
# Addresses that look like any other and answer as a cloud's own machinery.
_MACHINERY = frozenset({ipaddress.ip_address("168.63.129.16"), ipaddress.ip_address("192.0.0.192")})
_SHARED = ipaddress.ip_network("100.64.0.0/10")
_RELAY = ipaddress.ip_network("192.88.99.0/24")
_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")
_UNIQUE_LOCAL = ipaddress.ip_network("fc00::/7")
_CLOUD_LOCAL = ipaddress.ip_network("fd00:ec2::/32")
_NAT64 = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("64:ff9b:1::/48"))
_COMPATIBLE = ipaddress.ip_network("::/96")
_PRIVATE = tuple(map(ipaddress.ip_network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")))
# What an old C library reads as an IPv4 address: decimal, octal and hexadecimal, with fewer than four parts.
_NUMERIC = re.compile(r"(0x[0-9a-f]*|[0-9]+)(\.(0x[0-9a-f]*|[0-9]+)){0,3}", re.IGNORECASE)

# Nothing that one reader would decode and the next would not.
_NAME = re.compile(r"[a-z0-9._:-]{1,253}")


class Reach(StrEnum):
    """Where an address leads."""

    PUBLIC = "public"
    LOCAL = "local"
    FORBIDDEN = "forbidden"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back, at most as much as was asked for; `url` is where it came from after all redirects."""

    url: str
    status: int
    reason: str
    headers: httpx2.Headers
    body: bytes
    cut: bool = False

    @property
    def host(self) -> str:
        """Who answered: all of an address that can be shown to anybody."""
        return httpx2.URL(self.url).host


def reach(address: Address) -> Reach:
    """Return where an address leads; what wraps another address leads where that one does."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = _inner(address)
        return _reach_v6(address) if inner is None else reach(inner)
    if address in _MACHINERY:
        return Reach.FORBIDDEN
    if address.is_loopback or address in _SHARED or any(address in network for network in _PRIVATE):
        return Reach.LOCAL
    if not address.is_global or address.is_multicast or address.is_reserved or address in _RELAY:
        return Reach.FORBIDDEN
    return Reach.PUBLIC


def _inner(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    if address.ipv4_mapped or address.sixtofour:
        return address.ipv4_mapped or address.sixtofour
    wraps = any(address in network for network in _NAT64) or (address in _COMPATIBLE and int(address) > 1)
    return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if wraps else None


def _reach_v6(address: ipaddress.IPv6Address) -> Reach:
    if address in _CLOUD_LOCAL or address.scope_id:
        return Reach.FORBIDDEN
    if address.is_loopback or address in _UNIQUE_LOCAL:
        return Reach.LOCAL
    # Teredo wraps the address of its server and the turned-around one of its client: nobody needs it.
    ordinary = address in _GLOBAL_UNICAST and address.is_global and not address.is_reserved and address.teredo is None
    return Reach.PUBLIC if ordinary else Reach.FORBIDDEN


def literal(host: str) -> Address | None:
    """Return the address that a host already is, in any spelling that a resolver would take for one."""
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host)
    if _NUMERIC.fullmatch(host):
        with contextlib.suppress(OSError):
            return ipaddress.IPv4Address(socket.inet_aton(host))
    return None


def retry_after_s(headers: Mapping[str, str], now_ms: int) -> float | None:
    """Return how long a server wants to be left alone: it says so in milliseconds, in seconds, or as a date."""
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
    """Return what time it is for a server: its own clock is the one that its dates are made with."""
    try:
        return parsedate_to_datetime(headers["date"]).timestamp()
    except (KeyError, ValueError):
        return now_ms / 1000


# Shared by all tools, because it bounds how many threads this process has for them.
system_resolver: Resolver = LookUps()


async def operators_resolver(host: str, port: int) -> Sequence[str]:
    """Look up a host that the operator named, which does not wait for those that a model names."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(place[0]) for *_, place in found]


class Guard:
    """Decides where a request may go.  Hosts are allowed by name, with a port or for every one.

    `setting` is where the operator names them.  With `encrypted` only these are reached without TLS.
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
        """Refuse what is wrong whatever a look-up would find.  Raises `Rejected`."""
        host, port = self._place(_parsed(url))
        local = host == "localhost" or host.endswith(".localhost")
        address = _LOOPBACK if local else literal(host)
        if address is not None:
            self._refuse_inner(host, port, [address])

    async def addresses(self, url: httpx2.URL) -> list[str]:
        """Return where a URL may be fetched from.  Raises `Rejected` when it must not, `Unavailable` when it cannot be."""
        host, port = self._place(url)
        found = await self._resolve(host, port)
        self._refuse_inner(host, port, found)
        return [str(each) for each in found[:ADDRESSES_MAX]]

    def _refuse_inner(self, host: str, port: int, addresses: Sequence[Address]) -> None:
        for each in addresses:
            led = reach(each)
            if led is Reach.FORBIDDEN or (led is Reach.LOCAL and not self._is_named(host, port)):
                hint = f"; the operator can allow it in {self._setting}" if led is Reach.LOCAL else ""
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
            raise Rejected(f"the URL names no host that could be looked up: {host!r}")
        port = (443 if url.scheme == "https" else 80) if url.port is None else url.port
        if f"{host}:{port}" not in self._allowed and not _is_web(port):
            raise Rejected(f"port {port} does not belong to the web; use 80, 443 or an unprivileged one")
        if self._encrypted and url.scheme == "http" and not self._is_named(host, port):
            raise Rejected(f"anybody on the way to {host} could read it; use https, or name the host in {self._setting}")
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
    """Return a host, with its port where it has one, as it is compared."""
    name, divider, port = host.strip().lower().rpartition(":")
    if divider and port.isdecimal() and (name.endswith("]") or ":" not in name):
        return f"{name.strip('[]').rstrip('.')}:{port}"
    return host.strip().lower().strip("[]").rstrip(".")


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Connects to the address that was checked, under the name that was asked for; each request is checked anew."""

    def __init__(self, guard: Guard, connections_max: int = CONNECTIONS_MAX) -> None:
        self._guard = guard
        # A kept connection would be found again by its address, though it was proved to be another name's.
        self._limits = httpx2.Limits(max_connections=connections_max, max_keepalive_connections=0)
        self._transport: httpx2.AsyncHTTPTransport | None = None
        self._making = asyncio.Lock()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
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
        """Return the transport; reading all certificates takes a while, so it is made when it is first needed, and once."""
        async with self._making:
            if self._transport is None:
                self._transport = await asyncio.to_thread(httpx2.AsyncHTTPTransport, limits=self._limits)
            return self._transport


def _pinned(request: httpx2.Request, address: str) -> httpx2.Request:
    host = request.url.raw_host.decode("ascii").rstrip(".")
    # A certificate is checked against the name; one that is an address itself is checked against that.
    name = {} if literal(host.strip("[]")) else {"sni_hostname": host}
    return httpx2.Request(
        request.method,
        request.url.copy_with(host=address),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, **name},
    )


class _Departure:
    """Notices when a request begins to leave."""

    def __init__(self) -> None:
        self.began = False

    async def __call__(self, event: str, _: object) -> None:
        self.began = self.began or event.endswith("send_request_headers.started")


class Egress:
    """Bounded requests to the world outside: in time, in redirects and in size."""

    def __init__(self, guard: Guard, timeout_s: float = TIMEOUT_S) -> None:
        self._guard = guard
        self._transport = GuardedTransport(guard)
        self._timeout_s = timeout_s

    @classmethod
    def to(cls, url: str, timeout_s: float = TIMEOUT_S) -> Self:
        """Return a way out to a server that the operator named, which may well be on this machine."""
        place = urlsplit(url)
        host = f"[{place.hostname}]" if place.hostname and ":" in place.hostname else place.hostname
        port = place.port or (443 if place.scheme == "https" else 80)
        return cls(Guard([f"{host}:{port}"], operators_resolver), timeout_s)

    def check(self, url: str) -> None:
        """Refuse what could never be reached.  Raises `Rejected`."""
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
    ) -> Answer:
        """Ask for something and return what came back.  Raises `Rejected` where it must not, `Unavailable` where it fails.

        Headers go to the first host only: another one that it redirects to has no business with a key.  With `same_host` no
        other one is asked at all.
        """
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._follow(method, _parsed(url), dict(headers or {}), bytes_max, redirects_max, same_host)
        except TimeoutError:
            raise Unavailable(f"{url} did not answer within {self._timeout_s:g} s") from None
        except httpx2.TimeoutException as error:
            raise Unavailable(f"{url} did not answer in time") from error
        except (httpx2.TransportError, httpx2.DecodingError) as error:
            raise Unavailable(f"{url} cannot be read: {error or type(error).__name__}") from error

    async def post(
        self, url: str, body: bytes, *, headers: Mapping[str, str] | None = None, bytes_max: int = BODY_MAX_BYTES
    ) -> Answer:
        """Send something once, without following redirects, and return what came back.

        Raises `Rejected` where it must not go, `Unavailable` when it certainly did not leave, and `OutcomeUnknown` when it
        did and nobody answered.  Only the host is named: an address may be a secret.
        """
        place, departure = _parsed(url), _Departure()
        async with contextlib.AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(self._timeout_s):
                    sent = self._sent("POST", place, headers or {}, body, departure)
                    response = await stack.enter_async_context(sent)
            except (TimeoutError, httpx2.TransportError) as error:
                if departure.began:
                    raise OutcomeUnknown(f"{place.host} was sent it and did not answer ({_told(error)})") from error
                raise Unavailable(f"{place.host} cannot be reached: {_told(error)}") from error
            return await _remark(response, place, bytes_max, min(REMARK_TIMEOUT_S, self._timeout_s))

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
    ) -> Answer:
        first = (url.scheme, url.host, url.port)
        for _ in range(redirects_max + 1):
            own = headers if (url.scheme, url.host, url.port) == first else {}
            async with self._sent(method, url, own) as response:
                where = response.headers.get("location")
                if response.status_code not in _REDIRECTS or not where:
                    return await _answer(response, url, bytes_max)
            before, url = url, _next(url, where)
            if same_host and _host(url) != _host(before):
                raise Rejected(f"{before} redirects to another host, which has to be asked for by itself: {url}")
        raise Rejected(f"{url} redirects more than {redirects_max} times")

    @contextlib.asynccontextmanager
    async def _sent(
        self,
        method: str,
        url: httpx2.URL,
        headers: Mapping[str, str],
        body: bytes | None = None,
        departure: _Departure | None = None,
    ) -> AsyncGenerator[httpx2.Response]:
        timeout = httpx2.Timeout(self._timeout_s, connect=min(CONNECT_TIMEOUT_S, self._timeout_s))
        request = httpx2.Request(
            method,
            url,
            headers={"User-Agent": "Holdfast", "Accept": "*/*", "Accept-Encoding": "gzip, deflate", **headers},
            content=body,
            extensions={"timeout": timeout.as_dict(), **({"trace": departure} if departure else {})},
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
        raise Rejected(f"{url!r} is no URL: {error}") from error


def host_of(url: str) -> str:
    """Return the host that a URL leads to, with its port where it names one.  Raises `Rejected` for what is no URL."""
    return _host(_parsed(url))


def _host(url: httpx2.URL) -> str:
    name = url.raw_host.decode("ascii").lower()
    shown = f"[{name}]" if ":" in name and not name.startswith("[") else name
    return shown if url.port is None else f"{shown}:{url.port}"


def _next(url: httpx2.URL, where: str) -> httpx2.URL:
    try:
        found = url.join(_parsed(where))
    except (httpx2.InvalidURL, UnicodeError) as error:
        raise Rejected(f"{url} redirects to {where!r}, which is no URL: {error}") from error
    if url.scheme == "https" and found.scheme == "http":
        raise Rejected(f"{url} redirects to {found}, which anybody on the way could change; fetch that by itself")
    return found


def _told(error: Exception) -> str:
    return "no answer in time" if isinstance(error, TimeoutError | httpx2.TimeoutException) else str(error) or "cut off"


async def _remark(response: httpx2.Response, url: httpx2.URL, bytes_max: int, timeout_s: float) -> Answer:
    """Return an answer with as much of its body as comes in time: its status has said what counts."""
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


async def _answer(response: httpx2.Response, url: httpx2.URL, bytes_max: int) -> Answer:
    if "," in response.headers.get("content-encoding", ""):
        # Each layer multiplies what the one below it holds.
        raise Rejected(f"{url} is compressed more than once")
    body, cut = bytearray(), False
    # Decoded in small pieces, so that a bomb is noticed before it has gone off.
    async with contextlib.aclosing(unpacked(response)) as pieces:
        async for piece in pieces:
            body += piece[: bytes_max - len(body) + 1]
            if cut := len(body) > bytes_max:
                del body[bytes_max:]
                break
    return _of(response, url, bytes(body), cut)


def _of(response: httpx2.Response, url: httpx2.URL, body: bytes, cut: bool) -> Answer:
    return Answer(
        url=str(url),
        status=response.status_code,
        reason=response.reason_phrase,
        headers=response.headers,
        body=body,
        cut=cut,
    )
