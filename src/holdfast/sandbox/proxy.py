"""The HTTP proxy of sandboxed commands.  It reaches only the hosts that are allowed to a command.

A confined command has an empty network namespace.  The launcher opens a listener in it and sends the listener through the
Unix socket of this command, so the proxy knows which rules apply.  Nothing of the gateway is visible inside the sandbox, and
a command that outlives the gateway loses its network access.

The proxy speaks CONNECT, and plain HTTP with an absolute address.  It resolves and checks each name as `egress` does for the
agent's own requests: an address of this machine or its network is refused unless exactly that name is allowed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import secrets
import socket
import stat
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import TypeVar

import httpx2

from holdfast.egress import PORT_MAX, Guard, Resolver, literal, system_resolver
from holdfast.errors import Rejected, Unavailable
from holdfast.sandbox.policy import HOST, HOST_MAX_CHARS

# The folder in the home that holds one socket per command.
FOLDER = "proxy"
HEAD_MAX_BYTES = 32 * 1024
HEAD_TIMEOUT_S = 15
CONNECT_TIMEOUT_S = 15
IDLE_TIMEOUT_S = 300
CONNECTIONS_MAX = 64
# At most this many refused hosts are reported for one command.
REFUSED_MAX = 50
CHUNK_BYTES = 65_536
# The length limit of a Unix socket's path, without its terminating zero.
PATH_MAX_BYTES = 107

_T = TypeVar("_T")
_METHOD = re.compile(rb"[A-Z][A-Z-]{0,31}")

_HEADER = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}:[^\x00\r\n]*")
_TARGET = re.compile(rb"http://([^/?#@\s\x00-\x1f\x7f-\xff]{1,300})(/[^\s\x00-\x1f]*|\?[^\s\x00-\x1f]*)?", re.IGNORECASE)
# Headers between the client and this proxy, which are not forwarded.
_HOP = frozenset({b"connection", b"proxy-connection", b"proxy-authorization", b"keep-alive", b"te", b"upgrade", b"host"})
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_ADVICE = "ask for it in the argument `hosts` of the terminal tool, or add it to tools.terminal.hosts"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyRequest:
    """The head of a request: its destination, and the head that is forwarded."""

    host: str
    port: int
    # Whether the method is CONNECT: no head is forwarded, and everything that follows is relayed as it is.
    tunnel: bool
    forwarded: bytes = b""

    @property
    def place(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRules:
    """Which hosts a command may reach.  They are checked at each connection."""

    allowed: Callable[[str, int], bool] = lambda _host, _port: False
    # Names, with or without a port, that may resolve to this machine or its network.
    local: frozenset[str] = frozenset()

    @classmethod
    def of(cls, hosts: Iterable[str]) -> HostRules:
        """Return the rules for a list of `host`, `host:port` and `*.domain`.  Without a port, 80 and 443 are allowed."""
        named = frozenset(each.strip().lower() for each in hosts)
        local = frozenset(each for each in named if _is_loopback(each))
        return cls(allowed=lambda host, port: is_named(host, port, named), local=local)


def is_named(host: str, port: int, names: Iterable[str]) -> bool:
    """Return whether a list of `host`, `host:port` and `*.domain` names a host."""
    for name in names:
        wanted, at = _split(name)
        if at not in (None, port) or (at is None and port not in (80, 443)):
            continue
        if host == wanted or (wanted.startswith("*.") and host.endswith(wanted[1:])):
            return True
    return False


def _split(name: str) -> tuple[str, int | None]:
    host, divider, port = name.rpartition(":")
    if divider and port.isdecimal() and (host.endswith("]") or ":" not in host):
        return host.strip("[]"), int(port)
    return name.strip("[]"), None


def _is_loopback(name: str) -> bool:
    return _split(name)[0] in _LOOPBACK


def parse(data: bytes) -> ProxyRequest:
    """Parse a request head, given without the empty line at its end.  Raises `Rejected`."""
    first, *lines = data.split(b"\r\n")
    parts = first.split(b" ")
    if len(parts) != 3 or not _METHOD.fullmatch(parts[0]) or parts[2] not in (b"HTTP/1.1", b"HTTP/1.0"):
        raise Rejected("the request line is not METHOD TARGET HTTP/1.1")
    for line in lines:
        if not _HEADER.fullmatch(line):
            raise Rejected("a header is not NAME: VALUE")
    method, target, _ = parts
    if method == b"CONNECT":
        host, port = _place(target.decode("latin-1"), None)
        return ProxyRequest(host=host, port=port, tunnel=True)
    found = _TARGET.fullmatch(target)
    if found is None:
        raise Rejected("the address must begin with http:// and name a host; for https use CONNECT")
    host, port = _place(found[1].decode("latin-1"), 80)
    path = found[2] or b"/"
    path = path if path.startswith(b"/") else b"/" + path
    kept = [line for line in lines if line.partition(b":")[0].lower() not in _HOP]
    shown = found[1].lower()
    # The server closes the connection after its answer, so the client's next request is checked as well.
    head = [method + b" " + path + b" HTTP/1.1", b"Host: " + shown, *kept, b"Connection: close", b"", b""]
    return ProxyRequest(host=host, port=port, tunnel=False, forwarded=b"\r\n".join(head))


def _place(text: str, default: int | None) -> tuple[str, int]:
    name, divider, port = text.lower().rpartition(":")
    if text.startswith("["):
        if text.endswith("]") and default is not None:
            name, port = text, str(default)
        host = name[1:-1] if name.endswith("]") else ""
        if literal(host) is None or "%" in host:
            raise Rejected(f"{text!r} is not an IP address")
    else:
        if not divider and default is not None:
            name, port = port, str(default)
        host = name.rstrip(".")
        if len(host) > HOST_MAX_CHARS or not HOST.fullmatch(host):
            raise Rejected(f"{text!r} names no host")
    if not (port.isascii() and port.isdecimal()) or len(port) > 5 or not 0 < int(port) <= PORT_MAX:
        raise Rejected(f"{text!r} names no port")
    return host, int(port)


def _is_this_machine(text: str) -> bool:
    address = ip_address(text)
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


@dataclass(eq=False, slots=True, kw_only=True)
class NetworkAccess:
    """The network access of one command."""

    # The socket to which the launcher sends its listener.
    path: Path
    rules: HostRules
    # The hosts that the command tried to reach and may not.
    refused: set[str] = field(default_factory=set[str])

    @property
    def direct(self) -> str:
        """The names that bypass the proxy: loopback, where the command's own servers listen, unless a rule allows it."""
        return ",".join(name for name in _LOOPBACK if not any(_split(each)[0] == name for each in self.rules.local))


