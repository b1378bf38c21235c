"""A node: an engine at work in a home, with everything around it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.app.services import ServiceParts, offline_services
from holdfast.clock import SystemClock
from holdfast.config import ChannelsConfig, Config, LimitsConfig, secrets, shown
from holdfast.core.quotas import Quota
from holdfast.core.redaction import Redaction, is_unguessable
from holdfast.engine.engine import Engine, Parts
from holdfast.engine.inbox import Inbox
from holdfast.engine.log_redaction import redacted_logs
from holdfast.engine.spool import Spool
from holdfast.engine.timekeeper import steady_clock
from holdfast.engine.tuning import Tuning
from holdfast.errors import StoreDown, Unavailable
from holdfast.home_files import LOCK, SOCKET
from holdfast.ids import new_node_id
from holdfast.offload.pool import Pool
from holdfast.operations.lifecycle import Lifecycle
from holdfast.operations.services import Services
from holdfast.store.home import Ownership, make_home
from holdfast.store.opening import open_readonly, open_store
from holdfast.store.store import Store

if TYPE_CHECKING:
    # A command that only reads does not import the agent.
    from holdfast.app.adapters import Adapters, Resources

SEND_MARGIN_MS = 10_000
# A chat platform may take this long for a large file on a slow connection.
CHAT_SEND_MS = 300_000


def tuning(channels: ChannelsConfig) -> Tuning:
    """Return how the engine is tuned: it waits longer for a carrier than the carrier waits for the far side."""
    default = Tuning()
    slowest_ms = max(int(channels.url.timeout * 1000), CHAT_SEND_MS if channels.accounts else 0) + SEND_MARGIN_MS
    return replace(default, send_timeout_ms=max(slowest_ms, default.send_timeout_ms))


def quota(limits: LimitsConfig) -> Quota:
    """Return how much of the store a tenant may use."""
    return Quota(queued=limits.queued, sessions=limits.sessions, bytes=limits.bytes, jobs=limits.jobs)


def redaction(config: Config) -> Redaction:
    """Return what masks the secrets of a configuration.

    A secret that could be guessed is left out, because the mask would tell who tries that a guess is right.
    """
    return Redaction(secrets(config), is_unguessable)


@contextlib.contextmanager
def owned(home: Path, inherited: int | None = None) -> Generator[Ownership]:
    """Own a home, which only one gateway does at a time, on PostgreSQL too.  Raises `Owned`."""
    make_home(home)
    ownership = Ownership(home / LOCK, inherited)
    try:
        if inherited is None:
            # Clients take a socket beside a held lock for a gateway that is about to answer.
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
    """A running engine, and what it was built from."""

    config: Config
    engine: Engine
    adapters: Adapters
    resources: Resources
    redaction: Redaction

    @property
    def store(self) -> Store:
        return self.resources.store

    def service_parts(self, lifecycle: Lifecycle) -> ServiceParts:
        return ServiceParts(
            store=self.store,
            engine=self.engine,
            lifecycle=lifecycle,
            clock=self.resources.clock,
            control=self.adapters.control,
            describe=self.adapters.describe,
            server=self.config.server,
            channels=self.config.channels,
            targets=self.adapters.targets,
            routes=self.adapters.routes,
            redaction=self.redaction,
            workspace=self.adapters.uploads,
            trusted_owners=self.adapters.trusted_owners,
            accounts=self.adapters.accounts,
        )


async def _unchecked(_store: Store) -> None:
    """Take a store as it is."""


@contextlib.asynccontextmanager
async def node(config: Config, home: Path, check: Callable[[Store], Awaitable[None]] = _unchecked) -> AsyncGenerator[Node]:
    """Run an engine in a home that this process owns, for as long as the context lasts.  The caller drains it.

    `check` may refuse a store before anything in it moves.
    """
    # A command that only reads does not import the agent.
    from holdfast.app.adapters import Resources, adapters
    from holdfast.app.build import Builder

    mask, spool = redaction(config), Spool(home)
    with redacted_logs(mask.everything):
        with _named(config.store.url):
            store = await open_store(config.store.url, home, redaction=mask, quota=quota(config.limits))
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(store.close)
            await check(store)
            clock = await steady_clock(SystemClock(), store.nodes)
            pool = Pool()
            stack.push_async_callback(pool.close)
            builder = await Builder.of(config, home, mask, clock)
            models = builder.models()
            stack.push_async_callback(models.close)
            accept = Inbox(store, config.gateway, config.sessions, mask, clock, models).accept
            resources = Resources(
                store=store,
                clock=clock,
                pool=pool,
                home_id=spool.home_id,
                node_id=new_node_id(clock.now_ms()),
                models=models,
                accept=accept,
            )
            built = await stack.enter_async_context(adapters(builder, resources))
            parts = Parts(
                store=store,
                agent=built.agent,
                carriers=built.carriers,
                ask_operator=built.ask_operator,
                memory=built.memory,
                models=models,
                config=config,
                tuning=tuning(config.channels),
                redaction=mask,
                clock=clock,
                node_id=resources.node_id,
                steady=clock,
                spool=spool,
                components=built.components,
            )
            engine = Engine(parts)
            async with _running(engine):
                yield Node(config=config, engine=engine, adapters=built, resources=resources, redaction=mask)


@contextlib.asynccontextmanager
async def gateway(config: Config, home: Path) -> AsyncGenerator[Node]:
    """Run an engine for one command.  At its end running turns get the drain timeout; when it is cancelled they get none."""
    with owned(home):
        async with node(config, home) as running:
            patience_s = config.gateway.drain_timeout
            try:
                yield running
            except asyncio.CancelledError:
                patience_s = 0
                raise
            finally:
                # What cannot be recorded, the next start finds as after a crash.  The end of a command is not the end of a
                # conversation, so a person at a prompt does not wait for memory.
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
        # One error, from the body or from the engine; its family decides the answer.
        raise errors.exceptions[0] from None


@contextlib.asynccontextmanager
async def own_gateway(config: Config, home: Path) -> AsyncGenerator[Services]:
    """Own a home and run its gateway for one command.  Raises `Owned`."""
    async with gateway(config, home) as running:
        life = Lifecycle(running.resources.clock, home=str(home), store=shown(config.store.url))
        yield running.service_parts(life).services()


@contextlib.asynccontextmanager
async def offline_gateway(config: Config, home: Path) -> AsyncGenerator[Services]:
    """Read the store of a home, while another process may own it."""
    with _named(config.store.url):
        store = await open_readonly(config.store.url, home)
    try:
        yield offline_services(store, home, config.channels)
    finally:
        await store.close()


@contextlib.contextmanager
def _named(url: str) -> Generator[None]:
    """Name the store in the error where it does not answer."""
    try:
        yield
    except StoreDown as error:
        raise StoreDown(f"{shown(url)}: {error}") from error
