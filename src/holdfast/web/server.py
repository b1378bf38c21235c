"""The server: uvicorn in the gateway's own loop, on sockets that are opened here."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.errors import ConfigInvalid
from holdfast.home_files import short_path
from holdfast.web.answers import refusal
from holdfast.web.peers import Peers
from holdfast.web.protocol import CONNECTIONS_MAX, BoundedProtocol

# Streams end by themselves when the gateway closes; this is for clients that do not read.
GRACE_S = 2
IDLE_S = 30
BACKLOG = 512
# File descriptors for every connection, and for the store, models and background commands beside them.
FILES_MIN = 2 * CONNECTIONS_MAX
_HEADERS = [("X-Content-Type-Options", "nosniff")]


class _Server(uvicorn.Server):
    """A uvicorn that leaves signals to the gateway and says when it is listening."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().serve(sockets)
        finally:
            # A loop that still watches a closed socket would mistake the next file with the same descriptor for it.
            for listener in self.servers if self.started else ():
                listener.close()


class _Closable:
    """An application whose unanswered requests are refused when the server closes, instead of ending as internal errors."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answering = False

        async def watched(message: Message) -> None:
            nonlocal answering
            answering = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except asyncio.CancelledError:
            if answering:
                raise
            hint = "send the same request again, with the same Idempotency-Key if it has one"
            await refusal(503, "closing", "the gateway closed before this was answered", hint)(scope, receive, send)


def _unwatched(app: ASGIApp) -> ASGIApp:
    return app


@contextlib.asynccontextmanager
async def serving(
    listeners: Sequence[tuple[socket.socket, ASGIApp]],
    watch: Callable[[ASGIApp], ASGIApp] = _unwatched,
    connections_max: int = 0,
) -> AsyncGenerator[None]:
    """Answer on every socket with its application for as long as the context lasts; `watch` sees every answer.

    One address has at most `connections_max` connections; 0 is any number.
    """
    servers = [(_Server(_config(watch(_Closable(app)), connections_max)), listener) for listener, app in listeners]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(server.serve([listener]), name="server") for server, listener in servers]
        for server, _ in servers:
            await server.listening.wait()
        try:
            yield
        finally:
            for server, _ in servers:
                server.should_exit = True
            # Left by an exception, too: a group would cut off what they are still answering.
            await asyncio.wait(tasks)


def _config(app: ASGIApp, connections_max: int) -> uvicorn.Config:
    protocol = type("Protocol", (BoundedProtocol,), {"peers": Peers(connections_max)})
    return uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        headers=_HEADERS,
        timeout_keep_alive=IDLE_S,
        timeout_graceful_shutdown=GRACE_S,
        backlog=BACKLOG,
    )


def make_room() -> None:
    """Let this process open as many files as it takes connections, where the system allows it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES_MIN if hard == resource.RLIM_INFINITY else min(FILES_MIN, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


@contextlib.contextmanager
def tcp_socket(host: str, port: int, inherited: socket.socket | None = None) -> Generator[socket.socket]:
    """Listen on a host and port, on the inherited socket where it does.  Raises `ConfigInvalid` where that is impossible."""
    try:
        family, _, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise ConfigInvalid(f"server.host: {host!r} is not an address of this machine: {error.strerror}") from error
    if inherited and _listens_on(inherited, family, address[:2]):
        with inherited:
            yield inherited
        return
    if inherited:
        inherited.close()
    # asyncio turns Nagle's algorithm off only for sockets that name their protocol; with it an answer takes 40 ms longer.
    with socket.socket(family, socket.SOCK_STREAM, protocol) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(address)
            listener.listen(BACKLOG)
        except OSError as error:
            problem = f"server.port: cannot listen on {host}:{port}: {error.strerror}; choose another with --port"
            raise ConfigInvalid(problem) from error
        yield listener


def _listens_on(listener: socket.socket, family: int, address: tuple[object, ...]) -> bool:
    host, port = address
    # Any port will do where none was asked for.
    return listener.family == family and listener.getsockname()[:2] == (host, port or listener.getsockname()[1])


@contextlib.contextmanager
def unix_socket(path: Path, inherited: socket.socket | None = None) -> Generator[socket.socket]:
    """Listen on a socket that only the owner of the home can open, on the inherited one if it is still there."""
    if inherited and path.is_socket():
        with inherited:
            yield inherited
        return
    if inherited:
        inherited.close()
    # The holder of the home's lock may take away what an earlier gateway left behind.
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        with short_path(path) as short:
            listener.bind(short)
        path.chmod(0o600)
        listener.listen(BACKLOG)
        yield listener
