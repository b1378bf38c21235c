"""The composition root: the only place that constructs adapters and hands them to the engine."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import sys
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from holdfast.agent.demonstration import demonstration
from holdfast.clock import SystemClock
from holdfast.config import Config, GatewayConfig
from holdfast.core.redaction import Redaction
from holdfast.core.turns import Cause, OnCrash, Policy, Resume
from holdfast.daemon.notice import Notice
from holdfast.daemon.watchdog import Watchdog, dump_and_begin_anew
from holdfast.desk.address import LOCK, SOCKET
from holdfast.desk.lifecycle import Lifecycle
from holdfast.desk.local import LocalDesk, StoreReading
from holdfast.desk.port import Desk, Reading
from holdfast.desk.views import Drain, Phase, Status, Stop
from holdfast.engine.discretion import discreet
from holdfast.engine.engine import Engine, Parts
from holdfast.engine.settings import Settings
from holdfast.errors import NotRunning, Unavailable
from holdfast.store.home import Ownership, make_home
from holdfast.store.opening import Store, open_readonly, open_store

log = logging.getLogger(__name__)

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
SHOW_S = 0.5


def settings(config: Config) -> Settings:
    """Return what the operator chose about the engine."""
    return Settings(
        max_running=config.gateway.max_running,
        policy=Policy(resume=Resume(config.gateway.resume), on_crash=OnCrash(config.gateway.on_crash)),
        one_shot_days=config.sessions.retention_days,
    )


def redaction(config: Config) -> Redaction:
    """Return the mask for every secret that the configuration holds."""
    password = urlsplit(config.store.url).password or ""
    return Redaction((password, unquote(password), config.server.api_key))


@contextlib.contextmanager
def owned(home: Path) -> Generator[None]:
    """Be the one gateway of a home, whatever its store is.  Raises `Owned`."""
    make_home(home)
    ownership = Ownership(home / LOCK)
    try:
        yield
    finally:
        ownership.release()


@contextlib.asynccontextmanager
async def gateway(config: Config, home: Path) -> AsyncGenerator[tuple[Engine, Store]]:
    """Run an engine in this process for as long as the context lasts; running turns get the drain timeout at its end."""
    mask = redaction(config)
    with discreet(mask), owned(home):
        store = await open_store(config.store.url, home)
        try:
            agent = demonstration(home / "demonstration-notes.txt")
            engine = Engine(Parts(store=store, agent=agent, settings=settings(config), redaction=mask))
            async with _running(engine):
                yield engine, store
                await engine.drain(int(config.gateway.drain_timeout * 1000))
        finally:
            await store.close()


@contextlib.asynccontextmanager
async def _running(engine: Engine) -> AsyncGenerator[None]:
    """Run an engine beside the body, which begins after recovery and is cancelled when the engine cannot go on."""
    try:
        async with asyncio.TaskGroup() as group:
            running = group.create_task(engine.run(), name="engine")
            await engine.recovered()
            yield
            running.cancel()
    except BaseExceptionGroup as errors:
        # What the body raised, or what the engine did: one error, which its family answers for.
        raise errors.exceptions[0] from None


@contextlib.asynccontextmanager
async def reader(config: Config, home: Path) -> AsyncGenerator[Store]:
    """Open the store for looking only, beside whoever owns it."""
    store = await open_readonly(config.store.url, home)
    try:
        yield store
    finally:
        await store.close()


@contextlib.asynccontextmanager
async def running_desk(home: Path) -> AsyncGenerator[Desk]:
    """Reach the gateway that runs in a home.  Raises `NotRunning`."""
    if not (home / SOCKET).exists():
        raise NotRunning(home)
    # Whoever finds no gateway should not wait for a client to be imported.
    from holdfast.desk.remote import connected

    async with connected(home / SOCKET) as desk:
        yield desk


@contextlib.asynccontextmanager
async def desk(config: Config, home: Path) -> AsyncGenerator[Desk]:
    """Reach the gateway of a home, or be it for as long as the context lasts."""
    async with contextlib.AsyncExitStack() as stack:
        try:
            found = await stack.enter_async_context(running_desk(home))
        except NotRunning:
            engine, store = await stack.enter_async_context(gateway(config, home))
            clock = SystemClock()
            life = Lifecycle(clock, home=str(home), store=shown(config.store.url))
            found = LocalDesk(store=store, engine=engine, lifecycle=life, clock=clock)
        yield found


@contextlib.asynccontextmanager
async def reading(config: Config, home: Path) -> AsyncGenerator[Reading]:
    """Read from the gateway of a home, or from its store while none runs."""
    async with contextlib.AsyncExitStack() as stack:
        try:
            found = await stack.enter_async_context(running_desk(home))
        except NotRunning:
            found = StoreReading(store=await stack.enter_async_context(reader(config, home)))
        yield found


def shown(url: str) -> str:
    """Return the address of a store without its secrets."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}{parts.path}" if parts.scheme else url


