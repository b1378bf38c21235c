"""The composition root: the only place that constructs adapters and hands them to the engine."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.channels.openai.models import offered
from holdfast.clock import Clock, SystemClock
from holdfast.config import (
    ONE_SHOT_DAYS,
    ChannelsConfig,
    Config,
    LimitsConfig,
    ServerConfig,
    config_file,
    is_exposed,
    keep_apart,
    secrets,
    shown,
)
from holdfast.core.fairness import Quota
from holdfast.core.intake import Busy
from holdfast.core.keys import API
from holdfast.core.redaction import Redaction, is_unguessable
from holdfast.core.resets import When
from holdfast.core.turns import OnCrash, Policy, Resume
from holdfast.daemon.life import Farewell, Witness, live, signals, watched
from holdfast.daemon.notice import Notice
from holdfast.daemon.succession import Estate
from holdfast.daemon.watchdog import Watchdog
from holdfast.desk.address import LOCK, SOCKET
from holdfast.desk.keys import opens_api
from holdfast.desk.lifecycle import Lifecycle
from holdfast.desk.local import LocalDesk
from holdfast.desk.logins import root_of
from holdfast.desk.plans import KeyPlan
from holdfast.desk.port import Desk
from holdfast.desk.reading import StoreReading
from holdfast.desk.views import AgentView, Stop
from holdfast.desk.webhooks import Routes
from holdfast.engine.discretion import discreet
from holdfast.engine.engine import Engine, Parts
from holdfast.engine.inbox import Inbox
from holdfast.engine.settings import Settings
from holdfast.engine.spool import Spool
from holdfast.engine.supervisor import supervise
from holdfast.engine.timekeeper import steady_clock
from holdfast.errors import ConfigInvalid, Exposed, Fatal, NodeLost, NotFound, StoreDown, Unavailable
from holdfast.offload.pool import Pool
from holdfast.ports import ProcessControl, Uploads
from holdfast.store.home import Ownership, make_home
from holdfast.store.opening import Store, open_readonly, open_store
from holdfast.targets import Targets

if TYPE_CHECKING:
    # Whoever only looks does not pay for importing all that a doctor looks at.
    from holdfast.desk.settings import Origin
    from holdfast.desk.upkeep import Upkeep

log = logging.getLogger(__name__)

# How long a gateway that begins anew waits between two looks for its store.
PAUSE_FIRST_S = 0.5
PAUSE_MAX_S = 10
SEND_TIMEOUT_MIN_S = 30
SEND_MARGIN_S = 10


def settings(config: Config) -> Settings:
    """Return what the operator chose about the engine."""
    return Settings(
        max_running=config.gateway.max_running,
        tenant_running=config.limits.running,
        model_wait_ms=int(config.model.wait * 1000),
        policy=Policy(resume=Resume(config.gateway.resume), on_crash=OnCrash(config.gateway.on_crash)),
        busy=Busy(config.gateway.busy),
        reset=When(config.sessions.reset),
        reset_by_channel={name: When(each) for name, each in config.sessions.reset_by_channel.items()},
        idle_ms=int(config.sessions.idle_minutes * 60_000),
        daily_at=config.sessions.daily_at,
        # Whoever names one channel has not spoken of the others.
        one_shot_days={**ONE_SHOT_DAYS, **config.sessions.retention_days},
        # Whoever sends gives up first, because it knows whether anything had left.
        send_timeout_ms=int((max(config.channels.url.timeout, SEND_TIMEOUT_MIN_S) + SEND_MARGIN_S) * 1000),
        commit_timeout_ms=int(config.memory.commit_timeout * 1000),
        memory_idle_ms=int(config.memory.idle_minutes * 60_000),
        live_max=config.memory.live_sessions,
        recall_timeout_ms=int(config.memory.recall_timeout * 1000),
        recall_limit=config.memory.recall_limit,
    )


def quota(limits: LimitsConfig) -> Quota:
    """Return how much of the store a tenant may use."""
    return Quota(queued=limits.queued, sessions=limits.sessions, bytes=limits.bytes, jobs=limits.jobs)


def redaction(config: Config) -> Redaction:
    """Return the mask for the secrets that the configuration holds, as far as nobody can find them out by asking it."""
    return Redaction(secrets(config), is_unguessable)


@contextlib.contextmanager
def owned(home: Path, inherited: int | None = None) -> Generator[Ownership]:
    """Be the one gateway of a home, whatever its store is.  Raises `Owned`."""
    make_home(home)
    ownership = Ownership(home / LOCK, inherited)
    try:
        if inherited is None:
            # A socket beside a lock that is held means that its gateway is about to be there.
            (home / SOCKET).unlink(missing_ok=True)
        try:
            yield ownership
        finally:
            if not ownership.handed_over:
                (home / SOCKET).unlink(missing_ok=True)
    finally:
        ownership.release()


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """An engine at work, and what can be asked beside it."""

    engine: Engine
    store: Store
    control: ProcessControl
    uploads: Uploads
    trusted_owners: Sequence[str]
    describe: Callable[[], AgentView]
    server: ServerConfig
    channels: ChannelsConfig
    targets: Targets
    routes: Routes
    redaction: Redaction
    home_id: str
    clock: Clock

    def desk(self, lifecycle: Lifecycle) -> LocalDesk:
        return LocalDesk(
            store=self.store,
            engine=self.engine,
            lifecycle=lifecycle,
            clock=self.clock,
            control=self.control,
            describe=self.describe,
            server=self.server,
            channels=self.channels,
            targets=self.targets,
            routes=self.routes,
            redaction=self.redaction,
            uploads=self.uploads,
            trusted_owners=self.trusted_owners,
        )


async def _unchecked(_store: Store) -> None:
    """Take a store as it is."""


@contextlib.asynccontextmanager
async def node(config: Config, home: Path, check: Callable[[Store], Awaitable[None]] = _unchecked) -> AsyncGenerator[Node]:
    """Run an engine in a home that is ours, for as long as the context lasts; whoever uses it drains it.

    `check` may refuse a store before anything in it moves.
    """
    # Whoever only looks does not pay for importing an agent.
    from holdfast.outfit import Setting, carriers_of, outfit

    mask, machine, chosen = redaction(config), SystemClock(), settings(config)
    spool = Spool(home)
    with discreet(mask.everything):
        with _named(config.store.url):
            store = await open_store(config.store.url, home, redaction=mask, quota=quota(config.limits))
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(store.close)
            await check(store)
            clock = await steady_clock(machine, store.nodes)
            pool = Pool()
            stack.push_async_callback(pool.close)
            # What is signed for others has the time that this machine would tell them.
            carriers = await stack.enter_async_context(carriers_of(config.channels, home, store, mask, machine))
            fitted = await stack.enter_async_context(
                outfit(
                    Setting(
                        config=config,
                        home=home,
                        home_id=spool.home_id,
                        store=store,
                        carriers=carriers,
                        accept=Inbox(store, chosen, mask, clock).accept,
                        redaction=mask,
                        clock=clock,
                        pool=pool,
                    )
                )
            )
            routes = await _routes(config, store, Targets(carriers), mask, pool)
            parts = Parts(
                store=store,
                agent=fitted.agent,
                carriers=carriers,
                memory=fitted.memory,
                settings=chosen,
                redaction=mask,
                clock=clock,
                steady=clock,
                spool=spool,
                components={**fitted.components, "webhooks": routes.run},
            )
            engine = Engine(parts)
            async with _running(engine):
                yield Node(
                    engine=engine,
                    store=store,
                    control=fitted.control,
                    uploads=fitted.uploads,
                    trusted_owners=config.tools.trusted_owners,
                    describe=fitted.describe,
                    targets=Targets(carriers),
                    server=config.server,
                    channels=config.channels,
                    routes=routes,
                    redaction=mask,
                    home_id=spool.home_id,
                    clock=clock,
                )


async def _routes(config: Config, store: Store, targets: Targets, mask: Redaction, pool: Pool) -> Routes:
    """Return the webhook routes; the mask knows their secrets before any turn runs."""
    routes = Routes(
        store.webhooks,
        store.wakes,
        config.channels.webhook.routes,
        host=config.server.host,
        targets=targets,
        redaction=mask,
        pool=pool,
    )
    await routes.load()
    return routes


@contextlib.asynccontextmanager
async def gateway(config: Config, home: Path) -> AsyncGenerator[Node]:
    """Run an engine for one command; at its end running turns get the drain timeout, and none when it is cut short."""
    with owned(home):
        async with node(config, home) as running:
            patience_s = config.gateway.drain_timeout
            try:
                yield running
            except asyncio.CancelledError:
                patience_s = 0
                raise
            finally:
                # What cannot be recorded the next start finds as after a crash.  Nobody at a prompt waits for memory: a
                # command ends, and no conversation.
                with contextlib.suppress(Unavailable):
                    await asyncio.create_task(running.engine.drain(int(patience_s * 1000), is_boundary=False))


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
async def own_desk(config: Config, home: Path) -> AsyncGenerator[Desk]:
    """Be the gateway of a home for one command.  Raises `Owned`."""
    async with gateway(config, home) as running:
        yield running.desk(Lifecycle(running.clock, home=str(home), store=shown(config.store.url)))


@contextlib.asynccontextmanager
async def reader(config: Config, home: Path) -> AsyncGenerator[StoreReading]:
    """Look into the store of a home, beside whoever owns it."""
    with _named(config.store.url):
        store = await open_readonly(config.store.url, home)
    try:
        yield StoreReading(store=store, channels=config.channels)
    finally:
        await store.close()


@contextlib.contextmanager
def _named(url: str) -> Generator[None]:
    """Say which store it is that does not answer."""
    try:
        yield
    except StoreDown as error:
        raise StoreDown(f"{shown(url)}: {error}") from error


async def serve(
    config: Config,
    home: Path,
    witness: Witness,
    inherited: Estate | None = None,
    origin: Origin | None = None,
    watchdog: Watchdog | None = None,
) -> Farewell:
    """Run the gateway until somebody wishes it to end; return that wish once it has."""
    # Only a gateway pays for importing a web server.
    from holdfast.desk.settings import Origin
    from holdfast.web.server import make_room, tcp_socket, unix_socket

    make_room()
    inherited, origin = inherited or Estate(), origin or Origin(file=config_file(home))
    with contextlib.ExitStack() as stack:
        ownership = stack.enter_context(owned(home, inherited.lock))
        # Whoever connects before we are ready waits until we are.
        tcp = stack.enter_context(tcp_socket(config.server.host, config.server.port, inherited.listener))
        unix = stack.enter_context(unix_socket(home / SOCKET, inherited.unix))

        def estate() -> Estate:
            return Estate(listener=tcp.dup(), unix=unix.dup(), lock=ownership.hand_over())

        follows = inherited.lock is not None
        stop = await _serve_on(tcp, unix, config, home, origin, witness, estate, watchdog, follows=follows)
        return Farewell(stop=stop, estate=estate() if stop.restart else Estate())


def listening(config: Config, listener: socket.socket) -> Config:
    """Return a configuration with the port that the gateway really has: it may have asked for any, or inherited one."""
    return replace(config, server=replace(config.server, port=listener.getsockname()[1]))


async def _serve_on(
    tcp: socket.socket,
    unix: socket.socket,
    config: Config,
    home: Path,
    origin: Origin,
    witness: Witness,
    estate: Callable[[], Estate],
    watchdog: Watchdog | None,
    *,
    follows: bool,
) -> Stop:
    """Be the gateway behind two listeners; return the last wish to end it."""
    from holdfast.web.access import Observed, written
    from holdfast.web.application import application
    from holdfast.web.guard import Door, Guarded, Rules, Trusted
    from holdfast.web.keyring import Keyring
    from holdfast.web.metrics import Meter
    from holdfast.web.nonces import Nonces
    from holdfast.web.server import serving
    from holdfast.web.users import can_tell

    notice = Notice()
    life = Lifecycle(SystemClock(), home=str(home), store=shown(config.store.url))
    life.url = _url(tcp)
    try:
        async with contextlib.AsyncExitStack() as stack:
            started = await _started(stack, listening(config, tcp), home, notice, patient=follows)
            # Not before: a start that hangs must be possible to end, and nothing is lost by it.
            heard = stack.enter_context(signals(life))
            if watchdog:
                stack.enter_context(watchdog.hearing(heard))
            await stack.enter_async_context(watched(watchdog, notice, estate))
            desk, clock = started.desk(life), started.clock
            local = replace(desk, care=await stack.enter_async_context(_upkeep(desk, started, config, home, origin)))
            meter, server = Meter(), config.server
            nonces = Nonces()
            app = application(local, life, meter, offered(config.model.name), nonces, started.redaction)
            keyring = Keyring(started.store.keys, started.store.wakes, clock, server.api_key)
            await keyring.load()
            await stack.enter_async_context(_beside({"keyring": keyring.run}, clock))
            key = "" if can_tell() else await _programs_key(local, server, closed=keyring.closes)
            rules = Rules(
                host=server.host,
                allowed_hosts=server.allowed_hosts,
                closed=bool(server.api_key or server.password),
                guests=server.guests,
            )
            door = Door(rules, keyring, started.store.logins, clock, await root_of(started.store.secrets), nonces)
            # The server closes what it gets, and a successor may need the originals.
            public, commands = stack.enter_context(tcp.dup()), stack.enter_context(unix.dup())
            doors = ((public, Guarded(app, door)), (commands, Trusted(app)))
            observed = partial(Observed, meter=meter, logs=server.access_log)
            if server.access_log:
                stack.enter_context(written(redaction(config).everything))
            await stack.enter_async_context(serving(doors, observed, config.limits.connections))
            # Whatever ends us, open streams end before the server does.
            stack.callback(life.closing.set)
            await live(local, config.gateway.drain_timeout, witness, notice, key, watchdog)
    except NodeLost as error:
        # A machine that slept has lost its turns to the others, and nothing else.  If it was to stop anyway, it stops.
        log.warning("%s; %s", error, "stopping, as it was asked to" if life.is_asked else "beginning anew")
        if not life.is_asked:
            life.ask(Stop(restart=True))
    # What is wished for while the last connections close counts too.
    return life.wish


async def _programs_key(desk: LocalDesk, server: ServerConfig, *, closed: bool) -> str:
    """Return a new key for programs of this machine, where it cannot be told whose they are; empty where they have one."""
    if closed or server.api_key or server.password:
        return ""
    return (await desk.keys.create(KeyPlan(name="programs of this machine", scopes=(API,)))).key


async def _rehearse(running: Node, config: Config, other: Config, home: Path) -> None:
    """Do with another configuration all that a start does, short of starting.  Raises `ConfigInvalid`."""
    from holdfast.outfit import Setting, carriers_of, outfit

    server, mask, clock, store, pool = other.server, redaction(other), running.clock, running.store, running.routes.pool
    if other.store.url != config.store.url:
        await _answers(other.store.url, home)
    if (server.host, server.port) != (config.server.host, config.server.port):
        await asyncio.to_thread(_listen_once, server)
    await _locked(server)(store)
    async with contextlib.AsyncExitStack() as stack:
        carriers = await stack.enter_async_context(carriers_of(other.channels, home, store, mask, clock))
        setting = Setting(
            config=other,
            home=home,
            home_id=running.home_id,
            store=store,
            carriers=carriers,
            accept=running.engine.inbox.accept,
            redaction=mask,
            clock=clock,
            pool=pool,
        )
        await stack.enter_async_context(outfit(setting))
        await _routes(other, store, Targets(carriers), mask, pool)


async def _answers(url: str, home: Path) -> None:
    """See that there is a store at an address, or room for one.  Raises `ConfigInvalid`."""
    try:
        await (await open_readonly(url, home)).close()
    except NotFound:
        # The first start makes it.
        return
    except (Unavailable, Fatal) as error:
        raise ConfigInvalid(f"store.url: {shown(url)}: {error}") from error


def _listen_once(server: ServerConfig) -> None:
    from holdfast.web.server import tcp_socket

    with tcp_socket(server.host, server.port):
        pass


@contextlib.asynccontextmanager
async def _upkeep(desk: LocalDesk, running: Node, config: Config, home: Path, origin: Origin) -> AsyncGenerator[Upkeep]:
    """Yield what the gateway behind a desk can be looked after with."""
    from holdfast.consultation import consult
    from holdfast.desk.doctor import Consultations, Report
    from holdfast.desk.settings import Settings
    from holdfast.desk.setup import Setup
    from holdfast.desk.upkeep import Upkeep
    from holdfast.outfit import makers

    async def report() -> Report:
        return await consult(home, origin.file, await desk.status(), required=origin.named)

    async def rehearse(other: Config) -> None:
        server = replace(other.server, **{key.partition(".")[2]: value for key, value in origin.arguments.items()})
        await asyncio.to_thread(keep_apart, "the configuration file", [origin.file], other, home)
        await _rehearse(running, config, replace(other, server=server), home)

    doctor = Consultations(report)
    try:
        settings = Settings(origin, rehearse, running.redaction)
        setup = Setup(settings, running.describe, desk.clock, makers)
        yield Upkeep(doctor=doctor, settings=settings, setup=setup)
    finally:
        await doctor.close()


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


async def _started(stack: contextlib.AsyncExitStack, config: Config, home: Path, notice: Notice, *, patient: bool) -> Node:
    """Start a node.  A patient one, which takes an earlier one's place, waits for its store instead of giving up."""
    pause_s = PAUSE_FIRST_S
    while True:
        try:
            return await stack.enter_async_context(node(config, home, _locked(config.server)))
        except Unavailable as error:
            if not patient:
                raise
            if pause_s == PAUSE_FIRST_S:
                log.warning("cannot begin anew yet: %s; waiting for it", error)
                notice.status(f"waiting for the store: {error}")
        notice.alive()
        await asyncio.sleep(pause_s)
        pause_s = min(pause_s * 2, PAUSE_MAX_S)


def _locked(server: ServerConfig) -> Callable[[Store], Awaitable[None]]:
    """Return the check that whoever can reach the gateway has to show something.  It raises `ConfigInvalid`."""

    async def check(store: Store) -> None:
        if is_exposed(server) and not any(map(opens_api, await store.keys.list())):
            raise Exposed(server.host)

    return check


def _url(tcp: socket.socket) -> str:
    host, port = tcp.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
