"""Receiving: deliveries of webhook routes are handed in here.

The order of the checks is a promise: route, size, signature over the raw bytes, time, what came before, rate.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from starlette.responses import Response

from holdfast.channels.webhook import payload as payloads
from holdfast.channels.webhook.delivery import delivery_id, inbound
from holdfast.channels.webhook.filters import TooSlow
from holdfast.channels.webhook.head import BadHeader, Head
from holdfast.channels.webhook.payload import BadPayload, Payload
from holdfast.channels.webhook.route import NoTarget, Route
from holdfast.channels.webhook.signatures import SHOWN_BY, TOLERANCE_S, Scheme, Unverified, Verified, verify
from holdfast.clock import Clock, SystemClock
from holdfast.core.intake import Inbound, Receipt
from holdfast.core.keys import WEBHOOK
from holdfast.web import requests
from holdfast.web.answers import Refused, answer
from holdfast.web.endpoints import Call, Endpoint, demand
from holdfast.web.guard import is_near
from holdfast.web.principal import How
from holdfast.web.throttle import Window

log = logging.getLogger(__name__)

# A signature that is older, or from further ahead, is refused for its time.
REPLAY_MS = 2 * TOLERANCE_S * 1_000
REPLAYS_MAX = 100_000
_UNSIGNED_HINT = "sign it with the route's secret (see `holdfast webhooks sign`), or send a key with the scope webhook:ROUTE"
_FAR_HINT = "give the route a secret, or send a key with the scope webhook:ROUTE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What the sender of a delivery is told.  `missing` are fields of the prompt that the payload has not."""

    status: str
    delivery_id: str
    session_id: str | None = None
    turn_id: str | None = None
    missing: tuple[str, ...] = ()


class Replays:
    """Under which id a signature came first: whoever overheard one may send it again with any id that it does not cover."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._first: dict[tuple[str, str], tuple[str, int]] = {}

    def __len__(self) -> int:
        return len(self._first)

    def first(self, route: str, mark: str, delivery: str) -> str:
        """Return the id with which a route saw a signature for the first time."""
        now = self._clock.monotonic_ms()
        while self._first and (len(self) >= REPLAYS_MAX or self._oldest_ms <= now - REPLAY_MS):
            del self._first[next(iter(self._first))]
        return self._first.setdefault((route, mark), (delivery, now))[0]

    @property
    def _oldest_ms(self) -> int:
        return next(iter(self._first.values()))[1]


class Receiving:
    """Deliveries, each of which becomes a turn."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._windows: dict[str, Window] = {}
        self._replays = Replays(self._clock)

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="POST",
                path="/webhooks/{id}",
                handle=self.deliver,
                summary="Hand in a delivery of a webhook route",
                scope=None,
                takes=dict[str, object],
                gives=Taken,
                status=202,
                also=(200,),
                refuses=(401,),
            ),
        ]

    async def deliver(self, call: Call) -> Response:
        route = call.desk.webhooks.find(call.name())
        body = await requests.content(call.request, route.config.body_limit)
        head = Head(call.request.scope["headers"])
        verified = self._verified(call, route, head, body)
        try:
            payload = await _payload(head, body)
            found = delivery_id(head, verified, payload, self._clock.now_ms())
        except (BadPayload, BadHeader) as error:
            raise Refused(400, "bad_delivery", str(error)) from error
        if verified and verified.mark:
            found = self._replays.first(route.name, verified.mark, found)
        if (challenge := _challenge(verified, payload)) is not None:
            return answer({"challenge": challenge})
        if not await _counts(call, route, payload):
            return answer(Taken(status="ignored", delivery_id=found))
        return await self._accept(call, route, found, payload)

    def _verified(self, call: Call, route: Route, head: Head, body: bytes) -> Verified | None:
        """Return how a delivery was signed; None where it need not be.  Raises `Refused`."""
        principal, scope = call.principal, f"{WEBHOOK}{route.name}"
        if principal.may(scope):
            return None
        if principal.how is How.STRANGER:
            demand(principal, scope)
        if route.config.insecure_no_auth:
            if is_near(call.request.headers):
                return None
            raise Refused(401, "unverified", "this route takes unsigned deliveries of this machine only", _FAR_HINT)
        try:
            return verify(head, body, route.secret, self._clock.now_ms(), route.config.scheme)
        except Unverified as error:
            if principal.how is How.KEY and not _signs(head):
                demand(principal, scope)
            raise Refused(401, "unverified", str(error), _UNSIGNED_HINT) from error

    async def _accept(self, call: Call, route: Route, found: str, payload: Payload) -> Response:
        said = route.prompt.render(payload)
        if said.missing:
            log.warning("webhook %s: delivery %s has no %s", route.name, found, ", ".join(said.missing))
        if not said.text.strip():
            raise Refused(422, "empty_prompt", "the route's prompt is empty for this payload", "change the route's prompt")
        try:
            target = route.address(payload)
        except NoTarget as error:
            raise Refused(422, "no_target", str(error), "change the route's deliver, or what is sent") from error
        message = inbound(route.name, found, said.text, target, verbatim=route.config.deliver_only)
        receipt = await self._take(call, route, message)
        told = Taken(
            status="duplicate" if receipt.duplicate else "accepted",
            session_id=receipt.session_id,
            turn_id=receipt.turn_id,
            delivery_id=found,
            missing=said.missing,
        )
        return answer(told, 200 if receipt.duplicate else 202)

    async def _take(self, call: Call, route: Route, message: Inbound) -> Receipt:
        """Make a delivery durable within the route's rate; what came before, or cannot be taken now, counts for nothing."""
        window = self._window(route)
        if window is None:
            return await call.desk.accept(message)
        if wait_s := window.take():
            if first := await call.desk.seen(message.dedupe_key or ""):
                return first
            hint = f"wait {wait_s} s, or raise the route's rate_limit"
            raise Refused(429, "rate_limited", "this route has taken as much as it may in a minute", hint, wait_s)
        counts = False
        try:
            receipt = await call.desk.accept(message)
            counts = not receipt.duplicate
        finally:
            if not counts:
                window.give_back()
        return receipt

    def _window(self, route: Route) -> Window | None:
        most = route.config.rate_limit
        if not most:
            return None
        found = self._windows.get(route.name)
        if found is None or found.most != most:
            found = self._windows[route.name] = Window(most, self._clock)
        return found


async def _payload(head: Head, body: bytes) -> Payload:
    requests.require_memory(body)
    if len(body) <= requests.BODY_MAX:
        return payloads.read(head, body)
    # What takes this long to read must not keep others waiting.
    return await asyncio.to_thread(payloads.read, head, body)


async def _counts(call: Call, route: Route, payload: Payload) -> bool:
    """Return whether a delivery counts.  Raises `Refused` where that takes too long to find out."""
    try:
        return await call.desk.webhooks.takes(route, payload)
    except TooSlow as error:
        log.warning("webhook %s: %s", route.name, error)
        hint = "write the pattern so that it can match in one way only: nothing repeated inside what is repeated"
        raise Refused(422, "slow_filter", str(error), hint) from error


def _signs(head: Head) -> bool:
    return any(head.has(name) for name in SHOWN_BY.values())


def _challenge(verified: Verified | None, payload: Payload) -> str | None:
    """Return what Slack wants to hear from an address that it is told of; it is told to nobody who has not signed."""
    if verified is None or verified.scheme is not Scheme.SLACK or payload.data.get("type") != "url_verification":
        return None
    said = payload.data.get("challenge")
    return said if isinstance(said, str) else None
