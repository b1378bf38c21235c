"""The doctor: checks everything that a gateway needs, changes nothing, and says what to do.

It opens as much as can be opened, beside a gateway that runs or without one.  Each check is a small function over what was
opened; a new one is a new line in `CHECKS`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import holdfast
from holdfast.agent.models.port import Model
from holdfast.app.build import Builder
from holdfast.channels.chat.account import no_home
from holdfast.channels.chat.budget import Budget
from holdfast.channels.chat.carrier import ChatCarrier
from holdfast.channels.github import channel as github
from holdfast.channels.registry import carriers_of
from holdfast.channels.settings import KINDS, misconfigured
from holdfast.channels.webhook.routes import added_route, configured_route
from holdfast.channels.webhook.signatures import new_secret
from holdfast.clock import Clock, SystemClock
from holdfast.config import ChatSettings, Config, RouteConfig, load, placed, secrets
from holdfast.core.chats import AccountRecord, AccountState
from holdfast.core.notes import ago
from holdfast.core.redaction import Redaction
from holdfast.core.segments import BUILTIN, debt
from holdfast.core.timekeeping import EARLIEST_MS, lead, span
from holdfast.errors import (
    ConfigInvalid,
    Damaged,
    HoldfastError,
    NotFound,
    NotRunning,
    Rejected,
    StoreDamaged,
    StoreRefused,
    Unavailable,
)
from holdfast.foreign_call import foreign_call
from holdfast.memory.bindings import MemoryBindings
from holdfast.memory.builtin.plain import PlainExtractor
from holdfast.operations.channels import ChannelTrial, TrialContext, try_account
from holdfast.operations.doctor import Finding, Level, Report
from holdfast.operations.gateway import Status
from holdfast.operations.segments import in_words
from holdfast.ports import MemoryProvider
from holdfast.sandbox import INSTALL, Sandbox
from holdfast.store.home import BALLAST_BYTES, refuse_network_filesystem
from holdfast.store.opening import open_readonly, store_path
from holdfast.store.store import Store
from holdfast.store.vitals import Vitals, vitals
from holdfast.store.webhooks import WebhookRoute
from holdfast.targets import Targets

# A healthy database answers at once.
LOOK_TIMEOUT_S = 15
CHECK_TIMEOUT_S = 20
PROVIDER_TIMEOUT_S = 5
FREE_MIN_BYTES = 100 * 1024 * 1024
FREE_LOW_BYTES = 1024 * 1024 * 1024
FILES_LOW = 1_000
LATEST_MS = int(datetime(2100, 1, 1, tzinfo=UTC).timestamp() * 1000)
# Several threads and machines write rows, so a small difference is ordinary.
AHEAD_MAX_MS = 5_000
SKEW_MAX_MS = 5_000
_GIVE_UP = "give it up: holdfast memory status, holdfast memory waive SEGMENT"
# Part of a damaged file can still be read; only a backup has the rest.
RESTORE = (
    "export what can still be read, stop the gateway, keep a copy of the file and its -wal, and restore the last backup"
)
UNSTARTABLE = "correct it: until then the gateway does not start"
UNSEEN = "was not looked at, because the store could not be opened"
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True, slots=True, kw_only=True)
class Patient:
    """What is examined.  What could not be opened is the error that says why; what there is nothing to open of is None."""

    builder: Builder
    file: Path
    # Why the configuration cannot be used; the builder then has that of an empty file.
    wrong: ConfigInvalid | None = None
    # What the gateway that runs says of itself.
    gateway: Status | Exception | None = None
    store: Store | Exception | None = None
    vitals: Vitals | Exception | None = None
    bindings: MemoryBindings | ConfigInvalid | None = None
    targets: Targets | ConfigInvalid | None = None

    @property
    def config(self) -> Config:
        return self.builder.config

    @property
    def home(self) -> Path:
        return self.builder.home

    def placed(self, error: ConfigInvalid) -> ConfigInvalid:
        """Return what is wrong with a setting, together with its line in the file."""
        return placed(self.file, error, self.builder.environment)


Findings = AsyncGenerator[Finding]
Check = Callable[[Patient], Findings]


async def consult(home: Path, file: Path, gateway: Status | Exception, *, required: bool) -> Report:
    """Examine a home and its configuration, however damaged they are; `gateway` is the answer of the one that runs."""
    try:
        config, wrong = load(file, required=required, further=misconfigured, kinds=KINDS), None
    except ConfigInvalid as error:
        config, wrong = Config(), error
    builder = await Builder.of(config, home, Redaction(secrets(config)), SystemClock())
    patient = Patient(builder=builder, file=file, wrong=wrong, gateway=gateway)
    if wrong:
        return await examine(patient)
    async with _opened(patient) as opened:
        return await examine(opened)


@contextlib.asynccontextmanager
async def _opened(patient: Patient) -> AsyncGenerator[Patient]:
    """Yield a patient with everything that can be opened."""
    async with contextlib.AsyncExitStack() as stack:
        store = await _store(stack, patient)
        bindings = _bindings(patient, store)
        if isinstance(bindings, MemoryBindings):
            stack.push_async_callback(bindings.close)
        yield replace(
            patient,
            store=store,
            vitals=await _vitals(store) if isinstance(store, Store) else None,
            bindings=bindings,
            targets=await _targets(stack, patient, store),
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


def _bindings(patient: Patient, store: Store | Exception) -> MemoryBindings | ConfigInvalid | None:
    """Return memory as it is configured; None for the builtin one where its store is not there."""
    opened = store if isinstance(store, Store) else None
    if patient.config.memory.provider == BUILTIN and opened is None:
        return None
    try:
        return patient.builder.memory(opened, _Named(patient.config.memory.model or patient.config.model.name))
    except ConfigInvalid as error:
        return error


class _Named(PlainExtractor):
    """Has the name of the model that would extract.  The doctor asks no model."""

    def __init__(self, name: str) -> None:
        self.name = name or PlainExtractor.name


async def _targets(
    stack: contextlib.AsyncExitStack, patient: Patient, store: Store | Exception
) -> Targets | ConfigInvalid | None:
    # Nothing is signed here, so the secret that a gateway made up for itself does not have to be read.
    secret = patient.config.channels.url.secret or new_secret()
    try:
        opened = await stack.enter_async_context(patient.builder.channels(secret))
        accounts = await stack.enter_async_context(patient.builder.accounts())
    except ConfigInvalid as error:
        return error
    if not accounts:
        return Targets(carriers_of(opened))
    if not isinstance(store, Store):
        return None
    carriers = {name: ChatCarrier(each, store, Budget(patient.builder.clock, 0), no_home) for name, each in accounts.items()}
    return Targets({**carriers_of(opened), **carriers})


async def examine(patient: Patient) -> Report:
    """Make all checks at once, and return their findings in the order of the checks."""
    checks = CHECKS if patient.wrong is None else WITHOUT_CONFIGURATION
    found = await asyncio.gather(*(_made(name, check, patient) for name, check in checks.items()))
    masked = [_masked(each, patient.builder.redaction) for several in found for each in several]
    return Report(ok=all(each.level is not Level.FAIL for each in masked), checks=masked)


async def _made(name: str, check: Check, patient: Patient) -> list[Finding]:
    found: list[Finding] = []
    try:
        async with asyncio.timeout(CHECK_TIMEOUT_S):
            async for each in check(patient):
                found.append(each)  # noqa: PERF401 - What was found before a failure is kept.
    except TimeoutError:
        found.append(
            _fail(name, f"did not come to an end within {CHECK_TIMEOUT_S} s", "see whether its disk and network answer")
        )
    except Exception as error:  # What is examined may fail in any way; the other checks are made all the same.
        found.append(_fail(name, f"could not be looked at: {_told(error)}", "see that what it names is there"))
    return found


async def configuration(patient: Patient) -> Findings:
    name = "configuration"
    if patient.wrong:
        yield _fail(name, str(patient.wrong), "correct that; what depends on it was not looked at")
    elif patient.file.exists():
        yield _ok(name, str(patient.file))
    else:
        yield _ok(name, f"there is no {patient.file}; every setting is at its default")
    for problem in patient.builder.plugins.problems:
        yield _warn("plugins", problem, "install another version of it, or remove it")


async def home(patient: Patient) -> Findings:
    if not patient.home.exists():
        yield _ok("home", f"there is no {patient.home} yet; the first start makes it")
        return
    if not patient.home.is_dir() or not os.access(patient.home, os.R_OK | os.W_OK | os.X_OK):
        yield _fail("home", f"{patient.home} is no folder that we can write in", "choose another with --home, or its owner")
    elif patient.home.stat().st_mode & _OTHERS:
        yield _warn("home", f"others can look into {patient.home}", f"run: chmod 700 {patient.home}")
    else:
        yield _ok("home", str(patient.home))


async def disk(patient: Patient) -> Findings:
    place = next(each for each in (patient.home, *patient.home.parents) if each.exists())
    free, total = shutil.disk_usage(place).free, shutil.disk_usage(place).total
    told = f"{_size(free)} of {_size(total)} free"
    system = os.statvfs(place)
    if free < BALLAST_BYTES:
        advice = f"free {_size(BALLAST_BYTES)} or more: until then new messages are refused, and turns wait for room"
        yield _fail("disk", f"full: {told}", advice)
    elif free < FREE_MIN_BYTES:
        yield _fail("disk", told, f"free some space: below {_size(FREE_MIN_BYTES)} new messages may be refused soon")
    elif free < FREE_LOW_BYTES:
        yield _warn("disk", told, "free some space before it is all gone")
    elif system.f_files > 0 and system.f_favail < FILES_LOW:
        yield _warn("disk", f"{told}, and room for {system.f_favail} more files", "remove files that are not needed")
    else:
        yield _ok("disk", told)


async def clock(patient: Patient) -> Findings:
    now = patient.builder.clock.now_ms()
    told = f"{datetime.fromtimestamp(now / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    advice = "set it, best with NTP: timedatectl set-ntp true"
    vitals = patient.vitals if isinstance(patient.vitals, Vitals) else None
    if not EARLIEST_MS < now < LATEST_MS:
        yield _fail("clock", f"{told} cannot be", advice)
    elif vitals and vitals.now_ms is not None and abs(skew := now - vitals.now_ms) > SKEW_MAX_MS:
        where = "ahead of" if skew > 0 else "behind"
        yield _warn("clock", f"{told}, {span(abs(skew))} {where} the database", f"on both machines, {advice}")
    elif vitals and vitals.newest_at is not None and (ahead := vitals.newest_at - now) > AHEAD_MAX_MS:
        yield _warn("clock", f"{told}, {span(ahead)} before the newest entry of the store: it was set back", advice)
    else:
        yield _ok("clock", told)
    off = await patient.store.nodes.clocks_off() if isinstance(patient.store, Store) else {}
    for node, off_ms in off.items():
        where = f"the clock of node {node} is {lead(off_ms)}; jobs and expiry do not go by it"
        yield _warn("clock", where, f"on its machine, {advice}")


async def gateway(patient: Patient) -> Findings:
    glance = patient.gateway
    if glance is None or isinstance(glance, NotRunning):
        yield _warn("gateway", f"none runs in {patient.home}", "start one with: holdfast serve")
    elif isinstance(glance, Exception):
        yield _fail(
            "gateway", f"it does not answer: {_told(glance)}", "see its log; if it stays so, end it and start it again"
        )
    else:
        told = f"{glance.url} (pid {glance.pid}, node {glance.node}, version {glance.version})"
        if glance.damage:
            yield _fail("gateway", f"{told} has met damage: {'; '.join(glance.damage)}", RESTORE)
        elif not glance.ready:
            yield _warn("gateway", f"{told} is {glance.problem or glance.state.value}", "see: holdfast status")
        elif glance.version != holdfast.__version__:
            yield _warn("gateway", f"{told}; installed is {holdfast.__version__}", "run: holdfast restart")
        else:
            yield _ok("gateway", told)


async def store(patient: Patient) -> Findings:
    url, file = patient.config.store.url, store_path(patient.home)
    if url == "sqlite":
        refuse_network_filesystem(next(each for each in (patient.home, *patient.home.parents) if each.exists()))
        if not file.exists() and not isinstance(patient.store, StoreDamaged):
            yield _ok("store", f"there is no {file} yet; the first start makes it")
            return
        if file.exists() and file.stat().st_mode & _OTHERS:
            yield _warn("store", f"others can read {file}", f"run: chmod 600 {file}")
    match patient.vitals if isinstance(patient.store, Store) else patient.store:
        case Vitals() as vitals if vitals.damage:
            yield _fail("store", f"{file} is damaged: {'; '.join(vitals.damage)}", RESTORE)
        case Vitals() as vitals:
            looked = "" if vitals.looked_through or url != "sqlite" else ", too large to be read through here"
            where = f"{file} ({_size(_bytes(file))}{looked})" if url == "sqlite" else "PostgreSQL answers"
            yield _ok("store", where)
        case Exception() as error:
            yield _fail("store", _told(error), _store_advice(error))
        case None:
            yield _warn("store", UNSEEN, "run it again")


def _store_advice(error: Exception) -> str:
    if isinstance(error, Damaged | StoreDamaged):
        return RESTORE
    if isinstance(error, Unavailable):
        return "start the database, or correct store.url; what was accepted is safe there"
    if isinstance(error, StoreRefused):
        return "nothing was changed: do that, or choose another home with --home"
    return "see whether the disk is well, and keep a copy of the file before anything else"


async def model(patient: Patient) -> Findings:
    config = patient.config.model
    if not config.name:
        yield _warn("model", "none: the built-in demonstration answers", 'set model.name, like "openai:gpt-5"')
        return
    problem = await _unopenable(patient.builder.model)
    running = patient.gateway if isinstance(patient.gateway, Status) else None
    if problem is None:
        yield _ok("model", ", then ".join((config.name, *config.fallback)))
    elif running and not running.agent.demonstration:
        # A service has environment variables of its own, which cannot be read from here.
        told = f"{patient.placed(problem)}; the gateway that runs has it, and answers with {running.agent.model}"
        yield _warn("model", told, "see that the gateway has it after its next start, too")
    else:
        yield _fail("model", str(patient.placed(problem)), UNSTARTABLE)


async def _unopenable(open_it: Callable[[], Model | None]) -> ConfigInvalid | None:
    """Return why a model cannot be opened."""
    try:
        opened = open_it()
    except ConfigInvalid as error:
        return error
    if opened:
        await opened.close()
    return None


async def memory(patient: Patient) -> Findings:
    if isinstance(patient.bindings, ConfigInvalid):
        yield _fail("memory", str(patient.placed(patient.bindings)), UNSTARTABLE)
        return
    if patient.bindings is None:
        empty = isinstance(patient.store, NotFound)
        yield (
            _ok("memory", "nothing is remembered yet") if empty else _warn("memory", UNSEEN, "see what is said of the store")
        )
        return
    if problem := await _unopenable(patient.builder.extracting_model):
        yield _fail("memory", str(patient.placed(problem)), UNSTARTABLE)
    current = patient.bindings.current
    if current is None:
        yield _ok("memory", 'nothing is remembered: memory.provider is "none"')
    else:
        yield await _provider(current)
    if isinstance(patient.store, Store):
        async for each in _debts(patient.store, patient.bindings):
            yield each


async def _provider(current: MemoryProvider) -> Finding:
    detail, problem = await _health(current)
    if not problem:
        return _ok("memory", f"{current.owner}: {detail}")
    advice = "see whether it runs; nothing is lost, what is to be remembered waits for it"
    return _fail("memory", f"{current.owner}: {problem}", advice)


async def _health(provider: MemoryProvider) -> tuple[str, str]:
    """Return what a provider says of itself, and what is wrong with it."""
    try:
        return await foreign_call(provider.check(), PROVIDER_TIMEOUT_S, f"check {provider.owner}"), ""
    except TimeoutError:
        return "", f"did not answer within {PROVIDER_TIMEOUT_S} s"
    except Exception as error:  # The edge to a provider, which may be a plugin.
        return "", _told(error)


async def _debts(opened: Store, bindings: MemoryBindings) -> Findings:
    unpaid = await opened.segments.unpaid()
    for owner in sorted({each.owner for each in unpaid}):
        of_owner = [each for each in unpaid if each.owner == owner]
        told = f"{owner}: {in_words(debt(of_owner, lambda each: bindings.of(each) is None))}"
        provider = bindings.of(owner)
        if provider is None:
            advice = f"install or configure it again, or {_GIVE_UP}"
            yield _warn("debts", f"{told}; it cannot be opened here", advice)
            continue
        # The health of the current provider is a finding of its own.
        problem = "" if provider is bindings.current else (await _health(provider))[1]
        advice = f"start it again: what waits for it is tried by itself; or {_GIVE_UP}"
        yield _warn("debts", f"{told}; {problem}", advice) if problem else _ok("debts", told)


async def channels(patient: Patient) -> Findings:
    config = patient.config.channels
    if isinstance(patient.targets, ConfigInvalid):
        yield _fail("channels", str(patient.placed(patient.targets)), UNSTARTABLE)
        return
    signed = (
        "with channels.url.secret" if config.url.secret else "with a secret that is made up; see: holdfast webhooks secret"
    )
    yield _ok("channels", f"answers to url: targets are signed {signed}")
    token = config.github.token_env
    said = (
        f"there is a token in {token}"
        if patient.builder.environment.get(token)
        else f"no token in {token}, so none can be written"
    )
    yield _ok("channels", f"{github.NAME}: {said}")
    async for each in _accounts(patient):
        yield each
    if patient.targets is not None:
        async for each in _routes(patient, patient.targets):
            yield each


async def _accounts(patient: Patient) -> Findings:
    """Ask the platform of each chat account who the account is, and tell how the gateway stands with it."""
    opened = patient.store if isinstance(patient.store, Store) else None
    records = {each.name: each for each in await opened.channels.list()} if opened else {}
    enabled = {name: each for name, each in patient.config.channels.accounts.items() if each.enabled}
    trials = await asyncio.gather(*(_tried(patient, name, settings) for name, settings in enabled.items()))
    for name, trial in zip(enabled, trials, strict=True):
        record = records.get(name)
        if not trial.ok:
            yield _fail("channels", f"{name}: {trial.problem}", trial.hint or "see its settings")
        elif record and record.state in (AccountState.TAKEN, AccountState.REFUSED):
            yield _fail("channels", f"{name}: {record.problem}", "see: holdfast channels show " + name)
        else:
            who = trial.bot_name or trial.bot_id
            url = f", {trial.bot_url}" if trial.bot_url else ""
            yield _ok("channels", f"{name}: {who}{url}{_last_heard(record, patient.builder.clock)}")


def _last_heard(record: AccountRecord | None, clock: Clock) -> str:
    if record is None or record.last_receive_at is None:
        return ""
    return f", last received {ago(clock.now_ms() - record.last_receive_at)} ago"


async def _tried(patient: Patient, name: str, settings: ChatSettings) -> ChannelTrial:
    builder = patient.builder
    context = TrialContext(
        home=builder.home, environment=builder.environment, clock=builder.clock, redaction=builder.redaction
    )
    return await try_account(name, settings, context)


async def _routes(patient: Patient, targets: Targets) -> Findings:
    opened = patient.store if isinstance(patient.store, Store) else None
    stored = await opened.webhooks.list() if opened else []
    configured = patient.config.channels.webhook.routes
    found = {each.name: _wrong_with_added(patient, targets, each) for each in stored}
    found |= {name: _wrong_with_configured(patient, targets, name, each) for name, each in configured.items()}
    for name, problem in sorted(found.items()):
        if problem:
            advice = (
                "correct it: the gateway does not start" if name in configured else "add it again: until then it is closed"
            )
            yield (_fail if name in configured else _warn)("webhooks", f"the route {name}: {problem}", advice)
    if sound := sorted(name for name, problem in found.items() if not problem):
        yield _ok("webhooks", f"{len(sound)} ready: {', '.join(sound)}")


def _wrong_with_configured(patient: Patient, targets: Targets, name: str, config: RouteConfig) -> str:
    try:
        configured_route(name, config, patient.config.server.host, targets, patient.builder.environment)
    except ConfigInvalid as error:
        return str(patient.placed(error))
    return ""


def _wrong_with_added(patient: Patient, targets: Targets, route: WebhookRoute) -> str:
    try:
        added_route(route.name, route.config, patient.config.server.host, targets)
    except Rejected as error:
        return str(error)
    return ""


async def sandbox(patient: Patient) -> Findings:
    config = patient.config
    if isinstance(patient.gateway, Status) and patient.gateway.agent.unsafe and config.tools.terminal.approval != "allow":
        # A service has an environment of its own, and a file may have changed since its start.
        yield _fail(
            "sandbox",
            f"the gateway that runs was started with other settings ({patient.gateway.agent.sandbox}): all commands of the "
            "agent run as you, and nobody is asked",
            'restart it with tools.terminal.approval = "ask"; its environment may hold HOLDFAST_TOOLS__TERMINAL__APPROVAL',
        )
        return
    found = await _sandbox(patient.builder)
    if isinstance(found, ConfigInvalid):
        yield _fail("sandbox", str(patient.placed(found)), UNSTARTABLE)
    elif found.confines:
        yield _ok("sandbox", found.description)
    elif "terminal" in config.tools.disabled:
        yield _ok("sandbox", "none, and no terminal that would need one")
    elif config.tools.terminal.approval == "allow":
        yield _fail(
            "sandbox",
            f'{found.description.partition(", and ")[0]}, and tools.terminal.approval is "allow": all commands '
            "of the agent run as you, and nobody is asked",
            f'set tools.terminal.approval = "ask", or {INSTALL}',
        )
    elif found.missing:
        yield _warn("sandbox", found.description.partition("; to have one")[0], INSTALL)
    else:
        yield _warn(
            "sandbox", f"{found.description}, and every command is asked about", 'set tools.terminal.sandbox = "auto"'
        )


async def _sandbox(builder: Builder) -> Sandbox | ConfigInvalid:
    workspace = builder.home / builder.config.agent.workspace
    with tempfile.TemporaryDirectory() as elsewhere:
        # The doctor creates no folder in the home.
        try:
            return await builder.sandbox(workspace if workspace.is_dir() else Path(elsewhere))
        except ConfigInvalid as error:
            return error


# In the order of the report.
CHECKS: Mapping[str, Check] = {
    "configuration": configuration,
    "home": home,
    "disk": disk,
    "clock": clock,
    "gateway": gateway,
    "store": store,
    "model": model,
    "memory": memory,
    "channels": channels,
    "sandbox": sandbox,
}
WITHOUT_CONFIGURATION: Mapping[str, Check] = {
    name: CHECKS[name] for name in ("configuration", "home", "disk", "clock", "gateway")
}


def _ok(name: str, found: str) -> Finding:
    return Finding(name=name, level=Level.OK, found=found)


def _warn(name: str, found: str, advice: str) -> Finding:
    return Finding(name=name, level=Level.WARN, found=found, advice=advice)


def _fail(name: str, found: str, advice: str) -> Finding:
    return Finding(name=name, level=Level.FAIL, found=found, advice=advice)


def _masked(finding: Finding, redaction: Redaction) -> Finding:
    return replace(finding, found=redaction.text(finding.found), advice=redaction.text(finding.advice))


def _told(error: BaseException) -> str:
    return str(error) if isinstance(error, HoldfastError) and str(error) else f"{type(error).__name__}: {error}"


def _bytes(database: Path) -> int:
    """Return the size of a database with its write-ahead log."""
    log = database.with_name(f"{database.name}-wal")
    return database.stat().st_size + (log.stat().st_size if log.exists() else 0)


def _size(number: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if number >= 10 or unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} TB"
