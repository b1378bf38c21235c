"""Receiving: one node at a time holds the lease of an account, listens to its platform, and stages what comes.

A batch is durable, and the cursor behind it, before the platform is told so.  What happens to the events after that is the
work of `intake.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine
from dataclasses import dataclass

from holdfast.channels.chat.account import ChatAccount, ChatServices
from holdfast.channels.chat.port import Batch, Bot, MenuEntry
from holdfast.core.chats import AccountState, Lease
from holdfast.errors import AccountRefused, AccountTaken, OutcomeUnknown, Rejected, Stale, Unavailable
from holdfast.store.channels import ACCOUNTS_TOPIC

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How long a receiver waits, in milliseconds."""

    # A connection without a completed receive for so long is taken for dead.
    deaf_ms: int = 120_000
    call_ms: int = 30_000
    # A platform lets the request of a client that died run on for about half a minute.
    taken_first_ms: int = 35_000
    # Between two looks at an account that is taken or refused.
    look_again_ms: int = 300_000
    back_off_first_ms: int = 1_000
    back_off_max_ms: int = 60_000
    # Between two looks at a lease that another node has.
    lease_ms: int = 1_000


class Receiver:
    """Receives for one account while this node has its lease."""

    def __init__(self, account: ChatAccount, services: ChatServices, timing: Timing | None = None) -> None:
        self._account = account
        self._platform = account.platform
        self._services = services
        self._channels = services.store.channels
        self._timing = timing or Timing()
        # How often in a row the account was found taken, or could not be reached.
        self._taken = 0
        self._failures = 0

    async def run(self, beside: Callable[[Lease], Coroutine[None, None, None]]) -> None:
        """Receive until cancelled, whenever this node has the lease.  `beside` runs as long as it has it."""
        changed = asyncio.Event()
        listening = self._services.store.wakes.listen(lambda topic: changed.set() if topic == ACCOUNTS_TOPIC else None)
        try:
            while True:
                changed.clear()
                if lease := await self._claim():
                    await self._hold(lease, beside)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._timing.lease_ms / 1000):
                        await changed.wait()
        finally:
            listening()

    async def _claim(self) -> Lease | None:
        name, node_id = self._account.name, self._services.node_id
        # Looking costs less than trying: a node that does not receive looks again and again.
        if await self._channels.is_held(name, node_id):
            return None
        return await self._channels.claim(name, self._account.kind, node_id)

    async def _hold(self, lease: Lease, beside: Callable[[Lease], Coroutine[None, None, None]]) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                working = group.create_task(beside(lease), name=f"{lease.account} intake")
                try:
                    await self._receive(lease)
                except Stale:
                    log.warning("%s: another node receives now", lease.account)
                working.cancel()
        finally:
            await self._channels.release(lease)

    async def _receive(self, lease: Lease) -> None:
        """Connect again and again.  Raises `Stale` where another node has the lease."""
        while True:
            try:
                await self._listen(lease)
                wait_ms = self._pause_ms()
            except AccountTaken as error:
                wait_ms = await self._found_taken(lease, error)
            except AccountRefused as error:
                log.error("%s: the platform refuses the account: %s", lease.account, error)  # noqa: TRY400 - Not a bug.
                await self._report(lease, AccountState.REFUSED, str(error))
                wait_ms = self._timing.look_again_ms
            except (Rejected, Unavailable, OutcomeUnknown, TimeoutError) as error:
                wait_ms = await self._found_away(lease, error)
            await self._services.clock.sleep_ms(wait_ms)

    async def _found_taken(self, lease: Lease, error: AccountTaken) -> int:
        """Wait for the request of a client that died; if the account is still taken then, say so."""
        self._taken += 1
        if self._taken == 1:
            await self._report(lease, AccountState.CONNECTING, str(error))
            return self._timing.taken_first_ms
        problem = f"another program receives its messages ({error}); stop that program, or give it a token of its own"
        log.error("%s: %s", lease.account, problem)
        await self._report(lease, AccountState.TAKEN, problem)
        return self._timing.look_again_ms

    async def _found_away(self, lease: Lease, error: Exception) -> int:
        problem = str(error) or "the platform did not answer in time"
        await self._report(lease, AccountState.CONNECTING, problem)
        pause_ms = self._pause_ms()
        # A platform that wants no wait at all would be asked without a pause.
        if isinstance(error, Unavailable) and error.retry_after_s and error.retry_after_s > 0:
            pause_ms = int(error.retry_after_s * 1000)
        log.warning("%s: %s; connecting again in %.0f s", lease.account, problem, pause_ms / 1000)
        return pause_ms

    async def _report(self, lease: Lease, state: AccountState, problem: str) -> None:
        # It may be the store that is away.
        with contextlib.suppress(Unavailable):
            await self._channels.report(lease, state, problem, self._services.clock.now_ms())

    def _pause_ms(self) -> int:
        self._failures += 1
        return min(self._timing.back_off_first_ms << min(self._failures - 1, 10), self._timing.back_off_max_ms)

    async def _listen(self, lease: Lease) -> None:
        """Receive over one connection until it ends."""
        async with asyncio.timeout(self._timing.call_ms / 1000):
            bot = await self._platform.identify()
        await self._channels.introduce(lease, bot_id=bot.user_id, bot_name=bot.name, bot_url=bot.url)
        await self._offer(lease, bot)
        batches = self._platform.listen(await self._channels.position(lease.account))
        try:
            while (batch := await self._next(batches)) is not None:
                await self._channels.stage(lease, batch.events, batch.position, self._services.clock.now_ms())
                self._taken = self._failures = 0
                await batch.acknowledge()
        finally:
            # A connection that does not answer may not end by itself either.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._timing.call_ms / 1000):
                    await batches.aclose()

    async def _next(self, batches: AsyncGenerator[Batch]) -> Batch | None:
        try:
            async with asyncio.timeout(self._timing.deaf_ms / 1000):
                return await anext(batches, None)
        except TimeoutError:
            raise Unavailable(f"nothing was received for {self._timing.deaf_ms // 1000} s") from None

    async def _offer(self, lease: Lease, bot: Bot) -> None:
        """Give the platform the menu of commands, unless it has it already.  Receiving goes on without one."""
        if not self._account.capabilities.menu:
            return
        digest = _digest(bot, self._services.menu)
        record = await self._channels.find(lease.account)
        if record and record.menu_digest == digest:
            return
        try:
            async with asyncio.timeout(self._timing.call_ms / 1000):
                await self._platform.offer(self._services.menu)
        except (Rejected, Unavailable, TimeoutError) as error:
            log.warning("%s: the menu of commands was not taken: %s", lease.account, error)
        else:
            await self._channels.offered(lease, digest)


def _digest(bot: Bot, menu: tuple[MenuEntry, ...]) -> str:
    said = "\n".join([bot.user_id, *(f"{each.name} {each.text}" for each in menu)])
    return hashlib.sha256(said.encode()).hexdigest()
