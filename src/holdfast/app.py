"""The composition root: the only place that constructs adapters and hands them to the engine."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from holdfast.agent.demonstration import demonstration
from holdfast.config import Config
from holdfast.core.redaction import Redaction
from holdfast.core.turns import OnCrash, Policy, Resume
from holdfast.engine.discretion import discreet
from holdfast.engine.engine import Engine, Parts
from holdfast.engine.settings import Settings
from holdfast.store.opening import Store, open_readonly, open_store


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
    return Redaction((password, unquote(password)))


@contextlib.asynccontextmanager
async def gateway(config: Config, home: Path) -> AsyncGenerator[tuple[Engine, Store]]:
    """Run an engine in this process for as long as the context lasts; running turns get the drain timeout at its end."""
    mask = redaction(config)
    with discreet(mask):
        store = await open_store(config.store.url, home)
        try:
            engine = Engine(
                Parts(
                    store=store,
                    agent=demonstration(home / "demonstration-notes.txt"),
                    settings=settings(config),
                    redaction=mask,
                )
            )
            running = asyncio.create_task(engine.run(), name="engine")
            try:
                await _recovered(engine, running)
                yield engine, store
                await engine.drain(int(config.gateway.drain_timeout * 1000))
            finally:
                running.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await running
        finally:
            await store.close()


async def _recovered(engine: Engine, running: asyncio.Task[None]) -> None:
    """Wait for the first sweep, or raise what kept the engine from it."""
    waiting = asyncio.create_task(engine.recovered())
    await asyncio.wait((waiting, running), return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if running.done():
        await running


@contextlib.asynccontextmanager
async def reader(config: Config, home: Path) -> AsyncGenerator[Store]:
    """Open the store for looking only, beside whoever owns it."""
    store = await open_readonly(config.store.url, home)
    try:
        yield store
    finally:
        await store.close()