class Network:
    """Gives sandboxed commands their network access.  `home` is the gateway's folder, which no command sees.

    `local` names the hosts of this machine or its network that the operator has configured.
    """

    def __init__(
        self, home: Path, resolver: Resolver = system_resolver, local: Iterable[str] = (), *, own_port: int = 0
    ) -> None:
        self._own_port = own_port
        self._folder = home / FOLDER
        self._resolver = resolver
        self._local = frozenset(local)
        self._kept: dict[asyncio.Task[None], contextlib.AsyncExitStack] = {}

    @contextlib.asynccontextmanager
    async def opened(self, rules: HostRules) -> AsyncGenerator[NetworkAccess]:
        """Open network access for one command; it closes with the context."""
        access, stack = await self._open(rules)
        async with stack:
            yield access

    async def keep(
        self, rules: HostRules, start: Callable[[NetworkAccess], Awaitable[_T]], ended: Callable[[_T], Awaitable[object]]
    ) -> _T:
        """Start a background command, and keep its access open until it has ended."""
        access, stack = await self._open(rules)
        try:
            started = await start(access)
        except BaseException:
            await stack.aclose()
            raise

        async def hold() -> None:
            async with stack:
                await ended(started)

        task = asyncio.create_task(hold(), name=f"access:{access.path.name}")
        self._kept[task] = stack
        task.add_done_callback(lambda done: self._kept.pop(done, None))
        return started

    async def close(self) -> None:
        """Close every access that is still open."""
        kept = dict(self._kept)
        for task in kept:
            task.cancel()
        await asyncio.gather(*kept, return_exceptions=True)
        # A task that was cancelled before its first step has closed nothing.
        for stack in kept.values():
            await stack.aclose()

    async def _open(self, rules: HostRules) -> tuple[NetworkAccess, contextlib.AsyncExitStack]:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        stack = contextlib.AsyncExitStack()
        path = self._folder / f"{secrets.token_hex(8)}.sock"
        if len(os.fsencode(path)) > PATH_MAX_BYTES:
            path = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hf-"))) / path.name
        access = NetworkAccess(path=path, rules=rules)
        inlet = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        inlet.bind(str(access.path))
        stack.enter_context(contextlib.closing(inlet))
        stack.callback(access.path.unlink, missing_ok=True)
        task = asyncio.create_task(self._serve(access, inlet), name=f"proxy:{access.path.name}")
        stack.push_async_callback(_cancel, task)
        return access, stack

    async def _serve(self, access: NetworkAccess, inlet: socket.socket) -> None:
        """Receive the listener of a command once, and serve it until cancelled."""
        listener = await _receive(inlet)
        inlet.close()
        access.path.unlink(missing_ok=True)
        if listener is None:
            return
        proxy = ProxyServer(access, self._resolver, self._local, self._own_port)
        server = await asyncio.start_server(proxy.serve, sock=listener, limit=HEAD_MAX_BYTES, backlog=CONNECTIONS_MAX)
        try:
            await server.serve_forever()
        finally:
            server.close()
            await proxy.close()


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def _receive(inlet: socket.socket) -> socket.socket | None:
    """Return the listener that was sent; None if something else was sent."""
    loop = asyncio.get_running_loop()
    arrived = asyncio.Event()
    loop.add_reader(inlet, arrived.set)
    try:
        await arrived.wait()
        _, numbers, _, _ = socket.recv_fds(inlet, 16, 4)
    finally:
        loop.remove_reader(inlet)
    sockets = [socket.socket(fileno=number) for number in numbers if _is_socket(number)]
    for each in sockets:
        if _is_listener(each):
            sockets.remove(each)
            _close(sockets)
            each.setblocking(False)
            return each
    _close(sockets)
    return None


