"""The gateway's process: listens, answers over HTTP, obeys signals, and leaves its listeners to the next process."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from holdfast.app.build import model_makers
from holdfast.app.doctor import consult
from holdfast.app.node import Node, node, owned, redaction
from holdfast.app.rehearsal import check_locked, rehearse
from holdfast.channels.openai.models import offered
from holdfast.clock import Clock, SystemClock
from holdfast.config import Config, ServerConfig, config_file, keep_apart, shown
from holdfast.core.keys import API
from holdfast.daemon.handover import Handover
from holdfast.daemon.process import GatewayExit, Observer, run_until_stopped, signals, watched
from holdfast.daemon.service_manager import ServiceManager
from holdfast.daemon.watchdog import Watchdog
from holdfast.engine.supervisor import supervise
from holdfast.errors import NodeLost, Unavailable
from holdfast.home_files import SOCKET
from holdfast.operations.caller import OPERATOR, Caller
from holdfast.operations.doctor import Doctor, Report
from holdfast.operations.gateway import Gateway, Stop
from holdfast.operations.keys import KeyPlan, Keys
from holdfast.operations.lifecycle import Lifecycle
from holdfast.operations.logins import root_of
from holdfast.operations.services import ServerServices
from holdfast.operations.settings import Origin, Settings
from holdfast.operations.setup import Setup
from holdfast.operations.upkeep import Upkeep
from holdfast.store.home import Ownership
from holdfast.web.access import Observed, written
from holdfast.web.application import application
from holdfast.web.guard import Door, Guarded, Rules, Trusted
from holdfast.web.keyring import Keyring
from holdfast.web.metrics import Meter
from holdfast.web.nonces import Nonces
from holdfast.web.server import make_room, serving, tcp_socket, unix_socket
from holdfast.web.users import can_tell

log = logging.getLogger(__name__)

# How long a gateway that begins anew waits between two looks for its store.
PAUSE_FIRST_S = 0.5
PAUSE_MAX_S = 10


async def serve(
    config: Config,
    home: Path,
    observer: Observer,
    inherited: Handover | None = None,
    origin: Origin | None = None,
    watchdog: Watchdog | None = None,
) -> GatewayExit:
    """Run the gateway until it is asked to stop; return how it ended."""
    make_room()
    inherited = inherited or Handover()
    with contextlib.ExitStack() as stack:
        ownership = stack.enter_context(owned(home, inherited.lock))
        # Opened before everything else, so that a client that connects during the start waits instead of being refused.
        gateway = _Gateway(
            config=config,
            home=home,
            origin=origin or Origin(file=config_file(home)),
            observer=observer,
            watchdog=watchdog,
            ownership=ownership,
            tcp=stack.enter_context(tcp_socket(config.server.host, config.server.port, inherited.listener)),
            unix=stack.enter_context(unix_socket(home / SOCKET, inherited.unix)),
            replaces=inherited.lock is not None,
        )
        stop = await gateway.run()
        return GatewayExit(stop=stop, handover=gateway.hand_over() if stop.restart else Handover())


def listening(config: Config, listener: socket.socket) -> Config:
    """Return a configuration with the port that the listener has: port 0 means any, and a port may be inherited."""
    return replace(config, server=replace(config.server, port=listener.getsockname()[1]))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gateway:
    """The gateway of a home, behind two listeners."""

    config: Config
    home: Path
    origin: Origin
    observer: Observer
    watchdog: Watchdog | None
    ownership: Ownership
    tcp: socket.socket
    unix: socket.socket
    # Whether it takes the place of an earlier process.
    replaces: bool

    def hand_over(self) -> Handover:
        """Return what the next process gets."""
        return Handover(listener=self.tcp.dup(), unix=self.unix.dup(), lock=self.ownership.hand_over())

    async def run(self) -> Stop:
        """Serve until asked to stop; return the last request to stop."""
        service_manager = ServiceManager()
        life = Lifecycle(SystemClock(), home=str(self.home), store=shown(self.config.store.url), url=_url(self.tcp))
        try:
            async with contextlib.AsyncExitStack() as stack:
                started = await self._started(stack, service_manager)
                # Not before: until here a signal ends the process at once, which loses nothing even if the start hangs.
                heard = stack.enter_context(signals(life))
                if self.watchdog:
                    stack.enter_context(self.watchdog.hearing(heard))
                await stack.enter_async_context(watched(self.watchdog, service_manager, self.hand_over))
                parts = started.service_parts(life)
                services = parts.services()
                upkeep = await stack.enter_async_context(self._upkeep(services.gateway, started))
                key = await self._open_to_clients(stack, partial(parts.server_services, upkeep), started)
                # Open streams end before the server does.
                stack.callback(life.closing.set)
                await run_until_stopped(
                    services, self.config.gateway.drain_timeout, self.observer, service_manager, key, self.watchdog
                )
        except NodeLost as error:
            # After a machine has slept, other nodes have its turns; nothing else is lost.
            log.warning("%s; %s", error, "stopping, as it was asked to" if life.is_asked else "beginning anew")
            if not life.is_asked:
                life.ask(Stop(restart=True))
        # A request that arrives while the last connections close counts too.
        return life.wish

    async def _started(self, stack: contextlib.AsyncExitStack, service_manager: ServiceManager) -> Node:
        """Start a node.  A gateway that replaces an earlier one waits for the store instead of giving up."""
        config, pause_s = listening(self.config, self.tcp), PAUSE_FIRST_S
        while True:
            try:
                return await stack.enter_async_context(node(config, self.home, check_locked(config.server)))
            except Unavailable as error:
                if not self.replaces:
                    raise
                if pause_s == PAUSE_FIRST_S:
                    log.warning("cannot begin anew yet: %s; waiting for it", error)
                    service_manager.status(f"waiting for the store: {error}")
            service_manager.alive()
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, PAUSE_MAX_S)

    async def _open_to_clients(
        self, stack: contextlib.AsyncExitStack, services_of: Callable[[Caller], ServerServices], started: Node
    ) -> str:
        """Answer HTTP on both listeners; return the key that was made for programs of this machine, if one was."""
        server, store, clock = self.config.server, started.store, started.resources.clock
        services, meter, nonces = services_of(OPERATOR), Meter(), Nonces()
        app = application(
            services_of, services.gateway.lifecycle, meter, offered(self.config.model.name), nonces, started.redaction
        )
        keyring = Keyring(store.keys, store.wakes, clock, server.api_key)
        await keyring.load()
        await stack.enter_async_context(_beside({"keyring": keyring.run}, clock))
        key = "" if can_tell() else await _programs_key(services.keys, server, closed=keyring.closes)
        rules = Rules(
            host=server.host,
            allowed_hosts=server.allowed_hosts,
            closed=bool(server.api_key or server.password),
            guests=server.guests,
        )
        door = Door(rules, keyring, store.logins, clock, await root_of(store.secrets), nonces)
        # The server closes the sockets it gets, and the next process may need the originals.
        public, commands = stack.enter_context(self.tcp.dup()), stack.enter_context(self.unix.dup())
        doors = ((public, Guarded(app, door)), (commands, Trusted(app)))
        observed = partial(Observed, meter=meter, logs=server.access_log)
        if server.access_log:
            stack.enter_context(written(redaction(self.config).everything))
        await stack.enter_async_context(serving(doors, observed, self.config.limits.connections))
        return key

    @contextlib.asynccontextmanager
    async def _upkeep(self, gateway: Gateway, running: Node) -> AsyncGenerator[Upkeep]:
        """Yield the doctor, the settings and the set-up of this gateway."""
        origin = self.origin

        async def report() -> Report:
            return await consult(self.home, origin.file, await gateway.status(), required=origin.named)

        async def try_out(other: Config) -> None:
            server = replace(other.server, **{key.partition(".")[2]: value for key, value in origin.arguments.items()})
            await asyncio.to_thread(keep_apart, "the configuration file", [origin.file], other, self.home)
            await rehearse(running, self.config, replace(other, server=server), self.home)

        doctor = Doctor(report)
        try:
            settings = Settings(origin, try_out, running.redaction)
            setup = Setup(settings, lambda: gateway.describe().demonstration, gateway.clock, model_makers)
            yield Upkeep(doctor=doctor, settings=settings, setup=setup)
        finally:
            await doctor.close()


async def _programs_key(keys: Keys, server: ServerConfig, *, closed: bool) -> str:
    """Return a new key for programs of this machine, where it cannot be told whose they are; empty where they have one."""
    if closed or server.api_key or server.password:
        return ""
    return (await keys.create(KeyPlan(name="programs of this machine", scopes=(API,)))).key


@contextlib.asynccontextmanager
async def _beside(components: Mapping[str, Callable[[], Awaitable[None]]], clock: Clock) -> AsyncGenerator[None]:
    """Keep components running beside the body."""
    try:
        async with asyncio.TaskGroup() as group:
            running = group.create_task(supervise(components, clock))
            yield
            running.cancel()
    except BaseExceptionGroup as errors:
        # What the body raised, or what was fatal for a component.
        raise errors.exceptions[0] from None


def _url(tcp: socket.socket) -> str:
    host, port = tcp.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