class Witness(Protocol):
    """Who watches a gateway live: a terminal, or a log."""

    def ready(self, status: Status) -> None: ...
    def draining(self, drain: Drain) -> None: ...
    def drained(self, stop: Stop, interrupted: int) -> None: ...


async def serve(config: Config, home: Path, witness: Witness) -> Stop:
    """Run the gateway until somebody wishes it to end; return that wish once it has."""
    # Only a gateway pays for importing a web server.
    from holdfast.web.application import application
    from holdfast.web.guard import Guarded, Rules, Trusted
    from holdfast.web.server import serving, tcp_socket, unix_socket

    clock, notice = SystemClock(), Notice()
    life = Lifecycle(clock, home=str(home), store=shown(config.store.url))
    with _signals(life):
        async with gateway(config, home) as (engine, store), _watched(config.gateway.stall_timeout, notice):
            local = LocalDesk(store=store, engine=engine, lifecycle=life, clock=clock)
            app = application(local, life)
            with contextlib.closing(tcp_socket(config.server.host, config.server.port)) as tcp:
                with contextlib.closing(unix_socket(home / SOCKET)) as unix:
                    life.url = _url(tcp)
                    doors = ((tcp, Guarded(app, Rules(api_key=config.server.api_key))), (unix, Trusted(app)))
                    async with serving(doors):
                        stop = await _live(local, life, config.gateway, witness, notice)
                        life.closing.set()
    return stop


async def _live(local: LocalDesk, life: Lifecycle, config: GatewayConfig, witness: Witness, notice: Notice) -> Stop:
    """Be ready until a stop is wished for, then drain."""
    life.phase = Phase.READY
    witness.ready(await local.status())
    notice.ready(f"listening on {life.url}")
    stop = await life.asked()
    (notice.reloading if stop.restart else notice.stopping)("draining")
    life.begin_drain(config.drain_timeout if stop.timeout is None else stop.timeout)
    showing = asyncio.create_task(_show(local, life, witness, notice))
    try:
        interrupted = await _drain(local.engine, life, stop)
    finally:
        showing.cancel()
    witness.drained(stop, interrupted)
    return stop


async def _drain(engine: Engine, life: Lifecycle, stop: Stop) -> int:
    """Let what runs finish; a second wish ends the patience.  Returns how many turns were interrupted."""
    cause = Cause.RESTART_TIMEOUT if stop.restart else Cause.SHUTDOWN_TIMEOUT
    current = life.drain(engine.running)
    patience_ms = int(current.seconds_left * 1000) if current else 0
    draining = asyncio.create_task(engine.drain(patience_ms, cause))
    forced = asyncio.create_task(life.forced.wait())
    cut = 0
    try:
        await asyncio.wait((draining, forced), return_when=asyncio.FIRST_COMPLETED)
        if not draining.done():
            cut = await engine.drain(0, cause)
        return cut + await draining
    except Unavailable as error:
        # Nobody could be told; the next start finds these turns as after a crash.
        log.warning("cannot record what the drain interrupts: %s", error)
        return cut
    finally:
        for task in (draining, forced):
            task.cancel()


async def _show(local: LocalDesk, life: Lifecycle, witness: Witness, notice: Notice) -> None:
    while drain := life.drain(local.engine.running):
        witness.draining(drain)
        notice.status(f"draining: {drain.running} turns still run, {drain.seconds_left:.0f} s left")
        await asyncio.sleep(SHOW_S)


@contextlib.contextmanager
def _signals(life: Lifecycle) -> Generator[None]:
    loop = asyncio.get_running_loop()
    for each in SIGNALS:
        loop.add_signal_handler(each, life.ask, Stop())
    try:
        yield
    finally:
        for each in SIGNALS:
            loop.remove_signal_handler(each)


@contextlib.asynccontextmanager
async def _watched(stall_s: float, notice: Notice) -> AsyncGenerator[None]:
    """Have the loop watched from inside this process and, where it asks for it, by the service manager."""
    async with contextlib.AsyncExitStack() as stack:
        if stall_s:
            watchdog = Watchdog(stall_s, lambda: dump_and_begin_anew(stall_s, sys.stderr))
            await stack.enter_async_context(watchdog.watching())
        beating = asyncio.create_task(_beat(notice))
        stack.callback(beating.cancel)
        yield


async def _beat(notice: Notice) -> None:
    while notice.watchdog_s:
        notice.alive()
        await asyncio.sleep(notice.watchdog_s)


def _url(tcp: socket.socket) -> str:
    host, port = tcp.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