def _is_socket(number: int) -> bool:
    if stat.S_ISSOCK(os.fstat(number).st_mode):
        return True
    os.close(number)
    return False


def _is_listener(held: socket.socket) -> bool:
    is_tcp = held.family == socket.AF_INET and held.type == socket.SOCK_STREAM
    return is_tcp and bool(held.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))


def _close(sockets: Iterable[socket.socket]) -> None:
    for each in sockets:
        each.close()


class ProxyServer:
    """The connections of one command.  `own_port` is where the gateway itself listens."""

    def __init__(self, access: NetworkAccess, resolver: Resolver, local: frozenset[str], own_port: int = 0) -> None:
        self._own_port = own_port
        self._access = access
        self._resolver = resolver
        self._local = local
        self._open: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        task = asyncio.current_task()
        if task is None or len(self._open) >= CONNECTIONS_MAX:
            await _answer(writer, "503 Service Unavailable", f"a command has at most {CONNECTIONS_MAX} connections\n")
            return
        self._open.add(task)
        try:
            await self._serve(reader, writer)
        except (OSError, asyncio.IncompleteReadError, TimeoutError):
            # One side is gone; closing the connection tells the other.
            pass
        finally:
            self._open.discard(task)
            writer.close()

    async def close(self) -> None:
        """End every connection."""
        for task in tuple(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(HEAD_TIMEOUT_S):
                data = await reader.readuntil(b"\r\n\r\n")
            head = parse(data.removesuffix(b"\r\n\r\n"))
        except asyncio.LimitOverrunError:
            return await _answer(
                writer, "431 Request Header Fields Too Large", f"a head has {HEAD_MAX_BYTES} bytes at most\n"
            )
        except Rejected as error:
            return await _answer(writer, "400 Bad Request", f"Holdfast's proxy: {error}\n")
        try:
            there = await self._reach(head)
        except Rejected as error:
            self._refuse(head.place)
            return await _answer(
                writer, "403 Forbidden", f"Holdfast does not let this command reach {head.place}: {error}\n"
            )
        except (Unavailable, OSError, TimeoutError) as error:
            return await _answer(
                writer, "502 Bad Gateway", f"{head.place} cannot be reached: {error or 'no answer in time'}\n"
            )
        other_reader, other = there
        try:
            if head.tunnel:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                other.write(head.forwarded)
            await _relay((reader, writer), (other_reader, other))
        finally:
            other.close()
        return None

    async def _reach(self, head: ProxyRequest) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to the host of a request, if it may be reached.  Raises `Rejected` or `Unavailable`."""
        if not self._access.rules.allowed(head.host, head.port):
            raise Rejected(f"it is not allowed yet; {_ADVICE}")
        named = [*self._access.rules.local, *self._local]
        guard = Guard(named, self._resolver, setting="tools.terminal.hosts")
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            addresses = await guard.addresses(httpx2.URL(scheme="https", host=head.host, port=head.port))
            if head.port == self._own_port and any(map(_is_this_machine, addresses)):
                # The gateway would trust the proxy's connection as one of its own user, who may read and delete everything.
                raise Rejected("this is the gateway itself, which no command may reach")
            problem: OSError = ConnectionError("it has no address")
            for address in addresses:
                try:
                    return await asyncio.open_connection(address, head.port)
                except OSError as error:
                    problem = error
        raise problem

    def _refuse(self, place: str) -> None:
        if len(self._access.refused) < REFUSED_MAX:
            self._access.refused.add(place)


Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _relay(one: Stream, other: Stream) -> None:
    """Relay both directions until `other` closes, or until neither side has sent anything for the idle timeout."""
    clock = asyncio.get_running_loop().time
    async with asyncio.timeout(IDLE_TIMEOUT_S) as idle:

        async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while data := await reader.read(CHUNK_BYTES):
                idle.reschedule(clock() + IDLE_TIMEOUT_S)
                writer.write(data)
                await writer.drain()
            if writer.can_write_eof():
                writer.write_eof()

        there = asyncio.create_task(copy(one[0], other[1]))
        try:
            await copy(other[0], one[1])
        finally:
            there.cancel()
            await asyncio.gather(there, return_exceptions=True)


async def _answer(writer: asyncio.StreamWriter, status: str, text: str) -> None:
    body = text.encode("utf-8", "replace")
    lines = (
        f"HTTP/1.1 {status}",
        "Content-Type: text/plain; charset=utf-8",
        f"Content-Length: {len(body)}",
        "Connection: close",
    )
    writer.write("\r\n".join((*lines, "", "")).encode("latin-1") + body)
    with contextlib.suppress(OSError):
        await writer.drain()
    writer.close()
