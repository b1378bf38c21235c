"""The way out of the sandbox: an HTTP proxy that reaches only the hosts that somebody has allowed.

A confined command has a network of its own with nothing in it.  The launcher opens a listener there and sends it through a
Unix socket, the door of this command, so the proxy knows whose rules apply.  Nothing of the gateway is visible inside, and a
command that outlives the gateway has no way out.

It speaks CONNECT, and plain HTTP with an absolute address.  Names are looked up and checked here, as those that the agent
fetches are: what leads to this machine or its network is refused unless it was allowed by exactly that name.
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

FOLDER = "doors"
HEAD_MAX_BYTES = 32 * 1024
HEAD_TIMEOUT_S = 15
CONNECT_TIMEOUT_S = 15
IDLE_TIMEOUT_S = 300
CONNECTIONS_MAX = 64
# Enough for a person to read; a command that tries more hosts is not told about all of them.
REFUSED_MAX = 50
CHUNK_BYTES = 65_536
# What a Unix socket's path may have, with its end.
PATH_MAX_BYTES = 107

_T = TypeVar("_T")
_METHOD = re.compile(rb"[A-Z][A-Z-]{0,31}")
# No name that a person could not be asked about: the same as in `core/consent.py`, as a test compares.
_HOST = re.compile(r"[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*")
_HOST_MAX_CHARS = 253
_HEADER = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}:[^\x00\r\n]*")
_TARGET = re.compile(rb"http://([^/?#@\s\x00-\x1f\x7f-\xff]{1,300})(/[^\s\x00-\x1f]*|\?[^\s\x00-\x1f]*)?", re.IGNORECASE)
# What is between the client and us, and is none of the server's business.
_HOP = frozenset({b"connection", b"proxy-connection", b"proxy-authorization", b"keep-alive", b"te", b"upgrade", b"host"})
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_ADVICE = "ask for it in the argument `hosts` of the terminal tool, or add it to tools.terminal.hosts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The first part of a request: whom it is for, and what the server is sent of it."""

    host: str
    port: int
    # For CONNECT there is nothing: all that follows is passed on as it is.
    tunnel: bool
    forwarded: bytes = b""

    @property
    def place(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Which hosts a command may reach, asked at each connection."""

    allowed: Callable[[str, int], bool] = lambda _host, _port: False
    # Names that may lead to this machine or its network, with or without a port.
    local: frozenset[str] = frozenset()

    @classmethod
    def of(cls, hosts: Iterable[str]) -> Rules:
        """Return the rules for a list of `host`, `host:port` and `*.domain`.  Without a port, those of the web are meant."""
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


def parse(data: bytes) -> Head:
    """Return what a head asks for, without the empty line at its end.  Raises `Rejected`."""
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
        return Head(host=host, port=port, tunnel=True)
    found = _TARGET.fullmatch(target)
    if found is None:
        raise Rejected("the address must begin with http:// and name a host; for https use CONNECT")
    host, port = _place(found[1].decode("latin-1"), 80)
    path = found[2] or b"/"
    path = path if path.startswith(b"/") else b"/" + path
    kept = [line for line in lines if line.partition(b":")[0].lower() not in _HOP]
    shown = found[1].lower()
    # The server closes when it has answered, so the next request of the client is judged by itself.
    head = [method + b" " + path + b" HTTP/1.1", b"Host: " + shown, *kept, b"Connection: close", b"", b""]
    return Head(host=host, port=port, tunnel=False, forwarded=b"\r\n".join(head))


def _place(text: str, default: int | None) -> tuple[str, int]:
    name, divider, port = text.lower().rpartition(":")
    if text.startswith("["):
        if text.endswith("]") and default is not None:
            name, port = text, str(default)
        host = name[1:-1] if name.endswith("]") else ""
        if literal(host) is None or "%" in host:
            raise Rejected(f"{text!r} is no address")
    else:
        if not divider and default is not None:
            name, port = port, str(default)
        host = name.rstrip(".")
        if len(host) > _HOST_MAX_CHARS or not _HOST.fullmatch(host):
            raise Rejected(f"{text!r} names no host")
    if not (port.isascii() and port.isdecimal()) or len(port) > 5 or not 0 < int(port) <= PORT_MAX:
        raise Rejected(f"{text!r} names no port")
    return host, int(port)


def _is_this_machine(text: str) -> bool:
    address = ip_address(text)
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


@dataclass(eq=False, slots=True, kw_only=True)
class Door:
    """The way out of one command: where its launcher reports, and which hosts it was refused."""

    path: Path
    rules: Rules
    refused: set[str] = field(default_factory=set[str])

    @property
    def direct(self) -> str:
        """What is not reached through the proxy: servers that the command itself runs, unless such a name was allowed."""
        return ",".join(name for name in _LOOPBACK if not any(_split(each)[0] == name for each in self.rules.local))


class Network:
    """Every way out of the sandboxes of a gateway.  `home` is its folder, which no command sees."""

    def __init__(
        self, home: Path, resolver: Resolver = system_resolver, local: Iterable[str] = (), *, own_port: int = 0
    ) -> None:
        self._own_port = own_port
        self._folder = home / FOLDER
        self._resolver = resolver
        # Hosts of this machine or its network that the operator has named.
        self._local = frozenset(local)
        self._kept: dict[asyncio.Task[None], contextlib.AsyncExitStack] = {}

    @contextlib.asynccontextmanager
    async def opened(self, rules: Rules) -> AsyncGenerator[Door]:
        """Give out a door for one command; the way out ends with the context."""
        door, stack = await self._open(rules)
        async with stack:
            yield door

    async def keep(
        self, rules: Rules, start: Callable[[Door], Awaitable[_T]], ended: Callable[[_T], Awaitable[object]]
    ) -> _T:
        """Start a command that nobody waits for, and keep its door open until it has ended."""
        door, stack = await self._open(rules)
        try:
            started = await start(door)
        except BaseException:
            await stack.aclose()
            raise

        async def hold() -> None:
            async with stack:
                await ended(started)

        task = asyncio.create_task(hold(), name=f"door:{door.path.name}")
        self._kept[task] = stack
        task.add_done_callback(lambda done: self._kept.pop(done, None))
        return started

    async def close(self) -> None:
        """Close the doors that are still open."""
        kept = dict(self._kept)
        for task in kept:
            task.cancel()
        await asyncio.gather(*kept, return_exceptions=True)
        # A task that was cancelled before it ran has closed nothing.
        for stack in kept.values():
            await stack.aclose()

    async def _open(self, rules: Rules) -> tuple[Door, contextlib.AsyncExitStack]:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        stack = contextlib.AsyncExitStack()
        path = self._folder / f"{secrets.token_hex(8)}.sock"
        if len(os.fsencode(path)) > PATH_MAX_BYTES:
            path = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hf-"))) / path.name
        door = Door(path=path, rules=rules)
        inlet = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        inlet.bind(str(door.path))
        stack.enter_context(contextlib.closing(inlet))
        stack.callback(door.path.unlink, missing_ok=True)
        task = asyncio.create_task(self._serve(door, inlet), name=f"proxy:{door.path.name}")
        stack.push_async_callback(_ended, task)
        return door, stack

    async def _serve(self, door: Door, inlet: socket.socket) -> None:
        """Take the listener of a command, once, and serve it until cancelled."""
        listener = await _received(inlet)
        inlet.close()
        door.path.unlink(missing_ok=True)
        if listener is None:
            return
        served = Served(door, self._resolver, self._local, self._own_port)
        server = await asyncio.start_server(served.connected, sock=listener, limit=HEAD_MAX_BYTES, backlog=CONNECTIONS_MAX)
        try:
            await server.serve_forever()
        finally:
            server.close()
            await served.close()


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def _received(inlet: socket.socket) -> socket.socket | None:
    """Return the listener that is sent; None for anything else."""
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


class Served:
    """The connections of one command.  `own_port` is where the gateway itself listens."""

    def __init__(self, door: Door, resolver: Resolver, local: frozenset[str], own_port: int = 0) -> None:
        self._own_port = own_port
        self._door = door
        self._resolver = resolver
        self._local = local
        self._open: set[asyncio.Task[None]] = set()

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        task = asyncio.current_task()
        if task is None or len(self._open) >= CONNECTIONS_MAX:
            await _answer(writer, "503 Service Unavailable", f"a command has at most {CONNECTIONS_MAX} connections\n")
            return
        self._open.add(task)
        try:
            await self._connected(reader, writer)
        except (OSError, asyncio.IncompleteReadError, TimeoutError):
            # One of the two sides is gone, which the other sees when its connection is closed.
            pass
        finally:
            self._open.discard(task)
            writer.close()

    async def close(self) -> None:
        """End every connection."""
        for task in tuple(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
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
            await _joined((reader, writer), (other_reader, other))
        finally:
            other.close()
        return None

    async def _reach(self, head: Head) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to the host of a request, if it may be reached.  Raises `Rejected` or `Unavailable`."""
        if not self._door.rules.allowed(head.host, head.port):
            raise Rejected(f"nobody has allowed it yet; {_ADVICE}")
        named = [*self._door.rules.local, *self._local]
        guard = Guard(named, self._resolver, setting="tools.terminal.hosts")
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            addresses = await guard.addresses(httpx2.URL(scheme="https", host=head.host, port=head.port))
            if head.port == self._own_port and any(map(_is_this_machine, addresses)):
                # It would take us for a program of its own user, which may read and delete everything.
                raise Rejected("this is the gateway itself, which no command may reach")
            problem: OSError = ConnectionError("it has no address")
            for address in addresses:
                try:
                    return await asyncio.open_connection(address, head.port)
                except OSError as error:
                    problem = error
        raise problem

    def _refuse(self, place: str) -> None:
        if len(self._door.refused) < REFUSED_MAX:
            self._door.refused.add(place)


Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _joined(one: Stream, other: Stream) -> None:
    """Pass on what each side sends until the other one has ended, or neither has said anything for a while."""
    clock = asyncio.get_running_loop().time
    async with asyncio.timeout(IDLE_TIMEOUT_S) as idle:

        async def passed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while data := await reader.read(CHUNK_BYTES):
                idle.reschedule(clock() + IDLE_TIMEOUT_S)
                writer.write(data)
                await writer.drain()
            if writer.can_write_eof():
                writer.write_eof()

        there = asyncio.create_task(passed(one[0], other[1]))
        try:
            await passed(other[0], one[1])
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
