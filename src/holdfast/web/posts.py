"""The addresses that the far side of a channel posts to: webhook routes, and accounts of chat platforms.

This module reads the request within its limits.  The channel checks who sent it, and returns once it is durable.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from starlette.responses import Response

from holdfast.channels.chat import port as chats
from holdfast.channels.webhook.channel import (
    Challenge,
    EmptyPrompt,
    Posted,
    RateExceeded,
    Taken,
    UnsignedFromAfar,
    WebhookChannel,
    is_signed,
)
from holdfast.channels.webhook.filters import TooSlow
from holdfast.channels.webhook.head import BadHeader, Head
from holdfast.channels.webhook.payload import BadPayload
from holdfast.channels.webhook.route import NoTarget, Route
from holdfast.channels.webhook.signatures import Unverified
from holdfast.clock import Clock, SystemClock
from holdfast.core.keys import WEBHOOK
from holdfast.errors import Rejected
from holdfast.web import requests
from holdfast.web.answers import Refused, answer
from holdfast.web.endpoints import Endpoint, EndpointCall, demand
from holdfast.web.guard import is_near
from holdfast.web.principal import How

log = logging.getLogger(__name__)

# What people do in one moment; files are fetched, not posted.
CHAT_BODY_MAX = 1024 * 1024
_UNSIGNED_HINT = "sign it with the route's secret (see `holdfast webhooks sign`), or send a key with the scope webhook:ROUTE"
_FAR_HINT = "give the route a secret, or send a key with the scope webhook:ROUTE"
_SLOW_HINT = "write the pattern so that it can match in one way only: nothing repeated inside what is repeated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """How many events a request held."""

    events: int


class PostEndpoints:
    """The endpoints that the far side of a channel posts to.  The sender proves itself to the channel, and needs no key."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._webhooks = WebhookChannel(clock or SystemClock())

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
            Endpoint(
                method="POST",
                path="/channels/{id}",
                handle=self.report,
                summary="Hand in what people did on a chat platform; the platform proves itself",
                scope=None,
                takes=dict[str, object],
                gives=Received,
            ),
        ]

    async def deliver(self, call: EndpointCall) -> Response:
        """Take a delivery of a webhook route."""
        route = call.services.webhooks.find(call.name())
        body = await _body(call, route.config.body_limit)
        head, scope = Head(call.request.scope["headers"]), f"{WEBHOOK}{route.name}"
        authorised = call.principal.may(scope)
        if not authorised and call.principal.how is How.STRANGER:
            demand(call.principal, scope)
        posted = Posted(head=head, body=body, authorised=authorised, near=is_near(call.request.headers))
        try:
            told = await self._webhooks.receive(route, posted, call.services.messages, call.services.webhooks.takes)
        except Unverified as error:
            if call.principal.how is How.KEY and not is_signed(head):
                demand(call.principal, scope)
            raise Refused(401, "unverified", str(error), _UNSIGNED_HINT) from error
        except Rejected as error:
            if (refused := _refused(error, route)) is None:
                raise
            raise refused from error
        if isinstance(told, Challenge):
            return answer(told)
        return answer(told, 202 if told.status == "accepted" else 200)

    async def report(self, call: EndpointCall) -> Response:
        """Take what people did on a chat platform."""
        posted = chats.Posted(headers=dict(call.request.headers), body=await _body(call, CHAT_BODY_MAX))
        return answer(Received(events=await call.services.chat_requests.receive(call.name(), posted)))


async def _body(call: EndpointCall, most: int) -> bytes:
    body = await requests.content(call.request, most)
    requests.require_memory(body)
    return body


def _refused(error: Rejected, route: Route) -> Refused | None:
    """Return the answer to a delivery that the channel refused; None if the gateway refused it."""
    match error:
        case UnsignedFromAfar():
            return Refused(401, "unverified", str(error), _FAR_HINT)
        case BadPayload() | BadHeader():
            return Refused(400, "bad_delivery", str(error))
        case TooSlow():
            log.warning("webhook %s: %s", route.name, error)
            return Refused(422, "slow_filter", str(error), _SLOW_HINT)
        case EmptyPrompt():
            return Refused(422, "empty_prompt", str(error), "change the route's prompt")
        case NoTarget():
            return Refused(422, "no_target", str(error), "change the route's deliver, or what is sent")
        case RateExceeded(wait_s=wait_s):
            return Refused(429, "rate_limited", str(error), f"wait {wait_s} s, or raise the route's rate_limit", wait_s)
        case _:
            return None
