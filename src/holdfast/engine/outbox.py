"""The outbox sends what turns left behind, and says so when it cannot know whether it arrived."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Mapping

from holdfast.core.delivery import (
    Delivery,
    DeliveryEvent,
    after_loss,
    after_refusal,
    after_rejection,
    backoff_ms,
    due_after_refusal,
)
from holdfast.core.recovery import orphans
from holdfast.engine.node_context import NodeContext
from holdfast.engine.persistence import persist
from holdfast.engine.wake import Wake
from holdfast.errors import HoldfastError, OutcomeUnknown, Rejected, Stale, Unavailable
from holdfast.ids import DeliveryId
from holdfast.ports import Carrier

log = logging.getLogger(__name__)

_DRAIN_LOOK_MS = 20


class Outbox:
    """Deliveries that this node is sending."""

    def __init__(self, node: NodeContext, carriers: Mapping[str, Carrier]) -> None:
        self.wake = Wake()
        self._node_id, self._store, self._tuning, self._clock = node.id, node.store, node.tuning, node.clock
        self._redaction = node.redaction
        self._carriers = carriers
        self._in_line = frozenset(kind for kind, carrier in carriers.items() if carrier.in_line)
        self._sending: set[DeliveryId] = set()
        self._suspected: set[DeliveryId] = set()
        self._closed = False

    async def run(self) -> None:
        """Send what is due until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                await self._claim(group)
                await self.wake.wait(await self._pause_ms())

    async def drain(self, timeout_ms: int) -> None:
        """Send what is due and let it arrive, then begin nothing more.  A send that runs out of time stays unknown."""
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                while not self._closed and (self._sending or await self._is_due()):
                    await self._clock.sleep_ms(_DRAIN_LOOK_MS)
        except (TimeoutError, Unavailable) as error:
            if self._sending:
                log.warning("%d deliveries are still on their way: %s", len(self._sending), str(error) or "time is up")
        self._closed = True

    async def _is_due(self) -> bool:
        due_at = await self._next_due_at()
        return due_at is not None and due_at <= self._clock.now_ms()

    async def _next_due_at(self) -> int | None:
        return await self._store.deliveries.next_due_at(self._node_id, self._in_line)

    async def reconcile(self) -> None:
        """Release deliveries that were claimed here in a transaction whose answer was lost, and undo clock jumps."""
        await self._store.deliveries.hasten(self._clock.now_ms())
        held = {each.id: each for each in await self._store.deliveries.held(self._node_id)}
        lost, self._suspected = orphans(held.keys(), self._sending, self._suspected)
        for delivery_id in lost:
            await self._lose(held[delivery_id], "the store went away before it was sent")

    async def _pause_ms(self) -> int:
        due_at = await persist(self._clock, self._next_due_at)
        wait = self._tuning.poll_ms if due_at is None else due_at - self._clock.now_ms()
        return max(0, min(wait, self._tuning.poll_ms)) if len(self._sending) < self._tuning.sends_max else 1_000

    async def _claim(self, group: asyncio.TaskGroup) -> None:
        free = self._tuning.sends_max - len(self._sending)
        if free <= 0 or self._closed:
            return
        try:
            claimed = await self._store.deliveries.claim(self._node_id, self._clock.now_ms(), free, self._in_line)
        except (Unavailable, Stale) as error:
            log.warning("cannot claim deliveries: %s", error)
            await self._clock.sleep_ms(self._tuning.poll_ms)
            return
        for each in claimed:
            self._sending.add(each.id)
            task = group.create_task(self._send(each), name=each.id)
            task.add_done_callback(lambda _, done=each.id: self._forget(done))

    def _forget(self, delivery_id: DeliveryId) -> None:
        self._sending.discard(delivery_id)
        self.wake.set()

    async def _send(self, claimed: Delivery) -> None:
        carrier = self._carriers.get(claimed.kind)
        if carrier is None:
            await self._settle(claimed, DeliveryEvent.FAIL, error=f"no channel can reach {claimed.target}")
            return
        try:
            receipt = await self._find(carrier, claimed) if claimed.repeats else None
            if receipt is None:
                async with asyncio.timeout(self._tuning.send_timeout_ms / 1000):
                    receipt = await carrier.send(claimed)
        except Unavailable as error:
            # One time for both: a delivery that is due long after its refusal was asked to wait by the far side.
            now = self._clock.now_ms()
            due_at = due_after_refusal(claimed, now, error.retry_after_s, _jitter())
            await self._settle(claimed, after_refusal(claimed), now, error=str(error), due_at=due_at)
        except OutcomeUnknown as error:
            await self._lose(claimed, f"{error}: it may or may not have arrived")
        except Rejected as error:
            await self._settle(claimed, after_rejection(claimed), error=str(error))
        except TimeoutError:
            await self._lose(claimed, "no answer in time: it may or may not have arrived")
        except Exception as error:  # The edge to a channel: after an unforeseen failure it is unknown what arrived.
            log.exception("sending %s failed", claimed.id)
            await self._lose(claimed, f"{type(error).__name__}: it may or may not have arrived")
        else:
            await self._settle(claimed, DeliveryEvent.CONFIRM, receipt=receipt)

    async def _find(self, carrier: Carrier, claimed: Delivery) -> str | None:
        """Ask whether the first send arrived; None where the far side cannot tell."""
        try:
            async with asyncio.timeout(self._tuning.send_timeout_ms / 1000):
                return await carrier.find(claimed)
        except HoldfastError:
            raise
        except Exception:  # The edge to a channel: asking sends nothing.
            log.exception("looking for %s failed", claimed.id)
            return None

    async def _lose(self, sent: Delivery, error: str) -> None:
        """Record that it is unknown whether a send arrived; it is sent again where that can do no harm."""
        carrier, now = self._carriers.get(sent.kind), self._clock.now_ms()
        event = after_loss(sent, dedupes=carrier is not None and carrier.dedupes)
        due_at = now + backoff_ms(sent.attempt, _jitter()) if event is DeliveryEvent.RESEND else None
        await self._settle(sent, event, now, due_at=due_at, error=error)

    async def _settle(
        self,
        sent: Delivery,
        event: DeliveryEvent,
        now_ms: int | None = None,
        *,
        due_at: int | None = None,
        receipt: str | None = None,
        error: str | None = None,
    ) -> None:
        now = self._clock.now_ms() if now_ms is None else now_ms
        error = error and self._redaction.text(error)
        receipt = receipt and self._redaction.text(receipt)

        async def settle() -> None:
            await self._store.deliveries.settle(sent, event, now, due_at=due_at, receipt=receipt, error=error)

        try:
            await persist(self._clock, settle)
        except Stale as stale:
            # It was decided elsewhere while the store was away, or our own first answer was lost.
            log.info("delivery %s: %s", sent.id, stale)


def _jitter() -> float:
    return random.random()  # noqa: S311 - Not a secret.
