"""The gateway's process: ready until it is asked to stop, then draining; watched all the while."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from holdfast.core.turns import Cause
from holdfast.daemon.handover import Handover, replace_process
from holdfast.daemon.service_manager import ServiceManager
from holdfast.daemon.watchdog import Watchdog
from holdfast.errors import Unavailable
from holdfast.operations.gateway import Drain, Status, Stop
from holdfast.operations.lifecycle import Lifecycle
from holdfast.operations.logins import SignInLink
from holdfast.operations.services import Services

log = logging.getLogger(__name__)

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
SHOW_S = 0.5
# For a patient drain to service_manager that a forced one has ended everything.
MOMENT_S = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayExit:
    """How a gateway ended; at a restart, with what the next process gets."""

    stop: Stop
    handover: Handover = field(default_factory=Handover)


class Observer(Protocol):
    """Is told how the gateway starts and stops: a terminal, or a log."""

    def ready(self, status: Status, link: SignInLink | None, key: str = "") -> None:
        """Say that the gateway listens, how to sign in, and the key for programs of this machine if one was made."""
        ...

    def draining(self, drain: Drain) -> None: ...
    def drained(self, stop: Stop, interrupted: int) -> None: ...


async def run_until_stopped(
    services: Services,
    drain_timeout_s: float,
    observer: Observer,
    service_manager: ServiceManager,
    key: str = "",
    watchdog: Watchdog | None = None,
) -> Stop:
    """Be ready until asked to stop, then drain; return the last request to stop."""
    life = services.gateway.lifecycle
    life.ready()
    observer.ready(await services.gateway.status(), await _link(services), key)
    service_manager.ready(f"listening on {life.url}")
    stop = await life.asked()
    _tell(service_manager, stop)
    patience_s = drain_timeout_s if stop.timeout is None else stop.timeout
    life.begin_drain(patience_s)
    if watchdog:
        watchdog.stopping(patience_s)
    showing = asyncio.create_task(_show(services, observer, service_manager))
    try:
        interrupted = await _drain(services, patience_s)
    finally:
        showing.cancel()
    if life.wish.restart != stop.restart:
        _tell(service_manager, life.wish)
    observer.drained(life.wish, interrupted)
    return life.wish


async def _link(services: Services) -> SignInLink | None:
    """Return a link to sign in with; None while the store is away."""
    try:
        return await services.logins.link()
    except Unavailable as error:
        log.warning("there is no sign-in link yet (get one with: holdfast link): %s", error)
        return None


def _tell(service_manager: ServiceManager, stop: Stop) -> None:
    (service_manager.reloading if stop.restart else service_manager.stopping)("draining")


async def _drain(services: Services, patience_s: float) -> int:
    """Let running turns finish; a second request to stop interrupts them.  Returns how many were interrupted."""
    life = services.gateway.lifecycle
    draining = asyncio.create_task(services.gateway.engine.drain(int(patience_s * 1000), _cause(life.wish)))
    forced = asyncio.create_task(life.forced.wait())
    cut = 0
    try:
        await asyncio.wait((draining, forced), return_when=asyncio.FIRST_COMPLETED)
        if not draining.done():
            cut = await services.gateway.engine.drain(0, _cause(life.wish))
            await asyncio.wait((draining,), timeout=MOMENT_S)
        return cut + (await draining if draining.done() else 0)
    except Unavailable as error:
        # It could not be recorded; the next start finds these turns as after a crash.
        log.warning("cannot record what the drain interrupts: %s", error)
        return cut
    finally:
        for task in (draining, forced):
            task.cancel()


def _cause(stop: Stop) -> Cause:
    return Cause.RESTART_TIMEOUT if stop.restart else Cause.SHUTDOWN_TIMEOUT


async def _show(services: Services, observer: Observer, service_manager: ServiceManager) -> None:
    while drain := services.gateway.lifecycle.drain(services.gateway.engine.running):
        observer.draining(drain)
        service_manager.status(f"draining: {drain.running} turns still run, {drain.seconds_left:.0f} s left")
        await asyncio.sleep(SHOW_S)


@contextlib.contextmanager
def signals(life: Lifecycle) -> Generator[Sequence[signal.Signals]]:
    """Take the signals that end a process as requests to stop the gateway; yield those that are taken.

    Under `nohup` the end of the terminal is not one of them.  Ctrl-C always is, also behind a `&` in a script.
    """
    loop = asyncio.get_running_loop()
    heard = [each for each in SIGNALS if each is not signal.SIGHUP or signal.getsignal(each) is not signal.SIG_IGN]
    for each in heard:
        loop.add_signal_handler(each, life.ask, Stop())
    try:
        yield heard
    finally:
        for each in heard:
            loop.remove_signal_handler(each)


@contextlib.asynccontextmanager
async def watched(
    watchdog: Watchdog | None, service_manager: ServiceManager, hand_over: Callable[[], Handover] = Handover
) -> AsyncGenerator[None]:
    """Have the loop watched by the watchdog process, if there is one, and by the service manager, where it asks for it.

    A process whose loop stalls is replaced by a fresh one, which gets the handover.
    """
    async with contextlib.AsyncExitStack() as stack:
        if watchdog:
            await stack.enter_async_context(watchdog.watching(lambda: replace_process(hand_over())))
        beating = asyncio.create_task(_beat(service_manager))
        stack.callback(beating.cancel)
        yield


async def _beat(service_manager: ServiceManager) -> None:
    while service_manager.watchdog_s:
        service_manager.alive()
        await asyncio.sleep(service_manager.watchdog_s)
