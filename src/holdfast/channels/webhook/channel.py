"""The webhook channel: a request to a route becomes a turn.

The order of the checks is a promise: signature over the raw bytes, time, earlier deliveries, rate.  The web server has
checked the route and the size of the body before.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from holdfast.channels.webhook import payload as payloads
from holdfast.channels.webhook.delivery import delivery_id, inbound
from holdfast.channels.webhook.head import Head
from holdfast.channels.webhook.payload import Payload
from holdfast.channels.webhook.rate import RateWindow
from holdfast.channels.webhook.replays import Replays
from holdfast.channels.webhook.route import Route
from holdfast.channels.webhook.signatures import SHOWN_BY, Scheme, Verified, verify
from holdfast.clock import Clock
from holdfast.core.intake import Inbound, Receipt
from holdfast.errors import Rejected

log = logging.getLogger(__name__)

# Parsing a larger body takes long enough to delay other requests.
PARSED_HERE_BYTES = 1024 * 1024


class UnsignedFromAfar(Rejected):
    """An unsigned delivery from another machine, to a route that takes unsigned ones of this machine only."""


class EmptyPrompt(Rejected):
    """The route's template is empty for this payload."""


class RateExceeded(Rejected):
    """The route has taken as many deliveries in a minute as it may."""

    def __init__(self, wait_s: int) -> None:
        super().__init__("this route has taken as many deliveries in a minute as it may")
        self.wait_s = wait_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted:
    """One request to a route.

    `authorised`: the sender showed a key for the route, so the request needs no signature.
    `near`: the request came from this machine, through no proxy.
    """

    head: Head
    body: bytes
    authorised: bool
    near: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What the sender of a delivery is told.  `missing` are fields of the prompt that the payload has not."""

    status: str
    delivery_id: str
    session_id: str | None = None
    turn_id: str | None = None
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Challenge:
    """What Slack expects to be sent back when the address of a route is entered there."""

    challenge: str


class DeliveryIntake(Protocol):
    """What a delivery needs of the gateway."""

    async def accept(self, message: Inbound) -> Receipt: ...

    async def seen(self, key: str) -> Receipt | None: ...


class WebhookChannel:
    """Takes the deliveries of all routes."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._windows: dict[str, RateWindow] = {}
        self._replays = Replays(clock)

    async def receive(
        self, route: Route, posted: Posted, intake: DeliveryIntake, takes: Callable[[Route, Payload], Awaitable[bool]]
    ) -> Taken | Challenge:
        """Return once a delivery is durable, or is known to count for nothing.

        Raises `Unverified`, `UnsignedFromAfar`, `BadHeader`, `BadPayload`, `TooSlow`, `EmptyPrompt`, `NoTarget` and
        `RateExceeded`; nothing has changed then.
        """
        verified = self._verified(route, posted)
        payload = await _payload(posted)
        found = delivery_id(posted.head, verified, payload, self._clock.now_ms())
        if verified and verified.mark:
            found = self._replays.first(route.name, verified.mark, found)
        if (challenge := _challenge(verified, payload)) is not None:
            return Challenge(challenge=challenge)
        if not await takes(route, payload):
            return Taken(status="ignored", delivery_id=found)
        return await self._accept(route, found, payload, intake)

    def _verified(self, route: Route, posted: Posted) -> Verified | None:
        """Return how a delivery was signed; None if it needs no signature."""
        if posted.authorised:
            return None
        if not route.config.insecure_no_auth:
            return verify(posted.head, posted.body, route.secret, self._clock.now_ms(), route.config.scheme)
        if not posted.near:
            raise UnsignedFromAfar("this route takes unsigned deliveries from this machine only")
        return None

    async def _accept(self, route: Route, found: str, payload: Payload, intake: DeliveryIntake) -> Taken:
        said = route.prompt.render(payload)
        if said.missing:
            log.warning("webhook %s: delivery %s has no %s", route.name, found, ", ".join(said.missing))
        if not said.text.strip():
            raise EmptyPrompt("the route's prompt is empty for this payload")
        target = route.address(payload)
        message = inbound(route.name, found, said.text, target, verbatim=route.config.deliver_only)
        receipt = await self._take(route, message, intake)
        return Taken(
            status="duplicate" if receipt.duplicate else "accepted",
            session_id=receipt.session_id,
            turn_id=receipt.turn_id,
            delivery_id=found,
            missing=said.missing,
        )

    async def _take(self, route: Route, message: Inbound, intake: DeliveryIntake) -> Receipt:
        """Make a delivery durable within the route's rate.  A duplicate or a refused delivery does not count."""
        window = self._window(route)
        if window is None:
            return await intake.accept(message)
        if wait_s := window.take():
            if first := await intake.seen(message.dedupe_key or ""):
                return first
            raise RateExceeded(wait_s)
        counts = False
        try:
            receipt = await intake.accept(message)
            counts = not receipt.duplicate
        finally:
            if not counts:
                window.give_back()
        return receipt

    def _window(self, route: Route) -> RateWindow | None:
        most = route.config.rate_limit
        if not most:
            return None
        found = self._windows.get(route.name)
        if found is None or found.most != most:
            found = self._windows[route.name] = RateWindow(most, self._clock)
        return found


def is_signed(head: Head) -> bool:
    """Return whether a request has a signature of any kind, right or wrong."""
    return any(head.has(name) for name in SHOWN_BY.values())


async def _payload(posted: Posted) -> Payload:
    if len(posted.body) <= PARSED_HERE_BYTES:
        return payloads.read(posted.head, posted.body)
    return await asyncio.to_thread(payloads.read, posted.head, posted.body)


def _challenge(verified: Verified | None, payload: Payload) -> str | None:
    """Return the challenge of Slack, which only a signed request gets back."""
    if verified is None or verified.scheme is not Scheme.SLACK or payload.data.get("type") != "url_verification":
        return None
    said = payload.data.get("challenge")
    return said if isinstance(said, str) else None
