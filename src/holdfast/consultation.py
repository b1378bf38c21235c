"""A consultation: opens whatever there is to look at, beside a gateway that runs or without one, and asks the doctor."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

from holdfast.agent import plugins
from holdfast.agent.models.catalog import BUILT_IN
from holdfast.channels.webhook.route import misconfigured
from holdfast.channels.webhook.signatures import new_secret
from holdfast.clock import SystemClock
from holdfast.config import Config, load, secrets
from holdfast.core.memory import BUILTIN
from holdfast.core.redaction import Redaction
from holdfast.desk.doctor import Patient, Report, examine
from holdfast.desk.views import Status
from holdfast.errors import ConfigInvalid, Unavailable
from holdfast.memory.bindings import Bindings
from holdfast.memory.builtin.plain import PlainExtractor
from holdfast.memory.builtin.provider import Builtin
from holdfast.memory.opening import open_bindings
from holdfast.outfit import carriers_signing, extracting
from holdfast.store.opening import Store, open_readonly
from holdfast.store.vitals import Vitals, vitals
from holdfast.targets import Targets

# A database that is well answers at once.
LOOK_TIMEOUT_S = 15


async def consult(home: Path, file: Path, gateway: Status | Exception, *, required: bool) -> Report:
    """Look at a home and its configuration, whatever is wrong with them; `gateway` is what the one that runs there says."""
    try:
        config, wrong = load(file, required=required, further=misconfigured), None
    except ConfigInvalid as error:
        config, wrong = Config(), error
    patient = Patient(
        home=home,
        file=file,
        config=config,
        # Reading what is installed takes longer than a gateway may stand still.
        plugins=await asyncio.to_thread(plugins.load, providers=BUILT_IN | set(config.providers)),
        clock=SystemClock(),
        redaction=Redaction(secrets(config)),
        wrong=wrong,
        gateway=gateway,
    )
    if wrong:
        return await examine(patient)
    async with _opened(patient) as opened:
        return await examine(opened)


@contextlib.asynccontextmanager
async def _opened(patient: Patient) -> AsyncGenerator[Patient]:
    """Yield a patient with all that can be opened; what cannot be is the error that says why."""
    config = patient.config
    async with contextlib.AsyncExitStack() as stack:
        store = await _store(stack, patient)
        bindings = _bindings(patient, store)
        if isinstance(bindings, Bindings):
            stack.push_async_callback(bindings.close)
        yield replace(
            patient,
            store=store,
            vitals=await _vitals(store) if isinstance(store, Store) else None,
            bindings=bindings,
            targets=await _targets(stack, patient),
            extracts=extracting(config.model, config.memory.model) if config.memory.model else None,
        )


async def _store(stack: contextlib.AsyncExitStack, patient: Patient) -> Store | Exception:
    try:
        store = await open_readonly(patient.config.store.url, patient.home)
    except Exception as error:  # The edge to a file or a server that may be anything.
        return error
    stack.push_async_callback(store.close)
    return store


async def _vitals(store: Store) -> Vitals | Exception:
    try:
        async with asyncio.timeout(LOOK_TIMEOUT_S):
            return await vitals(store.database)
    except Exception as error:  # The edge to a file that may be damaged in any way.
        return error


def _bindings(patient: Patient, store: Store | Exception) -> Bindings | ConfigInvalid | None:
    """Return memory as it is configured; None for that of a store which is not there."""
    config = patient.config
    if config.memory.provider == BUILTIN and not isinstance(store, Store):
        return None

    def builtin() -> Builtin:
        if not isinstance(store, Store):
            raise Unavailable("the store cannot be read")
        return Builtin(store, _Unasked(config.memory.model or config.model.name), clock=patient.clock)

    try:
        return open_bindings(
            config.memory,
            builtin=builtin,
            plugins=patient.plugins,
            redaction=patient.redaction,
            clock=patient.clock,
            environment=patient.environment,
        )
    except ConfigInvalid as error:
        return error


class _Unasked(PlainExtractor):
    """Whoever would extract, by name: whoever only looks asks no model."""

    def __init__(self, name: str) -> None:
        self.name = name or PlainExtractor.name


async def _targets(stack: contextlib.AsyncExitStack, patient: Patient) -> Targets | ConfigInvalid:
    channels = patient.config.channels
    # Nothing is signed here, so that one that was made up does not have to be read.
    secret = channels.url.secret or new_secret()
    try:
        carriers = await stack.enter_async_context(carriers_signing(secret, channels, patient.home, patient.clock))
    except ConfigInvalid as error:
        return error
    return Targets(carriers)
