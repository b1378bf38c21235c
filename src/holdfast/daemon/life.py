"""The life of a gateway's process: ready until somebody wishes it to end, then draining; watched all the while."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from holdfast.core.turns import Cause
from holdfast.daemon.notice import Notice
from holdfast.daemon.succession import Estate, succeed
from holdfast.daemon.watchdog import Watchdog
from holdfast.desk.lifecycle import Lifecycle
from holdfast.desk.local import LocalDesk
from holdfast.desk.views import Drain, Phase, SignInLink, Status, Stop
from holdfast.errors import Unavailable

log = logging.getLogger(__name__)

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
SHOW_S = 0.5
# For a patient drain to notice that a forced one has ended everything.
MOMENT_S = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Farewell:
    """How a gateway ended; with a restart, what the next one is to have."""

    stop: Stop
    estate: Estate = field(default_factory=Estate)


class Witness(Protocol):
    """Who watches a gateway live: a terminal, or a log."""

    def ready(self, status: Status, link: SignInLink | None, key: str = "") -> None:
        """Say that the gateway listens, how to sign in, and the key for programs of this machine if one was made."""
        ...

    def draining(self, drain: Drain) -> None: ...
    def drained(self, stop: Stop, interrupted: int) -> None: ...


async def live(
    desk: LocalDesk,
    drain_timeout_s: float,
    witness: Witness,
    notice: Notice,
    key: str = "",
    watchdog: Watchdog | None = None,
) -> Stop:
    """Be ready until a stop is wished for, then drain; return the last wish."""
    life = desk.lifecycle
    life.phase = Phase.READY
    witness.ready(await desk.status(), await _link(desk), key)
    notice.ready(f"listening on {life.url}")
    stop = await life.asked()
    _tell(notice, stop)
    patience_s = drain_timeout_s if stop.timeout is None else stop.timeout
    life.begin_drain(patience_s)
    if watchdog:
        watchdog.stopping(patience_s)
    showing = asyncio.create_task(_show(desk, witness, notice))
    try:
        interrupted = await _drain(desk, patience_s)
    finally:
        showing.cancel()
    if life.wish.restart != stop.restart:
        _tell(notice, life.wish)
    witness.drained(life.wish, interrupted)
    return life.wish


async def _link(desk: LocalDesk) -> SignInLink | None:
    """Return a way in for whoever started this; None while the store is away."""
    try:
        return await desk.logins.link()
    except Unavailable as error:
        log.warning("there is no sign-in link yet (get one with: holdfast link): %s", error)
        return None


def _tell(notice: Notice, stop: Stop) -> None:
    (notice.reloading if stop.restart else notice.stopping)("draining")


async def _drain(desk: LocalDesk, patience_s: float) -> int:
    """Let what runs finish; a later wish ends the patience.  Returns how many turns were interrupted."""
    life = desk.lifecycle
    draining = asyncio.create_task(desk.engine.drain(int(patience_s * 1000), _cause(life.wish)))
    forced = asyncio.create_task(life.forced.wait())
    cut = 0
    try:
        await asyncio.wait((draining, forced), return_when=asyncio.FIRST_COMPLETED)
        if not draining.done():
            cut = await desk.engine.drain(0, _cause(life.wish))
            await asyncio.wait((draining,), timeout=MOMENT_S)
        return cut + (await draining if draining.done() else 0)
    except Unavailable as error:
        # Nobody could be told; the next start finds these turns as after a crash.
        log.warning("cannot record what the drain interrupts: %s", error)
        return cut
    finally:
        for task in (draining, forced):
            task.cancel()


def _cause(stop: Stop) -> Cause:
    return Cause.RESTART_TIMEOUT if stop.restart else Cause.SHUTDOWN_TIMEOUT


async def _show(desk: LocalDesk, witness: Witness, notice: Notice) -> None:
    while drain := desk.lifecycle.drain(desk.engine.running):
        witness.draining(drain)
        notice.status(f"draining: {drain.running} turns still run, {drain.seconds_left:.0f} s left")
        await asyncio.sleep(SHOW_S)


@contextlib.contextmanager
def signals(life: Lifecycle) -> Generator[Sequence[signal.Signals]]:
    """Take the signals that end a process as wishes to end the gateway.

    Under `nohup`, the end of its terminal is not one of them.  Ctrl-C always is, also behind a `&` in a script.  Yields
    the signals that are taken.
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
async def watched(watchdog: Watchdog | None, notice: Notice, estate: Callable[[], Estate] = Estate) -> AsyncGenerator[None]:
    """Have the loop watched by the sentry, if there is one, and by the service manager, where it asks for it.

    A process whose loop stands still is replaced by a fresh one, which gets the estate.
    """
    async with contextlib.AsyncExitStack() as stack:
        if watchdog:
            await stack.enter_async_context(watchdog.watching(lambda: succeed(estate())))
        beating = asyncio.create_task(_beat(notice))
        stack.callback(beating.cancel)
        yield


async def _beat(notice: Notice) -> None:
    while notice.watchdog_s:
        notice.alive()
        await asyncio.sleep(notice.watchdog_s)
